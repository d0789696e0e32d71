/* Fuzzes the verifier: with texts changed word by word, so that many still parse, and with parsed modules edited in
 * ways that no text can express (cycles, foreign operands, exchanged types, missing attributes). Whatever comes,
 * ir_verify must return; an error has a code, a message and, where the op came from text, a position; the same question
 * gets the same answer; what the strict verifier accepts the lenient one accepts; and what the lenient one accepts the
 * interpreter survives, and goes to StableHLO and back. Two drivers: libFuzzer (clang -fsanitize=fuzzer), and with
 * -DFUZZ_MAIN a program of its own: fuzz_verify SEED LIMIT FILE...      exits 0, or aborts on the first finding after
 * writing it to fuzz-finding.hlo */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/interp/interp.h"
#include "../../csrc/stablehlo/stablehlo.h"
#include "../../csrc/text/text.h"
#include "random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s: %s\n", what, err->code, err->line, err->col, err->op, err->message);
  abort();
}

/* --- what must hold --- */

static uint64_t counts[4]; /* accepted, refused, run to the end, translated */

static int verify_as(ir_module *m, bool lenient, xlac_error *err) {
  ir_verify_options options = {.xla_compat = lenient};
  *err = (xlac_error){0};
  m->verified = false;
  return ir_verify(m, &options, err);
}

static void check_module(ir_module *m, bool from_text) {
  xlac_error strict, again, lenient;
  int status = verify_as(m, false, &strict);
  if (status != verify_as(m, false, &again) || memcmp(&strict, &again, sizeof strict) != 0)
    report("two answers", &again);
  if (status == 0 && verify_as(m, true, &lenient) != 0) report("strict is more lenient than lenient", &lenient);
  counts[status != 0]++;
  if (status == 0) return;
  if (strict.code != -status || !strict.message[0]) report("an error without code or message", &strict);
  if (from_text && strict.line == 0) report("an error without position", &strict);
}

/* --- running what was accepted --- */

enum { MAX_ARGS = 64, MAX_BYTES = 1 << 20 };

static bool is_small(const ir_module *m) {
  int64_t bytes = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      int64_t n = ir_type_bytes(op->type);
      if (n > MAX_BYTES || (bytes += n) > 16 * MAX_BYTES) return false;
    }
  }
  return m->entry->n_params <= MAX_ARGS;
}

/* The interpreter asks every 50 ms or so. */
static bool has_run_enough(void *ctx) {
  return ++*(int *)ctx > 2;
}

static void run_module(ir_module *m) {
  xlac_error err = {0};
  if (verify_as(m, true, &err) != 0 || !is_small(m)) return;
  int polls = 0;
  interp_options options = {
      .alloc = base_alloc_libc, .seed = 1, .interrupted = has_run_enough, .interrupt_ctx = &polls};
  interp_ctx ctx;
  interp_value *args[MAX_ARGS] = {NULL}, *result = NULL;
  if (interp_begin(&ctx, m, &options, &err) != 0) report("no context", &err);
  bool whole = true;
  for (uint32_t i = 0; i < m->entry->n_params; i++) {
    args[i] = interp_zeros(&ctx, m->entry->params[i]->type);
    whole = whole && args[i];
  }
  if (whole && interp_run(m, &options, m->entry->n_params, args, &result, &err) == 0) {
    interp_release(result);
    counts[2]++;
  }
  for (uint32_t i = 0; i < m->entry->n_params; i++)
    if (args[i]) interp_release(args[i]);
  interp_end(&ctx);
}

/* --- to StableHLO and back --- */

/* What is accepted goes there or is refused with a reason, and what comes back is accepted too. */
static void translate_module(ir_module *m) {
  xlac_error err = {0};
  ir_module *stable = NULL, *back = NULL;
  if (verify_as(m, true, &err) != 0 || !is_small(m)) return;
  int status = stablehlo_from_hlo(&stable, m, &err);
  if (status != 0 && (err.code != -status || !err.message[0])) report("refused without a reason", &err);
  if (status != 0) return;
  counts[3]++;
  if (stablehlo_to_hlo(&back, stable, NULL, &err) != 0) report("does not come back", &err);
  if (verify_as(back, true, &err) != 0) report("comes back broken", &err);
  ir_module_destroy(stable);
  ir_module_destroy(back);
}

/* --- edits of a module --- */

static ir_op *any_op(const ir_module *m, uint64_t *state) {
  uint64_t skip = next_random(state) % (m->n_ids + 1);
  ir_op *found = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      found = op;
      if (skip-- == 0) return op;
    }
  }
  return found;
}

static ir_computation *any_computation(const ir_module *m, uint64_t *state) {
  uint64_t skip = next_random(state) % (m->n_computations + 1);
  ir_computation *c = m->first;
  while (c && c->next && skip--) c = c->next;
  return c;
}

