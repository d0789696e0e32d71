
/* The model: how long ops and chains take, what an order of ops makes of it, and how much memory it needs. */
#include "model.h"

/* A core of a few GHz with vector instructions, its memory, and a link to somewhere else. Only ratios matter. */
const async_model async_model_default = {.gigaflops = 50, .memory = 20, .link = 10, .overhead = 500, .latency = 2000};

/* exp, log, tanh: a polynomial and a few more operations. */
enum { ASYNC_TRANSCENDENTAL_FLOPS = 8 };

int async_costs_begin(async_costs *c, async_edit *e, const async_model *model) {
  *c = (async_costs){.e = e, .model = *model, .n_lanes = ASYNC_THREADS};
  base_arena *arena = &e->facts.arena;
  base_map_init(&c->thread_of, e->m->alloc);
  c->of_computation = base_arena_zalloc(arena, ((size_t)e->m->n_computation_ids + 1) * sizeof *c->of_computation);
  c->chain_of = base_arena_zalloc(arena, ((size_t)e->m->n_ids + 1) * sizeof *c->chain_of);
  c->uses = base_arena_zalloc(arena, ((size_t)e->m->n_ids + 1) * sizeof *c->uses);
  if (c->of_computation && c->chain_of && c->uses) return 0;
  async_costs_end(c);
  return async_oom(e);
}

void async_costs_end(async_costs *c) {
  base_map_free(&c->thread_of);
  base_free(c->e->m->alloc, c->chains);
  base_free(c->e->m->alloc, c->threads);
}

/* --- time --- */

/* Each operand is read, the result written. */
static double async_bytes(const ir_op *op) {
  double bytes = (double)ir_type_bytes(op->type);
  for (uint32_t i = 0; i < op->n_operands; i++) bytes += (double)ir_type_bytes(ir_operand_type(op, i));
  return bytes;
}

static double async_arithmetic(const ir_op *op) {
  opt_cost cost = opt_op_cost(op);
  return cost.flops + ASYNC_TRANSCENDENTAL_FLOPS * cost.transcendentals;
}

/* Arithmetic and memory traffic overlap. A fusion's values are in memory at its ends only. */
static double async_own_time(const async_costs *c, const ir_op *op) {
  double flops = async_arithmetic(op);
  if (op->opcode == IR_OP_FUSION && op->n_called == 1)
    IR_FOR_OPS(inner, op->called[0]) flops += async_arithmetic(inner);
  double compute = flops / c->model.gigaflops, traffic = async_bytes(op) / c->model.memory;
  return c->model.overhead + (compute > traffic ? compute : traffic);
}

/* Latency and bandwidth: the usual two numbers. */
static double async_transfer_time(const async_costs *c, double bytes) {
  return c->model.latency + bytes / c->model.link;
}

/* A branch at its worst, a loop at a guess. */
static double async_callees_time(const async_costs *c, const ir_op *op) {
  double sum = 0, most = 0;
  for (uint32_t i = 0; i < op->n_called; i++) {
    double t = c->of_computation[op->called[i]->id];
    sum += t;
    if (t > most) most = t;
  }
  return op->opcode == IR_OP_CONDITIONAL ? most : op->opcode == IR_OP_WHILE ? ASYNC_TRIPS * sum : sum;
}

/* What the op itself does, also where a chain does it. */
static double async_work_time(const async_costs *c, const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_WHILE:
    case IR_OP_CONDITIONAL:
    case IR_OP_CALL:
      return c->model.overhead + async_callees_time(c, op);
    default:
      if (async_is_free(op)) return 0;
      if (ir_opcode_has(op->opcode, IR_COLLECTIVE)) return async_transfer_time(c, async_bytes(op));
      return async_own_time(c, op);
  }
}

double async_op_time(const async_costs *c, const ir_op *op) {
  const uint32_t links = IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE;
  return ir_opcode_info(op->opcode)->traits & links ? 0 : async_work_time(c, op);
}

/* --- chains --- */

/* Lanes of threads are numbered as they are met, anew in each computation. */
static bool async_thread_lane(async_costs *c, const base_istr *name, uint32_t *lane) {
  uint64_t known = 0;
  if (base_map_get(&c->thread_of, base_key(name), &known)) return *lane = (uint32_t)known, true;
  if (c->n_lanes - ASYNC_THREADS == c->lane_cap) {
    uint32_t cap = c->lane_cap ? c->lane_cap * 2 : 16;
    const base_istr **grown = base_realloc(c->e->m->alloc, c->threads, cap * sizeof *grown);
    if (!grown) return false;
    c->threads = grown, c->lane_cap = cap;
  }
  *lane = c->n_lanes;
  c->threads[c->n_lanes - ASYNC_THREADS] = name;
  return base_map_set(&c->thread_of, base_key(name), c->n_lanes++);
}

