/* Copies attribute values from one module into another: everything they point to is made anew in the target's arena,
 * and strings and types are interned there.
 *
 * One function for each struct of attr.h. Each copies the bytes first and then replaces each pointer in the copy, so
 * that numbers and flags added to a struct later are copied without a change here. */
#include "../ir.h"

/* One copy in progress; ok goes false on the first allocation failure and later steps do nothing harmful. */
typedef struct importer {
  ir_module *m;
  bool ok;
} importer;

/* n bytes at p, copied; NULL stays NULL. */
static void *imported(importer *im, const void *p, size_t n) {
  assert(im->m);
  if (!p) return NULL;
  void *c = base_arena_memdup(&im->m->arena, p, n);
  im->ok = im->ok && c;
  return c;
}

/* Strings are interned per module, so even equal ones have another pointer there. */
static const base_istr *import_str(importer *im, const base_istr *s) {
  if (!s) return NULL;
  const base_istr *c = ir_intern(im->m, s->s, s->n);
  im->ok = im->ok && c;
  return c;
}

static const ir_ints *import_ints(importer *im, const ir_ints *v) {
  return v ? imported(im, v, sizeof *v + v->n * sizeof *v->v) : NULL;
}

/* The outer array holds the old pointers until each is replaced: `to` is not read before. */
static const ir_int_lists *import_lists(importer *im, const ir_int_lists *from) {
  ir_int_lists *to = from ? imported(im, from, sizeof *from + from->n * sizeof *from->v) : NULL;
  for (uint32_t i = 0; to && i < to->n; i++) to->v[i] = import_ints(im, from->v[i]);
  return to;
}

static const ir_type *import_type(importer *im, const ir_type *t) {
  const ir_type *c = ir_type_import(im->m, t);
  im->ok = im->ok && c;
  return c;
}

/* Types are interned in the target, layouts and all. */
static const ir_types *import_types(importer *im, const ir_types *from) {
  ir_types *to = imported(im, from, sizeof *from + from->n * sizeof *from->v);
  for (uint32_t i = 0; to && i < to->n; i++) to->v[i] = import_type(im, from->v[i]);
  return to;
}

/* All strings of metadata are optional. */
static const ir_metadata *import_metadata(importer *im, const ir_metadata *from) {
  ir_metadata *to = imported(im, from, sizeof *from);
  if (!to) return NULL;
  const base_istr **strings[] = {&to->op_type,         &to->op_name, &to->source_file, &to->deduplicated_name,
                                 &to->scheduling_name, &to->payload, &to->profile_type};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) *strings[i] = import_str(im, *strings[i]);
  return to;
}

/* Recursive over the elements of a tuple sharding, which are as deep as the type and therefore bounded by
 * IR_MAX_TYPE_DEPTH. */
static const ir_sharding *import_sharding(importer *im, const ir_sharding *from) {
  ir_sharding *to = from ? imported(im, from, sizeof *from) : NULL;
  if (!to) return NULL;
  to->dims = imported(im, from->dims, from->n_dims * sizeof *from->dims);
  to->devices = imported(im, from->devices, from->n_devices * sizeof *from->devices);
  to->reshape = imported(im, from->reshape, from->n_reshape * sizeof *from->reshape);
  to->perm = imported(im, from->perm, from->n_reshape * sizeof *from->perm);
  to->subgroups = imported(im, from->subgroups, from->n_subgroups);
  to->named_text = import_str(im, from->named_text);
  const ir_metadata **metadata = imported(im, from->metadata, from->n_metadata * sizeof *from->metadata);
  for (uint32_t i = 0; metadata && i < from->n_metadata; i++) metadata[i] = import_metadata(im, from->metadata[i]);
  to->metadata = metadata;
  const ir_sharding **elements = imported(im, from->elements, from->n_elements * sizeof *from->elements);
  for (uint32_t i = 0; elements && i < from->n_elements; i++) elements[i] = import_sharding(im, from->elements[i]);
  to->elements = elements;
  return to;
}

/* `lists` is set for explicit groups only, the rest for the iota form or the mesh form. */
static const ir_groups *import_groups(importer *im, const ir_groups *from) {
  ir_groups *to = imported(im, from, sizeof *from);
  if (!to) return NULL;
  to->lists = import_lists(im, from->lists);
  to->dims = imported(im, from->dims, from->n_dims * sizeof *from->dims);
  to->reshape = imported(im, from->reshape, from->n_reshape * sizeof *from->reshape);
  to->perm = imported(im, from->perm, from->n_reshape * sizeof *from->perm);
  to->mesh_text = import_str(im, from->mesh_text);
  return to;
}

/* The three spatial lists have one length. */
static const ir_conv_dims *import_conv(importer *im, const ir_conv_dims *from) {
  ir_conv_dims *to = imported(im, from, sizeof *from);
  if (!to) return NULL;
  size_t bytes = from->n_spatial * sizeof *from->input_spatial;
  to->input_spatial = imported(im, from->input_spatial, bytes);
  to->kernel_spatial = imported(im, from->kernel_spatial, bytes);
  to->output_spatial = imported(im, from->output_spatial, bytes);
  return to;
}

