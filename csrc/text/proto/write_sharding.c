/* Shardings, replica groups and metadata to their messages. */
#include "write.h"

#include "../../base/number/number.h"

static void write_profile(base_text *out, const base_istr *text) {
  const char *p = text->s, *end = text->s + text->n;
  size_t at = proto_begin(out, 5);
  while (p < end) {
    int64_t v;
    const char *after = base_parse_i64(p, end, &v);
    if (after) proto_put_varint(out, (uint64_t)v);
    p = after ? after : p + 1;
  }
  proto_end(out, at);
}

static void write_payload(proto_writer *w, const base_istr *text) {
  size_t at = proto_begin(w->out, 20);
  proto_put_int_always(w->out, 2, w->n_payloads++);
  proto_end(w->out, at);
  proto_put_bytes(&w->payloads, 22, text->s, text->n);
}

void proto_write_metadata(proto_writer *w, uint32_t number, const ir_metadata *m) {
  size_t at = proto_begin(w->out, number);
  for (uint32_t i = 0; i < proto_n_metadata_fields; i++) {
    const proto_metadata_field *f = &proto_metadata_fields[i];
    const void *member = (const char *)m + f->offset;
    if (f->is_string)
      proto_put_str(w->out, f->number, *(const base_istr *const *)member);
    else
      proto_put_int(w->out, f->number, *(const int64_t *)member);
  }
  if (m->profile_type && m->profile_type->n) write_profile(w->out, m->profile_type);
  proto_put_int(w->out, 15, m->stack_frame_id);
  if (m->payload && m->payload->n) write_payload(w, m->payload);
  proto_end(w->out, at);
}

static int64_t sharding_number(uint8_t kind) {
  static const uint8_t numbers[] = {
      [IR_SHARDING_REPLICATED] = 0, [IR_SHARDING_MAXIMAL] = 1, [IR_SHARDING_TUPLE] = 2,    [IR_SHARDING_TILED] = 3,
      [IR_SHARDING_MANUAL] = 4,     [IR_SHARDING_UNKNOWN] = 5, [IR_SHARDING_UNREDUCED] = 6};
  assert(kind < sizeof numbers);
  return numbers[kind];
}

static void write_iota(base_text *out, uint32_t dims_field, uint32_t perm_field, uint32_t n, const int64_t *reshape,
                       const int64_t *perm) {
  int64_t identity[IR_MAX_RANK];
  assert(n <= IR_MAX_RANK);
  for (uint32_t i = 0; i < n; i++) identity[i] = i;
  proto_put_list(out, dims_field, reshape, n);
  proto_put_list(out, perm_field, perm ? perm : identity, n);
}

static void write_tiling(base_text *out, const ir_sharding *s) {
  int64_t kinds[IR_MAX_RANK];
  proto_put_list(out, 3, s->dims, s->n_dims);
  if (s->iota)
    write_iota(out, 9, 10, s->n_reshape, s->reshape, s->perm);
  else
    proto_put_list(out, 4, s->devices, s->n_devices);
  proto_put_int(out, 6, s->replicate_on_last_dim);
  assert(s->n_subgroups <= IR_MAX_RANK);
  for (uint32_t i = 0; i < s->n_subgroups; i++) kinds[i] = sharding_number(s->subgroups[i]);
  proto_put_list(out, 8, kinds, s->n_subgroups);
}

static int write_sharding_fields(proto_writer *w, const ir_sharding *s) {
  if (s->named_text) return proto_write_named_sharding(w, s->named_text);
  proto_put_int(w->out, 1, sharding_number(s->kind));
  if (s->kind == IR_SHARDING_TILED) write_tiling(w->out, s);
  if (s->kind == IR_SHARDING_MAXIMAL) proto_put_list(w->out, 4, &s->device, 1);
  for (uint32_t i = 0; i < s->n_elements; i++) TRY(proto_write_sharding(w, 5, s->elements[i]));
  for (uint32_t i = 0; i < s->n_metadata; i++) proto_write_metadata(w, 7, s->metadata[i]);
  if (s->group) {
    proto_put_int(w->out, 11, 1);
    proto_put_int(w->out, 12, s->group_id);
    proto_put_int(w->out, 13, s->group == 2);
  }
  return 0;
}

int proto_write_sharding(proto_writer *w, uint32_t number, const ir_sharding *s) {
  size_t at = proto_begin(w->out, number);
  TRY(write_sharding_fields(w, s));
  proto_end(w->out, at);
  return 0;
}

static void write_group_lists(base_text *out, const ir_int_lists *lists) {
  size_t at = proto_begin(out, 87);
  for (uint32_t i = 0; lists && i < lists->n; i++) {
    size_t group = proto_begin(out, 1);
    proto_put_list(out, 1, lists->v[i]->v, lists->v[i]->n);
    proto_end(out, group);
  }
  proto_end(out, at);
}

int proto_write_groups(proto_writer *w, const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *g = a ? a->v.groups : NULL;
  if (g && g->mesh_text) return proto_write_mesh_groups(w, g->mesh_text);
  if (!g || !g->iota) return write_group_lists(w->out, g ? g->lists : NULL), 0;
  assert(g->n_dims == 2);
  size_t at = proto_begin(w->out, 92);
  proto_put_int(w->out, 1, g->dims[0]);
  proto_put_int(w->out, 2, g->dims[1]);
  write_iota(w->out, 3, 4, g->n_reshape, g->reshape, g->perm);
  proto_end(w->out, at);
  return 0;
}
