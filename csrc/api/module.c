/* Module handles: making, reading, printing, verifying, header facts.
 *
 * Reading guesses the format from the first bytes unless told: bytecode and protos by their form, MLIR by
 * how its text begins, HLO otherwise. Printing in the form that the module has not translates a copy. */
#include "api.h"

#include "../base/heed.h"
#include "../ir/names.h"
#include "../pipeline/for_hlo.h"
#include "../text/proto/proto.h"

/* A run waits for nobody and nobody for it: an edit that comes during one is an error of the caller's, not
 * a reason to block. */
int api_lock_edit(xlac_module *m, xlac_error *err) {
  assert(m && m->ir);
  api_lock(m);
  if (m->running == 0) return 0;
  api_unlock(m);
  return base_hint(err, base_fail(err, XLAC_E_EDIT, "module %s is being run by another thread", m->ir->name->s),
                   "edit a clone, or wait until the run has ended");
}

/* Where the reader or a pass was stopped by the thread's interrupt hook, ir may lack parts, so it is not
 * wrapped. */
int api_wrap(xlac_module **out, ir_module *ir, xlac_error *err) {
  assert(ir && out);
  xlac_module *m = base_malloc(base_alloc_libc, sizeof *m);
  if (base_heed_stopped()) { /* what there was no memory for may be missing where it is not needed */
    base_free(base_alloc_libc, m);
    ir_module_destroy(ir);
    return base_interrupted(err);
  }
  if (m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
    base_free(base_alloc_libc, m);
    ir_module_destroy(ir);
    return base_oom(err, "making a module");
  }
  m->ir = ir;
  m->running = 0;
  *out = m;
  return 0;
}

int api_check_texts(uint32_t n, const char *const *texts, const char *what, xlac_error *err) {
  for (uint32_t i = 0; i < n; i++)
    if (!texts[i]) return base_fail(err, XLAC_E_BAD_ARGUMENT, "%s %u is NULL", what, i);
  return 0;
}

/* `what` completes "... but %s is for HLO". */
int api_check_hlo(const ir_module *ir, const char *what, xlac_error *err) {
  if (ir->form == IR_FORM_HLO) return 0;
  return base_hint(
      err, base_fail(err, XLAC_E_BAD_ARGUMENT, "module %s is in MLIR form, but %s is for HLO", ir->name->s, what),
      "translate it to HLO first");
}

int api_check_whole(const ir_module *ir, xlac_error *err) {
  if (ir->form == IR_FORM_MLIR) return 0;
  if (ir->entry == NULL)
    return base_fail(err, XLAC_E_VERIFY_STRUCTURE, "module %s has no entry computation", ir->name->s);
  IR_FOR_COMPUTATIONS(c, ir) {
    if (c->n_results == 0)
      return base_hint(err, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "computation %s has no root", c->name->s),
                       "the module is still being built: set the root of every computation first");
  }
  return 0;
}

int api_give_text(base_text *t, char **text, size_t *n, xlac_error *err) {
  char *s = base_text_cstr(t);
  if (s == NULL || base_heed_stopped()) {
    base_text_free(t);
    return base_oom(err, "printing");
  }
  *text = s; /* the buffer's memory is the caller's now */
  if (n) *n = t->n;
  return 0;
}

/* Past blanks and comments to the end of them or of the text. Blanks, and comments to the end of the line,
 * as MLIR has them. */
static const char *past_blanks(const char *p, const char *end) {
  for (;;) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    if (end - p < 2 || p[0] != '/' || p[1] != '/') return p;
    while (p < end && *p != '\n') p++;
  }
}

