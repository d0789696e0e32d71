/* Fuzzes the verifier: with texts changed word by word, so that many still parse, and with parsed modules edited in
 * ways that no text can express (cycles, foreign operands, exchanged types, missing attributes). Whatever comes,
 * ir_verify must return; an error has a code, a message and, where the op came from text, a position; the same question
 * gets the same answer; what the strict verifier accepts the lenient one accepts; and what the lenient one accepts the
 * interpreter survives, and goes to StableHLO and back. Two drivers: libFuzzer (clang -fsanitize=fuzzer), and with
 * -DFUZZ_MAIN a program of its own: fuzz_verify SEED SECONDS FILE...      exits 0, or aborts on the first finding after
 * writing it to fuzz-finding.hlo */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/interp/interp.h"
#include "../../csrc/stablehlo/stablehlo.h"
#include "../../csrc/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s: %s\n", what, err->code, err->line, err->col, err->op, err->message);
  abort();
}

static uint64_t next_random(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
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
#include <time.h>

enum { MAX_INPUT = 1 << 16, MAX_FILES = 4096, MAX_WORDS = 1 << 14 };

typedef struct fuzz_word {
  uint32_t at, n;
  char kind; /* 'n' number, 'w' word, or the character */
} fuzz_word;

typedef struct fuzz_file {
  char *data;
  size_t n;
  fuzz_word *words;
  uint32_t n_words;
} fuzz_file;

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static void split(fuzz_file *f) {
  f->n_words = 0;
  for (size_t i = 0; i < f->n && f->n_words < MAX_WORDS;) {
    size_t start = i;
    char c = f->data[i++];
    if (isspace((unsigned char)c)) continue;
    if (in_word(c))
      while (i < f->n && in_word(f->data[i])) i++;
    char kind = !in_word(c) ? c : isdigit((unsigned char)c) ? 'n' : 'w';
    f->words[f->n_words++] = (fuzz_word){(uint32_t)start, (uint32_t)(i - start), kind};
  }
}

static bool load_file(const char *path, fuzz_file *file) {
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  file->data = malloc(MAX_INPUT);
  file->words = malloc(MAX_WORDS * sizeof *file->words);
  if (!file->data || !file->words) exit(3);
  file->n = fread(file->data, 1, MAX_INPUT, f);
  fclose(f);
  split(file);
  if (file->n > 0 && file->n < MAX_INPUT && file->n_words > 0) return true;
  free(file->data);
  free(file->words);
  return false;
}

static void splice(fuzz_file *buf, size_t at, size_t drop, const char *with, size_t n) {
  if (buf->n - drop + n > MAX_INPUT) return;
  memmove(buf->data + at + n, buf->data + at + drop, buf->n - at - drop);
  if (n) memcpy(buf->data + at, with, n);
  buf->n = buf->n - drop + n;
  split(buf);
}

static const char *const numbers[] = {"0", "1",  "2",  "3",   "4",          "7",
                                      "8", "16", "-1", "100", "2147483648", "9223372036854775807"};
static const char *const kinds[] = {"pred",  "s4",  "s8",  "s32",  "s64",   "u8",   "u32",      "u64",
                                    "bf16",  "f16", "f32", "f64",  "c64",   "c128", "f8e4m3fn", "f4e2m1fn",
                                    "token", "EQ",  "LT",  "true", "false", "kLoop"};

/* A word of the kind of `w` from `from`, or `w` itself. */
static fuzz_word like(const fuzz_file *from, fuzz_word w, uint64_t *state) {
  for (int tries = 0; tries < 20; tries++) {
    fuzz_word other = from->words[next_random(state) % from->n_words];
    if (other.kind == w.kind) return other;
  }
  return (fuzz_word){0, 0, 0};
}

static void mutate(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  if (buf->n_words == 0) return;
  fuzz_word w = buf->words[next_random(state) % buf->n_words];
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
  const fuzz_file *from = how == 8 ? other : buf;
  fuzz_word found = like(from, w, state);
  char copy[256];
  if (found.n == 0 || found.n > sizeof copy) return;
  memcpy(copy, from->data + found.at, found.n);
  splice(buf, w.at, w.n, copy, found.n);
}

static void save_finding(const fuzz_file *current) {
  FILE *f = fopen("fuzz-finding.hlo", "wb");
  if (!f) return;
  fwrite(current->data, 1, current->n, f);
  fclose(f);
}

int main(int argc, char **argv) {
  static fuzz_file files[MAX_FILES];
  uint64_t n_files = 0, runs = 0, state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
  for (int i = 3; i < argc && n_files < MAX_FILES; i++) n_files += load_file(argv[i], &files[n_files]);
  if (n_files == 0) return fprintf(stderr, "usage: fuzz_verify SEED SECONDS FILE...\n"), 2;
  fuzz_file buf = {.data = malloc(MAX_INPUT), .words = malloc(MAX_WORDS * sizeof *buf.words)};
  if (!buf.data || !buf.words) return 2;
  for (; runs < n_files || time(NULL) < end; runs++) {
    const fuzz_file *file = &files[runs < n_files ? runs : next_random(&state) % n_files];
    memcpy(buf.data, file->data, file->n);
    buf.n = file->n;
    split(&buf);
    uint64_t edits = runs < n_files ? 0 : 1 + next_random(&state) % 3;
    while (edits--) mutate(&buf, &files[next_random(&state) % n_files], &state);
    save_finding(&buf); /* an abort keeps the last one */
    LLVMFuzzerTestOneInput((const uint8_t *)buf.data, buf.n);
  }
  remove("fuzz-finding.hlo");
  printf("%llu runs, %llu modules accepted, %llu refused, %llu run, %llu translated, no finding\n",
         (unsigned long long)runs, (unsigned long long)counts[0], (unsigned long long)counts[1],
         (unsigned long long)counts[2], (unsigned long long)counts[3]);
  for (uint64_t i = 0; i < n_files; i++) free(files[i].data), free(files[i].words);
  free(buf.data);
  free(buf.words);
  return 0;
}
#endif
