/* Order. Each stream is a lane whose ops are numbered by ticks; the host is lane 0. An op has seen the last tick of
 * every lane that is ordered before it: a vector clock. Streams see each other by events, the host by waiting; whatever
 * the host enqueues has seen all that the host has. All threads of the host are one lane: what orders them is not
 * visible here. */
#include "sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096, CHUNKS = 1 << 18, LANES = 1 << 16 };

typedef struct lane_clock {
  uint32_t tick, n_seen;
  uint32_t *seen;        /* never changed once an op or a point has it: a join makes a new one */
  uint64_t host_version; /* of the host's clock that was joined last */
} lane_clock;

static struct {
  lane_clock lanes[LANES];
  uint32_t n_lanes, n_free, free[LANES];
  uint64_t host_version;
  sim_op *chunks[CHUNKS]; /* never move: kernels look into them while the host adds */
  uint32_t n_ops, floor;
} clocks = {.n_lanes = 1, .n_ops = 1, .floor = 1};

uint32_t clock_new_lane(void) {
  if (clocks.n_free > 0) return clocks.free[--clocks.n_free];
  assert(clocks.n_lanes < LANES);
  return clocks.n_lanes++;
}

void clock_free_lane(uint32_t lane) {
  clocks.free[clocks.n_free++] = lane;
}

sim_op *clock_find(uint32_t id) {
  assert(id > 0 && id < clocks.n_ops);
  return &clocks.chunks[id / CHUNK][id % CHUNK];
}

static sim_op *new_op(void) {
  uint32_t id = clocks.n_ops;
  assert(id / CHUNK < CHUNKS);
  if (clocks.chunks[id / CHUNK] == NULL) clocks.chunks[id / CHUNK] = calloc(CHUNK, sizeof(sim_op));
  sim_op *op = &clocks.chunks[id / CHUNK][id % CHUNK];
  op->id = id;
  clocks.n_ops++;
  return op;
}

static bool covers(const lane_clock *c, uint32_t own, uint32_t lane, uint32_t tick) {
  if (lane == own) return tick <= c->tick;
  return lane < c->n_seen && c->seen[lane] >= tick;
}

/* Arrays that ops share are left to them: a few words for each time that streams wait for each other. */
static void join_one(lane_clock *c, uint32_t own, uint32_t n, const uint32_t *seen, uint32_t lane, uint32_t tick) {
  uint32_t most = n > c->n_seen ? n : c->n_seen;
  if (lane + 1 > most) most = lane + 1;
  bool news = !covers(c, own, lane, tick);
  for (uint32_t i = 0; i < n && !news; i++) news = seen[i] > 0 && !covers(c, own, i, seen[i]);
  if (!news) return;
  uint32_t *joined = calloc(most, sizeof *joined);
  if (c->n_seen > 0) memcpy(joined, c->seen, c->n_seen * sizeof *joined);
  for (uint32_t i = 0; i < n; i++)
    if (seen[i] > joined[i]) joined[i] = seen[i];
  if (tick > joined[lane]) joined[lane] = tick;
  c->seen = joined;
  c->n_seen = most;
  if (own == 0) clocks.host_version++;
}

void clock_join(uint32_t lane, sim_point p) {
  join_one(&clocks.lanes[lane], lane, p.n_seen, p.seen, p.lane, p.tick);
}

sim_point clock_now(uint32_t lane) {
  const lane_clock *c = &clocks.lanes[lane];
  return (sim_point){.lane = lane, .tick = c->tick, .n_seen = c->n_seen, .seen = c->seen};
}

/* Ops that the host knows to be done need no look at clocks. */
static uint32_t advance_floor(void) {
  while (clocks.floor < clocks.n_ops) {
    const sim_op *op = clock_find(clocks.floor);
    if (!covers(&clocks.lanes[0], 0, op->lane, op->tick)) break;
    clocks.floor++;
  }
  return clocks.floor;
}

sim_op *clock_op(uint32_t lane, int stream, const char *what, const char *name) {
  lane_clock *c = &clocks.lanes[lane];
  if (lane != 0 && c->host_version != clocks.host_version + clocks.lanes[0].tick) {
    clock_join(lane, clock_now(0));
    c->host_version = clocks.host_version + clocks.lanes[0].tick;
  }
  uint32_t floor = advance_floor();
  sim_op *op = new_op();
  op->lane = lane;
  op->tick = ++c->tick;
  op->floor = floor;
  op->n_seen = c->n_seen;
  op->seen = c->seen;
  op->what = what;
  op->name = name;
  op->stream = stream;
  return op;
}

sim_op *clock_node(const sim_op *launch, const sim_order *order, uint32_t node, const char *what, const char *name) {
  sim_op *op = new_op();
  uint32_t id = op->id;
  *op = *launch;
  op->id = id;
  op->order = order;
  op->run = launch->id;
  op->node = node;
  op->what = what;
  op->name = name;
  op->known = 0;
  return op;
}

sim_op *clock_within(const sim_op *node, const char *what, const char *name) {
  sim_op *op = new_op();
  uint32_t id = op->id;
  *op = *node;
  op->id = id;
  op->what = what;
  op->name = name;
  op->known = 0;
  return op;
}

static bool before(const sim_op *first, const sim_op *then) {
  if (first->run != 0 && first->run == then->run && first->node == then->node) return first->id < then->id;
  if (first->run != 0 && first->run == then->run)
    return then->order->bits[then->node * then->order->words + first->node / 64] >> (first->node % 64) & 1;
  if (first->lane == then->lane) return first->tick < then->tick;
  return first->lane < then->n_seen && then->seen[first->lane] >= first->tick;
}

bool clock_before(uint32_t id, sim_op *then) {
  if (id < then->floor || id == then->known) return true;
  if (!before(clock_find(id), then)) return false;
  then->known = id;
  return true;
}

const char *clock_text(uint32_t id, char *out, size_t bytes) {
  const sim_op *op = clock_find(id);
  char where[48];
  snprintf(where, sizeof where, op->stream < 0 ? "the host" : "stream %d", op->stream);
  snprintf(out, bytes, "%s%s%s (step %u, %s%s)", op->what, op->name[0] != 0 ? " " : "", op->name, id, where,
           op->run != 0 ? ", in a graph" : "");
  return out;
}

const char *intern(const char *text) {
  static struct name {
    struct name *next;
    char text[];
  } *names[1024];
  uint32_t hash = 5381;
  for (const char *p = text; *p != 0; p++) hash = hash * 33 + (unsigned char)*p;
  struct name **slot = &names[hash % 1024];
  for (; *slot != NULL; slot = &(*slot)->next)
    if (strcmp((*slot)->text, text) == 0) return (*slot)->text;
  size_t n = strlen(text) + 1;
  *slot = calloc(1, sizeof **slot + n);
  memcpy((*slot)->text, text, n);
  return (*slot)->text;
}
