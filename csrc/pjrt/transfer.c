/* Arrays of the host's into buffers, and out of them. */
#include <stdio.h>

#include "pjrt.h"

/* Less is copied: that takes no longer than keeping the host's array does. */
enum { TRANSFER_SMALL = 1 << 15 };

/* --- into buffers --- */

PJRT_Error *pjrt_place(PJRT_Memory **out, PJRT_Memory *memory, PJRT_Device *device) {
  if (!memory && !device) return pjrt_fail(PJRT_INVALID_ARGUMENT, "neither a memory nor a device is given");
  *out = memory ? memory : pjrt_default_memory(device);
  if (pjrt_is_here((*out)->device)) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is a device of process %d; this is process %u",
                   (*out)->device->description.text, (*out)->device->description.process,
                   (*out)->device->client->options.node);
}

/* The buffer on a block, which it takes, also where it fails. */
static PJRT_Error *transfer_give(PJRT_Memory *m, const pjrt_shape *s, size_t bytes, pjrt_block *block, rt_event *ready,
                                 PJRT_Buffer **out) {
  *out = pjrt_buffer_make(m, s, bytes, block, ready);
  if (*out) return NULL;
  pjrt_block_leave(block);
  return pjrt_out_of_memory("a buffer");
}

static PJRT_Error *transfer_new_block(PJRT_Memory *m, size_t bytes, pjrt_block **out) {
  xlac_error err;
  *out = pjrt_block_create();
  if (!*out) return pjrt_out_of_memory("a buffer");
  if (pjrt_block_allocate(*out, m->device, bytes, &err) == 0) return NULL;
  pjrt_block_leave(*out);
  return pjrt_error_of(&err);
}

static void transfer_let_go(void *ctx) {
  rt_event_set(ctx, NULL);
  rt_event_release(ctx);
}

/* The host's memory itself, until the block is used no more. */
static PJRT_Error *transfer_alias(const void *data, pjrt_block **out, PJRT_Event **done) {
  xlac_error err;
  rt_event *event = NULL;
  pjrt_block *b = pjrt_block_create();
  if (!b) return pjrt_out_of_memory("a buffer");
  if (rt_event_create(&event, base_alloc_libc, &err)) {
    pjrt_block_leave(b);
    return pjrt_error_of(&err);
  }
  b->data = (void *)(uintptr_t)data;
  b->readonly = true;
  b->release = transfer_let_go;
  b->ctx = event;
  *done = pjrt_event_make(event);
  *out = b;
  if (*done) return NULL;
  pjrt_block_leave(b);
  return pjrt_out_of_memory("an event");
}

/* Whether an array with such strides lies as the shape says. */
static bool transfer_is_dense(const pjrt_shape *s, size_t bytes, const int64_t *strides) {
  int64_t usual[IR_MAX_RANK + 1];
  pjrt_layout_strides(s, usual);
  for (uint32_t d = 0; strides && bytes && d < s->rank; d++)
    if (s->dims[d] != 1 && strides[d] != usual[d]) return false;
  return true;
}

static bool transfer_is_aligned(const pjrt_shape *s, const void *data) {
  return (uintptr_t)data % base_dtype_bytes(base_dtype_real_part((base_dtype)s->dtype)) == 0;
}

static PJRT_Error *transfer_copy_in(PJRT_Memory *m, const pjrt_shape *s, size_t bytes, const void *data,
                                    const int64_t *strides, pjrt_block **out) {
  xlac_error err;
  PJRT_TRY(transfer_new_block(m, bytes, out));
  if (transfer_is_dense(s, bytes, strides) && bytes < TRANSFER_SMALL) {
    if (bytes) memcpy((*out)->data, data, bytes);
    return NULL;
  }
  if (pjrt_layout_copy(m->device->client->runtime, s, strides, data, s->minor_to_major, (*out)->data, &err) == 0)
    return NULL;
  pjrt_block_leave(*out);
  return pjrt_error_of(&err);
}

