/* A run that goes on after a finding, for long searches: tests/fuzz/search. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

/* What the child tells its parent. */
typedef struct search_place {
  uint64_t runs, state;
  uint64_t counts[FUZZ_COUNTS];
  size_t n;
  uint8_t input[FUZZ_MAX_INPUT];
} search_place;

static search_place *place;
static const uint64_t *search_runs, *search_state;
static uint64_t search_first; /* runs before the first */

static void save(const char *folder, uint64_t number) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%llu.input", folder, (unsigned long long)number);
  FILE *f = fopen(path, "wb");
  if (!f) return;
  fwrite(place->input, 1, place->n, f);
  fclose(f);
}

/* The child's stderr goes to a log of its own. */
static void redirect(const char *folder, uint64_t number) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%llu.log", folder, (unsigned long long)number);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || dup2(fd, 2) < 0) exit(3);
  close(fd);
}

void fuzz_search_begin(uint64_t *runs, uint64_t *state, uint64_t n_files) {
  const char *folder = getenv("FUZZ_FINDINGS");
  if (!folder) return;
  search_runs = runs;
  search_state = state;
  place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) exit(3);
  search_first = *runs = getenv("FUZZ_MUTATED") ? n_files : 0;
  place->state = *state;
  for (uint64_t number = 0;; number++) {
    pid_t child = fork();
    if (child < 0) exit(3);
    if (child == 0) {
      redirect(folder, number);
      memcpy(fuzz_counts, place->counts, sizeof fuzz_counts);
      *state = place->state;
      return;
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) exit(3);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) exit(0);
    save(folder, number);
    printf("finding %llu after %llu inputs\n", (unsigned long long)number,
           (unsigned long long)(place->runs - search_first));
    fflush(stdout);
    *runs = place->runs + 1;
    place->state += UINT64_C(0x9E3779B97F4A7C15);
  }
}

void fuzz_search_note(const fuzz_file *input) {
  if (!place) return;
  const char *count = getenv("FUZZ_COUNT");
  uint64_t done = *search_runs - search_first;
  if (count && done >= strtoull(count, NULL, 10)) {
    printf("%llu runs\n", (unsigned long long)done);
    fuzz_print_counts();
    exit(0);
  }
  place->runs = *search_runs;
  place->state = *search_state;
  memcpy(place->counts, fuzz_counts, sizeof fuzz_counts);
  place->n = input->n;
  memcpy(place->input, input->data, input->n);
}
