/* The IR: modules, computations, ops. Plain structs in the module's arena; nothing is freed singly.
 * Thread-compatible: any number of threads may read a module, one may edit it while nobody reads.
 *
 * One IR serves HLO and StableHLO. HLO ops have one result, maybe of tuple type, and call named computations; StableHLO
 * ops have n results and own regions, which are computations with `owner` set that may use values from outside.
 * A module is in one of two forms (ir_module::form). HLO form: one result an op, named computations, attributes in
 * op->attrs. MLIR form: n results, functions and regions, attributes in op->mlir, types without layouts;
 * docs/design/mlir.md. The executable form that the interpreter runs is HLO form. */
#ifndef XLAC_IR_IR_H
#define XLAC_IR_IR_H

#include "attrs/attr.h"
#include "types/literal.h"
#include "attrs/mattr.h"
#include "../base/map.h"
#include "opcode.h"

/* A result of an op. HLO: index is always 0. */
typedef struct ir_value {
  ir_op *op;
  uint32_t index;
} ir_value;

/* An operand slot, and its link in the list of its value's users. Edit through ir_set_operand only. */
typedef struct ir_use {
  ir_op *op;      /* the op whose result is used (never NULL in a whole module) */
  uint32_t index; /* which result */
  uint32_t slot;  /* which operand of user */
  ir_op *user;
  struct ir_use *next, **link; /* next use of op; the pointer that points here */
} ir_use;

/* A control edge: succ runs after pred. It is in two lists: of succ's predecessors, in the order of the text, and of
 * pred's successors, in no order; so an edge goes without a search. Edit through ir_add_control_pred and its like. */
typedef struct ir_control {
  ir_op *pred, *succ;
  struct ir_control *next, *prev; /* among succ's predecessors; the first one's prev is the last one */
  struct ir_control *next_succ, **succ_link;
} ir_control;

/* Most of a module's memory is ops: small things stand together, so that there are no holes. */
struct ir_op {
  uint16_t opcode; /* ir_opcode */
  uint16_t n_results;
  uint32_t id; /* dense, unique in the module, < module->n_ids: side tables are flat arrays */
  uint32_t n_operands, n_called, n_control_preds;
  uint32_t line, col; /* in the text it came from, from 1; 0 none */
  uint8_t n_attrs, attr_cap;
  uint8_t operand_room; /* `operands` has 2 to that many slots; 0: as many as the op was made with */
  bool properties;      /* UNREGISTERED: its attributes are properties, <{...}> in text, not discardable ones */
  ir_use *operands;
  const ir_type *type;         /* of result 0 */
  const ir_type *const *types; /* of all results; &type when there is one */
  const base_istr *name;       /* without '%'; unique in the module after ir_uniquify_names; never NULL */
  ir_attr *attrs;              /* n_attrs, any order; printers use the order of ops.def */
  ir_computation *
      *called; /* roles by opcode, see ops.def: while is {condition, body}, select-and-scatter {select, scatter} */
  union {
    int64_t number;            /* PARAMETER: its number */
    const ir_literal *literal; /* CONSTANT in HLO form: its value (MLIR form: the attribute "value") */
    const base_istr *name;     /* UNREGISTERED: "foo.bar" */
  } u;
  const ir_mdict *mlir;      /* MLIR form: all attributes, inherent and discardable, sorted by name; NULL: none */
  const ir_mattr *loc;       /* MLIR form: its location, or NULL */
  ir_control *control_preds; /* n_control_preds of them */
  ir_control *control_succs;
  ir_use *uses; /* head of the list of uses of any result; order unspecified */
  ir_computation *parent;
  ir_op *prev, *next; /* in the computation's order: text order, or creation order */
};
_Static_assert(IR_ATTR_COUNT <= UINT8_MAX / 2, "an op has no key twice, and room doubles");

