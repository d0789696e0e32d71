/* reduce-window and select-and-scatter whose computations are one op each. */
#ifndef XLAC_CPU_WINDOW_WINDOW_H
#define XLAC_CPU_WINDOW_WINDOW_H

#include "../../base/isa/isa.h"
#include "../../scalar/loops/loops.h"
#include "../../interp/algorithm/placement.h"
#include "../routine.h"
#include "../vm/vm_fold.h"

/* A reduce-window: the array as outer dimensions, the last dimension that is not trivial, and lanes behind that. A
 * dimension is trivial where each window is one element and each element has one. */
typedef struct cpu_window {
  const ir_window *window;
  uint32_t last; /* the last dimension with windows */
  int64_t in_size[IR_MAX_RANK], out_size[IR_MAX_RANK], in_stride[IR_MAX_RANK], out_stride[IR_MAX_RANK];
  int64_t lanes, rows; /* behind `last`; combinations of output indexes before it */
  base_dtype type;     /* results are combined in */
  size_t bytes;
  ir_opcode opcode;
  scalar_loop combine;
  const vm_fold *fold; /* where each run of the array has one window; or NULL */
  base_isa isa;        /* of short rows */
  bool ordered;        /* results depend on the order: that of the interpreter is kept */
  /* Where the arrays have another type: how many elements, and where their copies are in scratch memory. */
  bool converted;
  base_dtype array_type;
  int64_t in_count, out_count, out_at;
} cpu_window;

/* Of a dimension with so many elements and results. */
bool cpu_window_is_trivial(const ir_window_dim *w, int64_t in, int64_t out);
/* The op of a computation that combines its two parameters, in either order, by one commutative op; or NULL. */
const ir_op *cpu_window_body(const ir_computation *c);

/* window_rows.c: any windows. in, out: of the type `type`; init: one element of it. */
void cpu_window_rows(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out);

/* window_runs.c: one window for each run of the array, where there is a fold. Sums are associated as reductions are. */
void cpu_window_runs(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out);

/* window_scan.c: windows that reach from one end of the last dimension to the present element. */
bool cpu_window_is_scan(const cpu_window *w);
void cpu_window_scan(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out);

#endif
