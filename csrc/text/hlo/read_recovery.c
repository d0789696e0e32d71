/* Original arrays, and the header's table of how to recover them: entries {"a"} : {"b" {0}}, each maybe with a module
 * in a string. XLA sorts the entries and prints the modules anew, indented; that text is what the module keeps. */
#include "read.h"

#include <stdlib.h>

int text_read_original_array(text_reader *r, text_original_array *out) {
  *out = (text_original_array){0};
  TRY(text_want(r, '{', "before an original array"));
  if (*r->lx.p == '"' || *r->lx.p == '\'') {
    const char *p = r->lx.p, *e = text_string_end(&r->lx, p);
    if (!e) return text_fail(r, p, XLAC_E_SYNTAX, "a string begins here that never ends");
    out->name = (base_slice){p + 1, (size_t)(e - p) - 2};
    r->lx.p = e;
    text_skip(&r->lx);
    if (*r->lx.p == '{') TRY(text_read_index_path(r, &out->path));
  }
  return text_want(r, '}', "after an original array");
}

void text_put_original_array(base_text *out, const text_original_array *a) {
  base_putc(out, '{');
  if (a->name.p) {
    base_putc(out, '"');
    base_put(out, a->name.p, a->name.n);
    base_putc(out, '"');
  }
  for (uint32_t i = 0; a->path && i < a->path->n; i++) {
    base_puts(out, i ? "," : " {");
    base_put_i64(out, a->path->v[i]);
  }
  if (a->path && a->path->n) base_putc(out, '}');
  base_putc(out, '}');
}

/* --- the table --- */

typedef struct recovery_entry {
  text_original_array lost, found;
  const base_istr *module; /* as XLA prints it within the table, or NULL */
  uint32_t order;
} recovery_entry;
BASE_VEC(recovery_list, recovery_entry);

/* Prints the module again, four blanks in, as the table holds it. */
static int print_recovery(text_reader *r, const ir_module *m, const base_istr **out) {
  base_text text;
  text_print_options options = {.indent = 2}; /* XLA elides large constants here, and with them the program */
  base_text_init(&text, r->alloc);
  int status = text_print_hlo(&text, m, &options, r->err);
  r->bytes.n = 0;
  for (size_t i = 0; status == 0 && i < text.n; i++) {
    if (text.s[i] == '"' || text.s[i] == '\\') base_putc(&r->bytes, '\\');
    base_putc(&r->bytes, text.s[i]);
  }
  base_text_free(&text);
  if (status != 0) return status;
  *out = r->bytes.failed ? NULL : ir_intern(r->m, r->bytes.s, r->bytes.n);
  return *out ? 0 : text_no_memory(r);
}

/* A string that holds a module. Each such level costs half the nesting that is left. */
static int read_recovery_module(text_reader *r, const base_istr **out) {
  const char *at = r->lx.p;
  const base_istr *string;
  ir_module *m = NULL;
  text_parse_options options = {.alloc = r->alloc, .max_depth = r->max_depth / 2, .strict = r->strict};
  xlac_error why = {0};
  TRY(text_read_string(r, &string));
  if (options.max_depth == 0) return text_fail(r, at, XLAC_E_TOO_DEEP, "recovery modules are nested too deeply");
  TRY(text_charge(r, at, string->n));
  if (text_parse_hlo(&m, string->s, string->n, &options, &why) != 0)
    return text_fail(r, at, (base_code)why.code, "line %u of the recovery module: %s", why.line, why.message);
  int status = print_recovery(r, m, out);
  ir_module_destroy(m);
  return status;
}

static int read_recovery_entries(text_reader *r, recovery_list *list) {
  TRY(text_want(r, '{', "before a recovery table"));
  while (*r->lx.p != '}') {
    recovery_entry e = {.order = list->n};
    TRY(text_read_original_array(r, &e.lost));
    TRY(text_want(r, ':', "between original arrays"));
    TRY(text_read_original_array(r, &e.found));
    if (text_eat(&r->lx, ',')) TRY(read_recovery_module(r, &e.module));
    if (!BASE_VEC_PUSH(r->alloc, list, e)) return text_no_memory(r);
  }
  text_eat(&r->lx, '}');
  return 0;
}

static int compare_arrays(const text_original_array *a, const text_original_array *b) {
  size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
  int c = n ? memcmp(a->name.p, b->name.p, n) : 0;
  if (c == 0) c = (a->name.n > b->name.n) - (a->name.n < b->name.n);
  assert(a->name.p || a->name.n == 0);
  uint32_t an = a->path ? a->path->n : 0, bn = b->path ? b->path->n : 0;
  for (uint32_t i = 0; c == 0 && i < an && i < bn; i++)
    c = (a->path->v[i] > b->path->v[i]) - (a->path->v[i] < b->path->v[i]);
  return c ? c : (an > bn) - (an < bn);
}

static int compare_entries(const void *a, const void *b) {
  const recovery_entry *x = a, *y = b;
  int c = compare_arrays(&x->lost, &y->lost);
  return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* An array without a name prints as the empty name here. */
static void put_named(base_text *out, text_original_array a) {
  if (!a.name.p) a.name = BASE_SLICE("");
  text_put_original_array(out, &a);
}

static void put_entries(base_text *out, const recovery_list *list) {
  assert(list->n > 0);
  BASE_PUT(out, "{\n");
  for (uint32_t i = 0; i < list->n; i++) {
    const recovery_entry *e = &list->items[i];
    if (i > 0 && compare_arrays(&e[-1].lost, &e->lost) == 0) continue; /* the first of equals counts */
    BASE_PUT(out, "  ");
    put_named(out, e->lost);
    BASE_PUT(out, " : ");
    put_named(out, e->found);
    if (e->module) {
      BASE_PUT(out, ",\n  \"\n");
      base_put(out, e->module->s, e->module->n);
      BASE_PUT(out, "\n  \"");
    }
    base_putc(out, '\n');
  }
  base_putc(out, '}');
}

int text_read_recovery_table(text_reader *r, const base_istr **out) {
  recovery_list list = {0};
  int status = read_recovery_entries(r, &list);
  if (status == 0 && list.n) {
    qsort(list.items, list.n, sizeof *list.items, compare_entries);
    r->bytes.n = 0;
    put_entries(&r->bytes, &list);
    *out = r->bytes.failed ? NULL : ir_intern(r->m, r->bytes.s, r->bytes.n);
    if (!*out) status = text_no_memory(r);
  }
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}
