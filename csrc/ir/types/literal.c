/* Literals in a module's arena. Data is aligned to 16 bytes, so that vector loops may run over constants as they are.
 */
#include "../ir.h"

/* A tensor without elements has no data, and is none the less a whole literal. */
ir_literal *ir_literal_new(ir_module *m, const ir_type *type) {
  assert(ir_is_tensor(type));
  ir_literal *l = BASE_NEW(&m->arena, ir_literal);
  if (!l) return NULL;
  l->type = type;
  if (type->count > 0) {
    l->data = base_arena_aligned(&m->arena, (size_t)ir_type_bytes(type), 16);
    if (!l->data) return NULL;
  }
  return l;
}

/* The elements' types are taken to be those of `type`. */
ir_literal *ir_literal_tuple(ir_module *m, const ir_type *type, const ir_literal *const *elements) {
  assert(ir_is_tuple(type));
  ir_literal *l = BASE_NEW(&m->arena, ir_literal);
  if (!l) return NULL;
  l->type = type;
  l->elements = base_arena_memdup(&m->arena, elements, type->n_elements * sizeof *elements);
  return l->elements || type->n_elements == 0 ? l : NULL;
}

/* n + 1, so that an empty tuple asks the arena for something too. */
static const ir_literal *import_tuple(ir_module *m, const ir_type *type, const ir_literal *from) {
  assert(from->elements || type->n_elements == 0);
  const ir_literal **elements = BASE_ARRAY(&m->arena, const ir_literal *, type->n_elements + 1);
  if (!elements) return NULL;
  for (uint32_t i = 0; i < type->n_elements; i++)
    if (!(elements[i] = ir_literal_import(m, from->elements[i]))) return NULL;
  return ir_literal_tuple(m, type, elements);
}

/* An elided literal has no data and stays elided. */
const ir_literal *ir_literal_import(ir_module *m, const ir_literal *from) {
  assert(m && from);
  const ir_type *type = ir_type_import(m, from->type);
  if (!type) return NULL;
  if (ir_is_tuple(type)) return import_tuple(m, type, from);
  ir_literal *l = BASE_NEW(&m->arena, ir_literal);
  if (!l) return NULL;
  *l = (ir_literal){.type = type, .elided = from->elided};
  if (from->data) {
    l->data = base_arena_aligned(&m->arena, (size_t)ir_type_bytes(type), 16);
    if (!l->data) return NULL;
    memcpy(l->data, from->data, (size_t)ir_type_bytes(type));
  }
  return l;
}