PJRT_Error *pjrt_client_buffer_from_host_buffer(PJRT_Client_BufferFromHostBuffer_Args *args) {
  pjrt_shape s;
  int64_t order[IR_MAX_RANK + 1], usual[IR_MAX_RANK + 1];
  size_t bytes = 0;
  PJRT_Memory *m = NULL;
  pjrt_block *block = NULL;
  PJRT_Event *done = pjrt_event_make(NULL);
  PJRT_TRY(pjrt_read_shape(&s, args->type, args->dims, args->num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_place(&m, args->memory, args->device));
  PJRT_TRY(pjrt_layout_read(args->device_layout, &s, order));
  pjrt_layout_strides(&s, usual);
  const int64_t *strides = args->num_byte_strides == args->num_dims && args->num_dims ? args->byte_strides : usual;
  s.minor_to_major = order;
  bool stays = args->host_buffer_semantics == PJRT_HOST_IMMUTABLE_ZERO_COPY ||
               args->host_buffer_semantics == PJRT_HOST_MUTABLE_ZERO_COPY;
  if (stays && bytes >= TRANSFER_SMALL && !m->device->client->options.copy_host &&
      transfer_is_dense(&s, bytes, strides) && transfer_is_aligned(&s, args->data))
    PJRT_TRY(transfer_alias(args->data, &block, &done));
  else
    PJRT_TRY(transfer_copy_in(m, &s, bytes, args->data, strides, &block));
  PJRT_TRY(transfer_give(m, &s, bytes, block, NULL, &args->buffer));
  args->done_with_host_buffer = done;
  return NULL;
}

/* --- memory of others: DLPack --- */

typedef struct transfer_owner {
  void (*fn)(void *data, void *arg);
  void *data, *arg;
} transfer_owner;

static void transfer_tell_owner(void *ctx) {
  transfer_owner owner = *(transfer_owner *)ctx;
  pjrt_free(ctx);
  if (owner.fn) owner.fn(owner.data, owner.arg);
}

/* A copy, row-major, of an array in another layout or badly aligned; the owner is told at once. */
static PJRT_Error *transfer_copy_view(PJRT_Memory *m, const pjrt_shape *s, size_t bytes, const int64_t *order,
                                      const void *data, pjrt_block **out) {
  int64_t strides[IR_MAX_RANK + 1];
  pjrt_layout_strides(&(pjrt_shape){s->dtype, s->rank, s->dims, order}, strides);
  return transfer_copy_in(m, s, bytes, data, strides, out);
}

PJRT_Error *pjrt_client_create_view_of_device_buffer(PJRT_Client_CreateViewOfDeviceBuffer_Args *args) {
  pjrt_shape s;
  size_t bytes = 0;
  PJRT_Memory *m = NULL, *memory = args->struct_size >= sizeof *args ? args->memory : NULL;
  pjrt_block *block = NULL;
  int64_t order[IR_MAX_RANK + 1];
  PJRT_TRY(pjrt_read_shape(&s, args->element_type, args->dims, args->num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_place(&m, memory, args->device));
  PJRT_TRY(pjrt_layout_read(args->layout, &s, order));
  bool copies = !pjrt_layout_is_row_major(order, s.rank) || !transfer_is_aligned(&s, args->device_buffer_ptr);
  transfer_owner *owner = pjrt_alloc(sizeof *owner);
  if (!owner) return pjrt_out_of_memory("a view");
  *owner = (transfer_owner){args->on_delete_callback, args->device_buffer_ptr, args->on_delete_callback_arg};
  PJRT_Error *error = NULL;
  if (copies)
    error = transfer_copy_view(m, &s, bytes, order, args->device_buffer_ptr, &block);
  else if (!(block = pjrt_block_create()))
    error = pjrt_out_of_memory("a view");
  if (!error) error = transfer_give(m, &s, bytes, block, NULL, &args->buffer);
  if (error) {
    pjrt_free(owner);
    return error;
  }
  if (copies) {
    transfer_tell_owner(owner);
    return NULL;
  }
  block->data = args->device_buffer_ptr;
  block->readonly = true;
  block->release = transfer_tell_owner;
  block->ctx = owner;
  return NULL;
}

PJRT_Error *pjrt_client_create_uninitialized_buffer(PJRT_Client_CreateUninitializedBuffer_Args *args) {
  pjrt_shape s;
  int64_t order[IR_MAX_RANK + 1];
  size_t bytes = 0;
  PJRT_Memory *m = NULL;
  pjrt_block *block = NULL;
  PJRT_TRY(pjrt_read_shape(&s, args->shape_element_type, args->shape_dims, args->shape_num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  PJRT_TRY(pjrt_place(&m, args->memory, args->device));
  PJRT_TRY(pjrt_layout_read(args->shape_layout, &s, order));
  s.minor_to_major = order;
  PJRT_TRY(transfer_new_block(m, bytes, &block));
  if (bytes) memset(block->data, 0, bytes); /* nobody reads what another program left */
  return transfer_give(m, &s, bytes, block, NULL, &args->buffer);
}

PJRT_Error *pjrt_client_create_error_buffer(PJRT_Client_CreateErrorBuffer_Args *args) {
  pjrt_shape s;
  size_t bytes = 0;
  xlac_error why, err;
  rt_event *failed = NULL;
  pjrt_block *block = NULL;
  PJRT_TRY(pjrt_read_shape(&s, args->shape_element_type, args->shape_dims, args->shape_num_dims));
  PJRT_TRY(pjrt_shape_bytes(&s, &bytes));
  if (!args->memory || args->error_code <= PJRT_OK || args->error_code >= PJRT_CODE_END)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an error buffer needs a memory and the code of an error");
  pjrt_error_to(&why, args->error_code, args->error_message, args->error_message_size);
  if (rt_event_create(&failed, base_alloc_libc, &err)) return pjrt_error_of(&err);
  rt_event_set(failed, &why);
  PJRT_Error *error = (block = pjrt_block_create()) ? NULL : pjrt_out_of_memory("a buffer");
  if (!error) error = transfer_give(args->memory, &s, bytes, block, failed, &args->buffer);
  rt_event_release(failed);
  return error;
}

/* --- out of buffers, and from one to another --- */

/* Reads a block once it is ready. */
typedef struct transfer_job {
  rt_event *done;          /* NULL: whoever called waits */
  pjrt_block *from, *into; /* into: NULL for the host's memory */
  PJRT_Client *client;
  void *to;
  size_t offset, bytes;
  uint32_t dtype, rank;
  bool dense;
  int64_t dims[IR_MAX_RANK + 1], strides[IR_MAX_RANK + 1], order[IR_MAX_RANK + 1];
} transfer_job;

static int transfer_move(const transfer_job *j, xlac_error *err) {
  const pjrt_shape s = {j->dtype, j->rank, j->dims, NULL};
  if (!j->from->data && j->bytes) return base_fail(err, XLAC_E_INTERNAL, "a buffer that is ready has no memory");
  void *to = j->into ? j->into->data : j->to;
  if (j->dense) {
    if (j->bytes) memcpy(to, (const char *)j->from->data + j->offset, j->bytes);
    return 0;
  }
  return pjrt_layout_copy(j->client->runtime, &s, j->strides, j->from->data, j->order, to, err);
}

static int transfer_run(void *ctx, xlac_error *err) {
  return transfer_move(ctx, err);
}

static void transfer_drop(void *ctx, const xlac_error *why) {
  transfer_job *j = ctx;
  pjrt_block_leave(j->from);
  pjrt_block_leave(j->into);
  if (j->done) rt_event_set(j->done, why);
  rt_event_release(j->done);
  pjrt_client_release(j->client);
  pjrt_free(j);
}

/* Now where the buffer is ready; else on the queue for copies. Takes what the job uses, also where it fails. *done is
 * NULL where it is over. */
static PJRT_Error *transfer_start(const PJRT_Buffer *b, const transfer_job *job, rt_event **done) {
  xlac_error err;
  *done = NULL;
  transfer_job *j = pjrt_alloc(sizeof *j);
  if (!j) {
    pjrt_block_leave(job->from);
    pjrt_block_leave(job->into);
    return pjrt_out_of_memory("a copy");
  }
  *j = *job;
  j->client = pjrt_client_retain(b->memory->device->client);
  int status = 0;
  pjrt_help(b->block->queue, b->ready);
  bool now = !b->ready || rt_event_poll(b->ready, NULL) == RT_EVENT_READY;
  if (now) {
    status = transfer_move(j, &err);
  } else {
    const pjrt_job work = {transfer_run, transfer_drop, j, PJRT_UNKNOWN};
    status = rt_event_create(done, base_alloc_libc, &err);
    if (status == 0) j->done = rt_event_retain(*done);
    if (status == 0) status = pjrt_enqueue(&j->client->copies, &work, b->ready, &err);
  }
  if (now || status) transfer_drop(j, status ? &err : NULL);
  return status ? pjrt_error_of(&err) : NULL;
}

/* The event of a copy; the reference to `done` is used up. */
static PJRT_Error *transfer_event(rt_event *done, PJRT_Event **out) {
  *out = pjrt_event_make(done);
  rt_event_release(done);
  return *out ? NULL : pjrt_out_of_memory("an event");
}

static PJRT_Error *transfer_give_up(rt_event *done, PJRT_Error *error) {
  rt_event_release(done);
  return error;
}

static void transfer_job_of(const PJRT_Buffer *b, transfer_job *j) {
  *j = (transfer_job){.bytes = b->bytes, .dtype = b->dtype, .rank = b->rank, .dense = true};
  for (uint32_t d = 0; d < b->rank; d++) j->dims[d] = b->dims[d];
}

PJRT_Error *pjrt_buffer_to_host_buffer(PJRT_Buffer_ToHostBuffer_Args *args) {
  PJRT_Buffer *b = args->src;
  transfer_job job;
  rt_event *done = NULL;
  args->event = NULL;
  if (!args->dst) {
    args->dst_size = b->bytes;
    return NULL;
  }
  if (args->dst_size < b->bytes)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "the array has %zu bytes, the memory it is to go to %zu", b->bytes,
                     args->dst_size);
  transfer_job_of(b, &job);
  job.to = args->dst;
  const pjrt_shape s = pjrt_buffer_shape(b);
  pjrt_layout_strides(&s, job.strides);
  if (args->host_layout) { /* without one, the bytes as they are */
    PJRT_TRY(pjrt_layout_read(args->host_layout, &s, job.order));
    job.dense = b->bytes == 0 || memcmp(job.order, b->minor_to_major, b->rank * sizeof *job.order) == 0;
  }
  PJRT_TRY(pjrt_buffer_use(b, &job.from));
  PJRT_Error *error = transfer_start(b, &job, &done);
  return error ? transfer_give_up(done, error) : transfer_event(done, &args->event);
}

PJRT_Error *pjrt_buffer_copy_raw_to_host(PJRT_Buffer_CopyRawToHost_Args *args) {
  PJRT_Buffer *b = args->buffer;
  transfer_job job;
  rt_event *done = NULL;
  if (args->offset < 0 || args->transfer_size < 0 || (uint64_t)args->offset > b->bytes ||
      (uint64_t)args->transfer_size > b->bytes - (uint64_t)args->offset)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%lld bytes from %lld on are asked for; the array has %zu",
                     (long long)args->transfer_size, (long long)args->offset, b->bytes);
  transfer_job_of(b, &job);
  job.to = args->dst;
  job.offset = (size_t)args->offset;
  job.bytes = (size_t)args->transfer_size;
  PJRT_TRY(pjrt_buffer_use(b, &job.from));
  PJRT_Error *error = transfer_start(b, &job, &done);
  return error ? transfer_give_up(done, error) : transfer_event(done, &args->event);
}

/* To another memory nothing has to move: both buffers use the block, and whoever is donated first gets a copy. */
static PJRT_Error *transfer_share(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out) {
  pjrt_block *block;
  PJRT_TRY(pjrt_buffer_use(b, &block));
  block->readonly = true; /* from here on its users are on several queues */
  const pjrt_shape s = pjrt_buffer_shape(b);
  return transfer_give(to, &s, b->bytes, block, b->ready, out);
}

static PJRT_Error *transfer_duplicate(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out) {
  transfer_job job;
  rt_event *done = NULL;
  transfer_job_of(b, &job);
  PJRT_TRY(pjrt_buffer_use(b, &job.from));
  pjrt_block *into = NULL;
  PJRT_Error *error = transfer_new_block(to, b->bytes, &into);
  if (error) {
    pjrt_block_leave(job.from);
    return error;
  }
  job.into = pjrt_block_use(into) ? into : NULL;
  assert(job.into && "it was just made");
  error = transfer_start(b, &job, &done);
  const pjrt_shape s = pjrt_buffer_shape(b);
  if (error)
    pjrt_block_leave(into);
  else
    error = transfer_give(to, &s, b->bytes, into, done, out);
  rt_event_release(done);
  return error;
}

static PJRT_Error *transfer_to(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out) {
  if (to->device->client != b->memory->device->client)
    return pjrt_fail(PJRT_UNIMPLEMENTED, "the memory to copy to is another client's");
  return to == b->memory ? transfer_duplicate(b, to, out) : transfer_share(b, to, out);
}

PJRT_Error *pjrt_buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args *args) {
  return transfer_to(args->buffer, pjrt_default_memory(args->dst_device), &args->dst_buffer);
}

PJRT_Error *pjrt_buffer_copy_to_memory(PJRT_Buffer_CopyToMemory_Args *args) {
  return transfer_to(args->buffer, args->dst_memory, &args->dst_buffer);
}
