/* Parameters that lie with strides. A program is made to read one where it is: its type becomes that of the memory
 * around it, row-major and dense, and the array is a slice of it, reversed, transposed and broadcast. All of these move
 * indexes only, and vanish in whoever reads elements one by one. The memory may be said to reach beyond the array's
 * end, in its last row: what is there is sliced away, so nobody reads it. */
#include "../passes/hlo/hlo_make.h"
#include "plan.h"

/* The dimensions that have a stride, by its size, the largest first. The array as a slice of dense memory: for each
 * dimension of that memory its size (room), and of it the array's size and stride. */
typedef struct strided_view {
  uint32_t n;
  int64_t dims[IR_MAX_RANK], steps[IR_MAX_RANK], room[IR_MAX_RANK]; /* room: of the memory's dimension */
  int64_t order[IR_MAX_RANK];                                       /* the array's dimension */
  bool reversed[IR_MAX_RANK];
} strided_view;

/* Of a stride in elements. */
static int64_t strided_abs(int64_t v) {
  return v < 0 ? -v : v;
}

/* Keeps v sorted by stride, the largest first. */
static void strided_insert(strided_view *v, int64_t dim, int64_t step, int64_t order) {
  assert(v->n < IR_MAX_RANK && dim > 0);
  uint32_t at = v->n++;
  for (; at > 0 && v->steps[at - 1] < strided_abs(step); at--) {
    v->dims[at] = v->dims[at - 1];
    v->steps[at] = v->steps[at - 1];
    v->order[at] = v->order[at - 1];
    v->reversed[at] = v->reversed[at - 1];
  }
  v->dims[at] = dim;
  v->steps[at] = strided_abs(step);
  v->order[at] = order;
  v->reversed[at] = step < 0;
}

/* Whether memory of some dimensions has these strides. Each but the last one divides the one before. Dimensions of
 * size 1 and those of stride 0 are left out: broadcasting puts them back. */
static bool strided_find(const ir_type *t, const int64_t *steps, strided_view *v) {
  assert(t->rank == 0 || steps);
  *v = (strided_view){.n = 0};
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] != 1 && steps[d] != 0) strided_insert(v, t->dims[d], steps[d], d);
  for (uint32_t i = 0; i < v->n; i++) {
    bool innermost = i + 1 == v->n;
    int64_t reach = innermost ? (v->dims[i] - 1) * v->steps[i] + 1 : v->dims[i];
    int64_t unit = innermost ? 1 : v->steps[i];
    if (i > 0 && v->steps[i - 1] % unit) return false;
    v->room[i] = i == 0 ? reach : v->steps[i - 1] / unit;
    if (reach > v->room[i]) return false; /* elements at several indexes */
  }
  return true;
}

/* Elements like another's, row-major. */
static const ir_type *strided_type(ir_module *m, const ir_type *like, uint32_t n, const int64_t *dims) {
  return ir_tensor_default(m, (base_dtype)like->dtype, n, dims, NULL);
}

/* Every dimension of the memory from its start; the innermost with its stride. */
static ir_op *strided_slice(hlo_maker *x, ir_op *a, const strided_view *v) {
  bool whole = true;
  for (uint32_t i = 0; i < v->n; i++) whole = whole && v->dims[i] == v->room[i];
  if (whole) return a;
  ir_slice *slice = base_arena_alloc(&x->m->arena, sizeof *slice + v->n * sizeof *slice->v);
  ir_op *made = hlo_make(x, IR_OP_SLICE, strided_type(x->m, a->type, v->n, v->dims), 1, &a);
  if (!slice || !made) return x->failed = true, NULL;
  slice->n = v->n;
  for (uint32_t i = 0; i < v->n; i++) {
    int64_t step = i + 1 == v->n ? v->steps[i] : 1;
    slice->v[i] = (ir_slice_dim){0, (v->dims[i] - 1) * step + 1, step};
  }
  ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
  attr.v.slice = slice;
  if (!ir_attr_set(made, attr)) x->failed = true;
  return made;
}

