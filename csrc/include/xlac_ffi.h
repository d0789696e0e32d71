/* Custom calls in native code: what a function sees when a program calls it. This header needs nothing else of xlac,
 * not even to link with it.
 *
 *   static int scale(xlac_ffi_frame *frame) {
 *     const float *x = frame->operands[0].data;
 *     float *y = frame->results[0].data;
 *     const xlac_ffi_attr *factor = xlac_ffi_find(frame, "factor");
 *     if (!factor || factor->kind != XLAC_FFI_FLOAT) return frame->fail(frame, "scale needs a factor");
 *     for (int64_t i = 0; i < frame->results[0].count; i++) y[i] = x[i] * (float)factor->f;
 *     return 0;
 *   }
 *
 * It is registered by xlac_registry_add_native (xlac.h), or in Python by xlac.register_custom_call(name, address). It
 * is called without Python's lock, on any thread, several times at once where programs run at once: it must be
 * thread-safe. A call costs what a call through a pointer does, and the frame. */
#ifndef XLAC_FFI_H
#define XLAC_FFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. Fields are only ever added, at the ends of the frame and of the target, never changed; whether a
 * field is there says struct_size. A library made with this header runs with every xlac of the same or a later version.
 */
#define XLAC_FFI_VERSION 1

/* Element types, by the numbers of XLA's PrimitiveType. Types narrower than a byte take one byte an element. */
enum {
  XLAC_FFI_PRED = 1,
  XLAC_FFI_S8 = 2,
  XLAC_FFI_S16 = 3,
  XLAC_FFI_S32 = 4,
  XLAC_FFI_S64 = 5,
  XLAC_FFI_U8 = 6,
  XLAC_FFI_U16 = 7,
  XLAC_FFI_U32 = 8,
  XLAC_FFI_U64 = 9,
  XLAC_FFI_F16 = 10,
  XLAC_FFI_F32 = 11,
  XLAC_FFI_F64 = 12,
  XLAC_FFI_C64 = 15,
  XLAC_FFI_BF16 = 16,
  XLAC_FFI_TOKEN = 17, /* no data */
  XLAC_FFI_C128 = 18,
  XLAC_FFI_F8E5M2 = 19,
  XLAC_FFI_F8E4M3FN = 20,
  XLAC_FFI_S4 = 21,
  XLAC_FFI_U4 = 22,
  XLAC_FFI_F8E4M3B11FNUZ = 23,
  XLAC_FFI_F8E5M2FNUZ = 24,
  XLAC_FFI_F8E4M3FNUZ = 25,
  XLAC_FFI_S2 = 26,
  XLAC_FFI_U2 = 27,
  XLAC_FFI_F8E4M3 = 28,
  XLAC_FFI_F8E3M4 = 29,
  XLAC_FFI_S1 = 30,
  XLAC_FFI_U1 = 31,
  XLAC_FFI_F4E2M1FN = 32,
  XLAC_FFI_F8E8M0FNU = 33,
  XLAC_FFI_F6E2M3FN = 64, /* not XLA's */
  XLAC_FFI_F6E3M2FN = 65  /* not XLA's */
};

/* An array, dense, in the layout that the op asks for. Operands are not to be written to. */
typedef struct xlac_ffi_buffer {
  void *data; /* never NULL in an array; aligned for its type at least */
  const int64_t *dims;
  const int64_t *minor_to_major; /* the dimension that is contiguous first: {rank - 1, ..., 0} is row-major */
  int64_t count;                 /* product of dims */
  uint64_t bytes;
  uint32_t dtype, rank;
} xlac_ffi_buffer;

enum {
  XLAC_FFI_BOOL = 1,
  XLAC_FFI_INT,
  XLAC_FFI_FLOAT,
  XLAC_FFI_STRING,
  XLAC_FFI_ARRAY,
  XLAC_FFI_DICT,
  XLAC_FFI_OTHER
};

/* An attribute of a typed backend_config, {name = value, ...}. */
typedef struct xlac_ffi_attr xlac_ffi_attr;
struct xlac_ffi_attr {
  const char *name; /* terminated */
  uint32_t kind;
  uint32_t dtype;            /* INT, FLOAT, ARRAY: the type as declared (1 : i32, 0.5 : f32, array<i64: 1, 2>) */
  int64_t i;                 /* BOOL, INT: the value, whatever its type */
  double f;                  /* FLOAT (exact), and INT converted */
  uint64_t n;                /* STRING, OTHER: bytes; ARRAY: elements; DICT: entries */
  const char *s;             /* STRING; OTHER: its text in MLIR. Terminated */
  const void *array;         /* ARRAY: elements of dtype, dense */
  const xlac_ffi_attr *dict; /* DICT: sorted as written */
};

typedef struct xlac_ffi_frame xlac_ffi_frame;
struct xlac_ffi_frame {
  uint32_t struct_size, version; /* of the frame that the caller has made */
  uint32_t n_operands, n_results, n_attrs;
  uint32_t n_threads; /* that parallel_for may use, at least 1 */
  /* The arrays and tokens of operands and results, tuples taken apart depth first. Results are to be filled entirely;
   * where the op aliases a result to an operand, it holds the operand's value, and may be the same memory. */
  const xlac_ffi_buffer *operands;
  const xlac_ffi_buffer *results;
  const xlac_ffi_attr *attrs;
  const char *opaque; /* a backend_config that is a string, terminated, or "" */
  uint64_t opaque_size;
  const char *target, *op; /* the name called, and the op's name, for messages */
  void *user;              /* as registered */
  /* Calls fn(ctx, begin, end) over ranges that cover [0, n), each a multiple of `grain` but the last, on the threads of
   * the execution. How it is cut depends on n and grain alone. */
  void (*parallel_for)(xlac_ffi_frame *frame, uint64_t n, uint64_t grain,
                       void (*fn)(void *ctx, uint64_t begin, uint64_t end), void *ctx);
  /* Sets the error's message, and gives -1 for the function to return. The first message stays. Any thread. */
  int (*fail)(xlac_ffi_frame *frame, const char *format, ...);
  /* Scratch memory until the function returns, aligned to 64; NULL when out of memory. Any thread. */
  void *(*allocate)(xlac_ffi_frame *frame, uint64_t bytes);
  /* Whether the caller wants the run to stop: long calls ask now and then, on the thread they were called on, and
   * return fail(frame, ...). */
  bool (*interrupted)(xlac_ffi_frame *frame);
  void *inside; /* xlac's own */
};

/* Returns 0, or anything else for a failure: the run then ends with an error at the op, with fail's message. Must not
 * throw, nor jump out. */
typedef int xlac_ffi_fn(xlac_ffi_frame *frame);

/* What is registered under a name. */
typedef struct xlac_ffi_target {
  uint32_t struct_size; /* sizeof(xlac_ffi_target), and so it can grow */
  uint32_t version;     /* XLAC_FFI_VERSION */
  xlac_ffi_fn *run;
  void *user;
  const void *shape_hook, *sharding_hook; /* for later versions: NULL */
} xlac_ffi_target;

/* The attribute of that name, or NULL. */
static inline const xlac_ffi_attr *xlac_ffi_find(const xlac_ffi_frame *frame, const char *name) {
  for (uint32_t i = 0; i < frame->n_attrs; i++)
    if (strcmp(frame->attrs[i].name, name) == 0) return &frame->attrs[i];
  return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
