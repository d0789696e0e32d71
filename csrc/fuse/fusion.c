/* Producers join the kernel of the only root that uses them. Users come before producers here, so that each op is
 * decided once, from what its users have become.
 *
 *     a = f32[9] exp(p)        INNER, of c's kernel
 *     b = f32[9] iota()        CHEAP: computed wherever it is used
 *     c = f32[9] multiply(a, b)  ROOT: it is a result
 *
 * Values that several kernels read, or that an op which is not a kernel reads, go to memory. The reasons are kept as
 * constant texts: explain("fusion") shows them, and nothing else depends on them. */
#include "fusion_inside.h"

#include "../kernel/kernel.h"
#include "../passes/hlo/arg_reduce.h"

/* Limits of kernels, and sizes from which something is worth it, as measured on CPUs. */
enum {
  FUSION_MAX_RANK = KERNEL_MAX_RANK,
  FUSION_MAX_CARRY = KERNEL_MAX_CARRY, /* results that a scan carries along */
  FUSION_ROWS = 8,                     /* of a scan: fewer are ... */
  FUSION_ALONE = 1 << 16,              /* ... for one thread alone, and fused only up to so many elements */
  FUSION_MAX_EDGES = 8,                /* picks in one kernel */
  FUSION_EDGES = 1024,                 /* elements: fewer are copied faster than picked */
  FUSION_TURNING = 512,                /* elements of a transposition that is worth a step */
  FUSION_CHANNELS = 4,                 /* columns that are read, or written, as fast where they are */
  FUSION_CHANNEL_BYTES = 32,           /* of rows that are joined in a kernel, whatever it computes ... */
  FUSION_ODD = 9                       /* ... and whose elements are less than so many times a power of 2 */
};

/* Kernels have fixed extents, and no quantised elements. */
static bool fusion_is_static(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && t->rank <= FUSION_MAX_RANK && !t->quant;
}

bool fusion_is_scalar_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT && op->u.literal && !op->u.literal->elided && op->type->count == 1;
}

/* Rows become columns: element by element every load would be from another cache line, and often another page. Going
 * through the array in tiles costs a fraction of that, though it is a step of its own. */
static bool fusion_is_turning(const ir_op *op) {
  if (op->opcode != IR_OP_TRANSPOSE || op->type->count < FUSION_TURNING) return false;
  const ir_type *from = ir_operand_type(op, 0);
  const ir_ints *order = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  uint32_t to_last = op->type->rank, from_last = from->rank;
  while (to_last > 0 && op->type->dims[to_last - 1] == 1) to_last--;
  while (from_last > 0 && from->dims[from_last - 1] == 1) from_last--;
  return to_last > 0 && order->v[to_last - 1] != (int64_t)from_last - 1;
}

/* Rows that become columns, but with few channels as the last dimension of one of the two: each line of the cache is
 * read while it is there. Machine code takes such lanes apart, or puts them together; the VM would be slower than a
 * step. */
static bool fusion_turns_channels(const fusion_plan *f, const ir_op *op) {
  if (!f->model.facts.native || op->n_control_preds || !fusion_is_turning(op)) return false;
  const ir_type *from = ir_operand_type(op, 0), *to = op->type;
  const int64_t *order = ir_get_ints(op, IR_ATTR_DIMENSIONS)->v;
  if (!fusion_is_static(to) || to->rank < 2) return false;
  uint32_t last = to->rank - 1;
  assert(from->rank == to->rank);
  if (from->dims[last] <= FUSION_CHANNELS) return order[last] == (int64_t)last - 1;
  return to->dims[last] <= FUSION_CHANNELS && order[last - 1] == (int64_t)last;
}

/* `copy` is excluded as its purpose is memory of its own; an op with control predecessors must keep its place. */
bool fusion_is_candidate(const ir_op *op) {
  assert(op && op->type);
  scalar_loop l;
  uint32_t along = 0;
  bool back = false;
  if (fusion_is_turning(op)) return false;
  if (!fusion_is_static(op->type) || op->n_control_preds || op->opcode == IR_OP_COPY) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!fusion_is_static(ir_operand_type(op, i))) return false;
  if (fusion_moves_index(op) || op->opcode == IR_OP_IOTA || fusion_is_scalar_constant(op)) return true;
  if (op->opcode == IR_OP_REDUCE_WINDOW) return fusion_scan(op, &along, &back) != NULL;
  return !ir_opcode_has(op->opcode, IR_NONDETERMINISTIC) && scalar_loop_of_op(op, &l);
}

