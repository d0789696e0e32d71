/* Types: immutable, so no lock. */
#include "api.h"

_Static_assert((int)XLAC_TYPE_TENSOR == IR_TYPE_TENSOR && (int)XLAC_TYPE_TUPLE == IR_TYPE_TUPLE &&
                   (int)XLAC_TYPE_TOKEN == IR_TYPE_TOKEN && (int)XLAC_TYPE_OPAQUE == IR_TYPE_OPAQUE &&
                   (int)XLAC_TYPE_BUFFER == IR_TYPE_BUFFER && (int)XLAC_TYPE_FUTURE == IR_TYPE_FUTURE &&
                   (int)XLAC_TYPE_UNRANKED == IR_TYPE_UNRANKED && (int)XLAC_TYPE_ELEMENT == IR_TYPE_ELEMENT &&
                   (int)XLAC_TYPE_FUNCTION == IR_TYPE_FUNCTION && (int)XLAC_TYPE_OTHER == IR_TYPE_OTHER,
               "public and inner kinds are the same numbers");

void xlac_type_get(const xlac_type *type, xlac_type_info *out) {
  const ir_type *t = api_type(type);
  bool tensor = t->kind == IR_TYPE_TENSOR;
  *out = (xlac_type_info){.kind = t->kind,
                          .dtype = tensor || t->kind == IR_TYPE_UNRANKED || t->kind == IR_TYPE_ELEMENT ? t->dtype : 0,
                          .rank = tensor ? t->rank : 0,
                          .dims = tensor ? t->dims : NULL,
                          .dynamic = tensor ? t->dynamic : NULL,
                          .n_elements = t->kind == IR_TYPE_BUFFER ? 1 : t->n_elements};
}

const xlac_type *xlac_type_element(const xlac_type *type, uint32_t index) {
  const ir_type *t = api_type(type);
  if (t->kind == IR_TYPE_BUFFER) return index == 0 ? api_type_out(t->inner) : NULL;
  return index < t->n_elements ? api_type_out(t->elements[index]) : NULL;
}

char *xlac_type_print(const xlac_type *type, bool layouts) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  ir_put_type(&t, api_type(type), layouts);
  char *text = NULL;
  return api_give_text(&t, &text, NULL, NULL) == 0 ? text : NULL;
}
