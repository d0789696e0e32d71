/* Attributes of HLO form: read and set by key; the words that some of them hold.
 *
 * An op has few attributes, so they are a small array without an order that is searched from the front. The kind of a
 * value follows from its key (attrs.def), and a reader that asks for the wrong kind is wrong for all programs: hence
 * asserts and no errors. */
#include <stdio.h>

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

int ir_get_word(const ir_op *op, ir_attr_key key) {
  assert(ir_attr_table[key].kind == IR_KIND_NAME);
  const ir_attr *a = find_slot(op, key);
  return a ? (int)a->v.i : 0;
}

const char *ir_get_str(const ir_op *op, ir_attr_key key) {
  assert(ir_attr_table[key].kind == IR_KIND_STRING);
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

bool ir_set_word(ir_op *op, ir_attr_key key, int number) {
  assert(ir_attr_table[key].kind == IR_KIND_NAME && *ir_attr_word(op->opcode, key, number));
  ir_attr a = ir_attr_make(key);
  a.v.i = number;
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

/* The words that attributes of kind NAME and NAMES may hold, as XLA 0.10.2's reader has them (words.h). A few of them
 * say "invalid", and the verifier refuses those. */

static const char *const dot_words[] = {IR_DOT_WORDS(IR_WORD_OF_HLO) NULL};

static const struct {
  ir_attr_key key;
  const char *const *words;
} word_sets[] = {{IR_ATTR_ALGORITHM, IR_HLO_WORDS(RNG)},         {IR_ATTR_DIRECTION, IR_HLO_WORDS(DIRECTION)},
                 {IR_ATTR_TYPE, IR_HLO_WORDS(COMPARISON)},       {IR_ATTR_DISTRIBUTION, IR_HLO_WORDS(DISTRIBUTION)},
                 {IR_ATTR_FFT_TYPE, IR_HLO_WORDS(FFT)},          {IR_ATTR_PADDING_TYPE, IR_HLO_WORDS(PADDING)},
                 {IR_ATTR_SCHEDULE, IR_HLO_WORDS(SCHEDULE)},     {IR_ATTR_API_VERSION, IR_HLO_WORDS(API)},
                 {IR_ATTR_KIND, IR_HLO_WORDS(FUSION)},           {IR_ATTR_OPERAND_PRECISION, IR_HLO_WORDS(PRECISION)},
                 {IR_ATTR_TRANSPOSE_A, IR_HLO_WORDS(TRANSPOSE)}, {IR_ATTR_IS_ASSOCIATIVE, IR_HLO_WORDS(TRUTH)},
                 {IR_ATTR_MODE, IR_HLO_WORDS(SHUFFLE)},          {IR_ATTR_CONVOLUTION_KIND, IR_HLO_WORDS(CONVOLUTION)}};

/* "algorithm" means other things on rng-bit-generator and on dot, so the opcode counts. */
const char *const *ir_attr_words(unsigned opcode, ir_attr_key key) {
  assert(opcode < IR_OP_COUNT);
  if (key == IR_ATTR_ALGORITHM && opcode != IR_OP_RNG_BIT_GENERATOR) return dot_words;
  for (size_t i = 0; i < sizeof word_sets / sizeof *word_sets; i++)
    if (word_sets[i].key == key) return word_sets[i].words;
  assert(!"every attribute of words has a list of them");
  return dot_words;
}

/* A number from outside may be any. */
const char *ir_attr_word(unsigned opcode, ir_attr_key key, int64_t number) {
  const char *const *words = ir_attr_words(opcode, key);
  for (int64_t i = 0; words[i]; i++)
    if (i == number) return words[i];
  return "";
}

int ir_word_number(const char *const *words, const char *s, size_t n) {
  for (int i = 0; n && words[i]; i++)
    if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0) return i;
  return -1;
}

/* Cut where the buffer ends. */
const char *ir_words_text(const char *const *words, char *buf, size_t size) {
  size_t at = 0;
  buf[0] = 0;
  for (; *words && at < size; words++)
    if (**words) at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", *words);
  return buf;
}
