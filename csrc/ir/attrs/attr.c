/* Attributes of HLO form: read and set by key; the words that some of them hold.
 *
 * An op has few attributes, so they are a small array without an order that is searched from the front. The kind of a
 * value follows from its key (attrs.def), and a reader that asks for the wrong kind is wrong for all programs: hence
 * asserts and no errors. */
#include "../ir.h"
#include "../opcode.h"

static ir_attr *find_slot(const ir_op *op, ir_attr_key key) {
  assert(key > IR_ATTR_NONE && key < IR_ATTR_COUNT);
  for (uint16_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].key == key) return &op->attrs[i];
  return NULL;
}

const ir_attr *ir_attr_find(const ir_op *op, ir_attr_key key) {
  return find_slot(op, key);
}

/* Room for one more: 4, 8, 16, ... The old array stays in the arena, as others may still read from it. */
static bool grow_attrs(ir_op *op) {
  if (op->n_attrs < op->attr_cap) return true;
  uint8_t cap = op->attr_cap ? (uint8_t)(op->attr_cap * 2) : 4;
  ir_attr *attrs = BASE_ARRAY(&op->parent->module->arena, ir_attr, cap);
  if (!attrs) return false;
  if (op->n_attrs) memcpy(attrs, op->attrs, op->n_attrs * sizeof *attrs);
  op->attrs = attrs;
  op->attr_cap = cap;
  return true;
}

/* The last value counts: an op has a key once. */
bool ir_attr_set(ir_op *op, ir_attr value) {
  assert(value.key > IR_ATTR_NONE && value.key < IR_ATTR_COUNT);
  assert(value.kind == ir_attr_table[value.key].kind);
  ir_edited(op->parent->module);
  ir_attr *slot = find_slot(op, value.key);
  if (!slot) {
    if (!grow_attrs(op)) return false;
    slot = &op->attrs[op->n_attrs++];
  }
  *slot = value;
  return true;
}

/* Nothing happens where there is none under this key; the module then stays verified. */
void ir_attr_remove(ir_op *op, ir_attr_key key) {
  ir_attr *slot = find_slot(op, key);
  if (!slot) return;
  ir_edited(op->parent->module);
  memmove(slot, slot + 1, (size_t)(op->attrs + op->n_attrs - slot - 1) * sizeof *slot);
  op->n_attrs--;
}

/* The value as the verifier left it: an INT needs no range check after verification. */
int64_t ir_get_int(const ir_op *op, ir_attr_key key, int64_t otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_INT);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.i : otherwise;
}

bool ir_get_bool(const ir_op *op, ir_attr_key key, bool otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_BOOL);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.b : otherwise;
}

double ir_get_float(const ir_op *op, ir_attr_key key, double otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_FLOAT);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.f : otherwise;
}

/* Never NULL: an absent list reads as the empty one, which is what HLO text without the attribute means. */
const ir_ints *ir_get_ints(const ir_op *op, ir_attr_key key) {
  static const ir_ints empty = {0};
  assert(ir_attr_table[key].kind == IR_KIND_INTS || ir_attr_table[key].kind == IR_KIND_BOOLS);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.ints : &empty;
}

/* For words of enumerations too: callers compare with ir_attr_words' spelling. */
const char *ir_get_str(const ir_op *op, ir_attr_key key) {
  assert(ir_attr_table[key].kind == IR_KIND_STRING || ir_attr_table[key].kind == IR_KIND_NAME);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.str->s : "";
}

/* Values of these kinds are pointers, so absence is NULL. */
const ir_window *ir_get_window(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_WINDOW);
  return a ? a->v.window : NULL;
}

const ir_conv_dims *ir_get_conv_dims(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_DIM_LABELS);
  return a ? a->v.conv : NULL;
}

const ir_sharding *ir_get_sharding(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_SHARDING);
  return a ? a->v.sharding : NULL;
}

const ir_metadata *ir_get_metadata(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_METADATA);
  return a ? a->v.metadata : NULL;
}

bool ir_set_int(ir_op *op, ir_attr_key key, int64_t v) {
  ir_attr a = ir_attr_make(key);
  a.v.i = v;
  return ir_attr_set(op, a);
}

bool ir_set_bool(ir_op *op, ir_attr_key key, bool v) {
  ir_attr a = ir_attr_make(key);
  a.v.b = v;
  return ir_attr_set(op, a);
}

bool ir_set_float(ir_op *op, ir_attr_key key, double v) {
  ir_attr a = ir_attr_make(key);
  a.v.f = v;
  return ir_attr_set(op, a);
}

