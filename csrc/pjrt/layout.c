/* Layouts: which of an array's dimensions lie close together. Programs work on row-major arrays. An array in another
 * order is copied into that one before a program runs, and a result whose layout the program says (mhlo.layout_mode) is
 * copied out of it. A layout is the permutation of its dimensions, the one with the shortest steps first, as in HLO;
 * NULL stands for the row-major one. */
#include "../api/plugin.h"
#include "abi_extensions.h"
#include "pjrt.h"

bool pjrt_layout_is_row_major(const int64_t *minor_to_major, uint32_t rank) {
  for (uint32_t d = 0; minor_to_major && d < rank; d++)
    if (minor_to_major[d] != (int64_t)(rank - 1 - d)) return false;
  return true;
}

void pjrt_layout_strides(const pjrt_shape *s, int64_t *strides) {
  int64_t step = (int64_t)base_dtype_bytes((base_dtype)s->dtype);
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t d = s->minor_to_major ? s->minor_to_major[i] : (int64_t)(s->rank - 1 - i);
    assert(d >= 0 && d < s->rank);
    strides[d] = step;
    step *= s->dims[d];
  }
}

int pjrt_layout_copy(xlac_runtime *rt, const pjrt_shape *s, const int64_t *strides, const void *from,
                     const int64_t *minor_to_major, void *to, xlac_error *err) {
  int64_t dims[IR_MAX_RANK + 1], steps[IR_MAX_RANK + 1];
  xlac_buffer *view = NULL;
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t d = minor_to_major ? minor_to_major[s->rank - 1 - i] : (int64_t)i;
    assert(d >= 0 && d < s->rank);
    dims[i] = s->dims[d];
    steps[i] = strides[d];
  }
  const xlac_layout layout = {.dtype = s->dtype, .rank = s->rank, .dims = dims, .strides = steps, .readonly = true};
  const xlac_memory memory = {(void *)(uintptr_t)from, NULL, NULL};
  TRY(xlac_buffer_wrap(&view, NULL, &layout, &memory, err));
  int status = xlac_buffer_copy_to(view, rt, to, err);
  xlac_buffer_release(view);
  return status;
}

/* --- what the client says --- */

static PJRT_Error *layout_bad_order(uint32_t rank) {
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "a layout of an array of rank %u that is not an order of its dimensions",
                   rank);
}

static PJRT_Error *layout_check_order(const int64_t *minor_to_major, uint32_t rank) {
  uint64_t seen = 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (minor_to_major[d] < 0 || minor_to_major[d] >= rank) return layout_bad_order(rank);
    seen |= (uint64_t)1 << minor_to_major[d];
  }
  return (uint32_t)__builtin_popcountll(seen) == rank ? NULL : layout_bad_order(rank);
}

/* Sorted by the steps, the shortest first; of equal ones the last dimension. */
static PJRT_Error *layout_of_strides(const PJRT_Buffer_MemoryLayout_Strides *t, const pjrt_shape *s, int64_t *out) {
  if (t->num_byte_strides != s->rank)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "strides of another rank than the array's");
  for (uint32_t i = 0; i < s->rank; i++) {
    out[i] = (int64_t)(s->rank - 1 - i);
    for (uint32_t j = i; j > 0 && t->byte_strides[out[j]] < t->byte_strides[out[j - 1]]; j--) {
      int64_t other = out[j];
      out[j] = out[j - 1];
      out[j - 1] = other;
    }
  }
  int64_t step = (int64_t)base_dtype_bytes((base_dtype)s->dtype);
  for (uint32_t i = 0; i < s->rank; i++) {
    if (s->dims[out[i]] != 1 && t->byte_strides[out[i]] != step)
      return pjrt_fail(PJRT_UNIMPLEMENTED, "a layout whose strides leave gaps");
    step *= s->dims[out[i]];
  }
  return NULL;
}

