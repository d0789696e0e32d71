/* The op table: ops.def turned into one constant array, and the way from words to its rows.
 *
 * ops.def is included several times with other definitions of its columns (ops_columns.h makes them all empty): once
 * to declare the inference and verification functions that rows name, once for the rows themselves, once for the
 * words by length. A column that a row leaves out is zero. */
#include "ir.h"
#include "opcode.h"

/* While a part of the tree is built without the others, a missing function is a NULL in the table. */
#ifdef XLAC_PARTIAL
#define PARTIAL __attribute__((weak))
#else
#define PARTIAL
#endif

#include "ops_columns.h"
#undef INFER
#undef VERIFY
#define INFER(fn) ir_infer_fn ir_infer_##fn PARTIAL;
#define VERIFY(fn) ir_verify_fn ir_verify_##fn PARTIAL;
#define OP(code, text, arity, columns) columns
#include "ops.def"
#undef OP

#include "ops_columns.h"
#undef TRAITS
#undef TYPES
#undef ATTRS
#undef PAIR
#undef INFER
#undef VERIFY
#undef DOC
#undef MLIR
#define TRAITS(set) .traits = (set),
#define TYPES(set) .types = (set),
#define A(key, flags) {IR_ATTR_##key, (flags)},
#define ATTRS(...) .attrs = (const ir_attr_spec[]){__VA_ARGS__{0, 0}},
#define PAIR(start_op, done_op) .start = IR_OP_##start_op, .done = IR_OP_##done_op,
#define INFER(fn) .infer = ir_infer_##fn,
#define VERIFY(fn) .verify = ir_verify_##fn,
#define DOC(sentence) .doc = (sentence),
#define M(name, constraint, flags) {#name, IR_MC_##constraint, (flags), NULL},
#define MS(name, constraint, sub, flags) {#name, IR_MC_##constraint, (flags), (sub)},
#define MLIR(name, operands, results, regions, form, ...)         \
  .mlir = &(const ir_mlir_info){(name),    (operands), (results), \
                                (regions), (form),     (const ir_mattr_spec[]){__VA_ARGS__{NULL, 0, 0, NULL}}},
#define OP(code, name, operands, columns) [IR_OP_##code] = {.text = (name), .arity = (operands), columns},
/* Row 0 is IR_OP_INVALID's: no text, no functions. */
const ir_op_info ir_op_table[IR_OP_COUNT] = {
#include "ops.def"
};
#undef OP
#undef A
#undef M
#undef MS

const ir_attr_info ir_attr_table[IR_ATTR_COUNT] = {
#define ATTR(key, name, value_kind) [IR_ATTR_##key] = {.text = (name), .kind = IR_KIND_##value_kind},
#include "attrs/attrs.def"
#undef ATTR
};

/* The start of the pair of opcodes that XLA splits this op into (all-reduce into all-reduce-start and -done); INVALID
 * where it has no pair of its own and goes through the generic async-start. */
ir_opcode ir_opcode_pair_start(unsigned opcode) {
  switch (opcode) {
    case IR_OP_COPY:
      return IR_OP_COPY_START;
    case IR_OP_ALL_REDUCE:
      return IR_OP_ALL_REDUCE_START;
    case IR_OP_ALL_GATHER:
      return IR_OP_ALL_GATHER_START;
    case IR_OP_COLLECTIVE_PERMUTE:
      return IR_OP_COLLECTIVE_PERMUTE_START;
    default:
      return IR_OP_INVALID;
  }
}

/* Whether the row lists the attribute; its flags (required, and so on) into *flags, which may be NULL. */
bool ir_opcode_takes(unsigned opcode, ir_attr_key key, uint16_t *flags) {
  assert(opcode < IR_OP_COUNT);
  const ir_attr_spec *spec = ir_op_table[opcode].attrs;
  if (!spec) return false;
  for (; spec->key; spec++) {
    if (spec->key == key) {
      if (flags) *flags = spec->flags;
      return true;
    }
  }
  return false;
}