/* The main thread has no name in HLO. */
const char *async_lane_name(const async_costs *c, uint32_t lane) {
  static const char *const names[ASYNC_THREADS] = {"copies", "collectives", "transfers"};
  if (lane < ASYNC_THREADS) return names[lane];
  const base_istr *thread = c->threads[lane - ASYNC_THREADS];
  return thread ? thread->s : "main";
}

/* What a generic start runs: the op that the wrapped computation is there for. */
static const ir_op *async_work_of(const ir_op *start) {
  if (start->opcode != IR_OP_ASYNC_START) return start;
  return ir_root(start->called[0]);
}

/* By what the chain does: hardware has engines for copies and links for collectives. */
static bool async_set_lane(async_costs *c, async_chain *chain) {
  unsigned opcode = chain->work->opcode;
  if (opcode == IR_OP_COPY || opcode == IR_OP_COPY_START) {
    chain->lane = ASYNC_COPIES;
  } else if (ir_opcode_has(opcode, IR_COLLECTIVE)) {
    chain->lane = ASYNC_COLLECTIVES;
  } else if (ir_opcode_info(opcode)->traits & (IR_ASYNC_START | IR_ASYNC_DONE)) {
    chain->lane = ASYNC_TRANSFERS;
  } else {
    return async_thread_lane(c, chain->start->called[0]->execution_thread, &chain->lane);
  }
  return true;
}

/* Transfers by the bytes of operands and result, work by its time. */
static double async_chain_length(const async_costs *c, const async_chain *chain) {
  if (chain->lane >= ASYNC_THREADS) return async_work_time(c, chain->work);
  double bytes = (double)ir_type_bytes(chain->done->type);
  for (uint32_t i = 0; i < chain->start->n_operands; i++)
    bytes += (double)ir_type_bytes(ir_operand_type(chain->start, i));
  return async_transfer_time(c, bytes);
}

/* Every link is marked with the chain's number. */
static bool async_add_chain(async_costs *c, ir_op *start, ir_op *done) {
  assert(start->parent == done->parent);
  if (c->n_chains == c->chain_cap) {
    uint32_t cap = c->chain_cap ? c->chain_cap * 2 : 64;
    async_chain *grown = base_realloc(c->e->m->alloc, c->chains, cap * sizeof *grown);
    if (!grown) return false;
    c->chains = grown, c->chain_cap = cap;
  }
  async_chain *chain = &c->chains[c->n_chains++];
  *chain = (async_chain){.start = start, .done = done, .work = async_work_of(start)};
  if (!async_set_lane(c, chain)) return false;
  chain->length = async_chain_length(c, chain);
  for (const ir_op *link = done;; link = ir_operand(link, 0)) {
    c->chain_of[link->id] = c->n_chains;
    if (link == start) return true;
    chain->n_updates += link != done;
  }
}

/* By their dones: a start whose done is elsewhere (carried by a loop) is not a chain here. */
int async_find_chains(async_costs *c, ir_computation *of) {
  c->n_chains = 0;
  if (c->n_lanes > ASYNC_THREADS) base_map_clear(&c->thread_of);
  c->n_lanes = ASYNC_THREADS;
  IR_FOR_OPS(op, of) {
    ir_op *start = ir_opcode_has(op->opcode, IR_ASYNC_DONE) ? async_start_of_done(op) : NULL;
    if (start && !async_add_chain(c, start, op)) return async_oom(c->e);
  }
  return 0;
}

typedef struct async_lane {
  double free_at;
  uint32_t last; /* 1 + the number of its last chain */
} async_lane;

/* First come, first served. */
static void async_issue(async_costs *c, async_chain *chain, async_lane *lane, double t) {
  assert(chain >= c->chains && chain < c->chains + c->n_chains);
  chain->issued = t;
  chain->behind = lane->free_at > t ? lane->last : 0;
  chain->begins = lane->free_at > t ? lane->free_at : t;
  chain->ends = lane->free_at = chain->begins + chain->length;
  lane->last = (uint32_t)(chain - c->chains) + 1;
}

