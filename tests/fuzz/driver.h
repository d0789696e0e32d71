/* The driver of a fuzzer with FUZZ_MAIN: fuzz_x SEED LIMIT FILE... runs the files as they are and then what a seeded
 * generator makes of them. LIMIT is a number of such inputs (20000), a number of seconds (45s: how far that gets
 * depends on the machine), or "default": FUZZ_RUNS inputs. Equal seeds, counts and files give the same inputs on every
 * machine.
 *
 * Include it after LLVMFuzzerTestOneInput, with these defined before:
 *   FUZZ_WORDS    a list of strings that mean something to the reader, for changes of bytes
 *   FUZZ_MUTATE   makes most changes, or without FUZZ_WORDS all: void (fuzz_file *, const fuzz_file *, uint64_t *)
 *   FUZZ_PREPARE  makes an input of a file, or says that it can't: bool (fuzz_file *); all files by default
 *   FUZZ_RUNS     inputs by default: seconds of work with the sanitizers
 * Fuzzers that include common/fuzz.h say how far inputs got, and can go on after a finding (common/search.c). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file.h"
#include "random.h"

#ifndef FUZZ_RUNS
#define FUZZ_RUNS 3000
#endif

enum { MAX_FILES = 1 << 14 };

#ifdef FUZZ_WORDS
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

/* Before each input: an abort leaves the last one there. */
static void save_finding(const fuzz_file *input) {
  FILE *f = fopen("fuzz-finding.hlo", "wb");
  if (!f) return;
  fwrite(input->data, 1, input->n, f);
  fclose(f);
}

typedef struct fuzz_limit {
  uint64_t runs; /* of mutated inputs */
  time_t end;    /* or 0 */
} fuzz_limit;

static bool read_limit(const char *text, fuzz_limit *limit) {
  char *rest = NULL;
  *limit = (fuzz_limit){.runs = FUZZ_RUNS};
  if (strcmp(text, "default") == 0) return true;
  uint64_t n = strtoull(text, &rest, 10);
  if (rest == text || (strcmp(rest, "") != 0 && strcmp(rest, "s") != 0)) return false;
  if (*rest == 's')
    *limit = (fuzz_limit){.runs = UINT64_MAX, .end = time(NULL) + (time_t)n};
  else
    limit->runs = n;
  return true;
}

static uint64_t digest = 1; /* of all inputs so far: equal runs print equal ones */

static void run_input(fuzz_file *buf, const fuzz_file *from) {
  if (buf != from) {
    memcpy(buf->data, from->data, from->n);
    buf->n = from->n;
  }
  for (size_t i = 0; i < buf->n; i++) digest = (digest ^ buf->data[i]) * UINT64_C(0x100000001b3);
#ifdef XLAC_TESTS_FUZZ_H
  fuzz_search_note(buf);
#endif
  save_finding(buf);
  LLVMFuzzerTestOneInput(buf->data, buf->n);
}

static void run_mutated(fuzz_file *buf, const fuzz_file *files, uint64_t n_files, uint64_t *state) {
  const fuzz_file *from = &files[next_random(state) % n_files];
  memcpy(buf->data, from->data, from->n);
  buf->n = from->n;
  for (uint64_t edits = 1 + next_random(state) % 4; edits--;) mutate(buf, &files[next_random(state) % n_files], state);
  run_input(buf, buf);
}

int main(int argc, char **argv) {
  static fuzz_file files[MAX_FILES];
  uint64_t n_files = 0, runs = 0, state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  fuzz_limit limit;
  bool understood = argc > 2 && read_limit(argv[2], &limit);
  for (int i = 3; i < argc && n_files < MAX_FILES; i++) n_files += load_file(argv[i], &files[n_files]);
  if (!understood || n_files == 0)
    return fprintf(stderr, "usage: %s SEED COUNT|SECONDSs|default FILE...\n", argv[0]), 2;
  fuzz_file buf = {.data = malloc(MAX_INPUT)};
  if (!buf.data) return 2;
#ifdef XLAC_TESTS_FUZZ_H
  fuzz_search_begin(&runs, &state, n_files);
#endif
  for (; runs < n_files; runs++) run_input(&buf, &files[runs]);
  for (; runs - n_files < limit.runs && (limit.end == 0 || time(NULL) < limit.end); runs++)
    run_mutated(&buf, files, n_files, &state);
  remove("fuzz-finding.hlo");
  printf("%llu files, %llu mutated inputs (digest %016llx), no finding\n", (unsigned long long)n_files,
         (unsigned long long)(runs - n_files), (unsigned long long)digest);
#ifdef XLAC_TESTS_FUZZ_H
  fuzz_print_counts();
#endif
  for (uint64_t i = 0; i < n_files; i++) free(files[i].data);
  free(buf.data);
  return 0;
}
