/* TensorFlow's element types. A uint8_t holds one: 1 to 99 a type, 101 to 199 a reference to one. */
#ifndef XLAC_TF_GRAPH_TF_TYPES_H
#define XLAC_TF_GRAPH_TF_TYPES_H

#include "../../base/str.h"

typedef enum tf_type {
#define TF_TYPE(name, number, word, element) TF_##name = number,
#include "tf_types.def"
#undef TF_TYPE
  TF_TYPE_END,
  TF_REF = 100
} tf_type;

/* Sets of types as bits. */
typedef uint64_t tf_type_set;

static inline tf_type_set tf_type_bit(unsigned type) {
  return type < TF_TYPE_END ? (tf_type_set)1 << type : 0;
}
/* Without the reference. */
static inline unsigned tf_base_type(unsigned type) {
  return type >= TF_REF ? type - TF_REF : type;
}
/* "float", "float_ref"; "?" for no type. */
const char *tf_type_word(unsigned type);
/* "DT_FLOAT" -> FLOAT, also "DT_FLOAT_REF"; -1 where there is none. */
int tf_type_of_enum(base_slice name);
/* Appends "DT_FLOAT"; false for no type. */
bool tf_put_type_enum(base_text *out, int64_t type);
/* "float" -> FLOAT; -1 where there is none. */
int tf_type_of_word(base_slice word);
/* "float|half", or the name of a set in type_sets.def. 0 for what is neither. */
tf_type_set tf_type_set_of(base_slice text);

#endif
