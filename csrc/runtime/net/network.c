/* Sockets: a thread that reads all of them, messages that have come, and who waits for which. What is received goes
 * straight to where it is expected, or is kept until somebody asks. All of it under one lock, also reading, which never
 * waits; senders have a lock for each peer's line. */
#include "../network.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { NET_LINE = 1 << 16, NET_READ = 1 << 18, NET_POLL_MS = 50, NET_GRACE_MS = 2000, NET_WHY = 420 };

typedef enum net_kind { NET_DATA, NET_BEGIN, NET_FAIL, NET_BYE } net_kind;
typedef enum net_wait { NET_EXPECTED, NET_ARRIVING, NET_THERE } net_wait;
typedef enum net_end { NET_OPEN, NET_LEFT, NET_DIED } net_end;

typedef struct net_head {
  uint64_t kind, run, tag, bytes;
} net_head;

typedef struct net_message net_message;
struct net_message {
  net_message *next;
  uint32_t peer;
  net_head head;
  char data[];
};

typedef struct net_peer {
  char *name;
  int fd;
  uint8_t end;
  uint64_t run; /* the last that it has begun */
  char why[RT_LABEL_BYTES];
  /* reading */
  net_head head;
  size_t got; /* of the header, then of what follows it */
  bool in_body;
  rt_receipt *receipt;
  net_message *message;
  /* sending */
  pthread_mutex_t line;
  size_t n, left;
  char *buffer; /* NET_LINE bytes */
} net_peer;

struct rt_network {
  base_alloc alloc;
  atomic_uint users;
  uint32_t rank, n;
  pid_t process;
  pthread_t reader;
  bool reads, closed;
  int wake[2];
  pthread_mutex_t lock;
  pthread_cond_t news;
  rt_receipt *expected;
  net_message *kept, **kept_end;
  uint64_t run, gathers;
  bool running, told; /* told: why is what others said */
  atomic_bool stopped;
  char label[RT_LABEL_BYTES];
  xlac_error why;
  struct pollfd *polls;
  net_peer peers[];
};

uint32_t rt_network_rank(const rt_network *net) {
  return net->rank;
}

uint32_t rt_network_size(const rt_network *net) {
  return net->n;
}

/* --- ends; the lock is held --- */

/* The first reason is the run's. */
static void net_stop(rt_network *net, const xlac_error *why, bool told) {
  if (net->running && !atomic_load_explicit(&net->stopped, memory_order_relaxed)) {
    net->why = *why;
    net->told = told;
    atomic_store_explicit(&net->stopped, true, memory_order_relaxed);
  }
  pthread_cond_broadcast(&net->news);
}

static int net_fail_end(const net_peer *p, xlac_error *err) {
  if (p->end == NET_LEFT)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%s has ended%s%.200s", p->name, p->why[0] ? ": " : "", p->why);
  return base_hint(err, base_fail(err, XLAC_E_PARTICIPANTS, "%s has died: its connection is closed", p->name),
                   "look at what it has printed, or whether the system has killed it (memory)");
}

static void net_lose(rt_network *net, net_peer *p) {
  xlac_error why = {.code = 0};
  if (p->end == NET_OPEN) p->end = NET_DIED;
  if (p->receipt) p->receipt->state = NET_EXPECTED;
  if (p->message) base_free(net->alloc, p->message);
  p->receipt = NULL;
  p->message = NULL;
  (void)net_fail_end(p, &why);
  if (p->end == NET_DIED) net_stop(net, &why, true);
  pthread_cond_broadcast(&net->news);
}

/* --- what has come; the lock is held --- */

static int net_fail_label(const rt_network *net, const net_message *m, xlac_error *err) {
  const char *theirs = m->data;
  return base_hint(
      err,
      base_fail(err, XLAC_E_PARTICIPANTS, "call %llu: %s runs %.130s; this one, rank %u, runs %.130s",
                (unsigned long long)m->head.run, net->peers[m->peer].name, theirs, (unsigned)net->rank, net->label),
      "all ranks compile the same program with the same options, and call their programs in the same order");
}