/* Letters, digits and _.$- : a word of either language. */
static const char *past_name(const char *p, const char *end) {
  while (p < end && ((*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z') || *p == '_' || *p == '.' ||
                     *p == '$' || *p == '-'))
    p++;
  return p;
}

/* "%0 = stablehlo.add", "%0:2 = \"x.y\"": where HLO has a type after the sign. */
static bool names_mlir_op(const char *p, const char *end) {
  while (p < end && *p != '=' && *p != '(' && *p != '\n') p++;
  if (p == end || *p != '=') return false;
  p = past_blanks(p + 1, end);
  const char *e = past_name(p, end);
  return p < end && (*p == '"' || (memchr(p, '.', (size_t)(e - p)) && (e == end || *e != '[')));
}

/* How MLIR text begins, after blanks and comments: with a module or another op at its top (a word, then "@name"), a
 * quoted op, an alias, resources. HLO begins with words too, but they are followed by "=", "{", "(" or another word. */
static bool looks_like_mlir(const char *text, size_t n) {
  const char *end = text + n, *p = past_blanks(text, end);
  if (p == end) return false;
  if (*p == '#' || *p == '!' || *p == '"') return true;
  if (*p == '{') return end - p > 2 && memcmp(p, "{-#", 3) == 0;
  if (*p == '%') return names_mlir_op(p, end);
  const char *word = p, *e = past_name(p, end);
  size_t length = (size_t)(e - word);
  p = past_blanks(e, end);
  bool module =
      (length == 6 && memcmp(word, "module", 6) == 0) || (length == 14 && memcmp(word, "builtin.module", 14) == 0);
  if (module || (length == 9 && memcmp(word, "func.func", 9) == 0)) return true;
  return length > 0 && p < end && *p == '@';
}

/* Never AUTO. What is none of the others is read as HLO, whose reader then says what is wrong. */
static int32_t format_of(const char *text, size_t n) {
  if (text_is_bytecode(text, n)) return XLAC_FORMAT_MLIR_BYTECODE;
  if (text_is_proto(text, n)) return XLAC_FORMAT_HLO_PROTO;
  return looks_like_mlir(text, n) ? XLAC_FORMAT_MLIR : XLAC_FORMAT_HLO;
}

/* Options that a format does not know are not passed on. */
static int parse_as(int32_t format, ir_module **ir, const char *text, size_t n, const xlac_parse_options *options,
                    xlac_error *err) {
  assert(format != XLAC_FORMAT_AUTO);
  text_parse_options hlo = {.alloc = base_alloc_libc, .max_depth = options->max_depth, .strict = options->strict};
  mlir_parse_options mlir = {
      .alloc = base_alloc_libc, .max_depth = options->max_depth, .allow_unregistered = options->allow_unregistered};
  bytecode_parse_options bytecode = {.alloc = base_alloc_libc, .max_depth = options->max_depth};
  if (format == XLAC_FORMAT_MLIR) return text_parse_mlir(ir, text, n, &mlir, err);
  if (format == XLAC_FORMAT_MLIR_BYTECODE) return text_parse_bytecode(ir, text, n, &bytecode, err);
  return format == XLAC_FORMAT_HLO_PROTO ? text_parse_proto(ir, text, n, &hlo, err)
                                         : text_parse_hlo(ir, text, n, &hlo, err);
}

/* NULL with n = 0 is the empty text. The text may be freed afterwards: nothing points into it. */
int xlac_module_parse(xlac_module **out, const char *text, size_t n, const xlac_parse_options *given, xlac_error *err) {
  xlac_parse_options options;
  TRY(api_read_parse_options(&options, given, err));
  if (options.format < XLAC_FORMAT_AUTO || options.format > XLAC_FORMAT_MLIR_BYTECODE)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "format %d is unknown", options.format);
  if (options.max_depth > TEXT_MAX_DEPTH)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "max_depth %u is over %d", options.max_depth, (int)TEXT_MAX_DEPTH);
  if (!text && n) return base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no text");
  if (!text) text = "";
  ir_module *ir = NULL;
  int32_t format = options.format;
  if (format == XLAC_FORMAT_AUTO) format = format_of(text, n);
  TRY(parse_as(format, &ir, text, n, &options, err));
  return api_wrap(out, ir, err);
}

bool xlac_module_is_mlir(xlac_module *m) {
  api_lock(m);
  bool is = m->ir->form == IR_FORM_MLIR;
  api_unlock(m);
  return is;
}

bool xlac_module_is_verified(xlac_module *m) {
  api_lock(m);
  bool is = ir_verified_as(m->ir) != IR_UNVERIFIED;
  api_unlock(m);
  return is;
}

/* As HLO text has it: what HLO has no op for is expanded, on a copy. The caller's module stays as it is;
 * the lock is held. */
