/* Prints shardings, replica groups and metadata.
 *
 *   {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}   [2,4]<=[8]   {{0,1},{2,3}}   {op_name="f" source_line=3}
 */
#include "print.h"
#include "../../ir/sdy/mesh_groups.h"

/* ---- Prints device lists of the form "iota, reshaped, transposed, reshaped": "<=[2,4]T(1,0)". The same list can be
 * written in many ways; XLA keeps the shortest, with dimensions of size one dropped and those that stay neighbours
 * merged. */

/*   [2,4]T(1,0)      dims {2, 4}, perm {1, 0} */
typedef struct iota_form {
  uint32_t n;
  int64_t dims[IR_MAX_RANK];
  int64_t perm[IR_MAX_RANK]; /* perm[i]: which of dims stands at place i */
} iota_form;

/* Drops dimension d of f->dims, and its place. */
static void drop_iota_dim(iota_form *f, int64_t d) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    if (f->perm[i] == d) continue;
    f->perm[n++] = f->perm[i] - (f->perm[i] > d);
  }
  assert(n + 1 == f->n);
  for (uint32_t i = (uint32_t)d; i + 1 < f->n; i++) f->dims[i] = f->dims[i + 1];
  f->n = n;
}

/* A dimension of size 1 orders nothing. One is kept of a list of one device. */
static void drop_unit_dims(iota_form *f) {
  for (uint32_t d = f->n; d-- > 0;) {
    if (f->dims[d] == 1 && f->n > 1) drop_iota_dim(f, d);
  }
}

/* Neighbours in the order of the perm that are neighbours in the dims too, in that order, are one dimension. */
static void merge_neighbours(iota_form *f) {
  assert(f->n >= 1 && f->n <= IR_MAX_RANK);
  for (uint32_t i = 0; i + 1 < f->n;) {
    int64_t d = f->perm[i], product;
    if (f->perm[i + 1] != d + 1 || !base_mul_i64(f->dims[d], f->dims[d + 1], &product)) {
      i++;
      continue;
    }
    f->dims[d] = product;
    drop_iota_dim(f, d + 1);
  }
}

/* Of at most IR_MAX_RANK numbers, which fit the bits of a word. */
static bool is_permutation(const int64_t *perm, uint32_t n) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (perm[i] < 0 || perm[i] >= n || (seen >> perm[i] & 1)) return false;
    seen |= (uint64_t)1 << perm[i];
  }
  return true;
}

/*   [2,4]T(1,0) */
static void put_iota_form(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  base_putc(out, '[');
  text_put_ints(out, dims, n);
  base_putc(out, ']');
  if (n < 2 || !perm) return;
  BASE_PUT(out, "T(");
  text_put_ints(out, perm, n);
  base_putc(out, ')');
}

/* Does not change what it is given: the short form is made on the stack. */
uint32_t text_put_iota_dims(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  iota_form f = {.n = n};
  if (n == 0 || n > IR_MAX_RANK || (perm && !is_permutation(perm, n))) {
    put_iota_form(out, dims, perm, n); /* as written: the verifier will refuse it */
    return n;
  }
  for (uint32_t i = 0; i < n; i++) {
    f.dims[i] = dims[i];
    f.perm[i] = perm ? perm[i] : i;
  }
  drop_unit_dims(&f);
  merge_neighbours(&f);
  put_iota_form(out, f.dims, f.perm, f.n);
  return f.n;
}

/*   <=[8]      <=[4,2]T(1,0) */
void text_put_iota(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  BASE_PUT(out, "<=");
  (void)text_put_iota_dims(out, dims, perm, n);
}

/* ---- Writes out replica groups given by mesh axes, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}":
 * fingerprints compare groups by the devices in them. Anything this reader of that one form does not know stays as it
 * was written.
 */

/* A run of device digits: an axis of the mesh, or what an axis is cut into by the sub-axes in use. */
typedef struct mesh_part {
  int64_t size, stride;
} mesh_part;

/* The sub-axis of size `size` whose more major part has the size `pre`: 'b':(2)4 of an axis of 16 has the axis's stride
 * times 16 / (2 * 4). */
static mesh_part mesh_part_of(const ir_mesh_groups *m, uint32_t axis, int64_t pre, int64_t size) {
  assert(axis < m->n_axes && m->sizes[axis] % (pre * size) == 0);
  return (mesh_part){size, m->strides[axis] * (m->sizes[axis] / (pre * size))};
}

