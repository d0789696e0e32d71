/* What the files of the sdy dialect's verifier share. */
#ifndef XLAC_IR_STABLEHLO_VERIFY_SDY_H
#define XLAC_IR_STABLEHLO_VERIFY_SDY_H

#include "../sdy/sdy.h"
#include "verify.h"

/* The check of one module. Lives on the stack of stablehlo_verify. */
typedef struct sdyv {
  ir_module *m;
  base_arena *arena;
  const ir_op *op; /* being checked; NULL: `f`'s signature */
  const ir_computation *f;
  const sdy_mesh *last; /* the mesh found last, and its name */
  const base_istr *last_name;
  const base_istr *sharding, *rule, *edges, *result_edges, *arg_edges; /* names of attributes; NULL where unused */
  xlac_error *err;
} sdyv;

/* What an error begins with: "result 1 - ", "operand ", "". */
typedef struct sdyv_where {
  const char *what; /* "result ", "arg ", ... */
  bool numbered;    /* followed by "index - " */
  bool dash;        /* followed by "- " */
  uint32_t index;
} sdyv_where;

/* "'sdy.reshard' op ..." at the op's line. Texts are Shardy's, so that its tests' expectations apply. */
int sdyv_fail(const sdyv *v, const char *format, ...) BASE_PRINTF(2, 3);
int sdyv_fail_in(const sdyv *v, sdyv_where where, const char *format, ...) BASE_PRINTF(3, 4);

/* NULL where there is none of that name. The sharding's own mesh, or that of its name. */
const sdy_mesh *sdyv_mesh(sdyv *v, const sdy_sharding *s);
/* The axes that lists have shown so far. Grows in the scratch arena. */
typedef struct sdyv_seen {
  uint32_t n, cap;
  sdy_axis *v;
} sdyv_seen;
XLAC_MUST_USE int sdyv_check_axes(const sdyv *v, sdyv_where where, sdy_axes a, const sdy_mesh *mesh, sdyv_seen *seen);
XLAC_MUST_USE int sdyv_check_sorted_axes(const sdyv *v, sdyv_where where, const char *name, sdy_axes a,
                                         const sdy_mesh *mesh, sdyv_seen *seen);
/* A sharding of a value of that type (NULL: of no value). */
XLAC_MUST_USE int sdyv_check_sharding(sdyv *v, sdyv_where where, const sdy_sharding *s, const ir_type *type);
XLAC_MUST_USE int sdyv_check_list(sdyv *v, const char *what, const sdy_shardings *list, uint32_t n,
                                  const ir_type *const *types);
/* What becomes of unreduced axes from `from` to `to` (one of them may be NULL). */
enum { SDYV_NEVER = -1 };
XLAC_MUST_USE int sdyv_check_unreduced(sdyv *v, const sdy_sharding *from, const sdy_sharding *to, int introduced,
                                       int removed);

/* --- verify_sdy.c, verify_sdy_computation.c, verify_sdy_collective.c --- */
XLAC_MUST_USE int sdyv_check_rule(sdyv *v, const sdy_rule *rule);
XLAC_MUST_USE int sdyv_check_edges(sdyv *v, const sdy_edges *edges);
/* A manual computation within another has other axes. */
XLAC_MUST_USE int sdyv_check_bound(sdyv *v);
XLAC_MUST_USE int sdyv_check_manual(sdyv *v);
XLAC_MUST_USE int sdyv_check_named(sdyv *v);
XLAC_MUST_USE int sdyv_check_collective(sdyv *v);

/* Text of axes: "a", "b":(1)2 */
char *sdyv_axis_text(sdy_axis a, char *buf, size_t size);
#define SDYV_AXIS(a) sdyv_axis_text((a), (char[120]){0}, 120)
char *sdyv_axes_text(uint32_t n, const sdy_axis *a, char *buf, size_t size);
#define SDYV_AXES(n, a) sdyv_axes_text((n), (a), (char[240]){0}, 240)

/* False where the module has nothing of the dialect. */
bool sdyv_begin(sdyv *v, ir_module *m, base_arena *arena, xlac_error *err);
XLAC_MUST_USE int sdyv_check_signature(sdyv *v, const ir_computation *f);
/* What is checked of an op where it stands: its attributes of the dialect, and what it is in itself. */
XLAC_MUST_USE int sdyv_check_own(sdyv *v, const ir_op *op);
/* What is checked of an op of the dialect when all else is fine: shardings and their meshes. */
XLAC_MUST_USE int sdyv_check_names(sdyv *v, const ir_op *op);
/* The next manual computation around `inside` (a value's op) that has the axis manual, or NULL. */
const ir_op *sdyv_bound_by(const ir_op *inside, const base_istr *axis);

#endif
