/* Buffers that are there before what is in them: arrays that a client sends piece by piece, and copies out of a buffer
 * to memory that the client names later. Also the same bytes as an array of another shape.
 *
 * A sent array's buffer can be an argument at once: its event is set with the last piece, or with an error. The pieces
 * are copied before the call returns. A manager that ends before all pieces came fails the buffers that lack some. */
#include "pjrt.h"

typedef struct staging_item {
  PJRT_Buffer *buffer; /* NULL once the client has it */
  pjrt_block *block;   /* a use; NULL once all has come */
  rt_event *ready;
  pjrt_shape shape; /* of its own memory, in `dims` */
  int64_t *dims;
} staging_item;

struct PJRT_AsyncHostToDeviceTransferManager {
  pthread_mutex_t lock;
  PJRT_Device *device;
  PJRT_Client *client; /* a reference */
  size_t n;
  staging_item items[];
};

static PJRT_Error *staging_check(const PJRT_AsyncHostToDeviceTransferManager *m, int index) {
  if (index >= 0 && (size_t)index < m->n) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "buffer %d is asked for; there are %zu", index, m->n);
}

/* --- making and ending --- */

static PJRT_Error *staging_make_block(staging_item *item, PJRT_Device *d, size_t bytes) {
  xlac_error err;
  if (!(item->block = pjrt_block_create())) return pjrt_out_of_memory("a buffer");
  if (pjrt_block_allocate(item->block, d, bytes, &err)) return pjrt_error_of(&err);
  if (bytes) memset(item->block->data, 0, bytes); /* nobody reads what another program left */
  return rt_event_create(&item->ready, base_alloc_libc, &err) ? pjrt_error_of(&err) : NULL;
}

/* Dimensions and layout stay: the client may have the buffer before the array comes. */
static PJRT_Error *staging_keep_shape(staging_item *item, const pjrt_shape *s, const int64_t *order) {
  item->dims = pjrt_alloc((2 * s->rank + 1) * sizeof *item->dims);
  if (!item->dims) return pjrt_out_of_memory("a shape");
  for (uint32_t d = 0; d < s->rank; d++) {
    item->dims[d] = s->dims[d];
    item->dims[s->rank + d] = order[d];
  }
  item->shape = (pjrt_shape){s->dtype, s->rank, item->dims, item->dims + s->rank};
  return NULL;
}

static PJRT_Error *staging_make_item(staging_item *item, PJRT_Memory *memory, const PJRT_ShapeSpec *spec,
                                     const PJRT_Buffer_MemoryLayout *layout) {
  pjrt_shape s;
  size_t bytes = 0;
  int64_t order[IR_MAX_RANK + 1];
  PJRT_TRY(pjrt_read_shape(&s, spec->element_type, spec->dims, spec->num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_layout_read(layout, &s, order));
  PJRT_TRY(staging_keep_shape(item, &s, order));
  PJRT_TRY(staging_make_block(item, memory->device, bytes));
  bool used = pjrt_block_use(item->block);
  assert(used && "it was just made");
  (void)used;
  item->buffer = pjrt_buffer_make(memory, &item->shape, bytes, item->block, item->ready);
  if (item->buffer) return NULL;
  pjrt_block_leave(item->block);
  return pjrt_out_of_memory("a buffer");
}

/* Under the lock, or where nobody else is. */
static void staging_settle(staging_item *item, const xlac_error *why) {
  if (!item->block) return;
  if (item->ready) rt_event_set(item->ready, why);
  pjrt_block_leave(item->block);
  item->block = NULL;
}

static void staging_free(PJRT_AsyncHostToDeviceTransferManager *m) {
  xlac_error why;
  static const char text[] = "the transfer was ended before all of the array had come";
  pjrt_error_to(&why, PJRT_CANCELLED, text, sizeof text - 1);
  for (size_t i = 0; i < m->n; i++) {
    PJRT_Buffer_Destroy_Args args = {.struct_size = sizeof args, .buffer = m->items[i].buffer};
    staging_settle(&m->items[i], &why);
    PJRT_Error *none = pjrt_buffer_destroy(&args);
    assert(!none);
    (void)none;
    rt_event_release(m->items[i].ready);
    pjrt_free(m->items[i].dims);
  }
  pthread_mutex_destroy(&m->lock);
  pjrt_client_release(m->client);
  pjrt_free(m);
}

PJRT_Error *pjrt_client_create_buffers_for_async(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args) {
  size_t n = args->num_shape_specs;
  if (!args->memory) return pjrt_fail(PJRT_INVALID_ARGUMENT, "no memory is given for the buffers");
  if (args->num_device_layouts && args->num_device_layouts != n)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%zu layouts are given for %zu buffers", args->num_device_layouts, n);
  if (n > SIZE_MAX / sizeof(staging_item) - 16) return pjrt_out_of_memory("buffers");
  PJRT_AsyncHostToDeviceTransferManager *m = pjrt_alloc(sizeof *m + n * sizeof(staging_item));
  if (!m) return pjrt_out_of_memory("buffers");
  pthread_mutex_init(&m->lock, NULL);
  m->device = args->memory->device;
  m->client = pjrt_client_retain(args->client);
  for (; m->n < n; m->n++) {
    const PJRT_Buffer_MemoryLayout *layout = args->num_device_layouts ? args->device_layouts[m->n] : NULL;
    PJRT_Error *error = staging_make_item(&m->items[m->n], args->memory, &args->shape_specs[m->n], layout);
    if (!error) continue;
    m->n++; /* what there is of it */
    staging_free(m);
    return error;
  }
  args->transfer_manager = m;
  return NULL;
}

PJRT_Error *pjrt_transfer_manager_destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args) {
  if (args->transfer_manager) staging_free(args->transfer_manager);
  return NULL;
}