/* Keys and values are strings; `raw` was copied with the rest. */
static const ir_dict *import_dict(importer *im, const ir_dict *from) {
  ir_dict *to = imported(im, from, sizeof *from + from->n * sizeof *from->v);
  for (uint32_t i = 0; to && i < to->n; i++) {
    to->v[i].key = import_str(im, from->v[i].key);
    to->v[i].value = import_str(im, from->v[i].value);
  }
  return to;
}

/* Paths on both sides; numbers and flags came with the bytes. */
static const ir_aliasing *import_aliasing(importer *im, const ir_aliasing *from) {
  ir_aliasing *to = imported(im, from, sizeof *from + from->n * sizeof *from->v);
  for (uint32_t i = 0; to && i < to->n; i++) {
    to->v[i].output = import_ints(im, from->v[i].output);
    to->v[i].index = import_ints(im, from->v[i].index);
  }
  return to;
}

static const ir_config_text *import_config(importer *im, const ir_config_text *from) {
  ir_config_text *to = imported(im, from, sizeof *from);
  if (to) to->text = import_str(im, from->text);
  return to;
}

static const ir_accuracy *import_accuracy(importer *im, const ir_accuracy *from) {
  return imported(im, from, sizeof *from);
}

/* Of a domain op both shardings. */
static const ir_domain *import_domain(importer *im, const ir_domain *from) {
  ir_domain *to = imported(im, from, sizeof *from);
  if (!to) return NULL;
  to->kind = import_str(im, from->kind);
  to->entry = import_sharding(im, from->entry);
  to->exit = import_sharding(im, from->exit);
  return to;
}

/* *to is a copy of *from already; kinds that hold no pointer need nothing more. CALLED and OPS are kinds of the text
 * only: op->called and op->control_preds have those. */
static void import_value(importer *im, const ir_attr *from, ir_attr *to) {
  assert(from->kind == to->kind);
  switch ((ir_attr_kind)from->kind) {
    case IR_KIND_STRING:
    case IR_KIND_ORIGIN:
      to->v.str = import_str(im, from->v.str);
      break;
    case IR_KIND_NAMES:
    case IR_KIND_INTS:
    case IR_KIND_BOOLS:
      to->v.ints = import_ints(im, from->v.ints);
      break;
    case IR_KIND_INT_LISTS:
    case IR_KIND_PAIRS:
      to->v.lists = import_lists(im, from->v.lists);
      break;
    case IR_KIND_TYPE:
      to->v.type = import_type(im, from->v.type);
      break;
    case IR_KIND_TYPES:
      to->v.types = import_types(im, from->v.types);
      break;
    case IR_KIND_WINDOW:
      to->v.window = imported(im, from->v.window, sizeof *from->v.window + from->v.window->n * sizeof(ir_window_dim));
      break;
    case IR_KIND_CONV_DIMS:
      to->v.conv = import_conv(im, from->v.conv);
      break;
    case IR_KIND_PADDING:
      to->v.padding =
          imported(im, from->v.padding, sizeof *from->v.padding + from->v.padding->n * sizeof(ir_padding_dim));
      break;
    case IR_KIND_SLICE:
      to->v.slice = imported(im, from->v.slice, sizeof *from->v.slice + from->v.slice->n * sizeof(ir_slice_dim));
      break;
    case IR_KIND_GROUPS:
      to->v.groups = import_groups(im, from->v.groups);
      break;
    case IR_KIND_SHARDING:
      to->v.sharding = import_sharding(im, from->v.sharding);
      break;
    case IR_KIND_METADATA:
      to->v.metadata = import_metadata(im, from->v.metadata);
      break;
    case IR_KIND_CONFIG:
      to->v.config = import_config(im, from->v.config);
      break;
    case IR_KIND_DICT:
    case IR_KIND_STATISTICS:
      to->v.dict = import_dict(im, from->v.dict);
      break;
    case IR_KIND_ACCURACY:
      to->v.accuracy = import_accuracy(im, from->v.accuracy);
      break;
    case IR_KIND_ALIASING:
      to->v.aliasing = import_aliasing(im, from->v.aliasing);
      break;
    case IR_KIND_LITERAL:
      to->v.literal = ir_literal_import(im->m, from->v.literal);
      im->ok = im->ok && to->v.literal;
      break;
    case IR_KIND_DOMAIN:
      to->v.domain = import_domain(im, from->v.domain);
      break;
    case IR_KIND_BOOL:
    case IR_KIND_INT:
    case IR_KIND_NAME:
    case IR_KIND_FLOAT:
    case IR_KIND_NONE:
    case IR_KIND_CALLED:
    case IR_KIND_OPS:
      break;
  }
}

bool ir_attr_import(ir_module *m, const ir_attr *from, ir_attr *to) {
  assert(m && from && to);
  importer im = {m, true};
  *to = *from;
  import_value(&im, from, to);
  return im.ok;
}

const ir_dict *ir_dict_import(ir_module *m, const ir_dict *d) {
  assert(m && d);
  importer im = {m, true};
  const ir_dict *c = import_dict(&im, d);
  return im.ok ? c : NULL;
}
