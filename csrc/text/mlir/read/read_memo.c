/* What the reader remembers: programs say the same types, lists and constants thousands of times, and types and
 * attributes never change, so that ops can share them. */
#include "read.h"

/* Longer texts are rarely said twice. */
enum { MLIR_MEMO_TEXT = 64 };

const void *mlir_recall(mlir_reader *r, mlir_memo_kind kind, base_slice text, mlir_memo **place) {
  *place = NULL;
  if (text.n == 0 || text.n > MLIR_MEMO_TEXT) return NULL;
  uint32_t hash = base_hash(text.p, text.n) + (uint32_t)kind * 0x9E3779B9u;
  mlir_memo *m = &r->memos[(hash ^ hash >> 16) % MLIR_MEMOS];
  *place = m;
  if (m->kind == kind && m->text.n == text.n && memcmp(m->text.p, text.p, text.n) == 0) return m->what;
  return NULL;
}

void mlir_remember(mlir_reader *r, mlir_memo *place, mlir_memo_kind kind, base_slice text, const void *what) {
  text_lexer end = r->lx;
  end.p = text.p + text.n;
  if (!place || end.p > r->lx.p) return;
  text_skip(&end);
  if (end.p == r->lx.p) *place = (mlir_memo){text, what, kind};
}

void mlir_pass(mlir_reader *r, base_slice text) {
  r->lx.p = text.p + text.n;
  text_skip(&r->lx);
}

/* The end of the run of plain bytes at p; no further than a memo goes. */
static const char *mlir_plain_end(const char *p, const char *more) {
  const char *e = p;
  while (e - p < MLIR_MEMO_TEXT && (text_is(*e, TEXT_NAME) || (*e && strchr(more, *e)))) e++;
  return e;
}

base_slice mlir_list_text(const mlir_reader *r) {
  const char *p = r->lx.p;
  if (*p != '[') return (base_slice){0};
  const char *e = mlir_plain_end(p + 1, ", ");
  return *e == ']' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

base_slice mlir_dense_text(const mlir_reader *r) {
  static const char between[] = " : tensor<";
  const char *p = r->lx.p;
  if (*p != '<') return (base_slice){0};
  const char *e = mlir_plain_end(p + 1, "[], ()+");
  if (*e != '>' || strncmp(e + 1, between, sizeof between - 1) != 0) return (base_slice){0};
  e = mlir_plain_end(e + sizeof between, "");
  return *e == '>' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

/* --- the same entries --- */

static bool mlir_same_entries(const mlir_entries_memo *m, uint32_t n, const ir_mentry *e) {
  for (uint32_t i = 0; i < n; i++)
    if (m->entries[i].key != e[i].key || m->entries[i].value != e[i].value) return false;
  return m->n == n;
}

mlir_entries_memo *mlir_recall_entries(mlir_reader *r, mlir_memo_kind kind, uint32_t n, const ir_mentry *e) {
  if (n == 0 || n > MLIR_MEMO_ENTRIES) return NULL;
  uint64_t hash = kind;
  for (uint32_t i = 0; i < n; i++) hash = (hash ^ base_key(e[i].key) ^ base_key(e[i].value) << 1) * 0x9E3779B97F4A7C15u;
  mlir_entries_memo *m = &r->entries_memos[(hash >> 32) % MLIR_ENTRIES_MEMOS];
  if (m->kind == kind && mlir_same_entries(m, n, e)) return m;
  *m = (mlir_entries_memo){.kind = kind, .n = n};
  memcpy(m->entries, e, n * sizeof *e);
  return m;
}