/* The parts of axis that no ref uses, outermost first. False when its refs overlap. */
static bool add_unused_parts(const ir_mesh_groups *m, uint32_t axis, mesh_part *parts, uint32_t *n) {
  int64_t at = 1; /* product of the sizes passed so far */
  while (at < m->sizes[axis]) {
    const ir_mesh_ref *next = NULL;
    for (uint32_t i = 0; i < m->n_refs; i++) {
      const ir_mesh_ref *r = &m->refs[i];
      if (r->axis == axis && r->size > 1 && r->pre >= at && (!next || r->pre < next->pre)) next = r;
    }
    int64_t until = next ? next->pre : m->sizes[axis];
    if (until % at != 0) return false;
    if (until > at) parts[(*n)++] = mesh_part_of(m, axis, at, until / at);
    at = next ? next->pre * next->size : until;
  }
  return at == m->sizes[axis];
}

/* The place in the mesh that the digits of `index` in the mixed base of the parts stand for. */
static int64_t mesh_place(const mesh_part *parts, uint32_t n, int64_t index) {
  assert(index >= 0);
  int64_t place = 0;
  for (uint32_t i = n; i-- > 0;) {
    place += index % parts[i].size * parts[i].stride;
    index /= parts[i].size;
  }
  return place;
}

/* -1 when it is more than a mesh may have. */
static int64_t part_product(const mesh_part *parts, uint32_t n) {
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (!base_mul_i64(product, parts[i].size, &product) || product > IR_MAX_MESH_DEVICES) return -1;
  }
  return product;
}

/* device_ids=(0,2,1,3): all of them, in mesh order. */
static bool read_id_list(const ir_mesh_groups *m, int64_t *devices) {
  ir_mesh_groups s = {.p = m->list.p, .end = m->list.p + m->list.n};
  for (int64_t i = 0; i < m->n_devices; i++) {
    if ((i && !ir_mesh_take(&s, ",")) || !ir_mesh_take_int(&s, &devices[i])) return false;
  }
  return !ir_mesh_take(&s, ",") && s.p == s.end;
}

/* Devices in mesh order. As an iota, "[4,2]T(1,0)", or as a list. */
static bool read_devices(const ir_mesh_groups *m, int64_t *devices) {
  assert(m->has_ids && m->n_devices >= 1);
  mesh_part parts[IR_MAX_MESH_AXES];
  if (m->list.p) return read_id_list(m, devices);
  for (uint32_t i = 0; i < m->n_id_dims; i++) {
    uint32_t d = m->n_id_perm ? (uint32_t)m->id_perm[i] : i;
    parts[i] = (mesh_part){m->id_dims[d], 1};
    if (parts[i].size < 1) return false;
    for (uint32_t j = d + 1; j < m->n_id_dims; j++) {
      if (!base_mul_i64(parts[i].stride, m->id_dims[j], &parts[i].stride)) return false;
    }
  }
  if (part_product(parts, m->n_id_dims) != m->n_devices) return false;
  for (int64_t i = 0; i < m->n_devices; i++) devices[i] = mesh_place(parts, m->n_id_dims, i);
  return true;
}

/* Groups are what the inner digits run through while the outer ones stand still. */
static void put_mesh_lists(base_text *out, const mesh_part *outer, uint32_t n_outer, const mesh_part *inner,
                           uint32_t n_inner, const int64_t *devices) {
  int64_t n_groups = part_product(outer, n_outer), size = part_product(inner, n_inner);
  base_putc(out, '{');
  for (int64_t i = 0; i < n_groups; i++) {
    base_puts(out, i ? ",{" : "{");
    for (int64_t j = 0; j < size; j++) {
      int64_t place = mesh_place(outer, n_outer, i) + mesh_place(inner, n_inner, j);
      if (j) base_putc(out, ',');
      base_put_i64(out, devices ? devices[place] : place);
    }
    base_putc(out, '}');
  }
  base_putc(out, '}');
}

