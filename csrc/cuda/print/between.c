/* What is computed of a product's sums, or of two products', before they are used: lowered as any kernel, and printed
 * with a sum in the place of its load. */
#include <stdio.h>

#include "../../fuse/fuse.h"
#include "dot.h"

/* Everything from the product to x is one kernel, whose root is x. Entries are by op id, and those of the fusion's ops,
 * which were made together, lie in a short range: a module may have many products. */
static bool cu_between_lower(cuda_routine *r, ir_op *x, kernel **k, const fusion_input **inputs) {
  const ir_computation *c = r->op->called[0];
  uint32_t least = x->id, most = x->id;
  xlac_error err;
  IR_FOR_OPS(op, c) {
    least = op->id < least ? op->id : least;
    most = op->id > most ? op->id : most;
  }
  fusion_op *entries = base_arena_zalloc(r->scratch, ((size_t)most - least + 1) * sizeof *entries);
  if (!entries) return false;
  fusion_plan f = {.of = entries - least};
  fusion_model_make(&f.model, NULL);
  IR_FOR_OPS(op, c)
  if (fusion_is_candidate(op)) f.of[op->id] = (fusion_op){.role = FUSION_INNER, .root = x};
  f.of[x->id] = (fusion_op){.role = FUSION_ROOT, .root = x, .merged_first = x};
  return fusion_lower(&f, x, r->scratch, k, inputs, &err) == 0;
}

/* The kernel with its inputs numbered as the fusion's operands, the sums behind them; false where it reads other sums
 * than its own, or what is no operand. */
static bool cu_between_number(cuda_routine *r, const cuda_between *x, kernel *k, const fusion_input *inputs) {
  kernel_value *values = base_arena_memdup(r->scratch, k->values, k->n_values * sizeof *values);
  for (uint32_t i = 0; values && i < k->n_values; i++) {
    if (values[i].kind != KERNEL_LOAD) continue;
    const fusion_input *from = &inputs[values[i].buffer];
    bool own = from->op == x->dot || from->op == x->more;
    if (from->last >= 0 || values[i].box || (!own && from->op->opcode != IR_OP_PARAMETER)) return false;
    if (own && (values[i].n_in || values[i].index->offset || !kernel_is_dense(k, values[i].index))) return false;
    values[i].buffer = own ? r->op->n_operands + (from->op == x->more) : (uint32_t)from->op->u.number;
  }
  k->values = values;
  return values && k->n_stores == 1 && kernel_is_dense(k, &k->stores[0].index) && k->count == x->dot->type->count;
}

bool cuda_between_make(cuda_routine *r, const ir_op *dot, ir_op *x, int64_t rows, int64_t columns, cuda_between *out) {
  const fusion_input *inputs = NULL;
  kernel *k = NULL;
  out->k = NULL;
  out->dot = dot;
  out->rows = rows;
  out->columns = columns;
  if (x == dot) return true;
  bool made = cu_between_lower(r, x, &k, &inputs) && cu_between_number(r, out, k, inputs);
  out->k = k;
  return made;
}

/* "i0", ...: of the column where they are within a row, of the row where they are not; `row` counts all batches. */
static void cu_between_put_indexes(cuda_print *p, int64_t columns) {
  int64_t inside = 1;
  assert(columns > 0);
  for (uint32_t d = p->k->rank; d-- > 0; inside *= p->k->extents[d]) {
    int64_t extent = p->k->extents[d];
    bool column = inside * extent <= columns, row = !column && inside % columns == 0;
    base_putf(p->out, "      const idx i%u = %s / %lld", (unsigned)d,
              column ? "column"
              : row  ? "row"
                     : "(row * all + column)",
              (long long)(row ? inside / columns : inside));
    if (d > 0 && inside * extent != columns) base_putf(p->out, " %% %lld", (long long)extent);
    BASE_PUT(p->out, ";\n");
  }
}

void cuda_between_put(cuda_routine *r, const cuda_between *x, base_dtype t, char value[24]) {
  cuda_print p = r->print;
  for (uint32_t i = 0; i < 1 + (x->more != NULL); i++) {
    base_dtype own = (base_dtype)(i ? x->more : x->dot)->type->dtype;
    base_putf(p.out, "      const %s given%s = ", cuda_type(own), i ? "1" : "");
    cuda_print_convert(&p, own, t, i ? "sum1" : "sum");
    BASE_PUT(p.out, ";\n");
  }
  base_putf(p.out, "      const idx row = batch * %lld + at, all = %lld;\n", (long long)x->rows, (long long)x->columns);
  snprintf(value, 24, "given");
  if (x->k) {
    p.k = x->k;
    p.given = r->op->n_operands + 1;
    cu_between_put_indexes(&p, x->columns);
    for (uint32_t i = 0; i < x->k->n_values; i++) cuda_print_value(&p, i);
    snprintf(value, 24, "v%u", (unsigned)x->k->stores[0].value);
  }
  r->print.strange = r->print.strange || p.strange;
}
