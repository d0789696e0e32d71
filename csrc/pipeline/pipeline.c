/* The registry, the pipeline syntax and its run. The text is read whole before anything runs, so that a mistyped name
 * at its end costs no work. Errors give the column; unknown names come with the nearest ones that are known.
 * pipeline := [pass ("," pass)*]; pass := name ["{" (option ["=" value])* "}"] | anchor "(" pipeline ")"
 * For example "canonicalize,func.func(sdy-insert-explicit-reshards{enable-full-version=true})". */
#include <stdio.h>

#include "../ir/stablehlo/stablehlo.h"
#include "../passes/effects.h"
#include "pipeline.h"

#define PASS(name_, fn_, form_, options_, doc_) extern opt_pass_fn fn_;
#include "passes.def"
#undef PASS

/* passes.def is read twice: for the declarations of the functions, and for the rows. */
#define OPTIONS(...)          \
  (const opt_option_info[]) { \
    __VA_ARGS__ {             \
      .name = NULL            \
    }                         \
  }
#define BOOL(name_, otherwise_, doc_) {name_, OPT_BOOL, otherwise_, 0, 1, doc_},
#define INT(name_, otherwise_, min_, max_, doc_) {name_, OPT_INT, otherwise_, min_, max_, doc_},
#define TEXT(name_, doc_) {name_, OPT_TEXT, 0, 0, 0, doc_},
#define PASS(name_, fn_, form_, options_, doc_) {name_, fn_, IR_FORM_##form_, options_, doc_},
const opt_pass_info pipeline_passes[] = {
#include "passes.def"
    {.name = NULL}};
#undef PASS
#undef TEXT
#undef INT
#undef BOOL
#undef OPTIONS

/* A linear search: pipelines are short, and the table has some hundred rows. */
const opt_pass_info *pipeline_pass_find(const char *name, size_t n, uint8_t form) {
  assert(name != NULL || n == 0);
  const opt_pass_info *other = NULL;
  for (const opt_pass_info *p = pipeline_passes; p->name; p++) {
    if (strlen(p->name) != n || memcmp(p->name, name, n) != 0) continue;
    if (p->form == form) return p;
    other = p;
  }
  return other;
}

BASE_VEC(pipeline_steps, opt_args);

/* p moves from text to end; err columns are counted from text. depth: of anchors around. */
typedef struct pipeline_reader {
  const char *text, *p, *end;
  base_alloc alloc;
  uint8_t form; /* ir_form of the module */
  uint32_t depth;
  pipeline_steps steps;
  xlac_error *err;
} pipeline_reader;

enum { PIPELINE_MAX_DEPTH = 16 };

static int pipeline_fail(pipeline_reader *r, const char *at, const char *format, ...) BASE_PRINTF(3, 4);
/* at: where in the text. */
static int pipeline_fail(pipeline_reader *r, const char *at, const char *format, ...) {
  assert(at >= r->text && at <= r->end);
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(r->err, XLAC_E_BAD_PIPELINE, 1, (uint32_t)(at - r->text) + 1, "", "%s", message);
}

static void pipeline_blanks(pipeline_reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

/* Skips blanks, and c where it is next. */
static bool pipeline_take(pipeline_reader *r, char c) {
  pipeline_blanks(r);
  if (r->p == r->end || *r->p != c) return false;
  r->p++;
  return true;
}

static bool pipeline_is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* Empty where no name begins; values of options are read by it too. */
static base_slice pipeline_name(pipeline_reader *r) {
  pipeline_blanks(r);
  const char *from = r->p;
  while (r->p < r->end && pipeline_is_name(*r->p)) r->p++;
  return (base_slice){from, (size_t)(r->p - from)};
}

/* Levenshtein's edit distance, one row at a time; 64, which is too far for any guess, where a name is too long for
 * it. */
static size_t pipeline_distance(base_slice a, const char *b) {
  size_t n = strlen(b), row[64];
  if (n >= 63 || a.n >= 63) return 64;
  for (size_t j = 0; j <= n; j++) row[j] = j;
  for (size_t i = 1; i <= a.n; i++) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t change = corner + (a.p[i - 1] != b[j - 1]), drop = row[j] + 1, add = row[j - 1] + 1;
      corner = row[j];
      row[j] = change < drop ? change : drop;
      if (add < row[j]) row[j] = add;
    }
  }
  return row[n];
}

enum { PIPELINE_GUESSES = 3, PIPELINE_SHORT_LIST = 12 };