static void net_hear_failure(rt_network *net, const net_message *m) {
  xlac_error why = {.code = 0};
  (void)base_fail(&why, XLAC_E_PARTICIPANTS, "%s: %.380s", net->peers[m->peer].name, m->data);
  net_stop(net, &why, true);
}

/* What is said of the run under way. Its end comes after all that has been sent in it. */
static void net_hear(rt_network *net, const net_message *m) {
  xlac_error why = {.code = 0};
  assert(m->head.run == net->run && net->running);
  if (m->head.kind == NET_FAIL) net_hear_failure(net, m);
  if (m->head.kind != NET_BEGIN || strncmp(m->data, net->label, sizeof net->label) == 0) return;
  (void)net_fail_label(net, m, &why);
  net_stop(net, &why, true);
}

static rt_receipt *net_find(const rt_network *net, uint32_t peer, const net_head *h) {
  for (rt_receipt *r = net->expected; r; r = r->next)
    if (r->state == NET_EXPECTED && r->peer == peer && r->run == h->run && r->tag == h->tag && r->bytes == h->bytes)
      return r;
  return NULL;
}

static void net_keep(rt_network *net, net_message *m) {
  m->next = NULL;
  *net->kept_end = m;
  net->kept_end = &m->next;
}

/* Messages of runs that are over, and those of this one that are heard now. */
static void net_sweep(rt_network *net) {
  for (net_message **link = &net->kept, *m; (m = *link) != NULL;) {
    bool says = m->head.kind != NET_DATA, ours = m->head.run == net->run && net->running;
    if (says && ours) net_hear(net, m);
    bool stays = m->head.run == 0 || m->head.run > net->run || (ours && !says);
    if (stays) {
      link = &m->next;
      continue;
    }
    *link = m->next;
    base_free(net->alloc, m);
  }
  net->kept_end = &net->kept;
  while (*net->kept_end) net->kept_end = &(*net->kept_end)->next;
}

static void net_finish_message(rt_network *net, net_peer *p) {
  net_message *m = p->message;
  rt_receipt *r = m->head.kind == NET_DATA ? net_find(net, m->peer, &m->head) : NULL;
  p->message = NULL;
  if (m->head.kind == NET_BYE) {
    p->end = NET_LEFT;
    snprintf(p->why, sizeof p->why, "%.*s", RT_LABEL_BYTES - 1, m->data);
    base_free(net->alloc, m);
    return;
  }
  if (m->head.kind == NET_BEGIN) p->run = m->head.run;
  if (r) {
    if (r->bytes) memcpy(r->to, m->data, r->bytes);
    r->state = NET_THERE;
    base_free(net->alloc, m);
    return;
  }
  net_keep(net, m);
  if (m->head.kind != NET_DATA) net_sweep(net);
}

/* A header is there: where does the rest go? False: there is no memory for it. */
static bool net_open_body(rt_network *net, net_peer *p, uint32_t peer) {
  p->in_body = true;
  p->got = 0;
  p->receipt = p->head.kind == NET_DATA ? net_find(net, peer, &p->head) : NULL;
  if (p->receipt) {
    p->receipt->state = NET_ARRIVING;
    return true;
  }
  bool fits = p->head.bytes <= (uint64_t)PTRDIFF_MAX - sizeof(net_message) - 1;
  p->message = fits ? base_malloc(net->alloc, sizeof(net_message) + (size_t)p->head.bytes + 1) : NULL;
  if (!p->message) return false;
  *p->message = (net_message){.peer = peer, .head = p->head};
  p->message->data[p->head.bytes] = 0;
  return true;
}

static void net_close_body(rt_network *net, net_peer *p) {
  p->in_body = false;
  p->got = 0;
  if (p->receipt)
    p->receipt->state = NET_THERE, p->receipt = NULL;
  else
    net_finish_message(net, p);
  pthread_cond_broadcast(&net->news);
}