static int translate(ir_module **out, ir_module *m, xlac_error *err) {
  ir_module *copy = NULL;
  if (!pipeline_is_beyond_hlo(m)) return convert_to_hlo(out, m, NULL, err);
  TRY(stablehlo_verify(m, err));
  TRY(ir_module_clone(&copy, m, err));
  int status = pipeline_expand_for_hlo(copy, err);
  if (status == 0) status = convert_to_hlo(out, copy, NULL, err);
  ir_module_destroy(copy);
  return status;
}

/* A new module; the old one stays. */
int xlac_module_to_hlo(xlac_module **out, xlac_module *m, xlac_error *err) {
  ir_module *ir = NULL;
  api_lock(m);
  TRY(api_done(m, translate(&ir, m->ir, err)));
  return api_wrap(out, ir, err);
}

int xlac_module_to_stablehlo(xlac_module **out, xlac_module *m, xlac_error *err) {
  ir_module *ir = NULL;
  api_lock(m);
  TRY(api_done(m, convert_from_hlo(&ir, m->ir, err)));
  return api_wrap(out, ir, err);
}

/* HLO form, without computations. Names that HLO can't spell are made legal here, as XLA does. */
int xlac_module_create(xlac_module **out, const char *name, xlac_error *err) {
  ir_module *ir = NULL;
  TRY(api_check_text(name, "the name", err));
  TRY(ir_module_create(&ir, name, base_alloc_libc, err));
  if (!ir_is_name(name, strlen(name))) {
    const base_istr *legal = ir_legal_name(ir, name, strlen(name));
    if (legal) ir_set_module_name(ir, legal);
    if (!legal) ir_module_destroy(ir);
    if (!legal) return base_oom(err, "naming a module");
  }
  return api_wrap(out, ir, err);
}

int xlac_module_clone(xlac_module **out, xlac_module *m, xlac_error *err) {
  ir_module *ir = NULL;
  api_lock(m);
  TRY(api_done(m, ir_module_clone(&ir, m->ir, err)));
  return api_wrap(out, ir, err);
}

/* Nobody may use handles of it afterwards; a module that is being run may not be destroyed. */
void xlac_module_destroy(xlac_module *m) {
  if (m == NULL) return;
  assert(m->running == 0);
  ir_module_destroy(m->ir);
  pthread_mutex_destroy(&m->lock);
  base_free(base_alloc_libc, m);
}

/* --- printing and verifying --- */

/* Also the check of numbers that come from callers. */
static int inner_print_options(const xlac_print_options *options, text_print_options *out, xlac_error *err) {
  if (options->mode < XLAC_PRINT_DEFAULT || options->mode > XLAC_PRINT_FINGERPRINT)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "print mode %d is unknown", options->mode);
  if (options->indent > 1000) return base_fail(err, XLAC_E_BAD_ARGUMENT, "indent %u is over 1000", options->indent);
  *out = (text_print_options){.mode = (text_mode)options->mode,
                              .elide_large_constants = options->elide_large_constants,
                              .operand_shapes = options->operand_shapes,
                              .no_metadata = options->no_metadata,
                              .no_ids = options->no_ids,
                              .indent = options->indent};
  return 0;
}

/* c or op or neither: the part to print. */
static int print_mlir_part(xlac_module *m, const ir_computation *c, const ir_op *op, const xlac_print_options *options,
                           char **text, size_t *n, xlac_error *err) {
  mlir_print_options inner = {.generic = options->generic, .locations = options->locations};
  base_text t;
  if (c) return base_fail(err, XLAC_E_BAD_ARGUMENT, "a function or region is printed with its module only");
  if (op) TRY(api_check_live(op, err));
  base_text_init(&t, base_alloc_libc);
  int status = op ? text_print_mlir_op(&t, op, &inner, err) : text_print_mlir(&t, m->ir, &inner, err);
  if (status == 0) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return status;
}