/* The axes that refs name vary within a group, in the order of the refs; all other parts tell the groups apart. */
static bool put_expanded(base_text *out, const ir_mesh_groups *m) {
  mesh_part inner[IR_MAX_MESH_AXES], outer[4 * IR_MAX_MESH_AXES];
  uint32_t n_outer = 0;
  for (uint32_t i = 0; i < m->n_refs; i++) inner[i] = mesh_part_of(m, m->refs[i].axis, m->refs[i].pre, m->refs[i].size);
  for (uint32_t i = 0; i < m->n_axes; i++) {
    if (!add_unused_parts(m, i, outer, &n_outer)) return false;
  }
  int64_t n_inner = part_product(inner, m->n_refs);
  if (n_inner < 1 || n_inner * part_product(outer, n_outer) != m->n_devices) return false;
  int64_t *devices = base_malloc(out->alloc, (size_t)m->n_devices * sizeof *devices);
  bool ok = devices && (!m->has_ids || read_devices(m, devices));
  if (ok) put_mesh_lists(out, outer, n_outer, inner, m->n_refs, m->has_ids ? devices : NULL);
  base_free(out->alloc, devices);
  return ok;
}

/*   'x' */
static void put_axis(base_text *out, base_slice name) {
  base_putc(out, '\'');
  base_put(out, name.p, name.n);
  base_putc(out, '\'');
}

/*   mesh['x'=2,'y'=4] */
static void put_mesh_axes(base_text *out, const ir_mesh_groups *m) {
  BASE_PUT(out, "mesh[");
  for (uint32_t i = 0; i < m->n_axes; i++) {
    if (i) base_putc(out, ',');
    put_axis(out, m->names[i]);
    base_putc(out, '=');
    base_put_i64(out, m->sizes[i]);
  }
  base_putc(out, ']');
}

/* Nothing when they are 0, 1, 2, ... */
static void put_device_ids(base_text *out, const ir_mesh_groups *m) {
  size_t start = out->n;
  if (!m->has_ids) return;
  BASE_PUT(out, ", device_ids=(");
  uint32_t n = 0;
  if (m->list.p)
    for (size_t i = 0; i < m->list.n; i++) {
      if (m->list.p[i] != ' ') base_putc(out, m->list.p[i]);
    }
  else
    n = text_put_iota_dims(out, m->id_dims, m->n_id_perm ? m->id_perm : NULL, m->n_id_dims);
  base_putc(out, ')');
  if (n == 1) out->n = start;
}

/*   {'a','b':(1)2} */
static void put_refs(base_text *out, const ir_mesh_groups *m) {
  base_puts(out, " {");
  for (uint32_t i = 0; i < m->n_refs; i++) {
    const ir_mesh_ref *r = &m->refs[i];
    if (i) base_putc(out, ',');
    put_axis(out, m->names[r->axis]);
    if (r->pre == 1 && r->size == m->sizes[r->axis]) continue;
    BASE_PUT(out, ":(");
    base_put_i64(out, r->pre);
    base_putc(out, ')');
    base_put_i64(out, r->size);
  }
  base_putc(out, '}');
}

/* Without `expand` only blanks and spellings change. */
bool text_put_mesh_groups(base_text *out, const base_istr *text, bool expand) {
  ir_mesh_groups m;
  if (!ir_mesh_groups_read(&m, text)) return false;
  if (expand) return put_expanded(out, &m);
  put_mesh_axes(out, &m);
  put_device_ids(out, &m);
  put_refs(out, &m);
  return true;
}

/* Groups written out in fingerprints are for comparing; a list of more devices than this stays in its iota form. */
enum { MAX_EXPANDED_DEVICES = 1 << 22, MAX_TUPLE_DEPTH = 64 };

/* --- metadata --- */

/* A blank before each field but the first; `start` is where the fields begin in out. */
static void put_field(base_text *out, size_t start, const char *name) {
  if (out->n != start) base_putc(out, ' ');
  base_puts(out, name);
  base_putc(out, '=');
}

/* An empty string is left out. `start` as in put_field. */
static void put_string_field(base_text *out, size_t start, const char *name, const base_istr *s) {
  if (!s || s->n == 0) return;
  put_field(out, start, name);
  text_put_quoted(out, s);
}

/* Zero is left out. */
static void put_number_field(base_text *out, size_t start, const char *name, int64_t v) {
  if (v == 0) return;
  put_field(out, start, name);
  base_put_i64(out, v);
}

