/* Equality and hashing of attribute values: both read one canonical byte string per value, so they can't disagree,
 * and it works across modules.
 *
 * The string is a key, not a format: it is never stored. Every list is preceded by its length and every optional part
 * by whether it is there, so that no two values have one string: {1},{2,3} and {1,2},{3} differ in their counts. */
#include "../ir.h"

static void key_int(base_text *out, int64_t v) {
  base_put(out, (const char *)&v, sizeof v);
}

/* The numbers' own bytes: both sides are made on this machine. */
static void key_ints(base_text *out, const int64_t *v, uint32_t n) {
  assert(v || n == 0);
  key_int(out, n);
  if (n) base_put(out, (const char *)v, n * sizeof *v);
}

/* -1 for an absent string, which is not the empty one. */
static void key_str(base_text *out, const base_istr *s) {
  key_int(out, s ? (int64_t)s->n : -1);
  if (s) base_put(out, s->s, s->n);
}

/* By its bits: 0.0 and -0.0 differ, and a NaN equals itself. */
static void key_double(base_text *out, double v) {
  base_put(out, (const char *)&v, sizeof v);
}

/* NULL is not the empty list. */
static void key_lists(base_text *out, const ir_int_lists *lists) {
  key_int(out, lists ? (int64_t)lists->n : -1);
  for (uint32_t i = 0; lists && i < lists->n; i++) key_ints(out, lists->v[i]->v, lists->v[i]->n);
}

/* All of it, the stack frame's number too. */
static void key_metadata(base_text *out, const ir_metadata *m) {
  const base_istr *strings[] = {m->op_type,         m->op_name, m->source_file, m->deduplicated_name,
                                m->scheduling_name, m->payload, m->profile_type};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) key_str(out, strings[i]);
  int64_t numbers[] = {m->source_line,       m->source_end_line,        m->source_column,
                       m->source_end_column, m->size_of_generated_code, m->size_of_memory_working_set,
                       m->stack_frame_id,    m->preserve_layout};
  key_ints(out, numbers, sizeof numbers / sizeof *numbers);
}

/* perm NULL is the identity; it counts as another spelling, as printed text differs. */
static void key_sharding(base_text *out, const ir_sharding *s) {
  assert(s);
  int64_t facts[] = {s->kind, s->device, s->iota, s->replicate_on_last_dim, s->group, s->group_id, s->perm != NULL};
  key_ints(out, facts, sizeof facts / sizeof *facts);
  key_ints(out, s->dims, s->n_dims);
  key_ints(out, s->devices, s->n_devices);
  key_ints(out, s->reshape, s->n_reshape);
  if (s->perm) key_ints(out, s->perm, s->n_reshape);
  key_int(out, s->n_subgroups);
  if (s->n_subgroups) base_put(out, (const char *)s->subgroups, s->n_subgroups);
  key_int(out, s->n_metadata);
  for (uint32_t i = 0; i < s->n_metadata; i++) key_metadata(out, s->metadata[i]);
  key_int(out, s->n_elements);
  for (uint32_t i = 0; i < s->n_elements; i++) key_sharding(out, s->elements[i]);
  key_str(out, s->named_text);
}

/* Explicit and iota forms of the same groups are not equal: the text that they print as differs. */
static void key_groups(base_text *out, const ir_groups *g) {
  key_int(out, g->iota);
  key_lists(out, g->lists);
  key_ints(out, g->dims, g->n_dims);
  key_ints(out, g->reshape, g->n_reshape);
  key_ints(out, g->perm, g->perm ? g->n_reshape : 0);
  key_str(out, g->mesh_text);
}

/* In the written order: the text differs with it. */
static void key_dict(base_text *out, const ir_dict *d) {
  key_int(out, d->n);
  key_int(out, d->visualizing_index);
  for (uint32_t i = 0; i < d->n; i++) {
    key_str(out, d->v[i].key);
    key_str(out, d->v[i].value);
    key_int(out, d->v[i].raw);
  }
}

static void key_conv(base_text *out, const ir_conv_dims *c) {
  int64_t facts[] = {c->input_batch,           c->input_feature, c->kernel_input_feature,
                     c->kernel_output_feature, c->output_batch,  c->output_feature};
  key_ints(out, facts, 6);
  key_ints(out, c->input_spatial, c->n_spatial);
  key_ints(out, c->kernel_spatial, c->n_spatial);
  key_ints(out, c->output_spatial, c->n_spatial);
}

/* Field by field, since the struct has padding whose bytes mean nothing. */
static void key_window(base_text *out, const ir_window *w) {
  key_int(out, w->n);
  for (uint32_t i = 0; i < w->n; i++) {
    const ir_window_dim *d = &w->v[i];
    int64_t facts[] = {d->size,          d->stride,  d->padding_low, d->padding_high, d->window_dilation,
                       d->base_dilation, d->reversal};
    key_ints(out, facts, 7);
  }
}

static void key_aliasing(base_text *out, const ir_aliasing *a) {
  key_int(out, a->n);
  for (uint32_t i = 0; i < a->n; i++) {
    key_ints(out, a->v[i].output->v, a->v[i].output->n);
    key_int(out, a->v[i].operand);
    key_ints(out, a->v[i].index->v, a->v[i].index->n);
    key_int(out, a->v[i].must);
  }
}

/* The type with its layout first: it says how many elements and bytes follow. */
static void key_literal(base_text *out, const ir_literal *l) {
  assert(l && l->type);
  ir_put_type(out, l->type, true);
  key_int(out, l->elided);
  for (uint32_t i = 0; i < l->type->n_elements; i++) key_literal(out, l->elements[i]);
  if (l->data) base_put(out, l->data, (size_t)ir_type_bytes(l->type));
}