/* Prints the module, or one part of it. In the module's own form. */
static int print_part(xlac_module *m, const ir_computation *c, const ir_op *op, const xlac_print_options *options,
                      char **text, size_t *n, xlac_error *err) {
  text_print_options inner;
  TRY(inner_print_options(options, &inner, err));
  if (m->ir->form == IR_FORM_MLIR) return print_mlir_part(m, c, op, options, text, n, err);
  TRY(api_check_whole(m->ir, err));
  if (op) TRY(api_check_live(op, err));
  if (c) TRY(api_check_live_computation(c, err));
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = op  ? text_print_op(&t, op, &inner, err)
               : c ? text_print_computation(&t, c, &inner, err)
                   : text_print_hlo(&t, m->ir, &inner, err);
  if (status != 0) {
    base_text_free(&t);
    return status;
  }
  return api_give_text(&t, text, n, err);
}

/* The other form's text. */
static int print_translated(xlac_module *m, const xlac_print_options *options, char **text, size_t *n,
                            xlac_error *err) {
  bool mlir = m->ir->form == IR_FORM_MLIR;
  mlir_print_options stable = {.generic = options->generic, .locations = options->locations};
  text_print_options inner;
  ir_module *ir = NULL;
  base_text t;
  TRY(inner_print_options(options, &inner, err));
  TRY(mlir ? translate(&ir, m->ir, err) : convert_from_hlo(&ir, m->ir, err));
  base_text_init(&t, base_alloc_libc);
  int status = mlir ? text_print_hlo(&t, ir, &inner, err) : text_print_mlir(&t, ir, &stable, err);
  ir_module_destroy(ir);
  if (status == 0) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return status;
}

/* Binary formats have functions of their own. AUTO is the module's own form. */
static int check_print_format(const xlac_print_options *options, xlac_error *err) {
  int32_t format = options->format;
  if (format == XLAC_FORMAT_AUTO || format == XLAC_FORMAT_HLO || format == XLAC_FORMAT_MLIR) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "format %d is none to print in", format);
}

static int print_module(xlac_module *m, const xlac_print_options *options, char **text, size_t *n, xlac_error *err) {
  int32_t own = m->ir->form == IR_FORM_MLIR ? XLAC_FORMAT_MLIR : XLAC_FORMAT_HLO;
  int32_t format = options->format;
  TRY(check_print_format(options, err));
  bool other = format != XLAC_FORMAT_AUTO && format != own;
  return other ? print_translated(m, options, text, n, err) : print_part(m, NULL, NULL, options, text, n, err);
}

int xlac_module_print(xlac_module *m, const xlac_print_options *given, char **text, size_t *n, xlac_error *err) {
  xlac_print_options options;
  TRY(api_read_print_options(&options, given, err));
  api_lock(m);
  return api_done(m, print_module(m, &options, text, n, err));
}

/* HloModuleProto, as XLA writes it. */
static int serialize_locked(xlac_module *m, char **bytes, size_t *n, xlac_error *err) {
  base_text t;
  TRY(api_check_hlo(m->ir, "a proto", err));
  TRY(api_check_whole(m->ir, err));
  base_text_init(&t, base_alloc_libc);
  int status = text_print_proto(&t, m->ir, err);
  if (status == 0) return api_give_text(&t, bytes, n, err);
  base_text_free(&t);
  return status;
}

int xlac_module_serialize(xlac_module *m, int32_t format, char **bytes, size_t *n, xlac_error *err) {
  if (format != XLAC_FORMAT_HLO_PROTO)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "format %d is not a binary one", format);
  api_lock(m);
  return api_done(m, serialize_locked(m, bytes, n, err));
}

/* Portable StableHLO: VHLO bytecode of the version asked for,
 * "1.17.0"; NULL: the newest that current readers take, too. */
static int artifact_locked(xlac_module *m, const char *version, char **bytes, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = text_write_bytecode(&t, m->ir, version, err);
  if (status == 0) return api_give_text(&t, bytes, n, err);
  base_text_free(&t);
  return status;
}

int xlac_module_write_artifact(xlac_module *m, const char *version, char **bytes, size_t *n, xlac_error *err) {
  api_lock(m);
  return api_done(m, artifact_locked(m, version, bytes, n, err));
}

int xlac_computation_print(xlac_module *m, xlac_computation *c, const xlac_print_options *given, char **text, size_t *n,
                           xlac_error *err) {
  xlac_print_options options;
  TRY(api_read_print_options(&options, given, err));
  api_lock(m);
  return api_done(m, print_part(m, api_computation(c), NULL, &options, text, n, err));
}

