/* Fuzzes the reader of MLIR bytecode, and the writer on what the reader takes: what reads must write, and that must
 * read again and write the same. Drivers as in fuzz_reader.c: fuzz_bytecode SEED SECONDS FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/text/mlir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %s\n", what, err->code, err->message);
  abort();
}

/* Older text and odd types may have no VHLO form in the newest version; that is an error and no finding. */
static bool rewrite(const void *data, size_t size, base_text *to, bool must_read) {
  xlac_error err = {0};
  ir_module *m = NULL;
  int status = text_parse_bytecode(&m, data, size, NULL, &err);
  if (status != 0) {
    if (must_read) report("what was written does not read", &err);
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    return false;
  }
  base_text_init(to, base_alloc_libc);
  status = text_write_bytecode(to, m, "1.20.0", &err);
  ir_module_destroy(m);
  if (status != 0) {
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    if (must_read) report("what was written and read does not write", &err);
    base_text_free(to);
    return false;
  }
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  base_text first, second;
  if (!rewrite(data, size, &first, false)) return 0;
  if (rewrite(first.s, first.n, &second, true)) {
    if (first.n != second.n || memcmp(first.s, second.s, first.n) != 0)
      report("write, read, write differs", &(xlac_error){0});
    base_text_free(&second);
  }
  base_text_free(&first);
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

static void mutate(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  size_t at = buf->n ? next_random(state) % buf->n : 0, n = next_random(state) % 40;
  uint8_t byte = (uint8_t)next_random(state), bit = (uint8_t)(1 << next_random(state) % 8);
  size_t from = other->n ? next_random(state) % other->n : 0;
  switch (next_random(state) % 7) {
    case 0:
    case 1:
      if (buf->n) buf->data[at] ^= bit;
      break;
    case 2:
      splice(buf, at, 1, &byte, 1);
      break;
    case 3:
      splice(buf, at, n, NULL, 0);
      break;
    case 4:
      splice(buf, at, n, other->data + from, n < other->n - from ? n : other->n - from);
      break;
    case 5:
      if (buf->n) buf->data[at] = (uint8_t)(buf->data[at] + 2);
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
  if (n_files == 0) return fprintf(stderr, "usage: fuzz_bytecode SEED SECONDS FILE...\n"), 2;
  fuzz_file buf = {.data = malloc(MAX_INPUT)};
  if (!buf.data) return 2;
  int n_seeds = 0; /* other fuzzers' seeds are text */
  for (int i = 0; i < n_files; i++) {
    if (!text_is_bytecode(files[i].data, files[i].n)) continue;
    fuzz_file swap = files[n_seeds];
    files[n_seeds++] = files[i];
    files[i] = swap;
  }
  int n_loaded = n_files;
  n_files = n_seeds ? n_seeds : n_files;
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
  for (int i = 0; i < n_loaded; i++) free(files[i].data);
  free(buf.data);
  return 0;
}
#endif