/* The names nearest to a wrong one, the best first, and how many there are in all. */
typedef struct pipeline_guess {
  base_slice wrong;
  const char *best[PIPELINE_GUESSES];
  size_t distance[PIPELINE_GUESSES], n_best, n;
  const char *known[PIPELINE_SHORT_LIST]; /* all of them, where they are few */
} pipeline_guess;

/* Whether a name begins with what was written: cut short rather than mistyped. */
static bool pipeline_begins(base_slice wrong, const char *name) {
  return wrong.n >= 3 && strncmp(wrong.p, name, wrong.n) == 0;
}

/* Keeps the best few in order. A third of the letters may be wrong, and one more. */
static void pipeline_guess_near(pipeline_guess *g, const char *name) {
  size_t distance = pipeline_begins(g->wrong, name) ? 1 : pipeline_distance(g->wrong, name), at = g->n_best;
  if (distance > g->wrong.n / 3 + 1) return;
  while (at > 0 && g->distance[at - 1] > distance) at--;
  if (at == PIPELINE_GUESSES) return;
  if (g->n_best < PIPELINE_GUESSES) g->n_best++;
  for (size_t i = g->n_best - 1; i > at; i--) g->best[i] = g->best[i - 1], g->distance[i] = g->distance[i - 1];
  g->best[at] = name;
  g->distance[at] = distance;
}

/* A name that could have been meant: counted, kept where they are few, and compared. */
static void pipeline_guess_add(pipeline_guess *g, const char *name) {
  if (g->n < PIPELINE_SHORT_LIST) g->known[g->n] = name;
  g->n++;
  pipeline_guess_near(g, name);
}

/* "dce, cse" */
static const char *pipeline_names(const char *const *names, size_t n, char *buf, size_t size) {
  size_t at = 0;
  buf[0] = 0;
  for (size_t i = 0; i < n && at < size; i++)
    at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", names[i]);
  return buf;
}

/* what: "passes for HLO" or "options" */
static int pipeline_hint(pipeline_reader *r, const pipeline_guess *g, const char *what, int status) {
  char best[160], all[240], near[200] = "";
  if (g->n_best)
    snprintf(near, sizeof near, "did you mean %s? ", pipeline_names(g->best, g->n_best, best, sizeof best));
  if (g->n == 0) return base_hint(r->err, status, "there are no %s", what);
  if (g->n <= PIPELINE_SHORT_LIST)
    return base_hint(r->err, status, "%s%s are: %s", near, what, pipeline_names(g->known, g->n, all, sizeof all));
  return base_hint(r->err, status,
                   "%sthere are %zu %s: `xlac opt --list-passes`, xlac.passes() and docs/passes.md list them", near,
                   g->n, what);
}

/* Counts only passes for the module's form, but guesses among the others where none is near. */
static int pipeline_unknown_pass(pipeline_reader *r, base_slice name) {
  pipeline_guess g = {.wrong = name};
  for (const opt_pass_info *p = pipeline_passes; p->name; p++)
    if (p->form == r->form) pipeline_guess_add(&g, p->name);
  bool other = g.n_best == 0; /* then perhaps one for the other form, which says so where it is written in full */
  for (const opt_pass_info *p = pipeline_passes; other && p->name; p++)
    if (p->form != r->form) pipeline_guess_near(&g, p->name);
  int n = name.n < 80 ? (int)name.n : 80;
  return pipeline_hint(r, &g, r->form == IR_FORM_HLO ? "passes for HLO" : "passes for StableHLO",
                       pipeline_fail(r, name.p, "unknown pass \"%.*s\"", n, name.p));
}

static int pipeline_unknown_option(pipeline_reader *r, const opt_pass_info *pass, base_slice name) {
  pipeline_guess g = {.wrong = name};
  for (const opt_option_info *o = pass->options; o->name; o++) pipeline_guess_add(&g, o->name);
  int n = name.n < 80 ? (int)name.n : 80;
  return pipeline_hint(r, &g, "options",
                       pipeline_fail(r, name.p, "pass %s has no option \"%.*s\"", pass->name, n, name.p));
}

/* true, false, 1 or 0, as MLIR's options have them. */
static bool pipeline_read_bool(base_slice text, int64_t *out) {
  *out = base_slice_is(text, "true") || base_slice_is(text, "1");
  return *out || base_slice_is(text, "false") || base_slice_is(text, "0");
}