/* Associative and commutative on lanes: the order of a reduction is the kernel's to choose. */
static bool fusion_combines(ir_opcode opcode) {
  return opcode == IR_OP_ADD || opcode == IR_OP_MULTIPLY || opcode == IR_OP_MAXIMUM || opcode == IR_OP_MINIMUM ||
         opcode == IR_OP_AND || opcode == IR_OP_OR || opcode == IR_OP_XOR;
}

const ir_op *fusion_reduction(const ir_op *op) {
  return op->opcode == IR_OP_REDUCE ? fusion_combiner(op) : NULL;
}

/* The computation must be one op on its two parameters, in either order, all of the operand's element type. StableHLO
 * lets reducers take arrays, which kernels do not. */
const ir_op *fusion_combiner(const ir_op *op) {
  scalar_loop l;
  if (op->n_operands != 2 || op->n_called != 1 || op->n_control_preds) return NULL;
  const ir_type *t = ir_operand_type(op, 0);
  const ir_op *body = ir_root(op->called[0]);
  if (!fusion_is_static(t) || !fusion_is_static(op->type) || body->n_operands != 2 || !fusion_combines(body->opcode))
    return NULL;
  const ir_op *a = ir_operand(body, 0), *b = ir_operand(body, 1);
  bool params = a->opcode == IR_OP_PARAMETER && b->opcode == IR_OP_PARAMETER && a != b;
  bool same = body->type->dtype == t->dtype && op->type->dtype == t->dtype && a->type->dtype == t->dtype;
  bool scalars = ir_is_scalar(ir_operand_type(op, 1)) && ir_is_scalar(body->type);
  return params && same && scalars && scalar_loop_of_op(body, &l) ? body : NULL;
}

/* Whether any op waits for an async operation. */
static bool fusion_has_chains(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (ir_opcode_has(op->opcode, IR_ASYNC_DONE)) return true;
  return false;
}

/* Of the module's group: what a text says, which may be anything. */
static uint32_t fusion_devices(const ir_module *m) {
  int64_t all = 0;
  if (!base_mul_i64(m->config.replica_count, m->config.num_partitions, &all) || all > UINT32_MAX) return UINT32_MAX;
  return all > 1 ? (uint32_t)all : 1;
}

/* An entry for each op, zeroed. False when out of memory. */
bool fusion_make(fusion_plan *f, const ir_module *m, const rt_compute_facts *facts, base_arena *arena) {
  assert(f && m && arena);
  size_t n = (size_t)m->n_ids + 1;
  f->of = base_arena_zalloc(arena, n * sizeof *f->of);
  bool chains = fusion_has_chains(m);
  f->waits = chains ? base_arena_zalloc(arena, n * sizeof *f->waits) : NULL;
  fusion_model_make(&f->model, facts);
  f->model.devices = fusion_devices(m);
  return f->of && (f->waits || !chains);
}

bool fusion_expands(const ir_op *op) {
  return op->opcode == IR_OP_BROADCAST && op->type->count != ir_operand_type(op, 0)->count;
}

bool fusion_is_cheap(const ir_op *op, uint32_t *weight) {
  *weight = 1;
  while (op->opcode == IR_OP_BROADCAST && *weight < FUSION_MAX_CHEAP) {
    op = ir_operand(op, 0);
    ++*weight;
  }
  return *weight > 1 ? *weight < FUSION_MAX_CHEAP : op->opcode == IR_OP_IOTA || fusion_is_scalar_constant(op);
}

/* What the users of an op say: the root that all of them belong to, or why the op must be in memory. */
typedef struct fusion_users {
  ir_op *root;
  const char *why;
  bool outside; /* somebody who is not a kernel reads it */
  uint32_t n;
} fusion_users;

/* Where it is read, only the run knows: the array of a dynamic-slice, or of a gather. */
static bool fusion_is_array_of_places(const ir_use *use) {
  return use->slot == 0 && (use->user->opcode == IR_OP_DYNAMIC_SLICE || use->user->opcode == IR_OP_GATHER);
}

/* Such an array must be in memory; a reduction's initial value is read once, before the kernel iterates. */
static bool fusion_is_outside(const fusion_plan *f, const ir_use *use) {
  const ir_op *user = use->user;
  if (fusion_is_array_of_places(use)) return true;
  return f->of[user->id].role == FUSION_NO || (user->opcode == IR_OP_REDUCE && use->slot != 0);
}