/* The order is that of XLA's OpMetadataToString; empty strings and zeros are left out. */
void text_put_metadata_fields(base_text *out, const ir_metadata *m, const uint32_t *frames, uint32_t n_frames) {
  size_t start = out->n;
  put_string_field(out, start, "op_type", m->op_type);
  put_string_field(out, start, "op_name", m->op_name);
  put_string_field(out, start, "source_file", m->source_file);
  put_number_field(out, start, "source_line", m->source_line);
  put_number_field(out, start, "source_end_line", m->source_end_line);
  put_number_field(out, start, "source_column", m->source_column);
  put_number_field(out, start, "source_end_column", m->source_end_column);
  if (m->profile_type && m->profile_type->n) {
    put_field(out, start, "profile_type");
    base_put(out, m->profile_type->s, m->profile_type->n);
  }
  put_number_field(out, start, "size_of_generated_code_in_bytes", m->size_of_generated_code);
  put_number_field(out, start, "size_of_memory_working_set_in_bytes", m->size_of_memory_working_set);
  put_string_field(out, start, "deduplicated_name", m->deduplicated_name);
  if (m->preserve_layout) {
    put_field(out, start, "preserve_layout");
    BASE_PUT(out, "true");
  }
  if (m->scheduling_name && m->scheduling_name->n) {
    put_field(out, start, "scheduling_name");
    text_put_raw_quoted(out, m->scheduling_name);
  }
  if (m->stack_frame_id && m->stack_frame_id <= n_frames)
    put_number_field(out, start, "stack_frame_id", frames ? frames[m->stack_frame_id - 1] : m->stack_frame_id);
  put_string_field(out, start, "metadata_payload", m->payload);
}

/* --- replica groups --- */

/* The product of n dims, or -1 when one is negative or it is over the limit. */
static int64_t device_count(const int64_t *dims, uint32_t n) {
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (dims[i] < 0 || !base_mul_i64(product, dims[i], &product) || product > MAX_EXPANDED_DEVICES) return -1;
  }
  return product;
}

/* Element `at` of the reshaped, transposed iota. */
static int64_t iota_element(const ir_groups *g, int64_t at) {
  int64_t value = 0;
  assert(at >= 0);
  for (uint32_t i = g->n_reshape; i-- > 0;) {
    uint32_t d = g->perm ? (uint32_t)g->perm[i] : i;
    int64_t stride = 1;
    for (uint32_t j = d + 1; j < g->n_reshape; j++) stride *= g->reshape[j];
    value += at % g->reshape[d] * stride;
    at /= g->reshape[d];
  }
  return value;
}

/* Whether the numbers fit together, which the verifier may not have looked at yet. */
static bool can_expand(const ir_groups *g) {
  if (g->n_dims != 2 || device_count(g->dims, g->n_dims) < 1) return false;
  for (uint32_t i = 0; i < g->n_reshape; i++) {
    if (g->perm && (g->perm[i] < 0 || g->perm[i] >= g->n_reshape)) return false;
  }
  return device_count(g->reshape, g->n_reshape) == device_count(g->dims, g->n_dims);
}

/*   [2,2]<=[4]   as   {{0,1},{2,3}} */
static void put_expanded_groups(base_text *out, const ir_groups *g) {
  base_putc(out, '{');
  for (int64_t i = 0; i < g->dims[0]; i++) {
    if (i) base_putc(out, ',');
    base_putc(out, '{');
    for (int64_t j = 0; j < g->dims[1]; j++) {
      if (j) base_putc(out, ',');
      base_put_i64(out, iota_element(g, i * g->dims[1] + j));
    }
    base_putc(out, '}');
  }
  base_putc(out, '}');
}

/*   [2,4] */
static void put_tile_dims(base_text *out, const int64_t *dims, uint32_t n) {
  base_putc(out, '[');
  text_put_ints(out, dims, n);
  base_putc(out, ']');
}

/*   {{0,1},{2,3}} */
static void put_group_lists(base_text *out, const ir_int_lists *lists) {
  base_putc(out, '{');
  for (uint32_t i = 0; lists && i < lists->n; i++) {
    if (i) base_putc(out, ',');
    text_put_index(out, lists->v[i]);
  }
  base_putc(out, '}');
}

/* `expand`: as lists of devices whatever the form, for fingerprints, which compare groups as what they are. */
void text_put_groups(base_text *out, const ir_groups *g, bool expand) {
  if (g->mesh_text) {
    if (text_put_mesh_groups(out, g->mesh_text, expand)) return;
    base_put(out, g->mesh_text->s, g->mesh_text->n);
  } else if (!g->iota) {
    put_group_lists(out, g->lists);
  } else if (expand && can_expand(g)) {
    put_expanded_groups(out, g);
  } else {
    put_tile_dims(out, g->dims, g->n_dims);
    text_put_iota(out, g->reshape, g->perm, g->n_reshape);
  }
}

