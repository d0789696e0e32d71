/* Compiled programs on disk: keys, entries, and how many of them stay. */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/isa/isa.h"
#include "../text/text.h"

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#endif

enum {
  CACHE_NAME = 60,              /* bytes of a module's name in the head */
  CACHE_TAIL = 96,              /* of the head's last lines, at most */
  CACHE_BYTES = 256 << 20,      /* of all entries, where nobody says */
  CACHE_LEFTOVER_SECONDS = 3600 /* after which a file that nobody put into its place is somebody's who died */
};

static void cache_note(driver_cache *c, const char *what, int error) {
  snprintf(c->note, sizeof c->note, error ? "%s: %s" : "%s", what, error ? strerror(error) : "");
}

bool driver_cache_open(driver_cache *c, const char *given, base_alloc alloc) {
  *c = (driver_cache){.alloc = alloc};
  base_text_init(&c->key, alloc);
  if (!given) given = getenv("XLAC_CACHE");
  if (!given || !*given || strcmp(given, "0") == 0) return false;
  bool usual = strcmp(given, "1") == 0;
  if (base_file_cache_folder(usual ? NULL : given, "executables", c->folder)) return true;
  cache_note(c, "there is no folder for it", ENAMETOOLONG);
  return false;
}

void driver_cache_close(driver_cache *c) {
  base_text_free(&c->key);
}

/* --- what an entry depends on --- */

#if defined(__linux__) && defined(__LP64__)
#include <elf.h>

/* Where the file that holds this function is in memory; the linker's own symbol. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* The number that the linker gave the file, in `n` bytes of notes. */
static bool cache_put_note(base_text *out, const char *at, size_t n) {
  Elf64_Nhdr h;
  for (; n >= sizeof h; at += sizeof h, n -= sizeof h) {
    memcpy(&h, at, sizeof h);
    size_t name = (h.n_namesz + 3u) & ~3u, all = name + ((h.n_descsz + 3u) & ~3u);
    if (all > n - sizeof h) return false;
    if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(at + sizeof h, "GNU", 4) == 0) {
      const unsigned char *id = (const unsigned char *)at + sizeof h + name;
      for (uint32_t i = 0; i < h.n_descsz; i++) base_putf(out, "%02x", id[i]);
      return h.n_descsz > 0;
    }
    at += all, n -= all;
  }
  return false;
}

/* Notes are in the first segment, which begins with the file's head. */
static bool cache_put_build(base_text *out) {
  Elf64_Ehdr head;
  Elf64_Phdr p;
  uint64_t mapped = 0;
  /* Read once, by a plain load, which linkers turn into the address: a slot of a table may be left 0 (ld, of weak
   * symbols whose value is 0). */
  const char *const volatile own = __ehdr_start;
  const char *start = own;
  if (!start) return false;
  memcpy(&head, start, sizeof head);
  for (uint32_t i = 0; i < head.e_phnum; i++) {
    memcpy(&p, start + head.e_phoff + i * sizeof p, sizeof p);
    if (p.p_type == PT_LOAD && p.p_offset == 0) mapped = p.p_filesz;
  }
  for (uint32_t i = 0; i < head.e_phnum; i++) {
    memcpy(&p, start + head.e_phoff + i * sizeof p, sizeof p);
    bool here = p.p_type == PT_NOTE && p.p_offset < mapped && p.p_filesz <= mapped - p.p_offset;
    if (here && cache_put_note(out, start + p.p_offset, p.p_filesz)) return true;
  }
  return false;
}
#else
static bool cache_put_build(base_text *out) {
  (void)out;
  return false;
}
#endif

/* The name is for people: of its bytes those that can't disturb a line. */
static void cache_put_name(base_text *out, const ir_module *m) {
  for (uint32_t i = 0; i < m->name->n && i < CACHE_NAME; i++)
    base_putc(out, m->name->s[i] > ' ' && m->name->s[i] < 127 ? m->name->s[i] : '_');
}

