/* Words to opcodes and attribute keys. Callers that look up many words remember the answers (the reader keeps them in
 * its symbols), so a scan by length is fast enough here and needs no generated table. */
#include "ir.h"

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

static uint32_t find_word(const counted_word *words, uint32_t count, const char *s, size_t n) {
  for (uint32_t i = 1; i < count; i++)
    if (words[i].n == n && memcmp(words[i].s, s, n) == 0) return i;
  return 0;
}

ir_opcode ir_opcode_from_text(const char *s, size_t n) {
  uint32_t opcode = find_word(opcode_words, IR_OP_COUNT, s, n);
  return opcode && !ir_opcode_has(opcode, IR_MLIR_ONLY) ? (ir_opcode)opcode : IR_OP_INVALID;
}

bool ir_opcode_has_text(unsigned opcode) {
  const ir_mlir_info *mlir = ir_op_table[opcode].mlir;
  if (!ir_opcode_has(opcode, IR_MLIR_ONLY) || ir_opcode_has(opcode, IR_ELEMENTWISE)) return true;
  return mlir && mlir->regions == 0 && !(mlir->attrs && mlir->attrs->name);
}

ir_opcode ir_opcode_from_executable(const char *s, size_t n) {
  uint32_t opcode = find_word(opcode_words, IR_OP_COUNT, s, n);
  return opcode && ir_opcode_has_text(opcode) ? (ir_opcode)opcode : IR_OP_INVALID;
}

ir_attr_key ir_attr_from_text(const char *s, size_t n) {
  return (ir_attr_key)find_word(attr_words, IR_ATTR_COUNT, s, n);
}

/* --- MLIR names --- */

ir_opcode ir_opcode_from_mlir(const char *s, size_t n) {
  for (unsigned i = 1; i < IR_OP_COUNT; i++) {
    const ir_mlir_info *info = ir_op_table[i].mlir;
    if (info && strncmp(info->name, s, n) == 0 && info->name[n] == 0) return (ir_opcode)i;
  }
  return IR_OP_INVALID;
}

const ir_mattr_spec *ir_mattr_spec_find(unsigned opcode, const char *name, size_t n) {
  const ir_mlir_info *info = ir_op_table[opcode].mlir;
  for (const ir_mattr_spec *spec = info ? info->attrs : NULL; spec && spec->name; spec++)
    if (strncmp(spec->name, name, n) == 0 && spec->name[n] == 0) return spec;
  return NULL;
}
