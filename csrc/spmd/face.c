/* The group's face: a module of the whole program's signature, whose body is one custom call that stands for all
 * devices. */
#include "spmd.h"

typedef struct face_maker {
  const spmd_program *p;
  ir_module *m;
  xlac_error *err;
} face_maker;

/* The whole array's type, for what is a shard's in the local program. */
static const ir_type *face_type(face_maker *f, const spmd_leaf *leaf, const ir_type *local) {
  if (!leaf->split) return ir_type_import(f->m, local);
  return ir_tensor_default(f->m, (base_dtype)local->dtype, leaf->rank, leaf->dims, f->err);
}

/* What the framework calls a parameter, such as "params['w']". */
static int face_keep_name(face_maker *f, const ir_op *from, ir_op *to) {
  const ir_metadata *known = ir_get_metadata(from);
  if (!known || !known->op_name) return 0;
  ir_metadata *d = BASE_NEW(&f->m->arena, ir_metadata);
  if (d) d->op_name = ir_intern(f->m, known->op_name->s, known->op_name->n);
  ir_attr attr = ir_attr_make(IR_ATTR_METADATA);
  attr.v.metadata = d;
  return d && d->op_name && ir_attr_set(to, attr) ? 0 : base_oom(f->err, "a signature");
}

static int face_parameters(face_maker *f, const ir_computation *from, ir_computation *to, ir_op *call) {
  assert(from->n_params == f->p->n_arguments);
  for (uint32_t i = 0; i < from->n_params; i++) {
    const ir_op *old = from->params[i];
    const ir_type *t = face_type(f, &f->p->arguments[i], old->type);
    const base_istr *name = ir_intern(f->m, old->name->s, old->name->n);
    ir_op *op = t && name ? ir_op_new(to, IR_OP_PARAMETER, t, name, 0, 0) : NULL;
    if (!op || !ir_set_parameter(op, i)) return base_oom(f->err, "a signature");
    TRY(face_keep_name(f, old, op));
    ir_op_move(op, call);
    ir_set_operand(call, i, (ir_value){op, 0});
  }
  return 0;
}

/* One array, or a tuple of them, as the local program has it. */
static const ir_type *face_result(face_maker *f, const ir_type *local) {
  if (!ir_is_tuple(local)) return face_type(f, &f->p->results[0], local);
  const ir_type **types = BASE_ARRAY(&f->m->arena, const ir_type *, (size_t)local->n_elements + 1);
  assert(local->n_elements == f->p->n_results);
  for (uint32_t i = 0; types && i < local->n_elements; i++)
    if (!(types[i] = face_type(f, &f->p->results[i], local->elements[i]))) return NULL;
  return types ? ir_tuple(f->m, local->n_elements, types) : NULL;
}

static int face_fill(face_maker *f, const ir_module *local) {
  const ir_computation *from = local->entry;
  assert(local->form == IR_FORM_HLO && from);
  const base_istr *name = ir_intern(f->m, "devices", 7);
  ir_attr target = ir_attr_make(IR_ATTR_CUSTOM_CALL_TARGET);
  target.v.str = ir_intern(f->m, "xlac.devices", 12);
  ir_computation *c = ir_computation_new(f->m, from->name->s, from->name->n);
  const ir_type *t = face_result(f, ir_root(from)->type);
  ir_op *call = c && t && name ? ir_op_new(c, IR_OP_CUSTOM_CALL, t, name, from->n_params, 0) : NULL;
  if (!call || !target.v.str || !ir_attr_set(call, target)) return base_oom(f->err, "a signature");
  TRY(face_parameters(f, from, c, call));
  if (!ir_set_root(c, call)) return base_oom(f->err, "a signature");
  ir_set_entry(f->m, c);
  ir_config *config = ir_edit_config(f->m);
  config->replica_count = f->p->replicas;
  config->num_partitions = f->p->partitions;
  return 0;
}

int spmd_face(const spmd_program *p, const ir_module *local, ir_module **out, xlac_error *err) {
  face_maker f = {.p = p, .err = err};
  TRY(ir_module_create(&f.m, local->name->s, local->alloc, err));
  int status = face_fill(&f, local);
  if (status)
    ir_module_destroy(f.m);
  else
    *out = f.m;
  return status;
}