/* v may be NULL where n is 0. The numbers are copied. */
const ir_ints *ir_ints_make(ir_module *m, uint32_t n, const int64_t *v) {
  assert(m && (v || n == 0));
  ir_ints *ints = base_arena_alloc(&m->arena, sizeof *ints + n * sizeof *v);
  if (!ints) return NULL;
  ints->n = n;
  if (n) memcpy(ints->v, v, n * sizeof *v);
  return ints;
}

/* The numbers are copied into op's module. */
bool ir_set_ints(ir_op *op, ir_attr_key key, uint32_t n, const int64_t *v) {
  ir_attr a = ir_attr_make(key);
  a.v.ints = ir_ints_make(op->parent->module, n, v);
  return a.v.ints && ir_attr_set(op, a);
}

/* Interned in op's module; s need not end in a 0. */
bool ir_set_str(ir_op *op, ir_attr_key key, const char *s, size_t n) {
  assert(s || n == 0);
  ir_attr a = ir_attr_make(key);
  a.v.str = ir_intern(op->parent->module, s, n);
  return a.v.str && ir_attr_set(op, a);
}

/* The words that attributes of kind NAME and NAMES may hold, as XLA 0.10.2's reader has them. A few of them say
 * "invalid", and the verifier refuses those. */

static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
static const char *const comparison_types[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", NULL};
static const char *const distributions[] = {"rng_uniform", "rng_normal", "rng_invalid", NULL};
static const char *const rng_algorithms[] = {"rng_default", "rng_three_fry", "rng_philox", NULL};
static const char *const dot_algorithms[] = {"unset",
                                             "dot_any_f8_any_f8_f32",
                                             "dot_any_f8_any_f8_f32_fast_accum",
                                             "dot_any_f8_any_f8_any",
                                             "dot_any_f8_any_f8_any_fast_accum",
                                             "dot_f16_f16_f16",
                                             "dot_f16_f16_f32",
                                             "dot_bf16_bf16_bf16",
                                             "dot_bf16_bf16_f32",
                                             "dot_bf16_bf16_f32_x3",
                                             "dot_bf16_bf16_f32_x6",
                                             "dot_bf16_bf16_f32_x9",
                                             "dot_tf32_tf32_f32",
                                             "dot_tf32_tf32_f32_x3",
                                             "dot_f32_f32_f32",
                                             "dot_f64_f64_f64",
                                             NULL};
static const char *const fft_types[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
static const char *const padding_types[] = {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME", NULL};
static const char *const schedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST", NULL};
static const char *const api_versions[] = {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                           "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI", NULL};
static const char *const fusion_kinds[] = {"kLoop", "kInput", "kOutput", "kCustom", NULL};
static const char *const precisions[] = {"default", "high", "highest", NULL};
static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID", NULL};
static const char *const convolution_kinds[] = {"unset", "fprop", "wgrad", "dgrad", NULL};
static const char *const truths[] = {"true", "false", NULL};
static const char *const shuffle_modes[] = {"rotate", "permute", NULL};

/* NULL where any word will do. "algorithm" means other things on rng-bit-generator and on dot, so the opcode counts. */
const char *const *ir_attr_words(unsigned opcode, ir_attr_key key) {
  assert(opcode < IR_OP_COUNT);
  switch (key) {
    case IR_ATTR_DIRECTION:
      return directions;
    case IR_ATTR_TYPE:
      return comparison_types;
    case IR_ATTR_DISTRIBUTION:
      return distributions;
    case IR_ATTR_ALGORITHM:
      return opcode == IR_OP_RNG_BIT_GENERATOR ? rng_algorithms : dot_algorithms;
    case IR_ATTR_FFT_TYPE:
      return fft_types;
    case IR_ATTR_PADDING_TYPE:
      return padding_types;
    case IR_ATTR_SCHEDULE:
      return schedules;
    case IR_ATTR_API_VERSION:
      return api_versions;
    case IR_ATTR_KIND:
      return fusion_kinds;
    case IR_ATTR_OPERAND_PRECISION:
      return precisions;
    case IR_ATTR_TRANSPOSE_A:
      return transposes;
    case IR_ATTR_IS_ASSOCIATIVE:
      return truths;
    case IR_ATTR_CONVOLUTION_KIND:
      return convolution_kinds;
    case IR_ATTR_MODE:
      return shuffle_modes;
    default:
      return NULL;
  }
}