/* One read. False: nothing more has come, or the end. */
static bool net_read(rt_network *net, uint32_t peer) {
  net_peer *p = &net->peers[peer];
  char *to = !p->in_body ? (char *)&p->head : p->receipt ? p->receipt->to : p->message->data;
  size_t all = p->in_body ? (size_t)p->head.bytes : sizeof p->head, left = all - p->got;
  ssize_t n = left ? recv(p->fd, to + p->got, left < NET_READ ? left : NET_READ, MSG_DONTWAIT) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n < 0 || (n == 0 && left)) return net_lose(net, p), false;
  p->got += (size_t)n;
  if (p->got < all) return true;
  if (p->in_body) {
    net_close_body(net, p);
  } else if (!net_open_body(net, p, peer)) {
    return net_lose(net, p), false;
  }
  if (p->in_body && p->head.bytes == 0) net_close_body(net, p);
  return true;
}

static void *net_reader(void *ctx) {
  rt_network *net = ctx;
  for (;;) {
    pthread_mutex_lock(&net->lock);
    bool ends = net->closed;
    for (uint32_t i = 0; i < net->n; i++)
      net->polls[i] = (struct pollfd){.fd = net->peers[i].end == NET_OPEN ? net->peers[i].fd : -1, .events = POLLIN};
    pthread_mutex_unlock(&net->lock);
    net->polls[net->n] = (struct pollfd){.fd = net->wake[0], .events = POLLIN};
    if (ends) return NULL;
    if (poll(net->polls, net->n + 1, -1) <= 0) continue;
    for (uint32_t i = 0; i < net->n; i++) {
      if (net->polls[i].fd < 0 || !net->polls[i].revents) continue;
      pthread_mutex_lock(&net->lock);
      while (net->peers[i].end == NET_OPEN && net_read(net, i)) { /* others get the lock between */
        pthread_mutex_unlock(&net->lock);
        pthread_mutex_lock(&net->lock);
      }
      pthread_mutex_unlock(&net->lock);
    }
  }
}

/* --- waiting; the lock is held --- */

static void net_until(struct timespec *t, int ms) {
  clock_gettime(CLOCK_REALTIME, t);
  t->tv_nsec += (long)ms * 1000000L;
  t->tv_sec += t->tv_nsec / 1000000000L;
  t->tv_nsec %= 1000000000L;
}

static bool net_asked(const rt_participant *us) {
  return us && us->interrupted && us->interrupted(us->interrupt_ctx);
}

/* For news, or a while. INTERRUPTED where the caller is. */
static int net_doze(rt_network *net, const rt_participant *us, xlac_error *err) {
  struct timespec until;
  net_until(&until, NET_POLL_MS);
  if (pthread_cond_timedwait(&net->news, &net->lock, &until) != ETIMEDOUT) return 0;
  pthread_mutex_unlock(&net->lock);
  bool stop = net_asked(us);
  pthread_mutex_lock(&net->lock);
  return stop ? base_interrupted(err) : 0;
}

static int net_check_usable(const rt_network *net, xlac_error *err) {
  if (net->process != getpid())
    return base_fail(err, XLAC_E_PARTICIPANTS, "a forked process has no connections to other ranks");
  if (net->closed) return base_fail(err, XLAC_E_PARTICIPANTS, "rank %u has left the other ranks", (unsigned)net->rank);
  return 0;
}

/* Why nothing will come from that peer any more; 0: it may. */
static int net_check_peer(rt_network *net, uint32_t peer, uint64_t run, const char *name, xlac_error *err) {
  const net_peer *p = &net->peers[peer];
  TRY(net_check_usable(net, err));
  if (run && rt_network_stopped(net)) {
    if (err) *err = net->why;
    return -(int)net->why.code;
  }
  if (run && p->run > run)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%s has finished call %llu without coming to %.60s, where rank %u waits",
                     p->name, (unsigned long long)run, name, (unsigned)net->rank);
  return p->end == NET_OPEN ? 0 : net_fail_end(p, err);
}

/* --- messages --- */

static net_message *net_take(rt_network *net, const rt_receipt *r) {
  for (net_message **link = &net->kept, *m; (m = *link) != NULL; link = &m->next) {
    bool fits = m->peer == r->peer && m->head.kind == NET_DATA && m->head.run == r->run && m->head.tag == r->tag;
    if (!fits || m->head.bytes != r->bytes) continue;
    *link = m->next;
    if (net->kept_end == &m->next) net->kept_end = link;
    return m;
  }
  return NULL;
}