/* The sum of the program's text, which holds all of it. */
static bool cache_sum_program(driver_cache *c, const ir_module *m, base_sum *out) {
  const text_print_options exact = {.exact = true};
  base_text text;
  xlac_error why = {0};
  base_text_init(&text, c->alloc);
  bool ok = text_check_hlo(m, &why) == 0 && text_print_hlo(&text, m, &exact, &why) == 0;
  if (ok) *out = base_sum_of((base_sum){0}, text.s, text.n);
  if (!ok) snprintf(c->note, sizeof c->note, "it can't be cached: %.130s", why.message);
  base_text_free(&text);
  return ok;
}

bool driver_cache_name(driver_cache *c, const ir_module *m, const driver_options *options, const char *version,
                       const char *extra) {
  static const char *const isas[] = {"portable", "avx2", "avx512", "avx512_vnni"};
  static const char *const narrow[] = {NULL, "avx512_bf16", "amx"};
  const char *native = getenv("XLAC_NATIVE"), *products = narrow[base_isa_narrow_products()];
  base_sum program;
  if (!cache_sum_program(c, m, &program)) return false;
  BASE_PUT(&c->key, "xlac cache 1\nname ");
  cache_put_name(&c->key, m);
  base_putf(&c->key, "\nprogram %016" PRIx64 "%016" PRIx64 "\nxlac %s\nbuild ", program.a, program.b, version);
  if (!cache_put_build(&c->key)) {
    cache_note(c, "it can't be cached: this library was linked without a build id", 0);
    return false;
  }
  base_putf(&c->key, "\nisa %s\nnative %s\nnumerics %s\nfusion %s\npasses %s\ndonate %s\n",
            products ? products : isas[base_isa_best()], native && strcmp(native, "0") == 0 ? "off" : "on",
            options->build.fast ? "fast" : "strict", options->plan.no_fusion ? "off" : "on",
            options->no_passes ? "off" : "on", extra);
  if (c->key.failed) return false;
  base_sum key = base_sum_of((base_sum){0}, c->key.s, c->key.n);
  int n = snprintf(c->path, sizeof c->path, "%s/%016" PRIx64 "%016" PRIx64 ".xlac", c->folder, key.a, key.b);
  return n > 0 && (size_t)n < sizeof c->path;
}

/* --- entries --- */

/* The head's last lines. */
static void cache_put_tail(char out[CACHE_TAIL], const driver_cache *c, base_slice text, base_slice code) {
  base_sum sum = base_sum_of((base_sum){text.n, code.n}, c->key.s, c->key.n);
  sum = base_sum_of(base_sum_of(sum, text.p, text.n), code.p, code.n);
  snprintf(out, CACHE_TAIL, "text %010zu\ncode %010zu\nsum %016" PRIx64 "%016" PRIx64 "\n\n", text.n, code.n, sum.a,
           sum.b);
}

/* The parts of the file, whose head must be, byte for byte, the one that would be written. */
static bool cache_split(const driver_cache *c, driver_entry *e, size_t n) {
  char tail[CACHE_TAIL];
  size_t text, code;
  cache_put_tail(tail, c, BASE_SLICE(""), BASE_SLICE(""));
  size_t n_tail = strlen(tail), head = c->key.n + n_tail;
  if (n < head || memcmp(e->bytes, c->key.s, c->key.n) != 0) return false;
  memcpy(tail, e->bytes + c->key.n, n_tail);
  if (sscanf(tail, "text %10zu\ncode %10zu\n", &text, &code) != 2 || text > n - head || code != n - head - text)
    return false;
  e->text = (base_slice){e->bytes + head, text};
  e->code = (base_slice){e->bytes + head + text, code};
  cache_put_tail(tail, c, e->text, e->code);
  return memcmp(tail, e->bytes + c->key.n, n_tail) == 0;
}

