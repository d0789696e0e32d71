/* The driver of a fuzzer with FUZZ_MAIN: mutates the files it is given with a seeded generator until the time is up,
 * fuzz_x SEED SECONDS FILE... To be included after LLVMFuzzerTestOneInput, with these defined before:
 *   FUZZ_WORDS    a list of strings that mean something to the reader, for changes of bytes
 *   FUZZ_MUTATE   makes most changes, or without FUZZ_WORDS all: void (fuzz_file *, const fuzz_file *, uint64_t *)
 *   FUZZ_PREPARE  makes an input of a file, or says that it can't: bool (fuzz_file *); all files by default
 * Fuzzers that include common/fuzz.h can go on after a finding (common/search.c). */
#include <time.h>

enum { MAX_INPUT = 1 << 16, MAX_FILES = 1 << 14 };

#ifndef XLAC_TESTS_FUZZ_H
typedef struct fuzz_file {
  uint8_t *data;
  size_t n;
} fuzz_file;
#endif

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
#ifdef FUZZ_PREPARE
  if (file->data && !FUZZ_PREPARE(file)) {
    free(file->data);
    return false;
  }
#endif
  uint8_t *fitted = file->data ? realloc(file->data, file->n + 1) : NULL;
  if (fitted) file->data = fitted;
  return file->data != NULL;
}

#ifdef FUZZ_WORDS
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

static const char *const words[] = {FUZZ_WORDS};

static void mutate_words(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
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
#endif

static void mutate(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
#ifdef FUZZ_MUTATE
#ifdef FUZZ_WORDS
  if (next_random(state) % 8 == 0)
    mutate_words(buf, other, state);
  else
#endif
    FUZZ_MUTATE(buf, other, state);
#else
  mutate_words(buf, other, state);
#endif
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
#ifdef XLAC_TESTS_FUZZ_H
  fuzz_search_begin(&runs, &state);
#endif
  for (; runs < (uint64_t)n_files || time(NULL) < end; runs++) {
    const fuzz_file *file = &files[runs < (uint64_t)n_files ? runs : next_random(&state) % (uint64_t)n_files];
    memcpy(buf.data, file->data, file->n);
    buf.n = file->n;
    uint64_t edits = runs < (uint64_t)n_files ? 0 : 1 + next_random(&state) % 4;
    while (edits--) mutate(&buf, &files[next_random(&state) % (uint64_t)n_files], &state);
    current = &buf;
#ifdef XLAC_TESTS_FUZZ_H
    fuzz_search_note(&buf);
#endif
    save_finding(); /* an abort keeps the last one */
    LLVMFuzzerTestOneInput(buf.data, buf.n);
  }
  remove("fuzz-finding.hlo");
  printf("%llu runs, no finding\n", (unsigned long long)runs);
#ifdef XLAC_TESTS_FUZZ_H
  fuzz_print_counts();
#endif
  for (int i = 0; i < n_files; i++) free(files[i].data);
  free(buf.data);
  return 0;
}
