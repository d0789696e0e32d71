/* The marks that the writer of bytecode puts down, and the pools of what they number. */
#include "write.h"

#include <stdio.h>

int bc_write_memory(bc_writer *w) {
  return base_oom(w->err, "writing bytecode");
}

int bc_cant_write(bc_writer *w, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const ir_op *op = w->op;
  const ir_computation *f = w->function;
  const ir_mlir_info *info = op ? ir_opcode_info(op->opcode)->mlir : NULL;
  const char *name = info                                     ? info->name
                     : op && op->opcode == IR_OP_UNREGISTERED ? op->u.name->s
                     : f                                      ? f->name->s
                                                              : "builtin.module"; /* its own attributes */
  return base_fail_at(w->err, XLAC_E_BAD_PROTO,
                      op  ? op->line
                      : f ? f->line
                          : 0,
                      op  ? op->col
                      : f ? f->col
                          : 0,
                      name, "%s%s%s", op ? name : "", op ? ": " : "", what);
}

int bc_write_deeper(bc_writer *w) {
  if (w->depth++ < 1000) return 0;
  return base_fail(w->err, XLAC_E_TOO_DEEP, "attributes or regions are nested over 1000 deep");
}

void bc_mark(bc_writer *w, unsigned mark, uint64_t number) {
  base_putc(&w->marks, (char)mark);
  base_put(&w->marks, (const char *)&number, sizeof number);
}

void bc_mark_data(bc_writer *w, unsigned mark, const void *p, uint64_t n, unsigned width) {
  uint64_t pointer = base_key(p);
  bc_mark(w, mark, n);
  base_put(&w->marks, (const char *)&pointer, sizeof pointer);
  base_putc(&w->marks, (char)width);
}

void bc_mark_copy(bc_writer *w, const void *p, size_t n) {
  const base_istr *s = base_intern(&w->keys, p, n);
  w->marks.failed = w->marks.failed || !s;
  if (s) bc_mark_data(w, BC_MARK_BLOB, s->s, n, 0);
}

/* Pools keep their keys in one table, so a key begins with its pool and dialect. */
int bc_pool_add(bc_writer *w, bc_pool *pool, uint32_t dialect, bool custom, size_t from, uint32_t *out) {
  char head[8] = {pool->tag, (char)custom};
  memcpy(head + 2, &dialect, sizeof dialect);
  base_put(&w->marks, head, sizeof head);
  if (w->marks.failed) return bc_write_memory(w);
  const base_istr *key = base_intern(&w->keys, w->marks.s + from, w->marks.n - from);
  w->marks.n = from;
  uint64_t index = 0;
  if (!key) return bc_write_memory(w);
  if (!base_map_get(&w->known, base_key(key), &index)) {
    index = pool->items.n;
    bc_item item = {.key = key, .dialect = dialect, .custom = custom};
    if (!BASE_VEC_PUSH(w->alloc, &pool->items, item) || !base_map_set(&w->known, base_key(key), index))
      return bc_write_memory(w);
  }
  *out = (uint32_t)index;
  return 0;
}

static int bc_pool_bytes(bc_writer *w, bc_pool *pool, const char *s, size_t n, uint32_t *out) {
  size_t from = w->marks.n;
  base_put(&w->marks, s, n);
  return bc_pool_add(w, pool, 0, false, from, out);
}

int bc_pool_string(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  return bc_pool_bytes(w, &w->strings, s, n, out);
}

int bc_pool_dialect(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  uint32_t string = 0;
  TRY(bc_pool_string(w, s, n, &string)); /* names of dialects lie among the strings */
  return bc_pool_bytes(w, &w->dialects, s, n, out);
}

int bc_mark_string(bc_writer *w, const base_istr *s) {
  uint32_t string = 0;
  TRY(bc_pool_string(w, s->s, s->n, &string));
  bc_mark(w, BC_MARK_STRING, string);
  return 0;
}
