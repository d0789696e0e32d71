/* Writing a sharding down on a value, as a program's author would. */
#include "../../text/mlir/mlir.h"
#include "explain.h"
#include "../round_trip/round_trip.h"

typedef struct note_place {
  base_slice name, function; /* function: "": the main one, or the only one that has such a value */
  const ir_computation *main;
  ir_value found;
  uint32_t n_main, n; /* so many of that name, in the main function and in all */
  uint32_t lines[2];  /* of the first ones */
} note_place;

static const ir_computation *note_function(const ir_op *op) {
  const ir_computation *c = op->parent;
  while (c->owner) c = c->owner->parent;
  return c;
}

static int note_find(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  note_place *p = ctx;
  (void)err;
  if (n != p->name.n || memcmp(name, p->name.p, n) != 0 || v.op->opcode == IR_OP_SDY_MESH) return 0;
  const ir_computation *f = note_function(v.op);
  const bool named = p->function.n != 0;
  if (named && (f->name->n != p->function.n || memcmp(f->name->s, p->function.p, f->name->n) != 0)) return 0;
  bool main = f == p->main && !named;
  if (main ? p->n_main == 0 : p->n_main + p->n == 0) p->found = v;
  if (p->n < 2) p->lines[p->n] = v.op->line;
  p->n++;
  p->n_main += main;
  return 0;
}

/* "@f/%3": value %3 of the function @f. */
static note_place note_read_name(const ir_module *m, const char *value) {
  note_place p = {.name = {value, strlen(value)}, .main = shc_main(m, true)};
  const char *slash = value[0] == '@' ? strrchr(value, '/') : NULL;
  if (!slash) return p;
  p.function = (base_slice){value + 1, (size_t)(slash - value) - 1};
  p.name = (base_slice){slash + 1, p.name.n - (size_t)(slash - value) - 1};
  return p;
}

static int note_check(const note_place *p, const char *value, xlac_error *err) {
  if (p->n_main == 1 || p->n == 1) return 0;
  if (p->n == 0) {
    int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "the program has no value %.80s", value);
    return base_hint(err, status,
                     "values are called %%3, %%3#1 or %%arg0 as in the text of the module, @f/%%3 in a "
                     "function but main, or result 0");
  }
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "%.80s is the name of %u values, in lines %u and %u among others",
                         value, (unsigned)(p->n_main ? p->n_main : p->n), p->lines[0], p->lines[1]);
  return base_hint(err, status,
                   "@f/%%3 is the value %%3 of the function @f; in regions side by side names are used "
                   "again, and can't be told apart");
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
  note_place p = note_read_name(m, value);
  int64_t result = note_result(value, strlen(value));
  TRY(note_read(m, sharding, strlen(sharding), &s, err));
  if (result >= 0) {
    TRY(note_on_result(m, result, s, err));
    return shc_verify(m, err);
  }
  TRY(text_name_mlir_values(m, note_find, &p, err));
  TRY(note_check(&p, value, err));
  TRY(opt_rewriter_init(&rw, m, err));
  int status = note_on_value(&rw, p.found, s);
  opt_rewriter_free(&rw);
  return status == 0 ? shc_verify(m, err) : status;
}
