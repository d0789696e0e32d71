/* Attributes that hold words. Readers refuse most wrong words already; builders and editors can set any. */
#include "verify.h"

static bool is_one_of(const char *const *words, const base_istr *word) {
  for (; *words; words++)
    if (strcmp(*words, word->s) == 0) return true;
  return false;
}

static const char *words_text(const char *const *words, char *buf, size_t size) {
  size_t at = 0;
  buf[0] = 0;
  for (; *words && at < size; words++) at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", *words);
  return buf;
}

/* Words that readers know but that stand for no meaning. */
static bool says_invalid(const base_istr *word) {
  return strcmp(word->s, "rng_invalid") == 0 || strcmp(word->s, "TRANSPOSE_INVALID") == 0;
}

static int check_word(const ir_op *op, const ir_attr *a, const base_istr *word, xlac_error *err) {
  const char *const *words = ir_attr_words(op->opcode, (ir_attr_key)a->key);
  if (!words || (word && is_one_of(words, word) && !says_invalid(word))) return 0;
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has %s=%s, which is no value of that attribute",
                                  ir_attr_table[a->key].text, word ? word->s : ""),
                   "one of %s", words_text(words, (char[200]){0}, 200));
}

int ir_verify_words(const ir_op *op, xlac_error *err) {
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    const ir_attr *a = &op->attrs[i];
    assert(a->key < IR_ATTR_COUNT);
    if (a->kind == IR_KIND_NAME) TRY(check_word(op, a, a->v.str, err));
    if (a->kind != IR_KIND_NAMES || !a->v.names) continue;
    for (uint32_t k = 0; k < a->v.names->n; k++) TRY(check_word(op, a, a->v.names->v[k], err));
  }
  return 0;
}
