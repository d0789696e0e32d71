/* Fuzzes the HLO reader, and the printer on what the reader takes: a text that parses must print, and the print must
 * parse again and print the same. Two drivers: libFuzzer (clang -fsanitize=fuzzer), and with -DFUZZ_MAIN a program of
 * its own that mutates the files it is given with a seeded generator: fuzz_reader SEED SECONDS FILE...      exits 0, or
 * aborts on the first finding after writing it to fuzz-finding.hlo */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s\n", what, err->code, err->line, err->col, err->message);
  abort();
}

static bool print_module(const ir_module *m, base_text *out) {
  xlac_error err = {0};
  text_print_options options = {.mode = TEXT_DEFAULT};
  base_text_init(out, base_alloc_libc);
  return text_print_hlo(out, m, &options, &err) == 0;
}

/* Reads `from`, which must be a module, and prints it. */
static bool reprint(const base_text *from, base_text *to) {
  xlac_error err = {0};
  ir_module *m = NULL;
  if (text_parse_hlo(&m, from->s, from->n, NULL, &err) != 0) report("the print does not parse", &err);
  if (!print_module(m, to)) report("the second print fails", &err);
  bool has_tables = m->sources.n_frames > 0;
  ir_module_destroy(m);
  return has_tables;
}

/* What is printed must read back, and print the same from the second time on (a blank in a string that passes for JSON
 * goes at the first, as in XLA); but that XLA numbers source tables anew at each print. */
static void check_print(const base_text *first) {
  base_text second, third;
  bool has_tables = reprint(first, &second);
  reprint(&second, &third);
  bool same = second.n == third.n && memcmp(second.s, third.s, second.n) == 0;
  if (!same && !has_tables) report("print, parse, print differs", &(xlac_error){0});
  base_text_free(&second);
  base_text_free(&third);
}

/* Inputs whose print is known not to read back (docs/xla-differences.md): wrapped ops that have no text of their own.
 */
static bool has_unprintable_op(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (ir_opcode_has(op->opcode, IR_NEWER)) return true;
    }
  }
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = NULL;
  bool documented = size && (data[size - 1] & 1);
  text_parse_options options = {.documented_forms = documented};
  int status = text_parse_hlo(&m, (const char *)data, size, &options, &err);
  if (status != 0) {
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    if (err.line == 0 && err.code != XLAC_E_OUT_OF_MEMORY) report("an error without position", &err);
    return 0;
  }
  base_text text;
  if (!print_module(m, &text)) report("the print fails", &err);
  if (!has_unprintable_op(m)) check_print(&text);
  base_text_free(&text);
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#include <time.h>

enum { MAX_INPUT = 1 << 16, MAX_FILES = 4096 };

typedef struct fuzz_file {
  uint8_t *data;
  size_t n;
} fuzz_file;

static uint64_t next_random(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static bool load_file(const char *path, fuzz_file *file) {
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  file->data = malloc(MAX_INPUT);
  file->n = file->data ? fread(file->data, 1, MAX_INPUT, f) : 0;
  fclose(f);
  return file->data != NULL;
}

/* Replaces [at, at + drop) by n bytes, as far as there is room. */
static void splice(fuzz_file *buf, size_t at, size_t drop, const void *with, size_t n) {
  if (at > buf->n) at = buf->n;
  if (drop > buf->n - at) drop = buf->n - at;
  if (buf->n - drop + n > MAX_INPUT) return;
  uint8_t *copy = malloc(n + 1); /* `with` may lie in the buffer */
  if (!copy) return;
  if (n) memcpy(copy, with, n);
  memmove(buf->data + at + n, buf->data + at + drop, buf->n - at - drop);
  if (n) memcpy(buf->data + at, copy, n);
  free(copy);
  buf->n = buf->n - drop + n;
}

static const char *const words[] = {"{",
                                    "}",
                                    "(",
                                    ")",
                                    "[",
                                    "]",
                                    ",",
                                    "=",
                                    " = ",
                                    "->",
                                    "%",
                                    "ROOT ",
                                    "ENTRY",
                                    "f32[2]",
                                    "s4[]",
                                    "()",
                                    "{...}",
                                    "nan",
                                    "-0",
                                    "<=",
                                    "T(1)",
                                    "/*",
                                    "*/",
                                    "//",
                                    "\"",
                                    "\\",
                                    "?",
                                    "x",
                                    "_",
                                    "-start",
                                    "-done",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "18446744073709551616",
                                    "1e999",
                                    "0",
                                    "sharding={devices=[2,2]<=[4]}",
                                    "metadata={op_name=\"a\"}",
                                    "calls=",
                                    "to_apply=",
                                    "async-start",
                                    "tuple",
                                    "get-tuple-element",
                                    "index=0",
                                    "dimensions={0}",
                                    "constant(",
                                    "parameter(0)",
                                    "b(",
                                    "token[]"};

static void mutate(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  size_t at = buf->n ? next_random(state) % buf->n : 0, n = next_random(state) % 40;
  const char *word = words[next_random(state) % (sizeof words / sizeof *words)];
  uint8_t byte = (uint8_t)next_random(state);
  size_t from = other->n ? next_random(state) % other->n : 0;
  switch (next_random(state) % 7) {
    case 0:
      splice(buf, at, 1, &byte, 1);
      break;
    case 1:
      splice(buf, at, n, NULL, 0);
      break;
    case 2:
      splice(buf, at, 0, word, strlen(word));
      break;
    case 3:
      splice(buf, at, n, word, strlen(word));
      break;
    case 4:
      splice(buf, at, 0, other->data + from, n < other->n - from ? n : other->n - from);
      break;
    case 5:
      splice(buf, at, 0, buf->data + (at > n ? at - n : 0), at > n ? n : at);
      break;
    default:
      if (next_random(state) % 8 == 0) buf->n = at;
  }
}

static const fuzz_file *current;
static void save_finding(void) {
  FILE *f = current ? fopen("fuzz-finding.hlo", "wb") : NULL;
  if (!f) return;
  fwrite(current->data, 1, current->n, f);
  fclose(f);
}

int main(int argc, char **argv) {
  static fuzz_file files[MAX_FILES];
  int n_files = 0;
  uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, runs = 0;
  time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
  for (int i = 3; i < argc && n_files < MAX_FILES; i++) n_files += load_file(argv[i], &files[n_files]);
  if (n_files == 0) return fprintf(stderr, "usage: fuzz_reader SEED SECONDS FILE...\n"), 2;
  fuzz_file buf = {.data = malloc(MAX_INPUT)};
  if (!buf.data) return 2;
  for (; runs < (uint64_t)n_files || time(NULL) < end; runs++) {
    const fuzz_file *file = &files[runs < (uint64_t)n_files ? runs : next_random(&state) % (uint64_t)n_files];
    memcpy(buf.data, file->data, file->n);
    buf.n = file->n;
    uint64_t edits = runs < (uint64_t)n_files ? 0 : 1 + next_random(&state) % 4;
    while (edits--) mutate(&buf, &files[next_random(&state) % (uint64_t)n_files], &state);
    current = &buf;
    save_finding(); /* an abort keeps the last one */
    LLVMFuzzerTestOneInput(buf.data, buf.n);
  }
  remove("fuzz-finding.hlo");
  printf("%llu runs, no finding\n", (unsigned long long)runs);
  for (int i = 0; i < n_files; i++) free(files[i].data);
  free(buf.data);
  return 0;
}
#endif