typedef enum ir_computation_kind {
  IR_COMPUTATION, /* HLO form */
  IR_FUNCTION,    /* func.func, or what stands for one */
  IR_REGION,      /* of `owner`; one block (empty: no ops, no results, `declaration`) */
  IR_SYMBOL       /* any other op at module level (sdy.mesh, unregistered ones): it is the only op, `first` */
} ir_computation_kind;

struct ir_computation {
  ir_module *module;
  uint32_t id;
  const base_istr *name;
  ir_op *first, *last;
  uint32_t n_ops;
  ir_value *results; /* HLO: one, the root */
  uint32_t n_results;
  ir_op **params; /* by number; no holes in a verified module, NULL where one is missing */
  uint32_t n_params;
  const base_istr *execution_thread; /* NULL is "main" */
  ir_op *owner;                      /* the op whose region this is, or NULL */
  const ir_dict *frontend_attributes;
  ir_computation *prev, *next; /* in the module's order: text order */
  uint32_t line, col;
  uint32_t return_line, return_col; /* MLIR form: of the op that returns; 0: unknown */
  uint8_t kind;                     /* ir_computation_kind */
  bool declaration;                 /* a function or region without a body */
  bool open_end; /* a function whose last op is one that xlac does not know: nobody can call it, and it has no results
                    but those of its type */
  /* MLIR form. A parameter's own attributes are in its op's `mlir`, its type in its type. */
  const ir_mdict *mlir; /* a function's attributes but for its name and type, sym_visibility included */
  const ir_mdict *const
      *result_mlir;             /* a function's result attributes, ir_function_results (each may be NULL), or NULL */
  const ir_type *function_type; /* a declaration's type, else NULL: it follows from params and results; where those
                                   are of other types (which the verifier refuses), or the op that ends the function is
                                   of an unknown dialect, the declared one */
  const ir_mattr *loc, *return_loc; /* of the function, of the op that returns (func.return, stablehlo.return) */
  const ir_mdict *return_mlir;      /* attributes on that op, or NULL */
  const base_istr *return_name;     /* its name where it is not the usual one (func.return in functions,
                                       stablehlo.return in regions; sdy.return, chlo.return), else NULL */
  bool hidden; /* made for async sugar: printed inside its start op when that reparses to the same */
};

/* A row of FileLocations. */
typedef struct ir_location {
  uint32_t file, function; /* 1-based rows of file_names, function_names */
  int64_t line, end_line, column, end_column;
} ir_location;
/* A row of StackFrames. */
typedef struct ir_frame {
  uint32_t location,
      parent; /* 1-based rows (location 0: unknown); parent == own row: none. The text writes row + 1, 1 for none */
} ir_frame;
/* FileNames, FunctionNames, FileLocations, StackFrames. Row i stands at [i-1]. */
typedef struct ir_source_tables {
  uint32_t n_files, n_functions, n_locations, n_frames;
  const base_istr **files, **functions;
  ir_location *locations;
  ir_frame *frames;
} ir_source_tables;

/* buffer_donor={ (0, {1}) }: a parameter and an index path into it. */
typedef struct ir_donor {
  int64_t parameter;
  const ir_ints *index;
} ir_donor;

/* The facts of the module header. */
typedef struct ir_config {
  bool is_scheduled;
  uint32_t n_aliases;
  ir_alias *aliases; /* input_output_alias, sorted by output index */
  uint32_t n_donors;
  ir_donor *donors;                        /* buffer_donor, sorted, no duplicates */
  const ir_ints *alias_passthrough_params; /* or NULL */
  bool has_entry_layout;
  uint32_t n_entry_params;
  const ir_type **entry_params; /* entry_computation_layout */
  const ir_type *entry_result;
  const ir_ints *spmd_to_parameters, *spmd_to_output; /* allow_spmd_sharding_propagation_to_*, 0/1 lists, or NULL */
  int64_t replica_count, num_partitions;              /* 1 where not given */
  const ir_dict *frontend_attributes;                 /* or NULL */
  const base_istr *origin_recovery_table;             /* verbatim, or NULL */
} ir_config;