/* Dimensions that go backwards: memory begins at the array's lowest address. */
static ir_op *strided_reverse(hlo_maker *x, ir_op *a, const strided_view *v) {
  int64_t dims[IR_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t i = 0; i < v->n; i++)
    if (v->reversed[i]) dims[n++] = i;
  if (n == 0 || !a) return a;
  ir_op *made = hlo_unary(x, IR_OP_REVERSE, a);
  if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, n, dims)) x->failed = true;
  return made;
}

/* In the order of the array's dimensions. */
static ir_op *strided_transpose(hlo_maker *x, ir_op *a, const strided_view *v, int64_t *order) {
  int64_t from[IR_MAX_RANK], dims[IR_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < v->n; i++) {
    uint32_t at = 0;
    for (uint32_t k = 0; k < v->n; k++) at += v->order[k] < v->order[i];
    from[at] = i;
    dims[at] = v->dims[i];
    order[at] = v->order[i];
    same = same && at == i;
  }
  if (same || !a) return a;
  ir_op *made = hlo_make(x, IR_OP_TRANSPOSE, strided_type(x->m, a->type, v->n, dims), 1, &a);
  if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, v->n, from)) x->failed = true;
  return made;
}

/* Only whole bytes have strides. */
bool plan_is_strided(const ir_type *t, const int64_t *steps) {
  assert(t);
  strided_view v;
  return hlo_is_plain(t) && t->count > 0 && base_dtype_of((base_dtype)t->dtype)->bits >= 8 &&
         strided_find(t, steps, &v);
}

/* Of a program that is nothing but its parameter. Its users are found by position, so the op that is to read it must
 * be there. */
static bool strided_add_root(ir_module *m, ir_op *parameter) {
  const base_istr *name = ir_fresh_name(m, "copy");
  ir_op *copy = name ? ir_op_new(parameter->parent, IR_OP_COPY, parameter->type, name, 1, 0) : NULL;
  if (!copy) return false;
  ir_set_operand(copy, 0, (ir_value){parameter, 0});
  return ir_set_root(parameter->parent, copy);
}

/* f32[3,2] with strides (1, 3) becomes a parameter of f32[2,3] and a transpose of it: nothing is copied. */
int plan_lay_out(ir_module *m, ir_op *parameter, const int64_t *steps, xlac_error *err) {
  assert(m && parameter && parameter->opcode == IR_OP_PARAMETER);
  const ir_type *t = parameter->type;
  strided_view v;
  int64_t order[IR_MAX_RANK] = {0};
  bool found = strided_find(t, steps, &v);
  assert(found);
  (void)found;
  const ir_type *memory = strided_type(m, t, v.n, v.room);
  if (parameter != parameter->parent->first) ir_op_move(parameter, parameter->parent->first);
  if (!parameter->next && !strided_add_root(m, parameter)) return base_oom(err, "a plan for strides");
  hlo_maker x = {.m = m, .before = parameter->next};
  if (!memory) return base_oom(err, "a plan for strides");
  ir_set_type(parameter, memory);
  /* a mark that stands for the array while its making is not there */
  ir_op *all = hlo_make(&x, IR_OP_BROADCAST, t, 1, &parameter);
  if (!all) return base_oom(err, "a plan for strides");
  ir_set_operand(all, 0, (ir_value){all, 0});
  bool ok = ir_replace_uses(parameter, all);
  x.before = all;
  ir_op *a = strided_transpose(&x, strided_reverse(&x, strided_slice(&x, parameter, &v), &v), &v, order);
  if (x.failed || !ok || !a || !ir_set_ints(all, IR_ATTR_DIMENSIONS, v.n, order))
    return base_oom(err, "a plan for strides");
  ir_set_operand(all, 0, (ir_value){a, 0});
  return 0;
}