/* --- pieces --- */

/* Another use of a buffer's block, to write to; NULL with an error where the buffer is settled. */
static PJRT_Error *staging_use(PJRT_AsyncHostToDeviceTransferManager *m, int index, pjrt_block **out) {
  PJRT_TRY(staging_check(m, index));
  pthread_mutex_lock(&m->lock);
  *out = m->items[index].block;
  if (*out && !pjrt_block_use(*out)) *out = NULL;
  pthread_mutex_unlock(&m->lock);
  if (*out) return NULL;
  return pjrt_fail(PJRT_FAILED_PRECONDITION, "buffer %d has come whole, or has failed", index);
}

static void staging_finish(PJRT_AsyncHostToDeviceTransferManager *m, int index, pjrt_block *block, bool last) {
  pthread_mutex_lock(&m->lock);
  if (last) staging_settle(&m->items[index], NULL);
  pthread_mutex_unlock(&m->lock);
  pjrt_block_leave(block);
}

PJRT_Error *pjrt_transfer_manager_data(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args) {
  pjrt_block *block = NULL;
  PJRT_TRY(staging_use(args->transfer_manager, args->buffer_index, &block));
  bool fits = args->offset >= 0 && args->transfer_size >= 0 && (uint64_t)args->offset <= block->bytes &&
              (uint64_t)args->transfer_size <= block->bytes - (uint64_t)args->offset;
  size_t bytes = block->bytes;
  if (fits && args->transfer_size) memcpy((char *)block->data + args->offset, args->data, (size_t)args->transfer_size);
  staging_finish(args->transfer_manager, args->buffer_index, block, fits && args->is_last_transfer);
  if (!fits)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%lld bytes from %lld on are sent to buffer %d, which has %zu",
                     (long long)args->transfer_size, (long long)args->offset, args->buffer_index, bytes);
  args->done_with_h2d_transfer = pjrt_event_make(NULL);
  return NULL;
}

/* A whole array, in the layout that the caller says. */
static PJRT_Error *staging_copy_literal(const PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args,
                                        pjrt_block *block) {
  const staging_item *to = &args->transfer_manager->items[args->buffer_index];
  pjrt_shape s;
  size_t bytes = 0;
  xlac_error err;
  int64_t order[IR_MAX_RANK + 1], strides[IR_MAX_RANK + 1];
  PJRT_TRY(pjrt_read_shape(&s, args->shape_element_type, args->shape_dims, args->shape_num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_layout_read(args->shape_layout, &s, order));
  bool same = s.dtype == to->shape.dtype && s.rank == to->shape.rank;
  for (uint32_t d = 0; same && d < s.rank; d++) same = s.dims[d] == to->dims[d];
  if (!same) return pjrt_fail(PJRT_INVALID_ARGUMENT, "buffer %d has another shape than the array", args->buffer_index);
  s.minor_to_major = order;
  pjrt_layout_strides(&s, strides);
  if (bytes == 0) return NULL;
  xlac_runtime *rt = args->transfer_manager->client->runtime;
  int status = pjrt_layout_copy(rt, &s, strides, args->data, to->shape.minor_to_major, block->data, &err);
  return status ? pjrt_error_of(&err) : NULL;
}

PJRT_Error *pjrt_transfer_manager_literal(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args) {
  pjrt_block *block = NULL;
  PJRT_TRY(staging_use(args->transfer_manager, args->buffer_index, &block));
  PJRT_Error *error = staging_copy_literal(args, block);
  staging_finish(args->transfer_manager, args->buffer_index, block, !error);
  if (!error) args->done_with_h2d_transfer = pjrt_event_make(NULL);
  return error;
}

PJRT_Error *pjrt_transfer_manager_error(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args) {
  xlac_error why;
  PJRT_AsyncHostToDeviceTransferManager *m = args->transfer_manager;
  PJRT_TRY(staging_check(m, args->buffer_index));
  if (args->error_code <= PJRT_OK || args->error_code >= PJRT_CODE_END)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%d is not the code of an error", (int)args->error_code);
  pjrt_error_to(&why, args->error_code, args->error_message, args->error_message_size);
  pthread_mutex_lock(&m->lock);
  staging_settle(&m->items[args->buffer_index], &why);
  pthread_mutex_unlock(&m->lock);
  return NULL;
}

/* --- what the client asks --- */

PJRT_Error *pjrt_transfer_manager_retrieve(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args) {
  PJRT_AsyncHostToDeviceTransferManager *m = args->transfer_manager;
  PJRT_TRY(staging_check(m, args->buffer_index));
  pthread_mutex_lock(&m->lock);
  args->buffer_out = m->items[args->buffer_index].buffer;
  m->items[args->buffer_index].buffer = NULL;
  pthread_mutex_unlock(&m->lock);
  if (args->buffer_out) return NULL;
  return pjrt_fail(PJRT_FAILED_PRECONDITION, "buffer %d was given out before", args->buffer_index);
}

PJRT_Error *pjrt_transfer_manager_device(PJRT_AsyncHostToDeviceTransferManager_Device_Args *args) {
  args->device_out = args->transfer_manager->device;
  return NULL;
}

PJRT_Error *pjrt_transfer_manager_count(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args *args) {
  args->buffer_count = args->transfer_manager->n;
  return NULL;
}

PJRT_Error *pjrt_transfer_manager_size(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *args) {
  pjrt_block *block = NULL;
  PJRT_TRY(staging_use(args->transfer_manager, args->buffer_index, &block));
  args->buffer_size = block->bytes;
  pjrt_block_leave(block);
  return NULL;
}

/* It is for the client's own traces. */
PJRT_Error *pjrt_transfer_manager_metadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args *args) {
  (void)args;
  return NULL;
}