/* What ir_verify has found a module to be: unknown, what XLA accepts, or what XLA documents. */
typedef enum ir_verified { IR_UNVERIFIED, IR_VERIFIED_LENIENTLY, IR_VERIFIED } ir_verified;

/* Which of the two forms a module is in; see the top of this file. */
typedef enum ir_form { IR_FORM_HLO, IR_FORM_MLIR } ir_form;

struct ir_module {
  uint8_t form;         /* ir_form */
  bool named;           /* MLIR form: the module has a symbol name (module @x), which is `name` */
  const ir_mdict *mlir; /* MLIR form: the module's attributes, or NULL */
  const ir_mattr *loc;
  base_alloc alloc;
  base_arena arena;
  base_interner strings;
  struct ir_type_table *types;
  const base_istr *name;
  ir_computation *first, *last;
  ir_computation *entry; /* never NULL in a whole module */
  uint32_t n_computations;
  uint32_t n_ids, n_computation_ids; /* next dense ids */
  uint32_t n_control_edges;          /* in all */
  struct ir_mdict_memo *dicts;       /* mattr.c; NULL until one is needed */
  base_map name_counters;            /* ir_fresh_name: stem (interned pointer) to the next suffix to try */
  ir_config config;
  ir_source_tables sources;
  /* How often the module was edited, which ir_edited counts, and what it was when the module was found to be verified:
   * ir_verified_as compares the two. Only grows. */
  uint64_t edits, verified_at;
  uint8_t verified; /* an ir_verified: what it was found to be then */
  /* HLO form: an executable's program, which may have dimensions without a bound ("?") as StableHLO has. HLO has none.
   * Such a dimension fits any size; runs check the sizes that there are. */
  bool unbounded;
};

