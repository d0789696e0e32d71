/* TensorFlow's element types by their names. */
#include "tf_types.h"

/* "FLOAT" as in DT_FLOAT, and "float" as in OpDefs. */
typedef struct tf_type_row {
  const char *name, *word;
} tf_type_row;

static const tf_type_row tf_type_rows[TF_TYPE_END] = {
#define TF_TYPE(name, number, word, element) [number] = {#name, word},
#include "tf_types.def"
#undef TF_TYPE
};

static const struct tf_set_row {
  const char *name, *types;
} tf_set_rows[] = {
#define TYPE_SET(name, types) {#name, types},
#include "type_sets.def"
#undef TYPE_SET
};

static const char *const tf_ref_words[TF_TYPE_END] = {
#define TF_TYPE(name, number, word, element) [number] = word "_ref",
#include "tf_types.def"
#undef TF_TYPE
};

/* Static text: references have words of their own, "float_ref". */
const char *tf_type_word(unsigned type) {
  unsigned base = tf_base_type(type);
  if (base == 0 || base >= TF_TYPE_END) return "?";
  return type >= TF_REF ? tf_ref_words[base] : tf_type_rows[base].word;
}

/* 0 (INVALID) is a value, too. */
int tf_type_of_enum(base_slice name) {
  int ref = 0;
  if (name.n > 4 && memcmp(name.p + name.n - 4, "_REF", 4) == 0) {
    name.n -= 4;
    ref = TF_REF;
  }
  if (name.n < 3 || memcmp(name.p, "DT_", 3) != 0) return -1;
  name = (base_slice){name.p + 3, name.n - 3};
  for (int i = 0; i < TF_TYPE_END; i++)
    if (base_slice_is(name, tf_type_rows[i].name)) return i + ref;
  return -1;
}

/* References are written "DT_FLOAT_REF". */
bool tf_put_type_enum(base_text *out, int64_t type) {
  if (type < 0 || type >= TF_REF + TF_TYPE_END || tf_base_type((unsigned)type) >= TF_TYPE_END) return false;
  base_putf(out, "DT_%s%s", tf_type_rows[tf_base_type((unsigned)type)].name, type >= TF_REF ? "_REF" : "");
  return true;
}

int tf_type_of_word(base_slice word) {
  for (int i = 1; i < TF_TYPE_END; i++)
    if (base_slice_is(word, tf_type_rows[i].word)) return i;
  return -1;
}

/* A word that is not a type makes the whole set empty. */
static tf_type_set tf_types_listed(base_slice text) {
  tf_type_set set = 0;
  while (text.n > 0) {
    const char *bar = memchr(text.p, '|', text.n);
    size_t n = bar ? (size_t)(bar - text.p) : text.n;
    int type = tf_type_of_word((base_slice){text.p, n});
    if (type < 0) return 0;
    set |= tf_type_bit((unsigned)type);
    n += bar != NULL;
    text = (base_slice){text.p + n, text.n - n};
  }
  return set;
}

/* Names of sets stand for lists, one level deep. */
tf_type_set tf_type_set_of(base_slice text) {
  for (size_t i = 0; i < sizeof tf_set_rows / sizeof *tf_set_rows; i++)
    if (base_slice_is(text, tf_set_rows[i].name)) return tf_types_listed(base_slice_of(tf_set_rows[i].types));
  return tf_types_listed(text);
}
