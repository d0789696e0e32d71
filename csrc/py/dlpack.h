/* The binary interface of DLPack 1.3 (github.com/dmlc/dlpack), as far as a library on CPUs needs it. */
#ifndef XLAC_PY_DLPACK_H
#define XLAC_PY_DLPACK_H

#include "buffer.h"

enum { DL_MAJOR = 1, DL_MINOR = 3, DL_MINOR_OF_PADDED = 1 /* the first with the flag DL_PADDED */ };
enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11 }; /* devices whose memory this one's CPUs can read */
enum { DL_CUDA = 2 };
enum { DL_READ_ONLY = 1, DL_COPIED = 2, DL_PADDED = 4 }; /* padded: types narrower than a byte have one each */

#define DL_LEGACY_NAME "dltensor"
#define DL_LEGACY_USED "used_dltensor"
#define DL_VERSIONED_NAME "dltensor_versioned"
#define DL_VERSIONED_USED "used_dltensor_versioned"
#define DL_EXCHANGE_NAME "dlpack_exchange_api"

/* Structs by whose layout libraries meet that were compiled apart: names are ours, order and types are DLPack's. */
typedef struct dl_version {
  uint32_t major, minor;
} dl_version;

/* lanes: elements of vectors count as one of so many lanes. */
typedef struct dl_type {
  uint8_t code, bits;
  uint16_t lanes;
} dl_type;

/* An array as the C interface has it, without an owner. */
typedef struct dl_tensor {
  void *data;
  int32_t device, device_number;
  int32_t rank;
  dl_type type;
  int64_t *dims;
  int64_t *steps; /* strides in elements; NULL in old versions: dense */
  uint64_t offset;
} dl_tensor;

/* With one, as before version 1.0: nobody says which version it is. */
typedef struct dl_legacy {
  dl_tensor tensor;
  void *ctx;
  void (*deleter)(struct dl_legacy *self);
} dl_legacy;

/* As from 1.0 on. Version, context and deleter stay where they are in all versions to come, so that what is too
 * new can be given back. */
typedef struct dl_versioned {
  dl_version version;
  void *ctx;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;

/* What a type's attribute __dlpack_c_exchange_api__ leads to. Functions return 0, or -1 with an exception set; `set`
 * takes the name of one and a message. */
typedef struct dl_exchange {
  dl_version version;
  struct dl_exchange *previous; /* of an older major version, or NULL */
  int (*allocate)(dl_tensor *like, dl_versioned **out, void *ctx,
                  void (*set)(void *ctx, const char *kind, const char *message));
  int (*from_object)(void *object, dl_versioned **out);
  int (*to_object)(dl_versioned *tensor, void **object); /* steals */
  int (*view_object)(void *object, dl_tensor *out);      /* borrows; may be NULL */
  int (*stream)(int32_t device, int32_t device_number, void **out);
} dl_exchange;

/* --- dlpack_in.c: element types --- */
void dl_types_fill(py_state *st);
/* NumPy has 64 at most, too. */
enum { DL_MAX_RANK = 64 };
/* The element type, or 0; lanes are not looked at. */
uint32_t dl_type_in(const py_state *st, dl_type t);
uint32_t dl_type_by_name(dl_type t); /* the same without a state: slower */
dl_type dl_type_out(const py_state *st, uint32_t dtype);
/* Elements narrower than a byte, in bits that follow one another (packed) or in a byte each. Steps are in elements. */
typedef struct dl_narrow {
  uint32_t bits, rank;
  bool is_signed, packed;
  const int64_t *dims, *steps;
  const uint8_t *data;
} dl_narrow;
/* Writes them to `to` (may be NULL), a byte each as xlac has them. Whether it could have read the bytes as they were.
 */
bool dl_narrow_read(const dl_narrow *n, uint8_t *to);
/* n bytes of one element each to bits, in place. */
void dl_narrow_pack(uint32_t bits, uint8_t *bytes, int64_t n);

/* --- dlpack_out.c --- */
/* What the other side asked for in calling __dlpack__. */
typedef struct dl_wish {
  uint32_t minor;
  bool versioned, to_cpu, placed; /* placed: it says which device, `device` and `number` */
  py_copy copy;
  long device, number;
} dl_wish;
/* A tensor for somebody else: a dl_versioned or a dl_legacy. NULL with an exception. */
void *dl_export(py_state *st, xlac_buffer *b, const dl_wish *wish);
/* Describes b, which has steps. */
void dl_describe(const xlac_buffer_info *info, dl_type type, dl_tensor *out);
/* Where that is: DL_CPU and 0, or DL_CUDA and which. */
int32_t dl_device_of(const xlac_buffer_info *info, int32_t *number);
/* CUDA's device of that number; NULL with an exception. */
const xlac_device *dl_device_in(py_state *st, int32_t number);
/* A tensor that views b: a dl_legacy where there is no version. Without Python. NULL with err. */
void *dl_hand_out(xlac_buffer *b, dl_type type, const dl_version *version, uint64_t flags, xlac_error *err);

/* --- dlpack_in.c: tensors --- */
/* A buffer on the tensor, which is stolen, also on failure. NULL with an exception. */
xlac_buffer *dl_import_versioned(py_state *st, dl_versioned *m, py_copy copy);
xlac_buffer *dl_import_legacy(py_state *st, dl_legacy *m, py_copy copy);

/* --- dlpack_exchange.c --- */
/* The functions that the type gives, or NULL, without an exception. */
const dl_exchange *dl_exchange_of(py_state *st, PyTypeObject *type);

#endif