/* Whether the user wants the value at all. */
static bool fusion_reads(const fusion_plan *f, const ir_use *use) {
  opt_arg_reduction a;
  return !(f->skips_places && use->slot == 1 && opt_arg_reduction_of(use->user, &a) && a.counts);
}

static const char fusion_several[] = "several kernels read it", fusion_indexes[] = "it is read at several indexes";

/* Why the user can't take the op into its kernel; NULL where it can. */
static const char *fusion_user_objects(const fusion_plan *f, const ir_use *use, uint32_t n_users) {
  const ir_op *user = use->user;
  uint8_t role = f->of[user->id].role;
  if (f->of[user->id].role != FUSION_NO && fusion_is_array_of_places(use))
    return "it is read at a place that is computed";
  if (fusion_is_outside(f, use)) return "an op that is not a kernel reads it";

  if (fusion_expands(user)) return "a broadcast would compute it many times";
  if (fusion_moves_index(user) && n_users > 1 && !fusion_gather_of(use)) return fusion_indexes;
  if (role == FUSION_CHEAP) return fusion_several;
  return NULL;
}

/* All users must be of one root; the first objection is kept. */
static void fusion_look_at_users(const fusion_plan *f, const ir_op *op, fusion_users *u) {
  assert(u && !u->root && !u->n);
  uint32_t uses = 0;
  IR_FOR_USES(use, op) uses++;
  IR_FOR_USES(use, op) {
    const ir_op *user = use->user;
    u->n++;
    u->outside = u->outside || (fusion_is_outside(f, use) && fusion_reads(f, use));
    if (u->why) continue;
    u->why = fusion_user_objects(f, use, uses);
    ir_op *root = f->of[user->id].root;
    if (!u->why && u->root && u->root != root) u->why = fusion_several;
    u->root = root;
  }
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) u->why = "it is a result", u->outside = true;
}

/* Whether some operand will surely be computed in the kernel: then it is worth being one. */
static bool fusion_brings_work(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *from = ir_operand(op, i);
    bool once = from->uses && !from->uses->next && op->parent == from->parent;
    for (uint32_t k = 0; k < op->parent->n_results; k++) once = once && op->parent->results[k].op != from;
    if (once && from->type->rank && fusion_is_candidate(from) && !fusion_moves_index(from) &&
        from->opcode != IR_OP_IOTA && from->opcode != IR_OP_CONSTANT && !from->n_control_preds)
      return true;
  }
  return false;
}

/* How many picks it is in a kernel: none where each reader wants one operand alone, as gathers do of an index vector.
 */
static uint32_t fusion_edges_of(const ir_op *op) {
  bool picks = false;
  IR_FOR_USES(use, op) picks = picks || !fusion_gather_of(use);
  return !picks ? 0 : op->opcode == IR_OP_PAD ? 1 : op->n_operands - 1;
}

/* Whether edges of what the user reads are none of the kernel's dimensions, or of its few channels: those are gone
 * through with others as one dimension, which has no edges inside. */
static bool fusion_hides_edges(const fusion_plan *f, const ir_op *user) {
  return f->of[user->id].splits_dim || fusion_splits(user) || fusion_is_turning(user);
}

/* Whether machine code goes through rows of so many elements by cycles of a few vectors. */
static bool fusion_has_cycles(int64_t row) {
  return row > 1 && row >> __builtin_ctzll((uint64_t)row) < FUSION_ODD;
}

/* Whether lanes of the operand lie near each other: else it is better cut out before. */
static bool fusion_is_near(const ir_op *op) {
  const ir_type *from = op->type;
  while (op->opcode == IR_OP_RESHAPE) op = ir_operand(op, 0);
  if (op->opcode == IR_OP_SLICE) from = ir_operand_type(op, 0);
  int64_t row = (int64_t)base_dtype_bytes((base_dtype)from->dtype) * (from->rank ? from->dims[from->rank - 1] : 1);
  return row <= FUSION_CHANNEL_BYTES && op->opcode != IR_OP_TRANSPOSE;
}

/* Whether op joins rows of few bytes, or pads them: pixels that get another channel, or change their order. Machine
 * code puts whole vectors of them together, where a routine would copy some bytes at a time. */
