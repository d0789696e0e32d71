/* Buffers: their shapes, their life, and what the client asks of them all the time. */
#include <stdio.h>

#include "pjrt.h"

/* --- element types --- */

static const uint8_t buffer_dtypes[PJRT_BUFFER_TYPE_END] = {
#define TYPE(name, number, text) [number] = XLAC_##name,
    PJRT_BUFFER_TYPES(TYPE)
#undef TYPE
};
static const uint8_t buffer_types[BASE_DTYPE_COUNT] = {[BASE_DTYPE_INVALID] = PJRT_BUFFER_TOKEN,
#define TYPE(name, number, text) [XLAC_##name] = number,
                                                       PJRT_BUFFER_TYPES(TYPE)
#undef TYPE
};

base_dtype pjrt_dtype(PJRT_Buffer_Type type) {
  return (unsigned)type < PJRT_BUFFER_TYPE_END ? (base_dtype)buffer_dtypes[type] : BASE_DTYPE_INVALID;
}

PJRT_Buffer_Type pjrt_type(uint32_t dtype) {
  assert(dtype < BASE_DTYPE_COUNT);
  return (PJRT_Buffer_Type)buffer_types[dtype];
}

/* --- shapes --- */

PJRT_Error *pjrt_shape_bytes(const pjrt_shape *s, size_t *bytes) {
  assert(s && bytes);
  size_t n = base_dtype_bytes((base_dtype)s->dtype);
  bool fits = s->rank <= IR_MAX_RANK, empty = false;
  for (uint32_t d = 0; fits && d < s->rank; d++) {
    empty = empty || s->dims[d] == 0;
    fits = s->dims[d] >= 0;
  }
  for (uint32_t d = 0; fits && !empty && d < s->rank; d++) fits = base_mul(n, (size_t)s->dims[d], &n);
  if (!fits || n > (size_t)PTRDIFF_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an array of rank %u has dimensions below 0, or too many bytes", s->rank);
  *bytes = empty ? 0 : n;
  return NULL;
}

PJRT_Error *pjrt_read_shape(pjrt_shape *out, PJRT_Buffer_Type type, const int64_t *dims, size_t n) {
  *out = (pjrt_shape){pjrt_dtype(type), (uint32_t)n, dims, NULL};
  if (n > IR_MAX_RANK)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an array has at most %d dimensions, not %zu", (int)IR_MAX_RANK, n);
  if (out->dtype == BASE_DTYPE_INVALID && type != PJRT_BUFFER_TOKEN)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%d is not an element type that xlac knows", (int)type);
  return NULL;
}

void pjrt_describe_shape(const pjrt_shape *s, char text[96]) {
  if (s->dtype == BASE_DTYPE_INVALID) {
    snprintf(text, 96, "token");
    return;
  }
  assert(s->dtype < BASE_DTYPE_COUNT && s->rank <= IR_MAX_RANK);
  int n = snprintf(text, 96, "%s[", base_dtype_of((base_dtype)s->dtype)->text);
  for (uint32_t d = 0; d < s->rank && n > 0 && n < 70; d++)
    n += snprintf(text + n, 96 - (size_t)n, d ? ",%lld" : "%lld", (long long)s->dims[d]);
  if (n > 0 && n < 95) snprintf(text + n, 96 - (size_t)n, "]");
}

/* --- their life --- */

PJRT_Buffer *pjrt_buffer_make(PJRT_Memory *m, const pjrt_shape *s, size_t bytes, pjrt_block *block, rt_event *ready) {
  assert(m && block && s->rank <= IR_MAX_RANK && "the shape was read by pjrt_read_shape, or is a program's");
  PJRT_Buffer *b = base_malloc(base_alloc_libc, sizeof *b + 2 * s->rank * sizeof(int64_t));
  if (!b) return NULL;
  memset(b, 0, sizeof *b);
  b->memory = m;
  pjrt_client_retain(m->device->client);
  b->block = pjrt_block_keep(block);
  b->ready = ready ? rt_event_retain(ready) : NULL;
  b->dtype = s->dtype;
  b->rank = s->rank;
  b->bytes = bytes;
  b->minor_to_major = b->dims + s->rank;
  b->laid_out = !pjrt_layout_is_row_major(s->minor_to_major, s->rank);
  for (uint32_t d = 0; d < s->rank; d++) {
    b->dims[d] = s->dims[d];
    b->minor_to_major[d] = b->laid_out ? s->minor_to_major[d] : (int64_t)(s->rank - 1 - d);
  }
  return b;
}

bool pjrt_buffer_take(PJRT_Buffer *b) {
  return !atomic_exchange_explicit(&b->deleted, true, memory_order_acq_rel);
}

PJRT_Error *pjrt_buffer_deleted_error(const PJRT_Buffer *b) {
  char text[96];
  const pjrt_shape s = pjrt_buffer_shape(b);
  pjrt_describe_shape(&s, text);
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "Buffer has been deleted or donated: %s", text);
}

PJRT_Error *pjrt_buffer_use(PJRT_Buffer *b, pjrt_block **out) {
  if (!pjrt_block_use(b->block)) return pjrt_buffer_deleted_error(b);
  if (atomic_load_explicit(&b->deleted, memory_order_acquire)) {
    pjrt_block_leave(b->block);
    return pjrt_buffer_deleted_error(b);
  }
  *out = b->block;
  return NULL;
}

/* Doesn't wait, since Python's lock may be held: what runs keeps the block. */
PJRT_Error *pjrt_buffer_delete(PJRT_Buffer_Delete_Args *args) {
  if (pjrt_buffer_take(args->buffer)) pjrt_block_leave(args->buffer->block);
  return NULL;
}