/* --- out of a buffer, to where the client says later --- */

typedef struct staging_read {
  pjrt_block *block; /* a use */
  rt_event *ready, *done;
  size_t offset, bytes;
  void *to;
} staging_read;

static void staging_end_read(staging_read *r, const xlac_error *why) {
  pjrt_block_leave(r->block);
  rt_event_set(r->done, why);
  rt_event_release(r->ready);
  rt_event_release(r->done);
  pjrt_free(r);
}

static void staging_read_now(void *ctx, const xlac_error *why) {
  staging_read *r = ctx;
  if (!why && r->bytes) memcpy(r->to, (const char *)r->block->data + r->offset, r->bytes);
  staging_end_read(r, why);
}

/* Called once. */
static void staging_memory_is_there(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args) {
  xlac_error why, err;
  staging_read *r = args->callback_data;
  r->to = args->dst;
  if (args->error_code != PJRT_OK) {
    pjrt_error_to(&why, args->error_code, args->error_message, args->error_message_size);
    staging_end_read(r, &why);
  } else if (!r->ready) {
    staging_read_now(r, NULL);
  } else if (rt_event_on_ready(r->ready, staging_read_now, r, &err)) {
    staging_end_read(r, &err);
  }
}

PJRT_Error *pjrt_buffer_copy_raw_to_host_future(PJRT_Buffer_CopyRawToHostFuture_Args *args) {
  PJRT_Buffer *b = args->buffer;
  xlac_error err;
  if (args->offset < 0 || args->transfer_size < 0 || (uint64_t)args->offset > b->bytes ||
      (uint64_t)args->transfer_size > b->bytes - (uint64_t)args->offset)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%lld bytes from %lld on are asked for; the array has %zu",
                     (long long)args->transfer_size, (long long)args->offset, b->bytes);
  staging_read *r = pjrt_alloc(sizeof *r);
  if (!r) return pjrt_out_of_memory("a copy");
  *r = (staging_read){.offset = (size_t)args->offset, .bytes = (size_t)args->transfer_size};
  PJRT_Error *error = rt_event_create(&r->done, base_alloc_libc, &err) ? pjrt_error_of(&err) : NULL;
  if (!error) error = pjrt_buffer_use(b, &r->block);
  if (!error && !(args->event = pjrt_event_make(r->done))) error = pjrt_out_of_memory("an event");
  if (error) {
    pjrt_block_leave(r->block);
    rt_event_release(r->done);
    pjrt_free(r);
    return error;
  }
  r->ready = b->ready ? rt_event_retain(b->ready) : NULL;
  args->callback_data = r;
  args->future_ready_callback = staging_memory_is_there;
  return NULL;
}

/* --- the same bytes as another array --- */

PJRT_Error *pjrt_buffer_bitcast(PJRT_Buffer_Bitcast_Args *args) {
  PJRT_Buffer *b = args->buffer;
  pjrt_shape s;
  size_t bytes = 0;
  pjrt_block *block = NULL;
  int64_t order[IR_MAX_RANK + 1];
  PJRT_TRY(pjrt_read_shape(&s, args->element_type, args->dims, args->num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_layout_read(args->device_layout, &s, order));
  s.minor_to_major = order;
  if (bytes != b->bytes)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an array of %zu bytes is to be one of %zu", b->bytes, bytes);
  PJRT_TRY(pjrt_buffer_use(b, &block));
  block->readonly = true; /* whoever is donated first gets a copy */
  args->out_buffer = pjrt_buffer_make(b->memory, &s, bytes, block, b->ready);
  if (args->out_buffer) return NULL;
  pjrt_block_leave(block);
  return pjrt_out_of_memory("a buffer");
}
