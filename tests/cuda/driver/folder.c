/* Ranks of NCCL's stand-in that are processes meet in a folder, whose name is the communicator's unique id. A file has
 * a name that says what it is, and is put there whole; who waits for one looks again and again. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl.h"

enum { PATH_MAX_ = 256 };

static void path_of(const clique *c, char out[PATH_MAX_], const char *format, ...) {
  va_list args;
  int n = snprintf(out, PATH_MAX_, "%s/", c->folder);
  va_start(args, format);
  vsnprintf(out + n, (size_t)(PATH_MAX_ - n), format, args);
  va_end(args);
}

static void parcel_path(const clique *c, char out[PATH_MAX_], int from, int to, uint64_t nth, const char *what) {
  path_of(c, out, "%s-%d-%d-%llu", what, from, to, (unsigned long long)nth);
}

/* Whole, or not at all. */
static void put(const char *path, const void *head, size_t n, const void *rest, size_t more) {
  char part[PATH_MAX_ + 8];
  snprintf(part, sizeof part, "%s.part", path);
  FILE *f = fopen(part, "wb");
  if (f == NULL) return; /* somebody has removed the folder: all have ended */
  fwrite(head, 1, n, f);
  if (more != 0) fwrite(rest, 1, more, f);
  fclose(f);
  rename(part, path);
}

static bool there(const char *path) {
  return access(path, F_OK) == 0;
}

bool folder_make(char out[FOLDER_MAX]) {
  const char *folder = getenv("TMPDIR");
  snprintf(out, FOLDER_MAX, "%s/cuda-sim-nccl-XXXXXX", folder != NULL && strlen(folder) < 60 ? folder : "/tmp");
  return mkdtemp(out) != NULL;
}

void folder_join(const clique *c, int rank, const unsigned char gpu[16]) {
  char path[PATH_MAX_];
  path_of(c, path, "rank-%d", rank);
  put(path, gpu, 16, NULL, 0);
}

int folder_joined(const clique *c) {
  unsigned char gpus[RANKS_MAX][16];
  char path[PATH_MAX_];
  int n = 0;
  for (int rank = 0; rank < c->n; rank++) {
    path_of(c, path, "rank-%d", rank);
    FILE *f = fopen(path, "rb");
    if (f == NULL) continue;
    bool whole = fread(gpus[n], 1, 16, f) == 16;
    fclose(f);
    for (int k = 0; k < n; k++)
      if (memcmp(gpus[k], gpus[n], 16) == 0) return -1;
    n += whole;
  }
  return n;
}

void folder_put(const clique *c, const parcel *p) {
  char path[PATH_MAX_];
  parcel_path(c, path, p->from, p->to, p->nth, "parcel");
  put(path, p, sizeof *p, p->bytes, p->size);
}

bool folder_has(const clique *c, int from, int to, uint64_t nth) {
  char path[PATH_MAX_];
  parcel_path(c, path, from, to, nth, "parcel");
  return there(path);
}

parcel *folder_find(clique *c, int from, int to, uint64_t nth) {
  char path[PATH_MAX_];
  parcel_path(c, path, from, to, nth, "parcel");
  FILE *f = fopen(path, "rb");
  if (f == NULL) return NULL;
  parcel *p = calloc(1, sizeof *p);
  bool whole = fread(p, 1, sizeof *p, f) == sizeof *p;
  p->bytes = malloc(p->size + 1);
  whole = whole && fread(p->bytes, 1, p->size, f) == p->size;
  fclose(f);
  if (!whole) abort(); /* files are put whole */
  p->taken = 0;
  p->next = c->parcels;
  c->parcels = p;
  return p;
}

void folder_take(const clique *c, const parcel *p) {
  char path[PATH_MAX_], taken[PATH_MAX_];
  struct stat is;
  parcel_path(c, path, p->from, p->to, p->nth, "parcel");
  parcel_path(c, taken, p->from, p->to, p->nth, "taken");
  if (p->to >= 0) {
    unlink(path);
    return;
  }
  FILE *f = fopen(taken, "ab");
  if (f == NULL) return;
  fputc('x', f);
  fflush(f);
  if (fstat(fileno(f), &is) == 0 && is.st_size == c->n) {
    unlink(path);
    unlink(taken);
  }
  fclose(f);
}

void folder_leave(const clique *c, int rank) {
  char path[PATH_MAX_];
  int left = 0;
  path_of(c, path, "left-%d", rank);
  put(path, "", 0, NULL, 0);
  for (int i = 0; i < c->n; i++) {
    path_of(c, path, "left-%d", i);
    left += there(path);
  }
  DIR *all = left == c->n ? opendir(c->folder) : NULL;
  if (all == NULL) return;
  for (const struct dirent *e; (e = readdir(all)) != NULL;) {
    path_of(c, path, "%s", e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  closedir(all);
  rmdir(c->folder);
}