static bool fusion_joins_channels(const fusion_plan *f, const ir_op *op) {
  const ir_type *t = op->type;
  const ir_attr *padding = ir_attr_find(op, IR_ATTR_PADDING);
  uint32_t along = t->rank - 1;
  if (!f->model.facts.native || !fusion_has_edges(op) || t->count < FUSION_EDGES) return false;
  for (uint32_t d = 0; padding && d < along; d++)
    if (padding->v.padding->v[d].low || padding->v.padding->v[d].high) return false;
  if (!padding && ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0] != along) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!fusion_is_near(ir_operand(op, i))) return false;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)t->dtype) * t->dims[along];
  return bytes <= FUSION_CHANNEL_BYTES && fusion_has_cycles(t->dims[along]);
}

/* Why an op with edges is in no kernel, that of `root` if there is one. */
static const char *fusion_edges_object(const fusion_plan *f, const ir_op *op, const ir_op *root) {
  if (root && fusion_edges_of(op) == 0) return NULL;
  IR_FOR_USES(use, op)
  if (root && fusion_hides_edges(f, use->user)) return "its edges are not those of a dimension of the kernel";
  if (op->type->count < FUSION_EDGES) return "it has too few elements for edges in a kernel";
  uint32_t edges = (root ? f->of[root->id].edges : 0) + fusion_edges_of(op);
  return edges > FUSION_MAX_EDGES ? "the kernel has edges enough" : NULL;
}

/* Those of a scan's results that follow one another, and those side by side. */
static void fusion_measure_scan(const ir_type *t, uint32_t along, int64_t *outer, int64_t *inner) {
  assert(along < t->rank);
  *outer = *inner = 1;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d < along) *outer *= t->dims[d];
    if (d > along) *inner *= t->dims[d];
  }
}

/* Why a scan is in no kernel, that of `root` if there is one; *code says which scans the kernel then has. */
static const char *fusion_scan_objects(const fusion_plan *f, const ir_op *op, const ir_op *root, uint8_t *code) {
  uint32_t along = 0;
  bool back = false;
  int64_t outer = 1, inner = 1;
  (void)fusion_scan(op, &along, &back);
  *code = (uint8_t)(2 * along + back + 1);
  fusion_measure_scan(op->type, along, &outer, &inner);
  if (inner > FUSION_MAX_CARRY) return "a kernel can't carry so many results along";
  if (outer < FUSION_ROWS && op->type->count > FUSION_ALONE) return "its rows are too few to be shared among threads";
  if (!root) return NULL;
  if (fusion_reduction(root)) return "a kernel that sums up has no scans";
  if (f->of[root->id].scans && f->of[root->id].scans != *code) return "the kernel has scans along another way";
  if (op->type->count != root->type->count || op->type->rank != root->type->rank)
    return "it is not of the kernel's shape";
  IR_FOR_USES(use, op)
  if (!f->of[use->user->id].identity_map || fusion_moves_index(use->user))
    return "its elements are not those of the kernel in their order";
  return NULL;
}

/* What would be a kernel by itself, and better is none: its operands are in memory then. true where that is so.
 * Records the objection as the reason. Edges and scans may end a kernel of their own where a producer brings work
 * along, and so may transpositions. */
static bool fusion_stays_soft(fusion_plan *f, ir_op *op, const char **why, ir_op *root) {
  bool turns = fusion_is_turning(op);
  if (!fusion_is_soft(op) && !turns) return false;
  uint8_t scan = 0;
  const ir_op *kernel = *why ? NULL : root;
  const char *objection = fusion_has_edges(op)                ? fusion_edges_object(f, op, kernel)
                          : op->opcode == IR_OP_REDUCE_WINDOW ? fusion_scan_objects(f, op, kernel, &scan)
                                                              : NULL;
  bool can_end = fusion_has_edges(op) || scan || turns;
  bool ends = op->opcode == IR_OP_GATHER ? fusion_gather_has_work(op)
                                         : can_end && (fusion_brings_work(op) || fusion_joins_channels(f, op));
  if (!objection && (!*why || ends)) {
    if (scan) f->of[kernel ? kernel->id : op->id].scans = scan;
    return false;
  }
  f->of[op->id].role = FUSION_NO;
  f->of[op->id].root = NULL;
  f->of[op->id].why = objection ? objection : *why;
  return true;
}

/* Kernels that read op, as far as is known by now: those of several indexes count apart. */
static uint32_t fusion_count_readers(const fusion_plan *f, const ir_op *op) {
  const ir_op *seen[4];
  uint32_t n = 0;
  IR_FOR_USES(use, op) {
    const ir_op *reader = fusion_moves_index(use->user) ? use->user : f->of[use->user->id].root;
    bool again = false;
    for (uint32_t i = 0; i < n && !again; i++) again = seen[i] == reader;
    if (!again && n < 4) seen[n++] = reader;
  }
  return n;
}