bool driver_cache_read(driver_cache *c, driver_entry *out) {
  size_t n = 0;
  assert(c->key.n && !c->key.failed);
  int status = base_file_read(c->path, c->alloc, &out->bytes, &n);
  if (status) {
    if (status != ENOENT) cache_note(c, "an entry that can't be read", status);
    return false;
  }
  if (cache_split(c, out, n)) {
    utimensat(AT_FDCWD, c->path, NULL, 0); /* used just now; where that can't be noted, it goes the earlier */
    cache_note(c, "hit", 0);
    return true;
  }
  cache_note(c, "stored in place of a damaged entry", 0);
  base_free(c->alloc, out->bytes);
  return false;
}

/* --- how much stays --- */

typedef struct cache_file {
  struct timespec used;
  uint64_t bytes;
  char name[40];
} cache_file;
BASE_VEC(cache_files, cache_file);

static int cache_compare(const void *a, const void *b) {
  const struct timespec *x = &((const cache_file *)a)->used, *y = &((const cache_file *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Entries, by their names: 32 digits and ".xlac". What a writer left beside its place is removed when it is old. */
static bool cache_is_entry(int folder, const char *name, const struct stat *about) {
  size_t n = strlen(name);
  if (n < 37 || strspn(name, "0123456789abcdef") != 32 || strncmp(name + 32, ".xlac", 5) != 0) return false;
  if (name[37] == '.' && about->st_mtime + CACHE_LEFTOVER_SECONDS < time(NULL)) unlinkat(folder, name, 0);
  return n == 37;
}

static uint64_t cache_list(driver_cache *c, DIR *folder, cache_files *files) {
  struct stat about;
  uint64_t all = 0;
  for (const struct dirent *e; (e = readdir(folder));) {
    if (fstatat(dirfd(folder), e->d_name, &about, AT_SYMLINK_NOFOLLOW) || !S_ISREG(about.st_mode)) continue;
    if (!cache_is_entry(dirfd(folder), e->d_name, &about)) continue;
    cache_file file = {.used = about.st_mtim, .bytes = (uint64_t)about.st_size};
    memcpy(file.name, e->d_name, 38);
    if (!BASE_VEC_PUSH(c->alloc, files, file)) break;
    all += file.bytes;
  }
  return all;
}

/* XLAC_CACHE_BYTES, where it is a number. */
static uint64_t cache_limit(void) {
  const char *given = getenv("XLAC_CACHE_BYTES");
  char *end = NULL;
  uint64_t limit = given && *given >= '0' && *given <= '9' ? strtoull(given, &end, 10) : 0;
  return end && *end == 0 ? limit : CACHE_BYTES;
}

/* What another process removes meanwhile is gone as well. */
static void cache_trim(driver_cache *c, uint64_t limit) {
  DIR *folder = opendir(c->folder);
  cache_files files = {0};
  if (!folder) return;
  uint64_t all = cache_list(c, folder, &files);
  if (all > limit) qsort(files.items, files.n, sizeof *files.items, cache_compare);
  for (uint32_t i = 0; i < files.n && all > limit; i++) {
    all -= files.items[i].bytes;
    unlinkat(dirfd(folder), files.items[i].name, 0);
  }
  BASE_VEC_FREE(c->alloc, &files);
  closedir(folder);
}

void driver_cache_write(driver_cache *c, base_slice text, base_slice code) {
  char tail[CACHE_TAIL];
  uint64_t limit = cache_limit();
  cache_put_tail(tail, c, text, code);
  const base_slice parts[] = {{c->key.s, c->key.n}, base_slice_of(tail), text, code};
  if (text.n + code.n + c->key.n >= limit) {
    cache_note(c, "not stored: it is larger than the cache may be", 0);
    return;
  }
  int status = base_file_make_folder(c->folder);
  if (status) {
    snprintf(c->note, sizeof c->note, "not stored: the folder %.120s can't be made: %s", c->folder, strerror(status));
    return;
  }
  status = base_file_write(c->path, 4, parts);
  if (status)
    cache_note(c, "not stored", status);
  else if (!c->note[0])
    cache_note(c, "stored", 0);
  if (!status) cache_trim(c, limit);
}
