/* Sockets between the processes of a set. Each listens, and says in the client's table where: a port, addresses, and a
 * word that who calls must know. It calls those before it in the set, and is called by those after it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { CONNECT_SECONDS = 120, CONNECT_WORD = 32, CONNECT_HELLO = CONNECT_WORD + 8, CONNECT_MS = 5000 };
static const char connect_welcome[8] = "xlac-net";

/* One of the set's: where it listens. */
typedef struct connect_place {
  unsigned port;
  char word[CONNECT_WORD + 1], address[INET_ADDRSTRLEN], machine[64];
} connect_place;

typedef struct connect_set {
  pjrt_world *world;
  const uint32_t *members;
  uint32_t n, us;
  int listener;
  connect_place own;
  time_t until;
  xlac_peer *peers;
} connect_set;

/* --- this machine --- */

/* Another one's address would be reached from ours: nothing is sent. */
static void connect_find_address(char *out, size_t size) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)};
  socklen_t n = sizeof a;
  snprintf(out, size, "127.0.0.1");
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  if (s < 0) return;
  (void)inet_pton(AF_INET, "192.0.2.1", &a.sin_addr);
  if (connect(s, (struct sockaddr *)&a, sizeof a) == 0 && getsockname(s, (struct sockaddr *)&a, &n) == 0)
    (void)inet_ntop(AF_INET, &a.sin_addr, out, (socklen_t)size);
  close(s);
}

/* The same text on one machine; "-" where there is none. */
static void connect_find_machine(char *out, size_t size) {
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  snprintf(out, size, "-");
  if (!f) return;
  if (fgets(out, (int)size, f)) out[strcspn(out, "\n ")] = '\0';
  fclose(f);
}

static bool connect_make_word(char out[CONNECT_WORD + 1]) {
  unsigned char bytes[CONNECT_WORD / 2];
  FILE *f = fopen("/dev/urandom", "rb");
  bool read = f && fread(bytes, 1, sizeof bytes, f) == sizeof bytes;
  if (f) fclose(f);
  for (size_t i = 0; read && i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return read;
}

static PJRT_Error *connect_listen(connect_set *c) {
  struct sockaddr_in a = {.sin_family = AF_INET};
  socklen_t n = sizeof a;
  c->listener = socket(AF_INET, SOCK_STREAM, 0);
  if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&a, sizeof a) || listen(c->listener, (int)c->n) ||
      getsockname(c->listener, (struct sockaddr *)&a, &n) || !connect_make_word(c->own.word))
    return pjrt_fail(PJRT_UNAVAILABLE, "%s can't listen for other processes",
                     pjrt_world_name(c->world, c->members[c->us]));
  (void)fcntl(c->listener, F_SETFD, FD_CLOEXEC);
  c->own.port = ntohs(a.sin_port);
  connect_find_address(c->own.address, sizeof c->own.address);
  connect_find_machine(c->own.machine, sizeof c->own.machine);
  return NULL;
}

/* --- the table: "net/" and a hash of the members --- */

static void connect_key(const connect_set *c, uint32_t member, char *key, size_t size) {
  uint64_t hash = PJRT_HASH_START;
  for (uint32_t i = 0; i < c->n; i++) hash = (hash ^ c->members[i]) * 0x100000001b3u;
  snprintf(key, size, "net/%u-%016llx/%u", (unsigned)c->n, (unsigned long long)hash, (unsigned)c->members[member]);
}

static PJRT_Error *connect_tell(connect_set *c) {
  char key[64], value[192];
  connect_key(c, c->us, key, sizeof key);
  snprintf(value, sizeof value, "%u %s %s %s", c->own.port, c->own.word, c->own.address, c->own.machine);
  return pjrt_world_put(c->world, key, value);
}

static PJRT_Error *connect_ask(connect_set *c, uint32_t member, connect_place *out) {
  char key[64], value[192];
  connect_key(c, member, key, sizeof key);
  PJRT_TRY(pjrt_world_get(c->world, key, value, sizeof value));
  if (sscanf(value, "%u %32s %15s %63s", &out->port, out->word, out->address, out->machine) == 4) return NULL;
  return pjrt_fail(PJRT_INTERNAL, "%s says \"%s\" of where it listens", pjrt_world_name(c->world, c->members[member]),
                   value);
}

/* --- lines --- */

static bool connect_wait(int s, short what, int ms) {
  struct pollfd p = {.fd = s, .events = what};
  return poll(&p, 1, ms) == 1;
}

static bool connect_read(int s, char *to, size_t n) {
  while (n) {
    ssize_t got = connect_wait(s, POLLIN, CONNECT_MS) ? recv(s, to, n, 0) : -1;
    if (got <= 0) return false;
    to += got;
    n -= (size_t)got;
  }
  return true;
}

