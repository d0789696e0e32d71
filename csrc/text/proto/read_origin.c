/* Origins, of which the IR keeps the text. */
#include "../hlo/print.h"
#include "read.h"

static int put_original(proto_reader *r, base_text *out, proto_message in, uint32_t number, bool always_named) {
  proto_message array;
  uint32_t from;
  TRY(proto_open_sub(&r->s, in, number, &array));
  TRY(proto_list(&r->s, array, 2, &from));
  base_slice name = proto_bytes(&r->s, array, 1);
  base_putc(out, '{');
  if (name.n || always_named || r->s.numbers.n > from) {
    base_putc(out, '"');
    text_put_escaped(out, name.p, name.n);
    base_putc(out, '"');
  }
  if (r->s.numbers.n > from) {
    base_puts(out, " {");
    text_put_ints(out, r->s.numbers.items + from, r->s.numbers.n - from);
    base_putc(out, '}');
  }
  base_putc(out, '}');
  r->s.numbers.n = from;
  proto_close(&r->s, array);
  return 0;
}

typedef struct origin_walk {
  proto_reader *r;
  base_text *out;
  proto_message elements;
  int64_t path[IR_MAX_TYPE_DEPTH];
} origin_walk;

static int put_origin_leaf(origin_walk *w, uint32_t depth) {
  proto_reader *r = w->r;
  uint32_t at = w->elements.first;
  proto_field f;
  while (proto_next(&r->s, w->elements, 1, PROTO_LENGTH, &at, &f)) {
    proto_message e;
    uint32_t from;
    TRY(proto_open_field(&r->s, f, &e));
    TRY(proto_list(&r->s, e, 1, &from));
    bool here = r->s.numbers.n - from == depth;
    for (uint32_t i = 0; here && i < depth; i++) here = r->s.numbers.items[from + i] == w->path[i];
    r->s.numbers.n = from;
    bool has_array = here && proto_count(&r->s, e, 2, PROTO_LENGTH);
    if (has_array) TRY(put_original(r, w->out, e, 2, false));
    proto_close(&r->s, e);
    if (here) return has_array ? 0 : (base_puts(w->out, "{}"), 0);
  }
  return base_puts(w->out, "{}"), 0;
}

static int put_origin_tree(origin_walk *w, const ir_type *t, uint32_t depth) {
  if (!ir_is_tuple(t)) return put_origin_leaf(w, depth);
  assert(depth < IR_MAX_TYPE_DEPTH);
  base_putc(w->out, '(');
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i) base_puts(w->out, ", ");
    w->path[depth] = i;
    TRY(put_origin_tree(w, t->elements[i], depth + 1));
  }
  base_putc(w->out, ')');
  return 0;
}

enum { MAX_ORIGIN_WORK = 1 << 26 };

static int put_origin(proto_reader *r, base_text *out, proto_message origin, const ir_op *op) {
  origin_walk w = {.r = r, .out = out, .elements = origin};
  base_putc(out, '{');
  if (proto_int(&r->s, origin, 2)) {
    base_puts(out, "[synthetic_call]");
  } else if ((uint64_t)op->type->n_leaves * (origin.n + 1) > MAX_ORIGIN_WORK) {
    return proto_fail(&r->s, proto_place(r, origin), XLAC_E_TOO_LARGE,
                      "an origin of %u elements for a shape of %u leaves", origin.n, op->type->n_leaves);
  } else {
    TRY(put_origin_tree(&w, op->type, 0));
  }
  base_putc(out, '}');
  return out->failed ? proto_no_memory(&r->s) : 0;
}

int proto_read_origin_value(proto_reader *r, proto_message in, const ir_op *op, ir_attr *a) {
  proto_message origin;
  base_text text;
  TRY(proto_open_sub(&r->s, in, 88, &origin));
  base_text_init(&text, r->s.alloc);
  int status = put_origin(r, &text, origin, op);
  if (status == 0) status = proto_intern(r, text.s, text.n, &a->v.str);
  base_text_free(&text);
  TRY(status);
  proto_close(&r->s, origin);
  return 0;
}
