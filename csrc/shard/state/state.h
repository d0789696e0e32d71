/* What propagation knows of a module: a slot for every value and every function result, with the sharding it has now,
 * and who reads it. Propagation works on this table alone and writes the module once at its end (shard_state_store),
 * so that an error on the way leaves no half-sharded program behind. Slots are numbered in text order: all results of
 * all ops first, then the results of functions, which in Shardy have shardings of their own beside those of what is
 * returned. One thread at a time; everything that the table points to is owned by its arena or by the module. */
#ifndef XLAC_SHARD_STATE_STATE_H
#define XLAC_SHARD_STATE_STATE_H

#include "../../ir/sdy/sdy.h"
#include "../common/pool.h"

#define SHARD_NO_SLOT UINT32_MAX

/* One value. Several values can share a sharding: the results and region arguments that one data-flow edge stands
 * for. `home` leads to the slot that holds it, so reading is shard_now and writing shard_state_set, never `now` of
 * the slot. */
typedef struct shard_slot {
  const sdy_sharding *now; /* or NULL */
  uint32_t home;  /* the slot that holds the sharding of this value: its own, that of the data flow edge it is a
                     target of, or SHARD_NO_SLOT: it can't have one */
  uint32_t group; /* 1 + its sharding group; 0: none */
  uint32_t index;
  uint32_t when : 31;   /* the tick of the last change */
  uint32_t changed : 1; /* `now` is not what the module says */
  ir_op *op;            /* the value is its result `index`; NULL: result `index` of a function */
} shard_slot;

/* A change, for who wants to go back to it: after it the value's slot holds another sharding than this one. */
typedef struct shard_change {
  const sdy_sharding *was;
  uint32_t slot;
} shard_change;
BASE_VEC(shard_changes, shard_change);

/* A use of a value by the end of a region or function: result `index` of c. */
typedef struct shard_return {
  ir_computation *c;
  uint32_t index;
} shard_return;

/* A sharding group (sdy.sharding_group): values that must always have the same sharding. */
typedef struct shard_group {
  uint32_t n;
  uint32_t *members; /* slots */
} shard_group;

/* A mesh by its name, so that the symbol is looked up once; mesh is NULL where the module has none of that name. */
typedef struct shard_mesh_entry {
  const base_istr *name;
  const sdy_mesh *mesh;
} shard_mesh_entry;
BASE_VEC(shard_meshes, shard_mesh_entry);

/* A function's callers, in text order. */
typedef struct shard_callers {
  uint32_t n;
  ir_op **calls;
} shard_callers;

/* use_first and return_first are offsets in the manner of compressed sparse rows: the uses of slot i are
 * uses[use_first[i]] up to uses[use_first[i + 1]], without the end. */
typedef struct shard_state {
  ir_module *m;
  base_arena arena;
  uint32_t n_ids, n_slots, n_values; /* slots: values first, then functions' results */
  shard_slot *slots;
  uint32_t *first_slot;   /* by op id: of its result 0 */
  uint32_t *first_result; /* by computation id: of function result 0, or SHARD_NO_SLOT */
  uint32_t *use_first;    /* by slot, n_values + 1: into `uses`, in the order in which MLIR would have them */
  const ir_use **uses;
  uint32_t *return_first; /* by slot, n_values + 1: into `returns` */
  shard_return *returns;
  base_map edges;         /* slot to the data flow edge that reads this value and nobody else does */
  shard_callers *callers; /* by computation id */
  base_map functions;     /* name to ir_computation */
  uint32_t n_groups;
  shard_group *groups;
  shard_meshes meshes;
  uint32_t tick;
  bool logs; /* changes are written down */
  shard_changes changes;
  base_map kept;  /* hash of a sharding to one in the module */
  base_map lists; /* a sharding in the module to its attribute as the list of one result */
} shard_state;

/* Groups must have been joined (shard_groups_join) before. Errors: a group that no value can be in twice, and calls of
 * functions that are not there. */
XLAC_MUST_USE int shard_state_make(shard_state *s, ir_module *m, xlac_error *err);
void shard_state_free(shard_state *s);
/* --- shardings in the module --- */
/* --- state.c --- */
/* The sharding in the module's arena; equal ones are one. NULL when out of memory. */
const sdy_sharding *shard_state_keep(shard_state *s, const sdy_sharding *to);
/* As sdy_set, of a sharding that lies in the module; the lists of ops with one result are shared. */
XLAC_MUST_USE bool shard_state_write(shard_state *s, ir_value v, const sdy_sharding *to);
/* Writes all changed shardings into the module. */
XLAC_MUST_USE int shard_state_store(shard_state *s, xlac_error *err);
/* Gives all members of a sharding group the one sharding they have; where they have several, an open constraint after
 * each becomes the member in its place. */
XLAC_MUST_USE int shard_groups_join(ir_module *m, xlac_error *err);

/* The slot of a result. The op must have been there when the table was made: passes that add ops check op->id <
 * n_ids. */
static inline uint32_t shard_slot_of(const shard_state *s, const ir_op *op, uint32_t index) {
  assert(op->id < s->n_ids);
  return s->first_slot[op->id] + index;
}
/* SHARD_NO_SLOT for a value that can have no sharding, such as the argument of a region that no edge stands for. */
static inline uint32_t shard_home(const shard_state *s, uint32_t slot) {
  return slot == SHARD_NO_SLOT ? slot : s->slots[slot].home;
}
/* The sharding of the value of a slot, wherever it is held. */
static inline const sdy_sharding *shard_now(const shard_state *s, uint32_t slot) {
  uint32_t home = shard_home(s, slot);
  return home == SHARD_NO_SLOT ? NULL : s->slots[home].now;
}
/* Replaces it; `to` may lie anywhere. Other results of the op become open where none had a sharding. false when out of
 * memory. */
XLAC_MUST_USE bool shard_state_set(shard_state *s, uint32_t slot, const sdy_sharding *to);
XLAC_MUST_USE int shard_state_groups(shard_state *s, xlac_error *err); /* fills in the groups */
/* The sdy.data_flow_edge that is the only reader of the slot's value, or NULL. It then holds the sharding. */
static inline ir_op *shard_edge_of(const shard_state *s, uint32_t slot) {
  uint64_t edge = 0;
  return base_map_get(&s->edges, slot, &edge) ? (ir_op *)(uintptr_t)edge : NULL;
}
/* The mesh that a sharding is on, by name or written in place; NULL where no mesh has that name, or out of memory. */
const sdy_mesh *shard_state_mesh(shard_state *s, const sdy_sharding *of);
/* The function a func.call names; NULL where the module has none. */
ir_computation *shard_callee(const shard_state *s, const ir_op *call);
/* The value is used exactly once (what functions and regions give back are uses too). */
bool shard_has_one_use(const shard_state *s, uint32_t slot);
bool shard_is_flow(const ir_op *op); /* while, case, barrier, named and manual computation: has data flow edges */
/* The owner of the edge whose target or source the value is. SHARD_NO_SLOT where there is none. */
uint32_t shard_owner_of_param(const shard_state *s, const ir_op *param);
/* A manual computation's shardings inside and out. `outer` has manual axes first in every dimension; without them, and
 * with the axes of `inner` after them. In the pool. NULL when out of memory. */
const sdy_sharding *shard_manual_inside(shard_pool *pool, const sdy_sharding *outer, const sdy_names *manual);
const sdy_sharding *shard_manual_outside(shard_pool *pool, const sdy_sharding *outer, const sdy_sharding *inner,
                                         const sdy_names *manual);

#endif