/* A decimal number that fits an int64, with a sign or without. */
static bool pipeline_read_int(base_slice text, int64_t *out) {
  bool negative = text.n && text.p[0] == '-';
  int64_t v = 0;
  for (size_t i = negative; i < text.n; i++) {
    if (text.p[i] < '0' || text.p[i] > '9' || !base_mul_i64(v, 10, &v) || !base_add_i64(v, text.p[i] - '0', &v))
      return false;
  }
  *out = negative ? -v : v;
  return text.n > negative;
}

/* A text goes to the next blank or brace outside of brackets: "types=tensor<4xf32>,f32". The > of an arrow closes
 * nothing. */
static int pipeline_text(pipeline_reader *r, base_slice *out) {
  const char *from = r->p;
  uint32_t depth = 0;
  for (; r->p < r->end; r->p++) {
    char c = *r->p;
    if (depth == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '}')) break;
    if (c == '<' || c == '{' || c == '[' || c == '(') depth++;
    bool arrow = c == '>' && r->p > from && r->p[-1] == '-';
    if ((c == '>' && !arrow) || c == '}' || c == ']' || c == ')') {
      if (depth == 0) return pipeline_fail(r, r->p, "a closing bracket without its opening one");
      depth--;
    }
  }
  *out = (base_slice){from, (size_t)(r->p - from)};
  return depth == 0 ? 0 : pipeline_fail(r, from, "a bracket is not closed");
}

/* Ranges of numbers are checked here, so that passes need not. */
static int pipeline_value(pipeline_reader *r, opt_args *step, uint32_t index) {
  assert(index < OPT_MAX_OPTIONS);
  const opt_option_info *o = &step->pass->options[index];
  if (o->kind == OPT_TEXT) return pipeline_text(r, &step->texts[index]);
  int64_t *value = &step->values[index];
  base_slice text = pipeline_name(r);
  if (o->kind == OPT_BOOL && !pipeline_read_bool(text, value))
    return pipeline_fail(r, text.p, "option %s of %s is true or false", o->name, step->pass->name);
  if (o->kind == OPT_INT && (!pipeline_read_int(text, value) || *value < o->min || *value > o->max))
    return pipeline_fail(r, text.p, "option %s of %s is a number from %lld to %lld", o->name, step->pass->name,
                         (long long)o->min, (long long)o->max);
  return 0;
}

/* No option where one should be: mostly a brace that stays open, or a comma as between passes. */
static int pipeline_no_option(pipeline_reader *r, const opt_pass_info *pass) {
  assert(pass);
  int status = pipeline_fail(r, r->p, "expected an option's name or '}'");
  if (r->p == r->end) return base_hint(r->err, status, "close the options of %s with '}'", pass->name);
  return *r->p == ',' ? base_hint(r->err, status, "blanks stand between options, '}' after the last") : status;
}

/* A flag alone stands for true. */
static int pipeline_option(pipeline_reader *r, opt_args *step) {
  assert(step->pass);
  base_slice name = pipeline_name(r);
  const opt_option_info *o = step->pass->options;
  if (name.n == 0) return pipeline_no_option(r, step->pass);
  while (o->name && !base_slice_is(name, o->name)) o++;
  if (!o->name) return pipeline_unknown_option(r, step->pass, name);
  uint32_t index = (uint32_t)(o - step->pass->options);
  if (pipeline_take(r, '=')) return pipeline_value(r, step, index);
  if (o->kind != OPT_BOOL) return pipeline_fail(r, r->p, "expected '=' and a value after %s", o->name);
  step->values[index] = 1;
  return 0;
}

/* The most likely mistake with a known name: the module is in the other form. */
static int pipeline_wrong_form(pipeline_reader *r, const opt_pass_info *pass, base_slice name) {
  bool mlir = r->form == IR_FORM_MLIR;
  int status = pipeline_fail(r, name.p, "pass %s works on %s, and this module is %s", pass->name,
                             mlir ? "HLO" : "StableHLO", mlir ? "StableHLO" : "HLO");
  return base_hint(r->err, status, "translate the module first: to_%s()", mlir ? "hlo" : "stablehlo");
}

/* Options that are not given have their defaults; one that is given twice, its last value. */
static int pipeline_pass(pipeline_reader *r, base_slice name) {
  opt_args step = {.pass = pipeline_pass_find(name.p, name.n, r->form)};
  if (!step.pass) return pipeline_unknown_pass(r, name);
  if (step.pass->form != r->form) return pipeline_wrong_form(r, step.pass, name);
  for (uint32_t i = 0; step.pass->options[i].name; i++) {
    assert(i < OPT_MAX_OPTIONS);
    step.values[i] = step.pass->options[i].otherwise;
  }
  if (pipeline_take(r, '{')) {
    while (!pipeline_take(r, '}')) TRY(pipeline_option(r, &step));
  }
  return BASE_VEC_PUSH(r->alloc, &r->steps, step) ? 0 : base_oom(r->err, "a pass pipeline");
}