void rt_network_expect(rt_network *net, rt_receipt *r) {
  rt_receipt **link = &net->expected;
  pthread_mutex_lock(&net->lock);
  net_message *m = net_take(net, r);
  r->next = NULL;
  r->state = m ? NET_THERE : NET_EXPECTED;
  if (m && r->bytes) memcpy(r->to, m->data, r->bytes);
  base_free(net->alloc, m);
  while (*link) link = &(*link)->next;
  *link = r;
  pthread_mutex_unlock(&net->lock);
}

/* What is on its way goes to memory of its own, and from there to nobody. */
static void net_unlink(rt_network *net, rt_receipt *r) {
  rt_receipt **link = &net->expected;
  net_peer *p = &net->peers[r->peer];
  while (*link && *link != r) link = &(*link)->next;
  if (*link) *link = r->next;
  if (p->receipt != r) return;
  p->receipt = NULL;
  p->message = base_malloc(net->alloc, sizeof(net_message) + (size_t)p->head.bytes + 1);
  if (!p->message) {
    net_lose(net, p);
    return;
  }
  *p->message = (net_message){.peer = r->peer, .head = p->head};
}

void rt_network_forget(rt_network *net, rt_receipt *r) {
  pthread_mutex_lock(&net->lock);
  net_unlink(net, r);
  pthread_mutex_unlock(&net->lock);
}

int rt_network_await(rt_network *net, const rt_participant *us, rt_receipt *r, const char *name, xlac_error *err) {
  int status = 0;
  pthread_mutex_lock(&net->lock);
  while (r->state != NET_THERE && status == 0) {
    status = r->state == NET_EXPECTED || rt_network_stopped(net) ? net_check_peer(net, r->peer, r->run, name, err)
                                                                 : net_check_usable(net, err);
    if (status == 0) status = net_doze(net, us, err);
  }
  net_unlink(net, r);
  pthread_mutex_unlock(&net->lock);
  return status;
}

/* The reader soon hears why a line is broken. */
static int net_fail_line(rt_network *net, uint32_t peer, xlac_error *err) {
  net_peer *p = &net->peers[peer];
  struct timespec until;
  net_until(&until, NET_GRACE_MS);
  pthread_mutex_lock(&net->lock);
  while (p->end == NET_OPEN && !net->closed)
    if (pthread_cond_timedwait(&net->news, &net->lock, &until) == ETIMEDOUT) break;
  int status = net_check_usable(net, err);
  if (status == 0) status = net_fail_end(p, err);
  pthread_mutex_unlock(&net->lock);
  return status;
}