/* Words to opcodes and attribute keys. Callers that look up many words remember the answers (the reader keeps them in
 * its symbols), so a scan by length is fast enough here and needs no generated table. */

typedef struct counted_word {
  const char *s;
  uint32_t n;
} counted_word;

#include "ops_columns.h"
static const counted_word opcode_words[IR_OP_COUNT] = {
#define OP(code, text, arity, columns) [IR_OP_##code] = {text, sizeof(text) - 1},
#include "ops.def"
#undef OP
};

static const counted_word attr_words[IR_ATTR_COUNT] = {
#define ATTR(key, text, kind) [IR_ATTR_##key] = {text, sizeof(text) - 1},
#include "attrs/attrs.def"
#undef ATTR
};

/* 0, which is INVALID and NONE of both enums, for an unknown word. */
static uint32_t find_word(const counted_word *words, uint32_t count, const char *s, size_t n) {
  assert(words);
  for (uint32_t i = 1; i < count; i++)
    if (words[i].n == n && memcmp(words[i].s, s, n) == 0) return i;
  return 0;
}

/* HLO text: opcodes that only MLIR form has are unknown words there. */
ir_opcode ir_opcode_from_text(const char *s, size_t n) {
  uint32_t opcode = find_word(opcode_words, IR_OP_COUNT, s, n);
  return opcode && !ir_opcode_has(opcode, IR_MLIR_ONLY) ? (ir_opcode)opcode : IR_OP_INVALID;
}

/* Whether an executable's program, which is HLO text with more opcodes, can spell the op: HLO's own always, and of
 * those that only MLIR has the elementwise ones and those that have neither regions nor attributes to lose. */
bool ir_opcode_has_text(unsigned opcode) {
  assert(opcode < IR_OP_COUNT);
  const ir_mlir_info *mlir = ir_op_table[opcode].mlir;
  if (!ir_opcode_has(opcode, IR_MLIR_ONLY) || ir_opcode_has(opcode, IR_ELEMENTWISE)) return true;
  return mlir && mlir->regions == 0 && !(mlir->attrs && mlir->attrs->name);
}

/* As ir_opcode_from_text, for programs that xlac itself printed. */
ir_opcode ir_opcode_from_executable(const char *s, size_t n) {
  uint32_t opcode = find_word(opcode_words, IR_OP_COUNT, s, n);
  return opcode && ir_opcode_has_text(opcode) ? (ir_opcode)opcode : IR_OP_INVALID;
}

ir_attr_key ir_attr_from_text(const char *s, size_t n) {
  return (ir_attr_key)find_word(attr_words, IR_ATTR_COUNT, s, n);
}

/* --- MLIR names --- */

/* "stablehlo.add" to ADD. Linear: the MLIR reader remembers what it has looked up. */
ir_opcode ir_opcode_from_mlir(const char *s, size_t n) {
  for (unsigned i = 1; i < IR_OP_COUNT; i++) {
    const ir_mlir_info *info = ir_op_table[i].mlir;
    if (info && base_slice_is((base_slice){s, n}, info->name)) return (ir_opcode)i;
  }
  return IR_OP_INVALID;
}

/* Of what is not an integer nothing is asked. */
const char *ir_mattr_spec_lacks(const ir_mattr_spec *spec, const ir_mattr *a) {
  assert(spec && a);
  if (a->kind != IR_M_INTEGER) return NULL;
  if ((spec->flags & IR_NON_NEGATIVE) && a->v.i < 0) return "non-negative";
  return (spec->flags & IR_POSITIVE) && a->v.i <= 0 ? "positive" : NULL;
}

/* The row's entry for an inherent attribute of that name, or NULL: then it is a discardable one. */
const ir_mattr_spec *ir_mattr_spec_find(unsigned opcode, const char *name, size_t n) {
  assert(opcode < IR_OP_COUNT);
  const ir_mlir_info *info = ir_op_table[opcode].mlir;
  for (const ir_mattr_spec *spec = info ? info->attrs : NULL; spec && spec->name; spec++)
    if (base_slice_is((base_slice){name, n}, spec->name)) return spec;
  return NULL;
}
