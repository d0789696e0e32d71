/* The other processes of jax.distributed. The client has a table of texts that all processes read and write; there each
 * says how many devices it has, and later where it listens. Programs of devices of several processes run on a network
 * (xlac_network.h), one for each set of processes, which is made when the first such program is loaded: all of the set
 * load the same programs in the same order.
 *
 * Keys are "xlac/N/...": N counts the clients of a process, which may be made anew; a key is written once. */
#include "world.h"

#include <stdio.h>
#include <unistd.h>

enum { WORLD_TIMEOUT_MS = 120000, WORLD_CLIENTS = 64, WORLD_KEY = 96 };

typedef struct world_process {
  uint32_t devices;
  char name[160]; /* for errors: "process 1 (pid 4711 on here)" */
} world_process;

typedef struct world_set {
  struct world_set *next;
  xlac_network *net;
  uint32_t n, members[]; /* processes, ascending */
} world_set;

struct pjrt_world {
  pthread_mutex_t lock;
  PJRT_KeyValueGetCallback get;
  PJRT_KeyValuePutCallback put;
  void *get_arg, *put_arg;
  uint32_t number, node, nodes;
  world_set *sets;
  world_process processes[];
};

/* --- the client's table --- */

static PJRT_Error *world_error(PJRT_Error_Code code, const char *message, size_t n) {
  return pjrt_fail(code, "%.*s", (int)(n < 1500 ? n : 1500), message);
}

/* A key among those of this world. */
static void world_key(const pjrt_world *w, const char *key, char out[WORLD_KEY]) {
  snprintf(out, WORLD_KEY, "xlac/%u/%s", (unsigned)w->number, key);
}

PJRT_Error *pjrt_world_put(pjrt_world *w, const char *key, const char *value) {
  PJRT_CallbackError make = world_error;
  char all[WORLD_KEY];
  world_key(w, key, all);
  PJRT_KeyValuePutCallback_Args args = {.struct_size = sizeof args,
                                        .key = all,
                                        .key_size = strlen(all),
                                        .value = value,
                                        .value_size = strlen(value),
                                        .callback_error = &make,
                                        .user_arg = w->put_arg};
  return w->put(&args);
}

PJRT_Error *pjrt_world_get(pjrt_world *w, const char *key, char *value, size_t size) {
  PJRT_CallbackError make = world_error;
  char all[WORLD_KEY];
  world_key(w, key, all);
  PJRT_KeyValueGetCallback_Args args = {.struct_size = sizeof args,
                                        .key = all,
                                        .key_size = strlen(all),
                                        .timeout_in_ms = WORLD_TIMEOUT_MS,
                                        .callback_error = &make,
                                        .user_arg = w->get_arg};
  PJRT_TRY(w->get(&args));
  bool fits = args.value_size < size;
  if (fits) memcpy(value, args.value, args.value_size), value[args.value_size] = '\0';
  if (args.value_deleter_callback) args.value_deleter_callback(args.value);
  return fits ? NULL : pjrt_fail(PJRT_INTERNAL, "%s: another version of xlac's plugin has written it", all);
}

const char *pjrt_world_name(const pjrt_world *w, uint32_t process) {
  assert(process < w->nodes);
  return w->processes[process].name;
}

/* --- who there is --- */

/* The first number whose key is free is that of this client: the same in all processes. */
static PJRT_Error *world_enter(pjrt_world *w, const pjrt_client_options *o) {
  char key[32], value[160], host[96] = "?";
  PJRT_Error *error = NULL;
  (void)gethostname(host, sizeof host - 1);
  snprintf(key, sizeof key, "devices/%u", (unsigned)w->node);
  snprintf(value, sizeof value, "%u %ld %.90s", (unsigned)o->devices, (long)getpid(), host);
  for (w->number = 0; w->number < WORLD_CLIENTS; w->number++) {
    PJRT_Error_Destroy_Args args = {.struct_size = sizeof args, .error = error};
    if (error) pjrt_error_destroy(&args);
    if (!(error = pjrt_world_put(w, key, value))) return NULL;
  }
  return error;
}

static PJRT_Error *world_meet(pjrt_world *w, uint32_t process) {
  world_process *p = &w->processes[process];
  char key[32], value[160], host[96] = "?";
  unsigned devices = 0;
  long pid = 0;
  snprintf(key, sizeof key, "devices/%u", (unsigned)process);
  PJRT_TRY(pjrt_world_get(w, key, value, sizeof value));
  if (sscanf(value, "%u %ld %95s", &devices, &pid, host) < 2 || devices < 1 || devices > PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INTERNAL, "process %u says of its devices \"%s\"", process, value);
  p->devices = devices;
  snprintf(p->name, sizeof p->name, "process %u (pid %ld on %s)", (unsigned)process, pid, host);
  return NULL;
}