/* Whether each of the kernels that read op is to compute it: nobody else reads it then. */
static bool fusion_goes_anew(fusion_plan *f, const ir_op *op, const fusion_users *u) {
  if (u->outside || (u->why != fusion_several && u->why != fusion_indexes)) return false;
  return fusion_is_better_anew(&f->model, op, fusion_count_readers(f, op), &f->of[op->id]);
}

/* Sets role, root and reason of op from its users, which have been decided. */
static void fusion_decide_op(fusion_plan *f, ir_op *op) {
  assert(op->id < op->parent->module->n_ids);
  fusion_users u = {NULL, NULL, false, 0};
  uint32_t weight = 0;
  if (fusion_reduction(op)) {
    f->of[op->id].role = FUSION_ROOT;
    f->of[op->id].root = op;
    f->of[op->id].why = "a reduction ends a kernel";
    f->of[op->id].size = 1;
    return;
  }
  if (!fusion_is_candidate(op) && !fusion_turns_channels(f, op)) return;
  fusion_look_at_users(f, op, &u);
  f->of[op->id].root = op;
  if (fusion_is_cheap(op, &weight) || fusion_goes_anew(f, op, &u)) {
    f->of[op->id].role = FUSION_CHEAP;
    f->of[op->id].needed = u.outside;
    f->of[op->id].why = u.why;
    return;
  }
  uint32_t most = f->model.facts.native ? FUSION_MAX_CODE : FUSION_MAX_OPS;
  if (!u.why && u.root && f->of[u.root->id].size >= most) u.why = "the kernel is full";
  if (!u.why && !u.root) u.why = "nobody reads it";
  if (!u.why && f->waits && f->waits[u.root->id] != f->waits[op->id])
    u.why = "an async operation is waited for in between";
  if (fusion_stays_soft(f, op, &u.why, u.root)) return;
  f->of[op->id].role = u.why ? FUSION_ROOT : FUSION_INNER;
  f->of[op->id].why = u.why;
  if (!u.why) f->of[op->id].root = u.root;
  if (fusion_has_edges(op)) f->of[f->of[op->id].root->id].edges += (uint8_t)fusion_edges_of(op);
  f->of[op->id].identity_map = true;
  IR_FOR_USES(use, op)
  if (!u.why && (!f->of[use->user->id].identity_map || fusion_moves_index(use->user)))
    f->of[op->id].identity_map = false;
  IR_FOR_USES(use, op)
  if (!u.why && fusion_hides_edges(f, use->user)) f->of[op->id].splits_dim = true;
  f->of[f->of[op->id].root->id].size++;
}

/* keep, reduce, keep: at most two changes along the dimensions. */
bool fusion_reduces_in_order(const ir_op *op) {
  assert(op->opcode == IR_OP_REDUCE);
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const ir_type *t = ir_operand_type(op, 0);
  bool reduced[FUSION_MAX_RANK] = {false};
  int64_t count = 1;
  uint32_t changes = 0;
  for (uint32_t i = 0; dims && i < dims->n; i++) {
    reduced[dims->v[i]] = true;
    count *= t->dims[dims->v[i]];
  }
  for (uint32_t d = 0; d < t->rank; d++) changes += reduced[d] != (d > 0 && reduced[d - 1]);
  bool outer = t->rank > 0 && !reduced[0]; /* few are reduced side by side, the kept ones innermost */
  return changes <= 2 && !(outer && count < FUSION_SHORT);
}

/* Sets every entry of the computation's ops anew, so that it may be run again after a change: a kernel for each root,
 * which merging comes after. */
void fusion_decide(fusion_plan *f, const ir_computation *c, uint32_t n, ir_op *const *order) {
  assert(f && c && (order || n == 0));
  assert(n <= c->n_ops);
  (void)c;
  for (uint32_t i = 0; i < n; i++)
    f->of[order[i]->id] = (fusion_op){.role = FUSION_NO, .merged_first = order[i], .anchor = order[i]};
  for (uint32_t i = 0, waits = 0; f->waits && i < n; i++) {
    f->waits[order[i]->id] = waits;
    waits += ir_opcode_has(order[i]->opcode, IR_ASYNC_DONE);
  }
  for (uint32_t i = n; i-- > 0;) fusion_decide_op(f, order[i]);
}
