/* Writing a sharding down on a value, as a program's author would. */
#include "../text/mlir.h"
#include "explain.h"
#include "round_trip.h"

typedef struct note_place {
  const char *name;
  size_t n;
  ir_value found;
} note_place;

static int note_find(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  note_place *p = ctx;
  (void)err;
  if (n == p->n && memcmp(name, p->name, n) == 0 && v.op->opcode != IR_OP_SDY_MESH) p->found = v;
  return 0;
}

/* "result 2": of the main function; -1 for other names. */
static int64_t note_result(const char *name, size_t n) {
  static const char word[] = "result ";
  int64_t i = 0;
  if (n <= sizeof word - 1 || n > sizeof word + 8 || memcmp(name, word, sizeof word - 1) != 0) return -1;
  for (size_t k = sizeof word - 1; k < n; k++) {
    if (name[k] < '0' || name[k] > '9') return -1;
    i = i * 10 + (name[k] - '0');
  }
  return i;
}

static int note_on_result(ir_module *m, int64_t i, const sdy_sharding *s, xlac_error *err) {
  ir_computation *f = shc_main(m, true);
  if (!f || i >= f->n_results)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the main function has no result %lld", (long long)i);
  if (s) return sdy_set_result(f, (uint32_t)i, s) ? 0 : base_oom(err, "a sharding");
  const ir_mdict *d = ir_mdict_with(m, ir_result_attrs(f, (uint32_t)i), "sdy.sharding", NULL);
  return d && ir_set_result_attrs(f, (uint32_t)i, d) ? 0 : base_oom(err, "a sharding");
}

/* All that read v read a constraint on it. */
static int note_constraint(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  shc_at_value(rw, v);
  ir_value c = opt_make(rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(v), 1, &v);
  opt_set(rw, c, "sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  shc_replace_value(rw, v, c, c.op);
  return opt_rewriter_status(rw);
}

static int note_on_value(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  bool argument = v.op->opcode == IR_OP_PARAMETER && v.op->parent->kind == IR_FUNCTION && !v.op->parent->owner;
  const ir_mattr *a = s ? sdy_attr(rw->m, SDY_SHARDING, s) : NULL;
  if (s && !a) return base_oom(rw->err, "a sharding");
  if (argument) return ir_m_set(v.op, "sdy.sharding", a) ? 0 : base_oom(rw->err, "a sharding");
  if (v.op->opcode != IR_OP_SDY_SHARDING_CONSTRAINT) return s ? note_constraint(rw, v, s) : 0;
  if (s) return ir_m_set(v.op, "sharding", a) ? 0 : base_oom(rw->err, "a sharding");
  opt_replace_one(rw, v.op, opt_operand(v.op, 0));
  return opt_rewriter_status(rw);
}

static int note_read(ir_module *m, const char *text, size_t n, const sdy_sharding **out, xlac_error *err) {
  const ir_mattr *a = NULL;
  *out = NULL;
  if (n == 0) return 0;
  TRY(text_parse_mlir_attr(m, text, n, &a, err));
  *out = sdy_of(a, SDY_SHARDING);
  return *out ? 0
              : base_fail(err, XLAC_E_BAD_ARGUMENT, "\"%.*s\" is no #sdy.sharding<...>", n < 80 ? (int)n : 80, text);
}

int shard_annotate(ir_module *m, const char *value, const char *sharding, xlac_error *err) {
  opt_rewriter rw;
  const sdy_sharding *s = NULL;
  note_place p = {.name = value, .n = strlen(value)};
  int64_t result = note_result(value, p.n);
  TRY(note_read(m, sharding, strlen(sharding), &s, err));
  if (result >= 0) {
    TRY(note_on_result(m, result, s, err));
    return shc_verify(m, err);
  }
  TRY(text_name_mlir_values(m, note_find, &p, err));
  if (!p.found.op) {
    int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "the program has no value %.80s", value);
    return base_hint(err, status, "values are called %%3, %%3#1 or %%arg0 as in the text of the module, or result 0");
  }
  TRY(opt_rewriter_init(&rw, m, err));
  int status = note_on_value(&rw, p.found, s);
  opt_rewriter_free(&rw);
  return status == 0 ? shc_verify(m, err) : status;
}