PJRT_Error *pjrt_world_join(pjrt_world **out, const pjrt_client_options *o, const PJRT_Client_Create_Args *args) {
  if (!args->kv_get_callback || !args->kv_put_callback)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%u processes, and no table of the client's that they share", o->nodes);
  pjrt_world *w = pjrt_alloc(sizeof *w + o->nodes * sizeof *w->processes);
  if (!w) return pjrt_out_of_memory("a client of several processes");
  pthread_mutex_init(&w->lock, NULL);
  w->get = args->kv_get_callback;
  w->get_arg = args->kv_get_user_arg;
  w->put = args->kv_put_callback;
  w->put_arg = args->kv_put_user_arg;
  w->node = o->node;
  w->nodes = o->nodes;
  *out = w;
  PJRT_TRY(world_enter(w, o));
  for (uint32_t p = 0; p < w->nodes; p++) PJRT_TRY(world_meet(w, p));
  return NULL;
}

void pjrt_world_free(pjrt_world *w) {
  if (!w) return;
  for (world_set *s = w->sets, *next; s; s = next) {
    next = s->next;
    if (s->net) xlac_network_close(s->net, NULL);
    xlac_network_release(s->net);
    pjrt_free(s);
  }
  pthread_mutex_destroy(&w->lock);
  pjrt_free(w);
}

uint32_t pjrt_world_devices(const pjrt_world *w, uint32_t process) {
  assert(process < w->nodes);
  return w->processes[process].devices;
}

/* --- sets of processes; the lock is held --- */

static bool world_is_set(const world_set *s, const world_set *other) {
  return s->n == other->n && memcmp(s->members, other->members, s->n * sizeof *s->members) == 0;
}

static uint32_t world_place(const world_set *s, uint32_t process) {
  uint32_t place = 0;
  while (place < s->n && s->members[place] != process) place++;
  return place;
}

/* Those that have one of the n devices. */
static world_set *world_new_set(const pjrt_world *w, const uint32_t *processes, uint32_t n) {
  world_set *s = pjrt_alloc(sizeof *s + w->nodes * sizeof *s->members);
  if (!s) return NULL;
  for (uint32_t p = 0; p < w->nodes; p++) {
    bool is_there = false;
    for (uint32_t d = 0; d < n && !is_there; d++) is_there = processes[d] == p;
    if (is_there) s->members[s->n++] = p;
  }
  return s;
}

/* The set that is known, or this one, connected. */
static PJRT_Error *world_find(pjrt_world *w, world_set *made, world_set **out) {
  for (world_set *s = w->sets; s; s = s->next)
    if (world_is_set(s, made)) {
      pjrt_free(made);
      *out = s;
      return NULL;
    }
  uint32_t us = world_place(made, w->node);
  PJRT_Error *error = us < made->n ? pjrt_world_connect(w, made->members, made->n, us, &made->net)
                                   : pjrt_fail(PJRT_INVALID_ARGUMENT, "no device of the program is one of process %u",
                                               (unsigned)w->node);
  if (error) {
    pjrt_free(made);
    return error;
  }
  made->next = w->sets;
  w->sets = *out = made;
  return NULL;
}

static PJRT_Error *world_join_set(const world_set *s, xlac_executable *exe, const char *label,
                                  const uint32_t *processes, uint32_t n) {
  xlac_error err;
  uint32_t *places = pjrt_alloc(n * sizeof *places);
  if (!places) return pjrt_out_of_memory("an executable");
  for (uint32_t d = 0; d < n; d++) places[d] = world_place(s, processes[d]);
  int status = xlac_executable_join(exe, s->net, places, label, &err);
  pjrt_free(places);
  return status ? pjrt_error_of(&err) : NULL;
}

PJRT_Error *pjrt_world_share(pjrt_world *w, xlac_executable *exe, const char *label, const uint32_t *processes,
                             uint32_t n) {
  world_set *s = world_new_set(w, processes, n);
  if (!s) return pjrt_out_of_memory("an executable");
  pthread_mutex_lock(&w->lock);
  PJRT_Error *error = world_find(w, s, &s);
  pthread_mutex_unlock(&w->lock);
  return error ? error : world_join_set(s, exe, label, processes, n);
}