PJRT_Error *pjrt_layout_read(const PJRT_Buffer_MemoryLayout *layout, const pjrt_shape *s, int64_t *out) {
  assert(s->rank <= IR_MAX_RANK);
  for (uint32_t d = 0; d < s->rank; d++) out[d] = (int64_t)(s->rank - 1 - d);
  if (!layout) return NULL;
  if (layout->type != PJRT_LAYOUT_TILED) return layout_of_strides(&layout->strides, s, out);
  const PJRT_Buffer_MemoryLayout_Tiled *t = &layout->tiled;
  if (t->num_tiles || t->minor_to_major_size != s->rank)
    return pjrt_fail(PJRT_UNIMPLEMENTED, "a layout with tiles, or of another rank than the array's");
  for (uint32_t d = 0; d < s->rank; d++) out[d] = t->minor_to_major[d];
  return layout_check_order(out, s->rank);
}

/* --- what programs say --- */

/* "{0,1}", with or without what XLA writes behind a colon. */
static PJRT_Error *layout_parse(const char *text, uint32_t rank, int64_t *out) {
  uint32_t n = 0;
  for (const char *at = text + 1; *at && *at != '}' && *at != ':';) {
    int64_t d = 0;
    if (*at < '0' || *at > '9' || n == rank) return layout_bad_order(rank);
    while (*at >= '0' && *at <= '9' && d <= rank) d = d * 10 + (*at++ - '0');
    out[n++] = d;
    if (*at == ',') at++;
  }
  return n == rank ? layout_check_order(out, rank) : layout_bad_order(rank);
}

/* A result that may lie as it likes, and transposes another value, lies as that one does. */
static void layout_choose(const api_placement *p, uint32_t rank, int64_t *out) {
  for (uint32_t d = 0; d < rank; d++) out[d] = (int64_t)(rank - 1 - d);
  if (!p->transpose || p->rank != rank) return;
  for (uint32_t d = 0; d < rank; d++)
    for (uint32_t k = 0; k < rank; k++)
      if (p->transpose[k] == (int64_t)(rank - 1 - d)) out[d] = k;
}

static PJRT_Error *layout_of_leaf(PJRT_Executable *e, const api_placement *p, pjrt_shape *s) {
  int64_t order[IR_MAX_RANK + 1];
  if (!p->layout_mode || s->dtype == BASE_DTYPE_INVALID) return NULL;
  if (strcmp(p->layout_mode, "auto") == 0)
    layout_choose(p, s->rank, order);
  else if (p->layout_mode[0] == '{')
    PJRT_TRY(layout_parse(p->layout_mode, s->rank, order));
  else
    return NULL;
  if (pjrt_layout_is_row_major(order, s->rank)) return NULL;
  int64_t *kept = pjrt_alloc(s->rank * sizeof *kept);
  if (!kept) return pjrt_out_of_memory("a layout");
  memcpy(kept, order, s->rank * sizeof *kept);
  s->minor_to_major = kept; /* the executable's: pjrt_executable_release */
  e->placed = true;
  return NULL;
}

static PJRT_Error *layout_kind_of_leaf(PJRT_Executable *e, const api_placement *p, uint32_t *kind) {
  if (!p->memory_kind) return NULL;
  *kind = pjrt_memory_kind(p->memory_kind, strlen(p->memory_kind));
  e->placed = e->placed || *kind != 0;
  if (*kind < PJRT_MEMORY_KINDS) return NULL;
  *kind = 0;
  return pjrt_fail(PJRT_INVALID_ARGUMENT,
                   "the program %s names the memory kind \"%.60s\"; devices of xlac's have "
                   "\"device\", \"pinned_host\" and \"unpinned_host\"",
                   e->name, p->memory_kind);
}

PJRT_Error *pjrt_executable_place(PJRT_Executable *e, xlac_module *m) {
  api_placement p;
  for (uint32_t i = 0; i < e->n_parameters && api_module_placement(m, false, i, &p); i++) {
    PJRT_TRY(layout_of_leaf(e, &p, &e->parameters[i].shape));
    PJRT_TRY(layout_kind_of_leaf(e, &p, &e->parameters[i].memory_kind));
  }
  for (uint32_t i = 0; i < e->n_results && api_module_placement(m, true, i, &p); i++) {
    pjrt_result *r = &e->results[i];
    PJRT_TRY(layout_of_leaf(e, &p, &r->shape));
    PJRT_TRY(layout_kind_of_leaf(e, &p, &r->memory_kind));
    if (r->shape.minor_to_major)
      r->donor = UINT32_MAX; /* it is written when the argument is read no more, but not in order */
  }
  return NULL;
}

