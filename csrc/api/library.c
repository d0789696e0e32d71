/* Facts about the library: version, error codes, element types, the op table. Thread-safe: constant tables only. */
#include "../base/heed.h"
#include <stdlib.h>

#include "../text/nearest.h"
#include "api.h"

ir_infer_fn ir_infer_none; /* the INFER column of ops whose result type does not follow */

/* Static text, as are all names here. */
const char *xlac_version(void) {
  return "0.1.0";
}
const char *xlac_error_name(int32_t code) {
  return base_code_name(code);
}
const char *xlac_error_title(int32_t code) {
  return base_code_title(code);
}

static const int32_t all_codes[] = {
#define ERROR(name, number, title) number,
#include "../base/errors.def"
#undef ERROR
};

/* 0 past the end: no code is 0. */
int32_t xlac_error_code_at(uint32_t index) {
  return index < sizeof all_codes / sizeof all_codes[0] ? all_codes[index] : 0;
}

/* For texts and lists that functions of the library hand out. */
void xlac_free(void *memory) {
  base_free(base_alloc_libc, memory);
}

/* --- element types --- */

uint32_t xlac_dtype_count(void) {
  return BASE_DTYPE_COUNT;
}

/* Numbers come from callers, who may have others than ours. */
static const base_dtype_info *dtype_or_null(uint32_t dtype) {
  return dtype > BASE_DTYPE_INVALID && dtype < BASE_DTYPE_COUNT ? base_dtype_of((base_dtype)dtype) : NULL;
}

const char *xlac_dtype_text(uint32_t dtype) {
  const base_dtype_info *info = dtype_or_null(dtype);
  return info ? info->text : NULL;
}

/* "bf16", "f8e4m3fn"; 0: unknown. */
uint32_t xlac_dtype_from_text(const char *text) {
  return text ? (uint32_t)base_dtype_from_text(text, strlen(text)) : 0;
}

/* In arrays: types narrower than a byte take one each. */
uint32_t xlac_dtype_bytes(uint32_t dtype) {
  const base_dtype_info *info = dtype_or_null(dtype);
  return info ? info->bytes : 0;
}

uint32_t xlac_dtype_bits(uint32_t dtype) {
  const base_dtype_info *info = dtype_or_null(dtype);
  return info ? info->bits : 0;
}

const char *xlac_dtype_kind(uint32_t dtype) {
  static const char *const names[] = {NULL, "pred", "sint", "uint", "float", "complex"};
  _Static_assert(sizeof names / sizeof names[0] == BASE_KIND_COMPLEX + 1, "a name for every kind");
  const base_dtype_info *info = dtype_or_null(dtype);
  return info ? names[info->kind] : NULL;
}

/* The name of a dtype of NumPy, or of the package ml_dtypes. */
const char *xlac_dtype_numpy(uint32_t dtype, bool *of_ml_dtypes) {
  const base_dtype_info *info = dtype_or_null(dtype);
  *of_ml_dtypes = info && !info->numpy_has;
  return info ? info->numpy : NULL;
}

/* 0, 0: DLPack has no such type. */
void xlac_dtype_dlpack(uint32_t dtype, uint8_t *code, uint8_t *bits) {
  const base_dtype_info *info = dtype_or_null(dtype);
  *code = info ? info->dlpack_code : 0;
  *bits = info ? info->dlpack_bits : 0;
}

/* --- the op table --- */

uint32_t xlac_opcode_count(void) {
  return IR_OP_COUNT;
}
/* HLO's name first ("add"), then MLIR's ("stablehlo.add"). */
uint32_t xlac_opcode_from_text(const char *text) {
  if (!text) return 0;
  ir_opcode opcode = ir_opcode_from_text(text, strlen(text));
  return opcode ? opcode : ir_opcode_from_mlir(text, strlen(text));
}

/* Without those that every op has, such as metadata or sharding. */
static uint32_t own_attr_count(const ir_op_info *info) {
  uint32_t n = 0;
  if (info->attrs)
    while (info->attrs[n].key != IR_ATTR_NONE) n++;
  return n;
}

uint32_t xlac_opcode_elsewhere(const char *text) {
  return text ? text_opcode_elsewhere(text, strlen(text)) : IR_OP_INVALID;
}