/* In the module's order. The body may append, but not remove c. */
#define IR_FOR_COMPUTATIONS(c, m) for (ir_computation *c = (m)->first; c; c = c->next)
/* In the computation's order. The body may append ops and edit op, but not remove it. */
#define IR_FOR_OPS(op, c) for (ir_op *op = (c)->first; op; op = op->next)
/* Safe against removal of `op` itself in the body. */
#define IR_FOR_OPS_SAFE(op, c) \
  for (ir_op *op = (c)->first, *op##_next = NULL; op && (op##_next = op->next, true); op = op##_next)
/* What op_ waits for, in the order of the text. The body may not edit these edges. */
#define IR_FOR_CONTROL_PREDS(edge, op_) for (const ir_control *edge = (op_)->control_preds; edge; edge = edge->next)
/* Uses of any of op_'s results. The body may not change operands that use op_. */
#define IR_FOR_USES(use, op_) for (ir_use *use = (op_)->uses; use; use = use->next)

/* --- what was verified: edits since then make it unknown --- */
/* The one place where an edit is noted. Every function of this header that changes a module calls it, so passes, which
 * edit through them alone (tests/test_layers.py), have nothing to remember; readers and converters, which fill in a
 * module that nobody has verified, may write to its fields. */
static inline void ir_edited(ir_module *m) {
  m->edits++;
}
/* What m has been found to be, if it was not edited since. */
static inline ir_verified ir_verified_as(const ir_module *m) {
  assert(m->verified_at <= m->edits);
  return m->verified_at == m->edits ? (ir_verified)m->verified : IR_UNVERIFIED;
}
/* For verifiers, and for who makes a module from a verified one. */
static inline void ir_note_verified(ir_module *m, ir_verified level) {
  m->verified = (uint8_t)level;
  m->verified_at = m->edits;
}

/* --- making and editing: module.c, edit.c --- */
/* *out is the caller's, who frees it with ir_module_destroy (NULL is fine). The allocator must outlive the module. */
XLAC_MUST_USE int ir_module_create(ir_module **out, const char *name, base_alloc alloc, xlac_error *err);
void ir_module_destroy(ir_module *m);
XLAC_MUST_USE int ir_module_clone(ir_module **out, const ir_module *m, xlac_error *err);

/* Appends an empty computation. The first one is the entry until ir_module::entry is set. NULL when out of memory. */
ir_computation *ir_computation_new(ir_module *m, const char *name, size_t name_n);
/* Appends an op with room for n_operands (all must then be set) and n_called. type may be NULL until set (parser).
 * NULL when out of memory. A PARAMETER must be registered with ir_set_parameter. */
ir_op *ir_op_new(ir_computation *c, ir_opcode opcode, const ir_type *type, const base_istr *name, uint32_t n_operands,
                 uint32_t n_called);
/* The same for n results. */
ir_op *ir_op_new_n(ir_computation *c, ir_opcode opcode, uint32_t n_results, const ir_type *const *types,
                   const base_istr *name, uint32_t n_operands, uint32_t n_called);
/* Registers a PARAMETER under its number; false when out of memory. */
XLAC_MUST_USE bool ir_set_parameter(ir_op *op, int64_t number);
/* Operands must be of the same computation, or (MLIR form) visible there: the verifier checks it, not this. */
void ir_set_operand(ir_op *op, uint32_t slot, ir_value v);
XLAC_MUST_USE bool ir_add_operand(ir_op *op, ir_value v);
XLAC_MUST_USE bool ir_add_control_pred(ir_op *op, ir_op *pred);
void ir_remove_control_pred(ir_op *op, const ir_op *pred);
/* These instead of those that there are; false when out of memory, with nothing changed. */
XLAC_MUST_USE bool ir_set_control_preds(ir_op *op, uint32_t n, ir_op *const *preds);
/* All of them. */
void ir_drop_control_preds(ir_op *op);
/* Later operands move down one slot. */
void ir_operand_remove(ir_op *op, uint32_t slot);
/* Of an op with one result. Users are not looked at. */
void ir_set_type(ir_op *op, const ir_type *t);
/* Of all results. `types` is copied; false when out of memory. */
XLAC_MUST_USE bool ir_set_types(ir_op *op, const ir_type *const *types);
/* Another op of the same operands, results and attributes. */
void ir_set_opcode(ir_op *op, ir_opcode opcode);
/* CONSTANT in HLO form. */
void ir_set_literal(ir_op *op, const ir_literal *literal);
void ir_set_name(ir_op *op, const base_istr *name);
/* UNREGISTERED: what it is, "foo.bar". */
void ir_set_op_name(ir_op *op, const base_istr *name);
/* The attributes of MLIR form, or NULL. */
void ir_set_mlir(ir_op *op, const ir_mdict *attrs);
void ir_set_called(ir_op *op, uint32_t index, ir_computation *c);
/* All of them, from now on `called`, which is in the module's arena. */
void ir_set_all_called(ir_op *op, uint32_t n, ir_computation **called);
/* c becomes op's region. */
void ir_set_region(ir_op *op, uint32_t index, ir_computation *c);
/* `to`, which has room for them, gets all regions of `from`, which is left with none. */
void ir_move_regions(ir_op *from, ir_op *to);
/* HLO: makes `op` the one result. */
XLAC_MUST_USE bool ir_set_root(ir_computation *c, ir_op *op);
void ir_set_result(ir_computation *c, uint32_t i, ir_value v);
/* `results` is copied; false when out of memory. */
XLAC_MUST_USE bool ir_set_results(ir_computation *c, uint32_t n, const ir_value *results);
/* Later parameters are renumbered; the parameter's op has been removed. */
void ir_parameter_slot_remove(ir_computation *c, uint32_t index);
/* An ir_computation_kind; a region's owner is set by ir_set_region. */
void ir_set_kind(ir_computation *c, ir_computation_kind kind);
void ir_set_computation_name(ir_computation *c, const base_istr *name);
void ir_set_execution_thread(ir_computation *c, const base_istr *thread);
/* MLIR form, of a function: its attributes, those of all results (or NULL), those of the op that returns. */
void ir_set_function_attrs(ir_computation *f, const ir_mdict *attrs);
void ir_set_all_result_attrs(ir_computation *f, const ir_mdict *const *attrs);
void ir_set_return_attrs(ir_computation *f, const ir_mdict *attrs);
void ir_set_function_type(ir_computation *f, const ir_type *t);
void ir_set_module_name(ir_module *m, const base_istr *name);
void ir_set_entry(ir_module *m, ir_computation *c);
/* MLIR form: the module's attributes, or NULL. */
void ir_set_module_attrs(ir_module *m, const ir_mdict *attrs);
/* The header's facts, to be changed. */
ir_config *ir_edit_config(ir_module *m);
/* HLO form's one result; NULL where there is none yet. */
static inline ir_op *ir_root(const ir_computation *c) {
  return c->n_results ? c->results[0].op : NULL;
}
/* The op that makes operand i. */
static inline ir_op *ir_operand(const ir_op *op, uint32_t i) {
  assert(i < op->n_operands);
  return op->operands[i].op;
}
/* The one op that a computation applies to its two parameters, in either order; NULL: it does something else. */
static inline const ir_op *ir_combiner(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  if (!root || c->n_params != 2 || root->n_operands != 2) return NULL;
  const ir_op *a = ir_operand(root, 0), *b = ir_operand(root, 1);
  bool both = (a == c->params[0] && b == c->params[1]) || (a == c->params[1] && b == c->params[0]);
  return both ? root : NULL;
}
/* The type of operand i's value. */
static inline const ir_type *ir_operand_type(const ir_op *op, uint32_t i) {
  assert(i < op->n_operands);
  return op->operands[i].op->types[op->operands[i].index];
}
/* Linear in the uses: ask `op->uses` where any or none is the question. */
static inline uint32_t ir_use_count(const ir_op *op) {
  uint32_t n = 0;
  for (const ir_use *u = op->uses; u; u = u->next) n++;
  return n;
}
/* How many results a function is declared with: a declaration has no values to count. */
static inline uint32_t ir_function_results(const ir_computation *f) {
  return f->function_type ? f->function_type->n_elements - f->function_type->n_inputs : f->n_results;
}
/* Of result i: the declared type, where there is one, else that of the value returned. */
static inline const ir_type *ir_function_result_type(const ir_computation *f, uint32_t i) {
  assert(i < ir_function_results(f));
  const ir_type *t = f->function_type;
  return t ? t->elements[t->n_inputs + i] : f->results[i].op->types[f->results[i].index];
}
/* Whether the terminator's types differ from the declared results, or the terminator is unknown: MLIR checks that for
 * func.return only. Such a function must not be called. */
static inline bool ir_returns_otherwise(const ir_computation *f) {
  return f->function_type && !f->declaration;
}
/* The attributes of result i, or NULL, also where the function declares no such result. */
static inline const ir_mdict *ir_result_attrs(const ir_computation *f, uint32_t i) {
  return f->result_mlir && i < ir_function_results(f) ? f->result_mlir[i] : NULL;
}
/* false when out of memory, with nothing changed. An empty dictionary is none. Nothing is done where the function
 * declares no such result. */
XLAC_MUST_USE bool ir_set_result_attrs(ir_computation *f, uint32_t i, const ir_mdict *attrs);
/* Every use of `from` (operands, control edges and computation results too) becomes a use of `to`'s result of same
 * index. */
XLAC_MUST_USE bool ir_replace_uses(ir_op *from, ir_op *to);
/* Whether its computation gives some result of op's: that is no use, but keeps it. */
bool ir_is_result(const ir_op *op);
/* Unlinks an op that has no uses and is not a result. Its struct stays readable until the module goes. */
void ir_op_remove(ir_op *op);
/* And its ops; nobody may call it. Where it was the entry, the first one that is left is. */
void ir_computation_remove(ir_computation *c);
/* Moves c before `before` (NULL: to the end). */
void ir_computation_move(ir_computation *c, ir_computation *before);
/* Moves op before `before`, also of another region of the module (no parameters, and nothing with control edges);
 * NULL: to the end of its own. */
void ir_op_move(ir_op *op, ir_op *before);
/* A copy of `op` appended to `to`, of the same or another module: attributes imported; operands, control predecessors
 * and called computations are looked up in `map` (pointer to pointer), and kept where absent (same module only). In its
 * own module the copy gets a fresh name, else it keeps its name. NULL when out of memory. */
ir_op *ir_op_clone(const ir_op *op, ir_computation *to, const base_map *map);
/* NULL when out of memory. */
const base_istr *ir_intern(ir_module *m, const char *s, size_t n);
/* A name not in use yet: `stem`, else stem.1, stem.2 ... */
const base_istr *ir_fresh_name(ir_module *m, const char *stem);
/* Makes all op and computation names unique as XLA does: names.c. */
XLAC_MUST_USE int ir_uniquify_names(ir_module *m, xlac_error *err);

/* Where a called-computation attribute lives in op->called: TO_APPLY and CALLS at 0; while CONDITION 0, BODY 1;
 * select-and-scatter SELECT 0, SCATTER 1; conditional TRUE_COMPUTATION 0, FALSE_COMPUTATION 1 or BRANCH_COMPUTATIONS i;
 * custom-call CALLED_COMPUTATIONS i (or TO_APPLY 0). */
/* --- orders: order.c. Arrays live in `arena`. NULL when out of memory. --- */
/* XLA's post-order of a computation: operands and control predecessors first, dead roots in creation order. */
ir_op **ir_post_order(const ir_computation *c, base_arena *arena, uint32_t *n);
/* Callees before callers, as XLA prints them. */
ir_computation **ir_computation_order(const ir_module *m, base_arena *arena, uint32_t *n);

/* --- async chains: module.c --- */
/* The start of the chain that an async start, update or done belongs to; NULL where the chain is broken. Linear. */
ir_op *ir_async_start_of(const ir_op *op);
/* The computation an async start/update/done wraps, or NULL. */
ir_computation *ir_async_wrapped(const ir_op *op);

/* --- inference and verification --- */
/* The type that follows from op's opcode, operands, attributes and called computations; needs no op->type. For ops
 * whose type does not follow (reshape, constant, custom-call, ...) the error is CANNOT_INFER. infer.c; one function per
 * INFER() in ops.def. */
XLAC_MUST_USE int ir_infer(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err);
/* For readers: where XLA's constructor makes the type of a result, whatever text or proto declares, op gets that type.
 * infeed: (data, token[]) and recv: (data, u32[], token[]) keep the declared data. What can't be inferred stays as
 * declared, which the verifier speaks of. false: out of memory. */
XLAC_MUST_USE bool ir_complete_type(ir_module *m, ir_op *op);
struct ir_verify_options {
  bool xla_compat; /* accept what XLA 0.10.2 accepts against its own documentation (docs/xla-differences.md) */
  /* Accept any float type for another where XLA does while its passes move precisions about. Such a module can't be
   * run: the interpreter counts on operands and results having the types that inference gives. */
  bool mixed_floats;
};
/* Every rule. On failure err has line, column and op of the first broken rule in text order; verify.c. Non-const:
 * inference interns types, success is noted (ir_verified_as). */
XLAC_MUST_USE int ir_verify(ir_module *m, const ir_verify_options *options, xlac_error *err);
/* The rules of one op alone. Its operands are there and are as many as its opcode takes, and so are its required
 * attributes. */
XLAC_MUST_USE int ir_verify_op(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err);

#endif