/* A caller who is interrupted within a message has spoiled the line, and leaves. */
static int net_put(rt_network *net, uint32_t peer, const rt_participant *us, const char *data, size_t n,
                   xlac_error *err) {
  net_peer *p = &net->peers[peer];
  while (n) {
    ssize_t sent = send(p->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return net_fail_line(net, peer, err);
    if (sent >= 0) {
      data += sent;
      n -= (size_t)sent;
      continue;
    }
    struct pollfd room = {.fd = p->fd, .events = POLLOUT};
    if (poll(&room, 1, NET_POLL_MS) == 0 && net_asked(us)) {
      (void)shutdown(p->fd, SHUT_RDWR);
      return base_interrupted(err);
    }
  }
  return 0;
}

static int net_flush(rt_network *net, uint32_t peer, const rt_participant *us, xlac_error *err) {
  net_peer *p = &net->peers[peer];
  size_t n = p->n;
  p->n = 0;
  return net_put(net, peer, us, p->buffer, n, err);
}

static int net_send_head(rt_network *net, uint32_t peer, const rt_participant *us, const net_head *head,
                         xlac_error *err) {
  net_peer *p = &net->peers[peer];
  pthread_mutex_lock(&p->line);
  p->n = 0;
  p->left = sizeof *head + (size_t)head->bytes;
  return rt_network_send_some(net, peer, us, head, sizeof *head, err);
}

int rt_network_send_begin(rt_network *net, uint32_t peer, const rt_participant *us, uint64_t run, uint64_t tag,
                          size_t n, xlac_error *err) {
  const net_head head = {NET_DATA, run, tag, n};
  return net_send_head(net, peer, us, &head, err);
}

/* What is short is sent together. */
int rt_network_send_some(rt_network *net, uint32_t peer, const rt_participant *us, const void *data, size_t n,
                         xlac_error *err) {
  net_peer *p = &net->peers[peer];
  assert(n <= p->left);
  p->left -= n;
  if (p->n + n > NET_LINE) TRY(net_flush(net, peer, us, err));
  if (n > NET_LINE / 2) {
    if (p->n) TRY(net_flush(net, peer, us, err));
    return net_put(net, peer, us, data, n, err);
  }
  if (n) memcpy(p->buffer + p->n, data, n);
  p->n += n;
  return 0;
}

int rt_network_send_end(rt_network *net, uint32_t peer, const rt_participant *us, int status, xlac_error *err) {
  net_peer *p = &net->peers[peer];
  if (status == 0) status = net_flush(net, peer, us, err);
  assert(status || p->left == 0);
  pthread_mutex_unlock(&p->line);
  return status;
}

/* A short message to everybody who is still there; who can't be told is known to be gone, or will be. */
static void net_tell(rt_network *net, net_kind kind, uint64_t run, const char *text) {
  const net_head head = {kind, run, 0, strlen(text)};
  for (uint32_t i = 0; i < net->n; i++) {
    if (i == net->rank) continue;
    pthread_mutex_lock(&net->lock);
    bool there = net->peers[i].end == NET_OPEN;
    pthread_mutex_unlock(&net->lock);
    if (!there) continue;
    xlac_error ignored = {.code = 0};
    int status = net_send_head(net, i, NULL, &head, &ignored);
    if (status == 0) status = rt_network_send_some(net, i, NULL, text, head.bytes, &ignored);
    (void)!rt_network_send_end(net, i, NULL, status, &ignored);
  }
}

/* --- runs --- */

static int net_open_run(rt_network *net, const char *label, uint64_t *run, bool *overlaps, xlac_error *err) {
  TRY(net_check_usable(net, err));
  *overlaps = net->running;
  *run = net->run;
  if (*overlaps)
    return base_hint(
        err,
        base_fail(err, XLAC_E_PARTICIPANTS,
                  "rank %u calls a program of several processes while another call is under way", (unsigned)net->rank),
        "such calls come one after another, from one thread: their order must be the same on all ranks");
  *run = ++net->run;
  net->running = true;
  net->told = false;
  atomic_store_explicit(&net->stopped, false, memory_order_relaxed);
  snprintf(net->label, sizeof net->label, "%s", label);
  net_sweep(net);
  for (uint32_t end = NET_DIED; end > NET_OPEN; end--) /* who has died is why others have left */
    for (uint32_t i = 0; i < net->n; i++)
      if (net->peers[i].end == end) return net_fail_end(&net->peers[i], err);
  return 0;
}

static int net_wait_all(rt_network *net, const rt_participant *us, uint64_t run, xlac_error *err) {
  for (uint32_t i = 0; i < net->n; i++)
    while (i != net->rank && net->peers[i].run < run) {
      TRY(net_check_peer(net, i, run, "its beginning", err));
      TRY(net_doze(net, us, err));
    }
  return net_check_peer(net, net->rank, run, "its beginning", err);
}

int rt_network_begin(rt_network *net, const rt_participant *us, const char *label, bool all, uint64_t *run,
                     xlac_error *err) {
  bool overlaps = false;
  pthread_mutex_lock(&net->lock);
  *run = 0;
  int status = net_open_run(net, label, run, &overlaps, err);
  pthread_mutex_unlock(&net->lock);
  if (overlaps) { /* the ranks can't tell which of the two is meant */
    if (err) rt_network_fail(net, *run, err);
    return status;
  }
  if (status == 0) net_tell(net, NET_BEGIN, *run, net->label);
  if (status == 0 && all) {
    pthread_mutex_lock(&net->lock);
    status = net_wait_all(net, us, *run, err);
    pthread_mutex_unlock(&net->lock);
  }
  if (status && *run) {
    if (err) rt_network_fail(net, *run, err);
    rt_network_end(net, *run);
  }
  return status;
}

void rt_network_end(rt_network *net, uint64_t run) {
  pthread_mutex_lock(&net->lock);
  assert(net->running && net->run == run);
  (void)run;
  net->running = false;
  net_sweep(net);
  pthread_mutex_unlock(&net->lock);
}

void rt_network_fail(rt_network *net, uint64_t run, const xlac_error *why) {
  char text[NET_WHY];
  pthread_mutex_lock(&net->lock);
  bool known = atomic_load_explicit(&net->stopped, memory_order_relaxed) || net->run != run;
  if (!known) net_stop(net, why, false);
  pthread_mutex_unlock(&net->lock);
  if (known) return;
  snprintf(text, sizeof text, "%.400s", why->code == XLAC_E_INTERRUPTED ? "was interrupted" : why->message);
  net_tell(net, NET_FAIL, run, text);
}

uint64_t rt_network_runs(rt_network *net) {
  pthread_mutex_lock(&net->lock);
  uint64_t runs = net->run;
  pthread_mutex_unlock(&net->lock);
  return runs;
}

void rt_network_refuse(rt_network *net, uint64_t runs, const char *why) {
  char text[NET_WHY];
  if (net->process != getpid()) return; /* whose locks nobody may hold */
  pthread_mutex_lock(&net->lock);
  bool ours = !net->closed && !net->running && net->run == runs;
  if (ours) net->run++;
  pthread_mutex_unlock(&net->lock);
  snprintf(text, sizeof text, "%.400s", why);
  if (ours) net_tell(net, NET_FAIL, runs + 1, text);
}

bool rt_network_stopped(const rt_network *net) {
  return atomic_load_explicit(&net->stopped, memory_order_relaxed);
}

bool rt_network_why(rt_network *net, xlac_error *err) {
  pthread_mutex_lock(&net->lock);
  bool told = atomic_load_explicit(&net->stopped, memory_order_relaxed) && net->told;
  if (told && err) *err = net->why;
  pthread_mutex_unlock(&net->lock);
  return told;
}

/* --- everybody's bytes --- */

static int net_send_all(rt_network *net, const rt_participant *us, uint64_t tag, const void *data, size_t n,
                        xlac_error *err) {
  for (uint32_t i = 0; i < net->n; i++) {
    if (i == net->rank) continue;
    int status = rt_network_send_begin(net, i, us, 0, tag, n, err);
    if (status == 0) status = rt_network_send_some(net, i, us, data, n, err);
    TRY(rt_network_send_end(net, i, us, status, err));
  }
  return 0;
}

static int net_receive(rt_network *net, const rt_participant *us, uint32_t peer, uint64_t tag, void *to, size_t n,
                       xlac_error *err) {
  rt_receipt r = {.peer = peer, .tag = tag, .to = to, .bytes = n};
  rt_network_expect(net, &r);
  return rt_network_await(net, us, &r, "an exchange", err);
}

/* Lengths first, then what is as long as they say. */
int rt_network_gather(rt_network *net, const rt_participant *us, const void *data, size_t n, char **all, size_t *sizes,
                      xlac_error *err) {
  uint64_t own = n, size = 0;
  size_t total = 0, at = 0;
  pthread_mutex_lock(&net->lock);
  int usable = net_check_usable(net, err);
  uint64_t tag = 2 * net->gathers++;
  pthread_mutex_unlock(&net->lock);
  TRY(usable);
  TRY(net_send_all(net, us, tag, &own, sizeof own, err));
  TRY(net_send_all(net, us, tag + 1, data, n, err));
  for (uint32_t i = 0; i < net->n; i++) {
    size = own;
    if (i != net->rank) TRY(net_receive(net, us, i, tag, &size, sizeof size, err));
    sizes[i] = (size_t)size;
    total += sizes[i];
  }
  char *room = malloc(total + 1);
  int status = room ? 0 : base_oom(err, "an exchange");
  for (uint32_t i = 0; i < net->n && status == 0; at += sizes[i++])
    if (i != net->rank)
      status = net_receive(net, us, i, tag + 1, room + at, sizes[i], err);
    else if (n)
      memcpy(room + at, data, n);
  if (status)
    free(room);
  else
    *all = room;
  return status;
}

/* --- making and closing --- */

/* Those who are told that we leave are told before they see it. */
void rt_network_close(rt_network *net, const char *why) {
  if (net->process != getpid()) return;
  pthread_mutex_lock(&net->lock);
  bool closed = net->closed;
  net->closed = true;
  pthread_cond_broadcast(&net->news);
  pthread_mutex_unlock(&net->lock);
  if (closed) return;
  net_tell(net, NET_BYE, 0, why ? why : "");
  if (net->reads) {
    (void)!write(net->wake[1], "", 1);
    pthread_join(net->reader, NULL);
  }
  for (uint32_t i = 0; i < net->n; i++)
    if (net->peers[i].fd >= 0) (void)shutdown(net->peers[i].fd, SHUT_WR);
}

static void net_free(rt_network *net) {
  rt_network_close(net, NULL);
  for (uint32_t i = 0; i < net->n; i++) {
    net_peer *p = &net->peers[i];
    if (p->fd >= 0) close(p->fd);
    base_free(net->alloc, p->message);
    base_free(net->alloc, p->name);
    base_free(net->alloc, p->buffer);
    pthread_mutex_destroy(&p->line);
  }
  for (net_message *m = net->kept, *next; m; m = next) next = m->next, base_free(net->alloc, m);
  for (uint32_t i = 0; i < 2; i++)
    if (net->wake[i] >= 0) close(net->wake[i]);
  pthread_mutex_destroy(&net->lock);
  pthread_cond_destroy(&net->news);
  base_free(net->alloc, net->polls);
  base_free(net->alloc, net);
}

rt_network *rt_network_retain(rt_network *net) {
  if (net) atomic_fetch_add(&net->users, 1);
  return net;
}

void rt_network_release(rt_network *net) {
  if (net && atomic_fetch_sub(&net->users, 1) == 1) net_free(net);
}

static bool net_name(rt_network *net, net_peer *p, const char *name) {
  size_t n = strlen(name) + 1;
  p->name = base_malloc(net->alloc, n);
  p->buffer = p->fd >= 0 ? base_malloc(net->alloc, NET_LINE) : NULL;
  if (p->name) memcpy(p->name, name, n);
  return p->name && (p->buffer || p->fd < 0);
}

static int net_start(rt_network *net, const rt_peer *peers, xlac_error *err) {
  net->polls = base_malloc(net->alloc, ((size_t)net->n + 1) * sizeof *net->polls);
  bool ok = net->polls && pipe(net->wake) == 0;
  for (uint32_t i = 0; i < net->n && ok; i++) ok = net_name(net, &net->peers[i], peers[i].name);
  net->reads = ok && pthread_create(&net->reader, NULL, net_reader, net) == 0;
  return net->reads ? 0 : base_oom(err, "a network");
}

int rt_network_create(rt_network **out, uint32_t rank, uint32_t n, const rt_peer *peers, base_alloc alloc,
                      xlac_error *err) {
  size_t bytes = sizeof(rt_network) + (size_t)n * sizeof(net_peer);
  rt_network *net = base_malloc(alloc, bytes);
  if (!net) {
    for (uint32_t i = 0; i < n; i++)
      if (peers[i].fd >= 0) close(peers[i].fd);
    return base_oom(err, "a network");
  }
  memset(net, 0, bytes);
  net->alloc = alloc;
  net->rank = rank;
  net->n = n;
  net->process = getpid();
  net->wake[0] = net->wake[1] = -1;
  net->kept_end = &net->kept;
  atomic_init(&net->users, 1);
  pthread_mutex_init(&net->lock, NULL);
  pthread_cond_init(&net->news, NULL);
  for (uint32_t i = 0; i < n; i++) {
    net->peers[i].fd = peers[i].fd;
    pthread_mutex_init(&net->peers[i].line, NULL);
  }
  int status = net_start(net, peers, err);
  if (status)
    rt_network_release(net);
  else
    *out = net;
  return status;
}
