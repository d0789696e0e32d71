/* Prints shardings, replica groups and metadata. */
#include "print.h"

/* Groups written out in fingerprints are for comparing; a list of more devices than this stays in its iota form. */
enum { MAX_EXPANDED_DEVICES = 1 << 22, MAX_TUPLE_DEPTH = 64 };

/* --- metadata --- */

static void put_field(base_text *out, size_t start, const char *name) {
  if (out->n != start) base_putc(out, ' ');
  base_puts(out, name);
  base_putc(out, '=');
}

static void put_string_field(base_text *out, size_t start, const char *name, const base_istr *s) {
  if (!s || s->n == 0) return;
  put_field(out, start, name);
  text_put_quoted(out, s);
}

static void put_number_field(base_text *out, size_t start, const char *name, int64_t v) {
  if (v == 0) return;
  put_field(out, start, name);
  base_put_i64(out, v);
}

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

static bool can_expand(const ir_groups *g) {
  if (g->n_dims != 2 || device_count(g->dims, g->n_dims) < 1) return false;
  for (uint32_t i = 0; i < g->n_reshape; i++) {
    if (g->perm && (g->perm[i] < 0 || g->perm[i] >= g->n_reshape)) return false;
  }
  return device_count(g->reshape, g->n_reshape) == device_count(g->dims, g->n_dims);
}

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

static void put_tile_dims(base_text *out, const int64_t *dims, uint32_t n) {
  base_putc(out, '[');
  text_put_ints(out, dims, n);
  base_putc(out, ']');
}

static void put_group_lists(base_text *out, const ir_int_lists *lists) {
  base_putc(out, '{');
  for (uint32_t i = 0; lists && i < lists->n; i++) {
    if (i) base_putc(out, ',');
    text_put_index(out, lists->v[i]);
  }
  base_putc(out, '}');
}

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

void text_put_sharding(base_text *out, const ir_sharding *s, bool metadata) {
  put_sharding_at(out, s, metadata, 0);
}