static int pipeline_list(pipeline_reader *r);

/* "builtin.module(...)" and "func.func(...)" say what their passes run on; ours know that themselves.
 * Passes run on the module whatever is around them: Shardy's function passes go through all functions. */
static int pipeline_anchor(pipeline_reader *r, base_slice name) {
  if (!base_slice_is(name, "builtin.module") && !base_slice_is(name, "any") && !base_slice_is(name, "func.func"))
    return pipeline_fail(r, name.p,
                         "a pipeline is a list of passes, maybe inside builtin.module(...) or func.func(...)");
  if (++r->depth > PIPELINE_MAX_DEPTH) return pipeline_fail(r, name.p, "a pipeline nested too deep");
  TRY(pipeline_list(r));
  r->depth--;
  return pipeline_take(r, ')') ? 0 : pipeline_fail(r, r->p, "expected ',' or ')'");
}

/* An empty list is a pipeline too. */
static bool pipeline_at_end(pipeline_reader *r) {
  pipeline_blanks(r);
  return r->p == r->end || (r->depth && *r->p == ')');
}

/* An empty list is a pipeline too: it does nothing. */
static int pipeline_list(pipeline_reader *r) {
  if (pipeline_at_end(r)) return 0;
  do {
    base_slice name = pipeline_name(r);
    if (name.n == 0) return pipeline_fail(r, r->p, "expected the name of a pass");
    if (pipeline_take(r, '(')) {
      TRY(pipeline_anchor(r, name));
    } else {
      TRY(pipeline_pass(r, name));
    }
  } while (pipeline_take(r, ','));
  return 0;
}

static int pipeline_read(pipeline_reader *r) {
  TRY(pipeline_list(r));
  pipeline_blanks(r);
  if (r->p == r->end) return 0;
  return pipeline_fail(r, r->p, "expected ',' or the end of the pipeline, found '%.1s'", r->p);
}

/* Ops in the order their text would give them, so that printing, reading and printing again gives the same text. */
static int pipeline_sort(ir_module *m, xlac_error *err) {
  base_arena scratch;
  base_arena_init(&scratch, m->alloc);
  bool ok = true;
  for (ir_computation *c = m->first; c && ok; c = c->next) ok = opt_sort_ops(c, &scratch);
  base_arena_free(&scratch);
  return ok ? 0 : base_oom(err, "a pass");
}

/* As strict after each pass as before the first, which the module's own mark tells. */
static int pipeline_verify(ir_module *m, bool lenient, xlac_error *err) {
  if (m->form == IR_FORM_MLIR) return stablehlo_verify(m, err);
  ir_verify_options options = {.xla_compat = lenient};
  return ir_verify(m, &options, err);
}

/* Where a pass has changed the module, its order is made printable again, before `after` sees it. */
static int pipeline_run_steps(ir_module *m, const pipeline_steps *steps, const opt_pipeline_options *options,
                              xlac_error *err) {
  if (!options || !options->valid) TRY(pipeline_verify(m, true, err));
  bool lenient = ir_verified_as(m) < IR_VERIFIED;
  for (uint32_t i = 0; i < steps->n; i++) {
    const opt_args *step = &steps->items[i];
    assert(step->pass && step->pass->form == m->form);
    uint64_t edits = m->edits;
    TRY(step->pass->fn(m, step, err));
    if (m->edits > edits && m->form == IR_FORM_HLO) TRY(pipeline_sort(m, err));
    if (options && options->after) TRY(options->after(options->ctx, step->pass->name, i, m, err));
    if (options && options->verify_each && m->edits > edits) {
      int status = pipeline_verify(m, lenient, err);
      if (status != 0) return base_hint(err, status, "pass %u, %s, left the module broken", i + 1, step->pass->name);
    }
  }
  return 0;
}

/* Steps hold slices of the text, which lives as long as the call. */
int pipeline_run_text(ir_module *m, const char *text, size_t n, const opt_pipeline_options *options, xlac_error *err) {
  pipeline_reader r = {.text = text, .p = text, .end = text + n, .alloc = m->alloc, .form = m->form, .err = err};
  int status = pipeline_read(&r);
  if (status == 0) status = pipeline_run_steps(m, &r.steps, options, err);
  BASE_VEC_FREE(m->alloc, &r.steps);
  return status;
}