int xlac_op_print(xlac_module *m, xlac_op *op, const xlac_print_options *given, char **text, size_t *n,
                  xlac_error *err) {
  xlac_print_options options;
  TRY(api_read_print_options(&options, given, err));
  api_lock(m);
  return api_done(m, print_part(m, NULL, api_op(op), &options, text, n, err));
}

/* Structure first: the verifier relies on an entry and on roots. */
static int verify_locked(xlac_module *m, const xlac_verify_options *options, xlac_error *err) {
  ir_verify_options inner = {.xla_compat = options->xla_compat, .mixed_floats = options->mixed_floats};
  if (m->ir->form == IR_FORM_MLIR) return stablehlo_verify(m->ir, err);
  TRY(api_check_whole(m->ir, err));
  return ir_verify(m->ir, &inner, err);
}

int xlac_module_verify(xlac_module *m, const xlac_verify_options *given, xlac_error *err) {
  xlac_verify_options options;
  TRY(api_read_verify_options(&options, given, err));
  api_lock(m);
  return api_done(m, verify_locked(m, &options, err));
}

/* In HLO form
 * whatever its ops and computations are called and in whatever order they stand (text_fingerprint); in MLIR form
 * a hash of the printed text. */
static int fingerprint_locked(xlac_module *m, uint64_t *out, xlac_error *err) {
  assert(out);
  const mlir_print_options options = {.generic = false};
  base_text t;
  if (m->ir->form != IR_FORM_MLIR) {
    TRY(api_check_whole(m->ir, err));
    return text_fingerprint(out, m->ir, err);
  }
  base_text_init(&t, base_alloc_libc);
  int status = text_print_mlir(&t, m->ir, &options, err);
  if (status == 0) *out = text_hash(t.s, t.n);
  base_text_free(&t);
  return status;
}

int xlac_module_fingerprint(xlac_module *m, uint64_t *out, xlac_error *err) {
  api_lock(m);
  return api_done(m, fingerprint_locked(m, out, err));
}

/* --- header facts --- */

/* n_bytes: of the module's arena, dropped lists and removed ops included. */
void xlac_module_stats(xlac_module *m, xlac_stats *out) {
  xlac_stats stats = {0};
  api_lock(m);
  IR_FOR_COMPUTATIONS(c, m->ir) {
    stats.n_computations++;
    stats.n_ops += c->n_ops;
  }
  stats.n_bytes = m->ir->arena.used;
  api_unlock(m);
  *out = stats;
}

/* The module's memory; a rename leaves the old text where it is. */
const char *xlac_module_name(xlac_module *m) {
  api_lock(m);
  const char *name = m->ir->name->s;
  api_unlock(m);
  return name;
}

static int set_name_locked(xlac_module *m, const char *name, xlac_error *err) {
  if (m->ir->form == IR_FORM_HLO) TRY(api_check_name(name, "a module", err));
  const base_istr *s = ir_intern(m->ir, name, strlen(name));
  if (s == NULL) return base_oom(err, "naming a module");
  ir_set_module_name(m->ir, s);
  return 0;
}

int xlac_module_set_name(xlac_module *m, const char *name, xlac_error *err) {
  TRY(api_check_text(name, "the name", err));
  TRY(api_lock_edit(m, err));
  return api_done(m, set_name_locked(m, name, err));
}

void xlac_module_config(xlac_module *m, xlac_config *out) {
  api_lock(m);
  const ir_config *c = &m->ir->config;
  *out = (xlac_config){.is_scheduled = c->is_scheduled,
                       .has_entry_layout = c->has_entry_layout,
                       .replica_count = c->replica_count,
                       .num_partitions = c->num_partitions,
                       .n_aliases = c->n_aliases,
                       .n_donors = c->n_donors,
                       .n_frontend_attributes = c->frontend_attributes ? c->frontend_attributes->n : 0};
  api_unlock(m);
}

/* In the order of the text; false past the end. */
bool xlac_module_frontend_attribute(xlac_module *m, uint32_t index, const char **key, const char **value) {
  api_lock(m);
  const ir_dict *d = m->ir->config.frontend_attributes;
  bool found = d && index < d->n;
  if (found) {
    *key = d->v[index].key->s;
    *value = d->v[index].value->s;
  }
  api_unlock(m);
  return found;
}
