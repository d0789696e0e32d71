/* The making of plans, inside. */
#ifndef XLAC_PLAN_BUILD_H
#define XLAC_PLAN_BUILD_H

#include "../passes/effects.h"
#include "plan.h"

/* Calls nested deeper than this are the interpreter's, which has a limit of its own. */
enum { PLAN_MAX_DEPTH = 200 };

/* The leaves of an op's value: a range of plan_build.leaves. */
typedef struct plan_leaves {
  uint32_t at, n;
} plan_leaves;

BASE_VEC(plan_buffers, plan_buffer);
BASE_VEC(plan_steps, plan_step);
BASE_VEC(plan_leaf_ids, uint32_t);

/* What is numbered over all programs of a plan. Counted up while programs are made; a backend finds its own data by
 * them. */
typedef struct plan_numbers {
  uint32_t programs, routines;
} plan_numbers;

/* A chain while its program is built. `over` is the chain's own list, still to be changed. */
typedef struct plan_open_chain {
  plan_chain *chain;
  uint32_t *over; /* chain->over */
} plan_open_chain;
BASE_VEC(plan_open_chains, plan_open_chain);

/* A copy that kernels load (fusion_input). */
typedef struct plan_copy {
  fusion_input of;
  uint32_t buffer;
} plan_copy;
BASE_VEC(plan_copies, plan_copy);

/* The making of one program; an inner program's is a copy of the outer one's with lists of its own. */
typedef struct plan_build {
  const ir_module *m;
  const plan_options *options;
  base_arena *arena; /* of what stays */
  base_alloc alloc;
  plan_program *p;
  plan_buffers buffers;
  plan_steps steps;
  plan_leaf_ids leaves; /* buffers; those of the arguments come first */
  plan_leaves *values;  /* by op id */
  uint8_t *marks;       /* by op id; all zero between uses */
  uint32_t *numbers;    /* the same */
  fusion_plan fusion;
  const fusion_plan *explained; /* the same, in the arena */
  const opt_facts *facts;
  plan_program **made; /* by computation id: its program, its program as a loop's body */
  plan_numbers *numbers_given;
  plan_donation *donations; /* of the program, until it is built */
  plan_open_chains chains;
  plan_copies copies;
  bool body;            /* of a loop: results are the next arguments */
  const uint32_t *over; /* for the program to be built next: what becomes its own `over`; NULL otherwise */
  uint32_t depth;
  bool failed; /* out of memory */
  xlac_error *err;
} plan_build;

/* --- steps.c --- */
/* x->failed is set when out of memory: callers check once, at the end of what they do. */
uint32_t plan_new_buffer(plan_build *x, plan_buffer b);
plan_leaves plan_new_leaves(plan_build *x, const ir_op *op, plan_buffer like);
/* The same for a type, appended to x->leaves and numbered from *number on. */
void plan_add_leaves(plan_build *x, const ir_op *op, const ir_type *t, plan_buffer like, uint32_t *number);
/* Room for n + 1 ids in the arena. */
uint32_t *plan_ids(plan_build *x, uint32_t n);
/* All leaves of the operands from number `first` on; *n of them. */
const uint32_t *plan_operand_buffers(plan_build *x, const ir_op *op, uint32_t first, uint32_t *n);
/* New buffers for op's leaves, with room for `extra` more ids after them. `*n` ids are filled; `extra` more may be. */
uint32_t *plan_result_buffers(plan_build *x, const ir_op *op, uint32_t extra, uint32_t *n);
XLAC_MUST_USE int plan_add_step(plan_build *x, plan_step s);

/* --- build.c --- */
/* Made once for each computation and role (body or not), whoever asks. */
XLAC_MUST_USE int plan_build_program(const plan_build *outer, const ir_computation *c, bool body, plan_program **out);

/* --- donation.c: who of the entry's arguments gives its memory to which result --- */
/* Sets p->donations, p->over and p->spares of the entry's program. */
void plan_find_donations(plan_build *x);

/* --- results.c: where results lie, and the copies that takes --- */
XLAC_MUST_USE int plan_build_results(plan_build *x, const ir_computation *c);

/* --- tile.c: sets p->tiles, by where the buffers lie. products: those alone that have some. Otherwise none but those
 * of p->tiles, which are left as they are. --- */
XLAC_MUST_USE int plan_find_tiles(plan_program *p, const fusion_model *m, bool products, base_arena *arena,
                                  xlac_error *err);
/* Whether the tile is still one, by where its buffers lie now. */
bool plan_tile_holds(const plan_program *p, const plan_tile *t);

/* --- tile_place.c: places of all buffers (plan_place_buffers), and p->tiles --- */
XLAC_MUST_USE int plan_place_with_tiles(plan_program *p, plan_step *steps, plan_buffer *buffers, const fusion_model *m,
                                        base_arena *arena, xlac_error *err);

/* --- nested.c: loops, branches, calls. *done is false for other ops, and where a callee can't be planned. --- */
XLAC_MUST_USE int plan_build_nested(plan_build *x, const ir_op *op, bool *done);

/* --- async.c: async starts, updates and dones. *done is false for other ops. --- */
XLAC_MUST_USE int plan_build_async(plan_build *x, const ir_op *op, bool *done);

/* --- async_order.c: puts the n ops of `order`, each after its operands, into the order they are to run in, where c has
 * async starts. false when out of memory. --- */
bool plan_order_async(const plan_build *x, const ir_computation *c, uint32_t n, ir_op **order, base_arena *scratch);

#endif