/* One walk: the time that ops take, plus what dones wait. */
bool async_simulate(async_costs *c, ir_op *const *order, uint32_t n, async_times *out) {
  async_lane *lanes = base_malloc(c->e->m->alloc, c->n_lanes * sizeof *lanes);
  if (!lanes) return false;
  memset(lanes, 0, c->n_lanes * sizeof *lanes);
  *out = (async_times){0};
  double t = 0;
  for (uint32_t i = 0; i < n; i++) {
    async_chain *chain = async_chain_of(c, order[i]);
    t += async_op_time(c, order[i]);
    if (chain && order[i] == chain->start) {
      async_issue(c, chain, &lanes[chain->lane], t);
      out->work += chain->length;
    } else if (chain && order[i] == chain->done) {
      chain->reached = t;
      chain->exposed = chain->ends > t ? chain->ends - t : 0;
      t += chain->exposed;
      out->exposed += chain->exposed;
    }
  }
  out->makespan = t;
  base_free(c->e->m->alloc, lanes);
  return true;
}

/* How much memory values take in an order of ops: each from the op that makes it to the last that reads it, also
 * through ops that only pass values on. A start holds its operands until its done, and has memory for its outputs,
 * which the done gives. What loops, branches and callees need inside is the same in any order and not counted. */

/* Its result is (part of) its operand. */
static bool async_passes_on(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_BITCAST:
    case IR_OP_OPT_BARRIER:
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_WHILE:
    case IR_OP_DYNAMIC_UPDATE_SLICE: /* usually done in place */
      return true;
    default:
      return (ir_opcode_info(op->opcode)->traits & (IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE)) != 0;
  }
}

/* Parameters and constants are there all the time and count for nothing. Of a start the outputs count: element 1 of
 * (operands, outputs, ...), element 0 of a copy's. */
int64_t async_live_bytes(const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_CONSTANT) return 0;
  if (!ir_opcode_has(op->opcode, IR_ASYNC_START)) return async_passes_on(op) ? 0 : ir_type_bytes(op->type);
  bool has_outputs = op->opcode != IR_OP_ALL_REDUCE_START && ir_is_tuple(op->type) && op->type->n_elements >= 2;
  if (!has_outputs) return ir_type_bytes(op->type);
  return ir_type_bytes(op->type->elements[op->opcode == IR_OP_COPY_START ? 0 : 1]);
}

/* The computation's results are read once more, in the end. */
bool async_live_begin(async_live *l, const async_costs *c, const ir_computation *of, base_arena *arena) {
  *l = (async_live){.costs = c, .uses = c->uses};
  size_t room = 1;
  IR_FOR_OPS(op, of) l->uses[op->id] = 0;
  IR_FOR_OPS(op, of) {
    for (uint32_t i = 0; i < op->n_operands; i++) l->uses[ir_operand(op, i)->id]++;
    room += op->n_operands + 1;
  }
  for (uint32_t i = 0; i < of->n_results; i++) l->uses[of->results[i].op->id]++;
  l->stack = BASE_ARRAY(arena, const ir_op *, room);
  return l->stack != NULL;
}

/* One read of op is over. */
static void async_live_drop(async_live *l, const ir_op *op) {
  uint32_t n = 0;
  l->stack[n++] = op;
  while (n) {
    const ir_op *top = l->stack[--n];
    assert(l->uses[top->id]);
    if (--l->uses[top->id]) continue;
    l->bytes -= async_live_bytes(top);
    const async_chain *chain = async_chain_of(l->costs, top);
    bool gone = chain && top == chain->start; /* the done has let its operands go */
    for (uint32_t i = 0; async_passes_on(top) && !gone && i < top->n_operands; i++) l->stack[n++] = ir_operand(top, i);
  }
}

/* A done lets the start's operands go, which were held while the transfer ran. What passes values on holds its
 * operands for as long as it is read itself. */
void async_live_run(async_live *l, const ir_op *op) {
  const async_chain *chain = async_chain_of(l->costs, op);
  l->bytes += async_live_bytes(op);
  if (l->bytes > l->peak) l->peak = l->bytes;
  if (chain && op == chain->done)
    for (uint32_t i = 0; i < chain->start->n_operands; i++) async_live_drop(l, ir_operand(chain->start, i));
  if (l->uses[op->id] == 0) {
    l->uses[op->id] = 1; /* nobody reads it: gone at once */
    async_live_drop(l, op);
    if (async_passes_on(op)) return;
  } else if (async_passes_on(op)) {
    return;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) async_live_drop(l, ir_operand(op, i));
}