/* What is short fits into a new socket's room. */
static bool connect_write(int s, const char *data, size_t n) {
  return send(s, data, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static void connect_set_option(int s, int level, int name, int value) {
  (void)setsockopt(s, level, name, &value, sizeof value);
}

/* A machine that is silent is given up after some 15 s. */
static void connect_prepare(int s) {
  connect_set_option(s, IPPROTO_TCP, TCP_NODELAY, 1);
  connect_set_option(s, SOL_SOCKET, SO_KEEPALIVE, 1);
  (void)fcntl(s, F_SETFD, FD_CLOEXEC);
#ifdef TCP_USER_TIMEOUT
  connect_set_option(s, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  connect_set_option(s, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  connect_set_option(s, IPPROTO_TCP, TCP_KEEPCNT, 3);
  connect_set_option(s, IPPROTO_TCP, TCP_USER_TIMEOUT, 15000);
#endif
}

/* -1: nobody of ours answers there. */
static int connect_reach(const connect_set *c, const connect_place *p, const char *address) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->port)};
  char hello[CONNECT_HELLO + 1], answer[sizeof connect_welcome];
  int s = inet_pton(AF_INET, address, &a.sin_addr) == 1 ? socket(AF_INET, SOCK_STREAM, 0) : -1;
  if (s < 0) return -1;
  snprintf(hello, sizeof hello, "%.32s%08u", p->word, (unsigned)c->us);
  bool there = connect(s, (struct sockaddr *)&a, sizeof a) == 0 && connect_write(s, hello, CONNECT_HELLO) &&
               connect_read(s, answer, sizeof answer) && memcmp(answer, connect_welcome, sizeof answer) == 0;
  if (there) return connect_prepare(s), s;
  close(s);
  return -1;
}

static PJRT_Error *connect_call(connect_set *c, uint32_t member) {
  connect_place p;
  PJRT_TRY(connect_ask(c, member, &p));
  bool same = strcmp(p.machine, c->own.machine) == 0 && strcmp(p.machine, "-") != 0;
  do { /* who listens may still be busy with others */
    if (same) c->peers[member].fd = connect_reach(c, &p, "127.0.0.1");
    if (c->peers[member].fd < 0) c->peers[member].fd = connect_reach(c, &p, p.address);
  } while (c->peers[member].fd < 0 && time(NULL) < c->until);
  if (c->peers[member].fd >= 0) return NULL;
  return pjrt_fail(PJRT_UNAVAILABLE,
                   "%s can't be reached at %s:%u from %s: each machine must be reachable from all others",
                   c->peers[member].name, p.address, p.port, c->peers[c->us].name);
}

/* Who has called, if it is one of ours that is missing. */
static void connect_answer(connect_set *c) {
  char hello[CONNECT_HELLO + 1] = "";
  unsigned member = 0;
  int s = accept(c->listener, NULL, NULL);
  if (s < 0) return;
  bool ours = connect_read(s, hello, CONNECT_HELLO) && memcmp(hello, c->own.word, CONNECT_WORD) == 0 &&
              sscanf(hello + CONNECT_WORD, "%u", &member) == 1 && member > c->us && member < c->n;
  if (ours && c->peers[member].fd < 0 && connect_write(s, connect_welcome, sizeof connect_welcome)) {
    connect_prepare(s);
    c->peers[member].fd = s;
  } else {
    close(s);
  }
}

static PJRT_Error *connect_await(connect_set *c, uint32_t member) {
  while (c->peers[member].fd < 0) {
    if (connect_wait(c->listener, POLLIN, 200)) connect_answer(c);
    if (c->peers[member].fd < 0 && time(NULL) >= c->until)
      return pjrt_fail(
          PJRT_DEADLINE_EXCEEDED,
          "%s has not loaded the program within %d s: all processes of a program load it, in the same order",
          c->peers[member].name, CONNECT_SECONDS);
  }
  return NULL;
}

static PJRT_Error *connect_all(connect_set *c) {
  PJRT_TRY(connect_listen(c));
  PJRT_TRY(connect_tell(c));
  for (uint32_t i = 0; i < c->us; i++) PJRT_TRY(connect_call(c, i));
  for (uint32_t i = c->us + 1; i < c->n; i++) PJRT_TRY(connect_await(c, i));
  return NULL;
}

PJRT_Error *pjrt_world_connect(pjrt_world *w, const uint32_t *members, uint32_t n, uint32_t us, xlac_network **out) {
  xlac_error err;
  connect_set c = {.world = w, .members = members, .n = n, .us = us, .listener = -1};
  assert(us < n);
  c.until = time(NULL) + CONNECT_SECONDS;
  c.peers = pjrt_alloc(n * sizeof *c.peers);
  if (!c.peers) return pjrt_out_of_memory("a network");
  for (uint32_t i = 0; i < n; i++) c.peers[i] = (xlac_peer){-1, pjrt_world_name(w, members[i])};
  PJRT_Error *error = connect_all(&c);
  if (!error && xlac_network_create(out, us, n, c.peers, &err))
    error = pjrt_error_of(&err);
  else if (error)
    for (uint32_t i = 0; i < n; i++)
      if (c.peers[i].fd >= 0) close(c.peers[i].fd);
  if (c.listener >= 0) close(c.listener);
  pjrt_free(c.peers);
  return error;
}