bool xlac_opcode_get(uint32_t opcode, xlac_opcode_info *out) {
  if (opcode == IR_OP_INVALID || opcode >= IR_OP_COUNT) return false;
  const ir_op_info *info = ir_opcode_info(opcode);
  *out = (xlac_opcode_info){
      .text = info->text,
      .doc = info->doc,
      .arity = info->arity,
      .n_attrs = own_attr_count(info),
      .infers = info->infer != ir_infer_none,
      .elementwise = ir_opcode_has(opcode, IR_ELEMENTWISE),
      .commutative = ir_opcode_has(opcode, IR_COMMUTATIVE),
      .collective = ir_opcode_has(opcode, IR_COLLECTIVE),
      .side_effect = ir_opcode_has(opcode, IR_SIDE_EFFECT),
      .data_movement = ir_opcode_has(opcode, IR_DATA_MOVEMENT),
      .nondeterministic = ir_opcode_has(opcode, IR_NONDETERMINISTIC),
      .newer = ir_opcode_has(opcode, IR_NEWER),
      .async_start = ir_opcode_has(opcode, IR_ASYNC_START),
      .async_update = ir_opcode_has(opcode, IR_ASYNC_UPDATE),
      .async_done = ir_opcode_has(opcode, IR_ASYNC_DONE),
  };
  return true;
}

/* Of how a value is written. */
static const char *const attr_kind_names[] = {
    [IR_KIND_NONE] = "none",
    [IR_KIND_BOOL] = "bool",
    [IR_KIND_INT] = "int",
    [IR_KIND_FLOAT] = "float",
    [IR_KIND_STRING] = "string",
    [IR_KIND_NAME] = "name",
    [IR_KIND_NAMES] = "names",
    [IR_KIND_INTS] = "ints",
    [IR_KIND_BOOLS] = "bools",
    [IR_KIND_INT_LISTS] = "int-lists",
    [IR_KIND_PAIRS] = "pairs",
    [IR_KIND_TYPE] = "type",
    [IR_KIND_TYPES] = "types",
    [IR_KIND_WINDOW] = "window",
    [IR_KIND_CONV_DIMS] = "conv-dims",
    [IR_KIND_PADDING] = "padding",
    [IR_KIND_SLICE] = "slice",
    [IR_KIND_GROUPS] = "groups",
    [IR_KIND_SHARDING] = "sharding",
    [IR_KIND_METADATA] = "metadata",
    [IR_KIND_CONFIG] = "config",
    [IR_KIND_DICT] = "dict",
    [IR_KIND_STATISTICS] = "statistics",
    [IR_KIND_ACCURACY] = "accuracy",
    [IR_KIND_ORIGIN] = "origin",
    [IR_KIND_ALIASING] = "aliasing",
    [IR_KIND_LITERAL] = "literal",
    [IR_KIND_DOMAIN] = "domain",
    [IR_KIND_CALLED] = "called",
    [IR_KIND_OPS] = "ops",
};

bool xlac_opcode_attr(uint32_t opcode, uint32_t index, xlac_attr_info *out) {
  if (opcode == IR_OP_INVALID || opcode >= IR_OP_COUNT) return false;
  const ir_op_info *info = ir_opcode_info(opcode);
  if (index >= own_attr_count(info)) return false;
  const ir_attr_info *attr = &ir_attr_table[info->attrs[index].key];
  *out = (xlac_attr_info){.text = attr->text,
                          .kind = attr_kind_names[attr->kind],
                          .required = (info->attrs[index].flags & IR_REQUIRED) != 0};
  return true;
}

const char *xlac_attr_kind(const char *text) {
  ir_attr_key key = text ? ir_attr_from_text(text, strlen(text)) : IR_ATTR_NONE;
  return key == IR_ATTR_NONE ? NULL : attr_kind_names[ir_attr_table[key].kind];
}

/* Of this thread, for everything that takes long; gives the one before, to be set again afterwards. */
xlac_interrupt xlac_set_interrupt(xlac_interrupt hook) {
  base_heed before = base_heed_set((base_heed){hook.interrupted, hook.ctx});
  return (xlac_interrupt){before.asked, before.ctx};
}