PJRT_Error *pjrt_buffer_destroy(PJRT_Buffer_Destroy_Args *args) {
  PJRT_Buffer *b = args->buffer;
  if (!b) return NULL;
  /* The first life is that of the use which deleting ends; the buffer keeps the block for itself. */
  if (pjrt_buffer_take(b)) pjrt_block_leave(b->block);
  pjrt_block_forget(b->block);
  rt_event_release(b->ready);
  pjrt_client_release(b->memory->device->client);
  pjrt_free(b);
  return NULL;
}

PJRT_Error *pjrt_buffer_is_deleted(PJRT_Buffer_IsDeleted_Args *args) {
  args->is_deleted = atomic_load_explicit(&args->buffer->deleted, memory_order_acquire);
  return NULL;
}

/* Of a deleted buffer: an event that has failed, since jaxlib 0.9.0 ends the process where there is none. The client
 * looks for these words. */
static PJRT_Error *buffer_failed_event(PJRT_Event **out) {
  static const char words[] = "GetReadyFuture() called on deleted or donated buffer";
  xlac_error err, why;
  rt_event *failed = NULL;
  if (rt_event_create(&failed, base_alloc_libc, &err) != 0) return pjrt_error_of(&err);
  pjrt_error_to(&why, PJRT_INVALID_ARGUMENT, words, sizeof words - 1);
  rt_event_set(failed, &why);
  *out = pjrt_event_make(failed);
  rt_event_release(failed);
  return *out ? NULL : pjrt_out_of_memory("an event");
}

PJRT_Error *pjrt_buffer_ready_event(PJRT_Buffer_ReadyEvent_Args *args) {
  if (atomic_load_explicit(&args->buffer->deleted, memory_order_acquire)) return buffer_failed_event(&args->event);
  pjrt_help(args->buffer->block->queue, args->buffer->ready);
  args->event = pjrt_event_make(args->buffer->ready);
  return args->event ? NULL : pjrt_out_of_memory("an event");
}

/* --- external references: NumPy's views and DLPack --- */

PJRT_Error *pjrt_buffer_increase_external_reference_count(PJRT_Buffer_IncreaseExternalReferenceCount_Args *args) {
  pjrt_block *block;
  PJRT_TRY(pjrt_buffer_use(args->buffer, &block));
  atomic_fetch_add(&args->buffer->external, 1);
  return NULL;
}

PJRT_Error *pjrt_buffer_decrease_external_reference_count(PJRT_Buffer_DecreaseExternalReferenceCount_Args *args) {
  unsigned n = atomic_load(&args->buffer->external);
  do {
    if (n == 0) return pjrt_fail(PJRT_FAILED_PRECONDITION, "the buffer has no external reference");
  } while (!atomic_compare_exchange_weak(&args->buffer->external, &n, n - 1));
  pjrt_block_leave(args->buffer->block);
  return NULL;
}

/* The client waits for the buffer itself, and may do so after it asked. A deleted one has an address as long as
 * somebody refers to it. */
PJRT_Error *pjrt_buffer_opaque_device_memory_data_pointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args) {
  args->device_memory_ptr = args->buffer->block->data;
  return NULL;
}

/* Doesn't wait either: Python's lock may be held, which what the buffer waits for may need. */
PJRT_Error *pjrt_buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args *args) {
  pjrt_block *block;
  PJRT_TRY(pjrt_buffer_use(args->buffer, &block));
  args->buffer_pointer = (uintptr_t)block->data;
  pjrt_block_leave(block);
  return NULL;
}

/* --- facts --- */

PJRT_Error *pjrt_buffer_element_type(PJRT_Buffer_ElementType_Args *args) {
  args->type = pjrt_type(args->buffer->dtype);
  return NULL;
}

PJRT_Error *pjrt_buffer_dimensions(PJRT_Buffer_Dimensions_Args *args) {
  args->dims = args->buffer->dims;
  args->num_dims = args->buffer->rank;
  return NULL;
}

PJRT_Error *pjrt_buffer_unpadded_dimensions(PJRT_Buffer_UnpaddedDimensions_Args *args) {
  args->unpadded_dims = args->buffer->dims;
  args->num_dims = args->buffer->rank;
  return NULL;
}

PJRT_Error *pjrt_buffer_dynamic_dimension_indices(PJRT_Buffer_DynamicDimensionIndices_Args *args) {
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

PJRT_Error *pjrt_buffer_get_memory_layout(PJRT_Buffer_GetMemoryLayout_Args *args) {
  const PJRT_Buffer *b = args->buffer;
  args->layout = (PJRT_Buffer_MemoryLayout){
      .struct_size = PJRT_SIZE_UP_TO(PJRT_Buffer_MemoryLayout, type),
      .tiled = {.struct_size = sizeof args->layout.tiled,
                .minor_to_major = b->minor_to_major,
                .minor_to_major_size = b->rank},
      .type = PJRT_LAYOUT_TILED,
  };
  return NULL;
}

PJRT_Error *pjrt_buffer_on_device_size_in_bytes(PJRT_Buffer_OnDeviceSizeInBytes_Args *args) {
  args->on_device_size_in_bytes = args->buffer->bytes;
  return NULL;
}

PJRT_Error *pjrt_buffer_device(PJRT_Buffer_Device_Args *args) {
  args->device = args->buffer->memory->device;
  return NULL;
}

PJRT_Error *pjrt_buffer_memory(PJRT_Buffer_Memory_Args *args) {
  args->memory = args->buffer->memory;
  return NULL;
}

PJRT_Error *pjrt_buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args *args) {
  args->is_on_cpu = true;
  return NULL;
}