/* --- shardings --- */

/* The word for a kind of subgroup in last_tile_dims={...}. */
static const char *subgroup_name(uint8_t kind) {
  switch (kind) {
    case IR_SHARDING_MANUAL:
      return "manual";
    case IR_SHARDING_MAXIMAL:
      return "maximal";
    case IR_SHARDING_UNREDUCED:
      return "unreduced";
    case IR_SHARDING_UNKNOWN:
      return "unknown";
    default:
      return "replicated";
  }
}

/*   devices=[2,2]<=[4] last_tile_dims={manual} */
static void put_tiling(base_text *out, const ir_sharding *s) {
  BASE_PUT(out, "devices=");
  put_tile_dims(out, s->dims, s->n_dims);
  if (s->iota)
    text_put_iota(out, s->reshape, s->perm, s->n_reshape);
  else
    text_put_ints(out, s->devices, s->n_devices);
  if (s->replicate_on_last_dim) BASE_PUT(out, " last_tile_dim_replicate");
  if (s->n_subgroups == 0) return;
  BASE_PUT(out, " last_tile_dims={");
  for (uint32_t i = 0; i < s->n_subgroups; i++) {
    if (i) BASE_PUT(out, ", ");
    base_puts(out, subgroup_name(s->subgroups[i]));
  }
  base_putc(out, '}');
}

/* What stands first in the braces. */
static void put_sharding_kind(base_text *out, const ir_sharding *s) {
  switch (s->kind) {
    case IR_SHARDING_REPLICATED:
      BASE_PUT(out, "replicated");
      return;
    case IR_SHARDING_MANUAL:
      BASE_PUT(out, "manual");
      return;
    case IR_SHARDING_UNKNOWN:
      BASE_PUT(out, "unknown");
      return;
    case IR_SHARDING_UNREDUCED:
      BASE_PUT(out, "unreduced");
      return;
    case IR_SHARDING_MAXIMAL:
      BASE_PUT(out, "maximal device=");
      base_put_i64(out, s->device);
      return;
    default:
      put_tiling(out, s);
  }
}

/* One in single braces, several in braces of their own. */
static void put_sharding_metadata(base_text *out, const ir_sharding *s) {
  if (s->n_metadata == 0) return;
  BASE_PUT(out, " metadata={");
  for (uint32_t i = 0; i < s->n_metadata; i++) {
    if (i) BASE_PUT(out, ", ");
    if (s->n_metadata > 1) base_putc(out, '{');
    text_put_metadata_fields(out, s->metadata[i], NULL, UINT32_MAX);
    if (s->n_metadata > 1) base_putc(out, '}');
  }
  base_putc(out, '}');
}

/*   {devices=[2,1]<=[2] shard_as 3 metadata={...}} */
static void put_leaf_sharding(base_text *out, const ir_sharding *s, bool metadata) {
  assert(s->kind <= IR_SHARDING_TUPLE && s->group <= 2);
  base_putc(out, '{');
  put_sharding_kind(out, s);
  if (s->group) {
    base_puts(out, s->group == 1 ? " shard_as " : " shard_like ");
    base_put_i64(out, s->group_id);
  }
  if (metadata) put_sharding_metadata(out, s);
  base_putc(out, '}');
}

/* Tuples nest to a limit, beyond which one prints as if it were a leaf: no reader makes such. */
static void put_sharding_at(base_text *out, const ir_sharding *s, bool metadata, unsigned depth) {
  if (s->named_text) {
    base_put(out, s->named_text->s, s->named_text->n);
    return;
  }
  if (s->kind != IR_SHARDING_TUPLE || depth > MAX_TUPLE_DEPTH) {
    put_leaf_sharding(out, s, metadata);
    return;
  }
  base_putc(out, '{');
  for (uint32_t i = 0; i < s->n_elements; i++) {
    if (i) BASE_PUT(out, ", ");
    text_put_index_comment(out, i);
    put_sharding_at(out, s->elements[i], metadata, depth + 1);
  }
  base_putc(out, '}');
}

/*   {{replicated}, {maximal device=0}} of a tuple */
void text_put_sharding(base_text *out, const ir_sharding *s, bool metadata) {
  put_sharding_at(out, s, metadata, 0);
}