/* --- the extension: a layout's text is HLO's, "{1,0}" --- */

enum { LAYOUT_TEXT = 4 * IR_MAX_RANK + 3 };

struct PJRT_Layouts_MemoryLayout {
  size_t n;
  char text[LAYOUT_TEXT];
};

static PJRT_Layouts_MemoryLayout *layout_make(size_t rank, const int64_t *minor_to_major) {
  assert(rank <= IR_MAX_RANK);
  PJRT_Layouts_MemoryLayout *l = pjrt_alloc(sizeof *l);
  if (!l) return NULL;
  l->text[l->n++] = '{';
  for (size_t i = 0; i < rank; i++) {
    int64_t d = minor_to_major ? minor_to_major[i] : (int64_t)(rank - 1 - i);
    if (i) l->text[l->n++] = ',';
    if (d >= 10) l->text[l->n++] = (char)('0' + d / 10);
    l->text[l->n++] = (char)('0' + d % 10);
  }
  l->text[l->n++] = '}';
  return l;
}

static PJRT_Error *layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  pjrt_free(args->layout);
  return NULL;
}

static void layout_drop_text(PJRT_Layouts_SerializedLayout *s) {
  pjrt_free(s);
}

/* The text outlives the layout. */
static PJRT_Error *layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
  char *copy = pjrt_copy_text(args->layout->text, args->layout->n);
  if (!copy) return pjrt_out_of_memory("a layout");
  args->serialized_bytes = copy;
  args->serialized_bytes_size = args->layout->n;
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)(void *)copy;
  args->serialized_layout_deleter = layout_drop_text;
  return NULL;
}

static PJRT_Error *layout_of_rank(size_t rank, PJRT_Layouts_MemoryLayout **out) {
  if (rank > IR_MAX_RANK)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an array has at most %d dimensions", (int)IR_MAX_RANK);
  *out = layout_make(rank, NULL);
  return *out ? NULL : pjrt_out_of_memory("a layout");
}

static PJRT_Error *layout_of_client(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args) {
  return layout_of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_topology(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args) {
  return layout_of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args) {
  args->layout = layout_make(args->buffer->rank, args->buffer->minor_to_major);
  return args->layout ? NULL : pjrt_out_of_memory("a layout");
}

/* The caller destroys each layout, the array is the executable's: under its lock, since two may ask at a time. */
static PJRT_Error *layout_of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args) {
  PJRT_Executable *e = args->executable;
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&e->lock);
  for (uint32_t i = 0; i < e->n_results && !error; i++)
    if (!(e->layouts[i] = layout_make(e->results[i].shape.rank, e->results[i].shape.minor_to_major)))
      error = pjrt_out_of_memory("layouts");
  pthread_mutex_unlock(&e->lock);
  args->num_outputs = e->n_results;
  args->layouts = (PJRT_Layouts_MemoryLayout **)e->layouts;
  return error;
}

static PJRT_Error *layout_of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args) {
  PJRT_Executable *e = args->executable;
  PJRT_Error *error = NULL;
  void **array = e->layouts + e->n_results;
  pthread_mutex_lock(&e->lock);
  for (uint32_t i = 0; i < e->n_parameters && !error; i++)
    if (!(array[i] = layout_make(e->parameters[i].shape.rank, e->parameters[i].shape.minor_to_major)))
      error = pjrt_out_of_memory("layouts");
  pthread_mutex_unlock(&e->lock);
  args->num_parameters = e->n_parameters;
  args->layouts = (PJRT_Layouts_MemoryLayout **)array;
  return error;
}

const PJRT_Layouts_Extension pjrt_first_extension = {
    .base = {sizeof pjrt_first_extension, PJRT_EXTENSION_LAYOUTS, (PJRT_Extension_Base *)&pjrt_second_extension.base},
    .memory_layout_destroy = layout_destroy,
    .memory_layout_serialize = layout_serialize,
    .client_get_default_layout = layout_of_client,
    .buffer_memory_layout = layout_of_buffer,
    .topology_get_default_layout = layout_of_topology,
    .executable_get_output_layouts = layout_of_outputs,
    .executable_get_parameter_layouts = layout_of_parameters,
};