static void edit(ir_module *m, uint64_t *state) {
  ir_op *op = any_op(m, state), *other = any_op(m, state);
  uint64_t n = next_random(state);
  if (!op || !other) return;
  switch (next_random(state) % 10) {
    case 0: /* from before, from after, from elsewhere */
      if (op->n_operands) ir_set_operand(op, (uint32_t)(n % op->n_operands), (ir_value){other, 0});
      break;
    case 1:
      if (!ir_add_operand(op, (ir_value){other, 0})) exit(3);
      break;
    case 2:
      if (op->n_operands) ir_operand_remove(op, (uint32_t)(n % op->n_operands));
      break;
    case 3:
      ir_set_type(op, other->type);
      break;
    case 4:
      if (op->n_attrs) ir_attr_remove(op, (ir_attr_key)op->attrs[n % op->n_attrs].key);
      break;
    case 5:
      if (op->n_called) op->called[n % op->n_called] = any_computation(m, state);
      break;
    case 6:
      if (!ir_set_root(op->parent, op)) exit(3);
      break;
    case 7:
      if (other->parent == op->parent && !ir_add_control_pred(op, other)) exit(3);
      break;
    case 8:
      if (op->parent->n_params) op->parent->params[n % op->parent->n_params] = n % 3 ? op : NULL;
      break;
    default:
      if (other->n_attrs && !ir_attr_set(op, other->attrs[n % other->n_attrs])) exit(3);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = NULL;
  if (text_parse_hlo(&m, (const char *)data, size, NULL, &err) != 0) return 0;
  check_module(m, true);
  run_module(m);
  translate_module(m);
  uint64_t state = size;
  for (size_t i = 0; i < size; i += 17) state = state * 31 + data[i];
  for (int i = 0; i < 3; i++) {
    edit(m, &state);
    check_module(m, false);
  }
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#include <ctype.h>

#include "file.h"

enum { MAX_WORDS = 1 << 14 };

typedef struct fuzz_word {
  uint32_t at, n;
  char kind; /* 'n' number, 'w' word, or the character */
} fuzz_word;

typedef struct fuzz_split {
  fuzz_word words[MAX_WORDS];
  uint32_t n;
} fuzz_split;

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static void split(fuzz_split *to, const fuzz_file *f) {
  const char *data = (const char *)f->data;
  to->n = 0;
  for (size_t i = 0; i < f->n && to->n < MAX_WORDS;) {
    size_t start = i;
    char c = data[i++];
    if (isspace((unsigned char)c)) continue;
    if (in_word(c))
      while (i < f->n && in_word(data[i])) i++;
    char kind = !in_word(c) ? c : isdigit((unsigned char)c) ? 'n' : 'w';
    to->words[to->n++] = (fuzz_word){(uint32_t)start, (uint32_t)(i - start), kind};
  }
}

static bool is_whole_text(const fuzz_file *file) {
  for (size_t i = 0; i < file->n; i++)
    if (!isspace(file->data[i])) return file->n < MAX_INPUT;
  return false;
}

static const char *const numbers[] = {"0", "1",  "2",  "3",   "4",          "7",
                                      "8", "16", "-1", "100", "2147483648", "9223372036854775807"};
static const char *const kinds[] = {"pred",  "s4",  "s8",  "s32",  "s64",   "u8",   "u32",      "u64",
                                    "bf16",  "f16", "f32", "f64",  "c64",   "c128", "f8e4m3fn", "f4e2m1fn",
                                    "token", "EQ",  "LT",  "true", "false", "kLoop"};

/* A word of the kind of `w` from `from`, or none. */
static fuzz_word like(const fuzz_split *from, fuzz_word w, uint64_t *state) {
  for (int tries = 0; tries < 20 && from->n > 0; tries++) {
    fuzz_word other = from->words[next_random(state) % from->n];
    if (other.kind == w.kind) return other;
  }
  return (fuzz_word){0, 0, 0};
}

static void mutate_words(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  static fuzz_split here, there;
  split(&here, buf);
  if (here.n == 0) return;
  fuzz_word w = here.words[next_random(state) % here.n];
  const char *with = numbers[next_random(state) % (sizeof numbers / sizeof *numbers)];
  uint64_t how = next_random(state) % 10;
  if (how == 9 && w.kind != 'w' && w.kind != 'n') {
    splice(buf, w.at, w.n, NULL, 0);
    return;
  }
  if (w.kind == 'w' && how < 2) with = kinds[next_random(state) % (sizeof kinds / sizeof *kinds)];
  if ((w.kind == 'n' && how < 6) || (w.kind == 'w' && how < 2)) {
    splice(buf, w.at, w.n, with, strlen(with));
    return;
  }
  if (how == 8) split(&there, other);
  fuzz_word found = like(how == 8 ? &there : &here, w, state);
  if (found.n == 0 || found.n > 256) return;
  splice(buf, w.at, w.n, (how == 8 ? other : buf)->data + found.at, found.n);
}

static void print_counts(void) {
  printf("%llu modules accepted, %llu refused, %llu run, %llu translated\n", (unsigned long long)counts[0],
         (unsigned long long)counts[1], (unsigned long long)counts[2], (unsigned long long)counts[3]);
}

#define FUZZ_RUNS 40000
#define FUZZ_TAKES is_whole_text
#define FUZZ_MUTATE mutate_words
#define FUZZ_DONE print_counts
#include "driver.h"
#endif