static void key_types(base_text *out, const ir_types *types) {
  key_int(out, types->n);
  for (uint32_t i = 0; i < types->n; i++) ir_put_type(out, types->v[i], true);
}

static void key_accuracy(base_text *out, const ir_accuracy *a) {
  key_int(out, a->mode);
  key_double(out, a->atol);
  key_double(out, a->rtol);
  key_int(out, a->ulps);
}

static void key_domain(base_text *out, const ir_domain *d) {
  key_str(out, d->kind);
  if (d->entry) key_sharding(out, d->entry);
  if (d->exit) key_sharding(out, d->exit);
}

/* PADDING and SLICE are plain arrays of three int64_t an element, so they go in as one block. */
static void key_value(base_text *out, const ir_attr *a) {
  switch ((ir_attr_kind)a->kind) {
    case IR_KIND_BOOL:
      key_int(out, a->v.b);
      break;
    case IR_KIND_INT:
    case IR_KIND_NAME:
      key_int(out, a->v.i);
      break;
    case IR_KIND_FLOAT:
      key_double(out, a->v.f);
      break;
    case IR_KIND_STRING:
    case IR_KIND_ORIGIN:
      key_str(out, a->v.str);
      break;
    case IR_KIND_NAMES:
    case IR_KIND_INTS:
    case IR_KIND_BOOLS:
      key_ints(out, a->v.ints->v, a->v.ints->n);
      break;
    case IR_KIND_INT_LISTS:
    case IR_KIND_PAIRS:
      key_lists(out, a->v.lists);
      break;
    case IR_KIND_TYPE:
      ir_put_type(out, a->v.type, true);
      break;
    case IR_KIND_TYPES:
      key_types(out, a->v.types);
      break;
    case IR_KIND_WINDOW:
      key_window(out, a->v.window);
      break;
    case IR_KIND_CONV_DIMS:
      key_conv(out, a->v.conv);
      break;
    case IR_KIND_PADDING:
      key_ints(out, &a->v.padding->v[0].low, a->v.padding->n * 3);
      break;
    case IR_KIND_SLICE:
      key_ints(out, &a->v.slice->v[0].start, a->v.slice->n * 3);
      break;
    case IR_KIND_GROUPS:
      key_groups(out, a->v.groups);
      break;
    case IR_KIND_SHARDING:
      key_sharding(out, a->v.sharding);
      break;
    case IR_KIND_METADATA:
      key_metadata(out, a->v.metadata);
      break;
    case IR_KIND_CONFIG:
      key_int(out, a->v.config->raw);
      key_str(out, a->v.config->text);
      break;
    case IR_KIND_DICT:
    case IR_KIND_STATISTICS:
      key_dict(out, a->v.dict);
      break;
    case IR_KIND_ACCURACY:
      key_accuracy(out, a->v.accuracy);
      break;
    case IR_KIND_ALIASING:
      key_aliasing(out, a->v.aliasing);
      break;
    case IR_KIND_LITERAL:
      key_literal(out, a->v.literal);
      break;
    case IR_KIND_DOMAIN:
      key_domain(out, a->v.domain);
      break;
    case IR_KIND_NONE:
    case IR_KIND_CALLED:
    case IR_KIND_OPS:
      break;
  }
}

/* The quick test finds shared values, which is most of them. When memory runs out the answer is "not equal": callers
 * then only lose a merge. */
bool ir_attr_equal(const ir_attr *a, const ir_attr *b) {
  assert(a && b);
  if (a->key != b->key) return false;
  if (memcmp(&a->v, &b->v, sizeof a->v) == 0) return true;
  base_text x, y;
  base_text_init(&x, base_alloc_libc);
  base_text_init(&y, base_alloc_libc);
  key_value(&x, a);
  key_value(&y, b);
  bool same = !x.failed && !y.failed && x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
  base_text_free(&x);
  base_text_free(&y);
  return same;
}

/* Equal values have equal hashes unless memory runs out in between. */
uint64_t ir_attr_hash(const ir_attr *a) {
  assert(a);
  base_text x;
  base_text_init(&x, base_alloc_libc);
  key_value(&x, a);
  uint64_t h = x.n ? base_hash(x.s, x.n) : 0;
  base_text_free(&x);
  return h * 31 + a->key;
}

/* By bits, so a NaN equals itself; layouts don't matter. Elided literals of one type are equal. */
bool ir_literal_equal(const ir_literal *a, const ir_literal *b) {
  assert(a && b);
  if (a == b) return true;
  if (a->elided != b->elided || !ir_same_bare(a->type, b->type)) return false;
  for (uint32_t i = 0; i < a->type->n_elements; i++)
    if (!ir_literal_equal(a->elements[i], b->elements[i])) return false;
  if (!a->data || !b->data) return a->data == b->data;
  return memcmp(a->data, b->data, (size_t)ir_type_bytes(a->type)) == 0;
}

uint64_t ir_literal_hash(const ir_literal *a) {
  assert(a && a->type);
  uint64_t h = (uint64_t)a->type->dtype * 131 + a->type->rank;
  for (uint32_t i = 0; i < a->type->n_elements; i++) h = h * 31 + ir_literal_hash(a->elements[i]);
  return a->data ? h * 31 + base_hash(a->data, (size_t)ir_type_bytes(a->type)) : h;
}
