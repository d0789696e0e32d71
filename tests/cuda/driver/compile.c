/* NVRTC: CUDA C++ is compiled by the host's compiler behind cuda_host.cuh, with a call before each access of memory
 * (checks.c). What was compiled is kept by a hash of everything that it depends on, in XLAC_CUDA_SIM_CACHE or a folder
 * of the user's in the temporary folder: so a kernel is compiled once per machine. XLAC_CUDA_SIM_CXX names the
 * compiler; g++, clang++ or c++ by default. */
#define _GNU_SOURCE
#include "sim.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* nvrtcResult */
enum {
  NVRTC_SUCCESS,
  NVRTC_OUT_OF_MEMORY,
  NVRTC_PROGRAM_CREATION_FAILURE,
  NVRTC_INVALID_INPUT,
  NVRTC_INVALID_PROGRAM,
  NVRTC_INVALID_OPTION,
  NVRTC_COMPILATION,
  NVRTC_INTERNAL_ERROR = 11
};

__asm__(".section .rodata\ncuda_host_text:\n.incbin \"cuda_host.cuh\"\ncuda_host_end:\n.byte 0\n.previous\n");
extern const char cuda_host_text[], cuda_host_end[];

typedef struct program {
  char *source, *name, *image, *log;
  size_t image_bytes;
} program;

typedef struct text {
  char *at;
  size_t n, room;
} text;

static void add(text *t, const char *s, size_t n) {
  if (t->n + n + 1 > t->room) t->at = realloc(t->at, t->room = (t->n + n + 1) * 2);
  memcpy(t->at + t->n, s, n);
  t->at[t->n += n] = 0;
}
static void add_text(text *t, const char *s) {
  add(t, s, strlen(s));
}

/* ---- from CUDA C++ to what the header can define ---- */

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *p) {
  while (isspace((unsigned char)*p)) p++;
  return p;
}

/* Past a comment, a string or one character. */
static const char *skip_item(const char *p) {
  if (p[0] == '/' && p[1] == '/') return p + strcspn(p, "\n");
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr(p + 2, "*/");
    return end != NULL ? end + 2 : p + strlen(p);
  }
  if (*p != '"' && *p != '\'') return p + 1;
  char quote = *p++;
  while (*p != 0 && *p != quote) p += p[0] == '\\' && p[1] != 0 ? 2 : 1;
  return *p != 0 ? p + 1 : p;
}

static const char *skip_word(const char *p) {
  while (in_word(*p)) p++;
  return p;
}

static const char *skip_parentheses(const char *p) {
  int depth = 0;
  do {
    depth += *p == '(';
    depth -= *p == ')';
    p = skip_item(p);
  } while (*p != 0 && depth > 0);
  return p;
}

static bool word_is(const char *p, const char *end, const char *word) {
  return (size_t)(end - p) == strlen(word) && memcmp(p, word, (size_t)(end - p)) == 0;
}

/* extern __shared__ T name[]; becomes a pointer to the block's dynamic memory. Returns the semicolon, or `p` where it
 * is none such. */
static const char *dynamic_shared(text *out, const char *p) {
  const char *q = skip_space(p + strlen("extern")), *end = skip_word(q);
  if (!word_is(q, end, "__shared__")) return p;
  const char *stop = q + strcspn(q, ";"), *bracket = stop;
  while (bracket > end && *bracket != '[') bracket--;
  if (*stop != ';' || *bracket != '[') return p;
  const char *name_end = bracket;
  while (name_end > end && isspace((unsigned char)name_end[-1])) name_end--;
  const char *name = name_end;
  while (name > end && in_word(name[-1])) name--;
  add(out, end, (size_t)(name - end));
  add_text(out, " *const ");
  add(out, name, (size_t)(name_end - name));
  add_text(out, " = cuda_dynamic()");
  return stop;
}

/* asm volatile("text" : "+f"(a), ... : "r"(b), ...) becomes cuda_ptx(__LINE__, "text", (a), ..., (b), ...); what
 * constraints say does not matter here. Returns what is behind it, or `p` where there is none such. */
static const char *inline_ptx(text *out, const char *p, const char *end) {
  const char *q = skip_space(end);
  if (word_is(q, skip_word(q), "volatile")) q = skip_space(skip_word(q));
  if (*q != '(') return p;
  bool operands = false;
  int depth = 1;
  add_text(out, "cuda_ptx(__LINE__, ");
  for (q = skip_space(q + 1); *q != 0 && depth > 0;) {
    const char *item = q;
    q = skip_item(q);
    depth += (*item == '(') - (*item == ')');
    operands |= depth == 1 && *item == ':';
    if (depth == 1 && *item == ':' && strncmp(skip_space(q), "\"memory\"", 8) == 0)
      q = skip_item(skip_space(q)), item = q;
    if (item == q || (*item == '"' && operands)) continue;
    if (depth == 1 && *item == ':')
      add_text(out, ",");
    else
      add(out, item, (size_t)(q - item));
  }
  return q;
}

/* Behind __global__: what makes the kernel callable by its name goes to `table`. */
static void note_kernel(text *table, const char *p) {
  char bounds[128] = "0", name[256] = "";
  while (*p != 0 && *p != '{' && *p != ';') {
    if (!in_word(*p)) {
      p = *p == '(' ? skip_parentheses(p) : skip_item(p);
      continue;
    }
    const char *end = skip_word(p), *next = skip_space(end);
    if (*next == '(' && word_is(p, end, "__launch_bounds__"))
      snprintf(bounds, sizeof bounds, "%.*s", (int)strcspn(next + 1, ",)"), next + 1), end = skip_parentheses(next);
    else if (*next == '(' && name[0] == 0 && !word_is(p, end, "__attribute__") && !word_is(p, end, "__cluster_dims__"))
      snprintf(name, sizeof name, "%.*s", (int)(end - p), p), end = skip_parentheses(next);
    p = end;
  }
  if (*p != '{' || name[0] == 0) return;
  char row[512];
  snprintf(row, sizeof row, "CUDA_KERNEL(%s, %s)\n", name, bounds);
  add_text(table, row);
}

/* ---- faults put into kernels, to show that they are found ---- */

enum { MUTATE_NONE, MUTATE_MEMORY, MUTATE_SHARED, MUTATE_BARRIER, MUTATE_BOUND };

static struct {
  uint32_t kind, nth, seen;
  char line[240]; /* in which the last one was */
} mutation;

/* From the next compilation on, the nth place of this kind in a kernel (counted from 1, in the order of the text) is
 * wrong: the subscript of an array of global memory (1) or shared memory (2) is one too large, a barrier (3) is left
 * out, what a comparison allows (4) is one more. nth 0 or kind 0: none, and places of the kind are counted. How many
 * there have been since the last call. Meant for a test that has the process for itself. */
EXPORT uint32_t cudasim_mutate(uint32_t kind, uint32_t nth) {
  uint32_t seen = mutation.seen;
  mutation.kind = kind;
  mutation.nth = nth;
  mutation.seen = 0;
  return seen;
}

/* The line of the kernel in which the last fault was put. */
EXPORT const char *cudasim_mutated(void) {
  return mutation.line;
}

static bool mutates(uint32_t kind, const char *source, const char *p) {
  if (kind != mutation.kind || ++mutation.seen != mutation.nth) return false;
  while (p > source && p[-1] != '\n') p--;
  snprintf(mutation.line, sizeof mutation.line, "%.*s", (int)strcspn(p, "\n"), p);
  return true;
}

/* The arrays of shared memory that a text has declared so far, as " a b ". */
static void note_shared(text *shared, const char *p) {
  const char *stop = p + strcspn(p, ";");
  while (p < stop) {
    const char *end = in_word(*p) ? skip_word(p) : p + 1;
    if (in_word(*p) && *end == '[') {
      add(shared, p, (size_t)(end - p));
      add_text(shared, " ");
    }
    p = end;
  }
}

static bool is_shared(const text *shared, const char *p, const char *end) {
  char name[64];
  if (*end != '[' || end - p > 60) return false;
  snprintf(name, sizeof name, " %.*s ", (int)(end - p), p);
  return strstr(shared->at, name) != NULL;
}

/* "a < b ? a : b", of which p is at the sign: the same with "<=". */
static bool is_least(const char *source, const char *p) {
  const char *from = p - 1, *answer = strstr(p, " ? ");
  while (from > source && strchr("=,(;", from[-1]) == NULL) from--;
  while (*from == ' ') from++;
  size_t n = (size_t)(p - 1 - from);
  return answer != NULL && answer < p + strcspn(p, ";") && strncmp(answer + 3, from, n) == 0;
}

/* "<" or ">=" between spaces, of numbers. */
static bool is_bound(const char *source, const char *p) {
  if (p == source || p[-1] != ' ') return false;
  return (p[0] == '<' && p[1] == ' ' && !is_least(source, p)) || (p[0] == '>' && p[1] == '=' && p[2] == ' ');
}

/* "(&name)[", of which p is at the bracket: a parameter, which is no access. */
static bool ends_reference(const char *source, const char *p) {
  for (p -= 2; p > source && in_word(*p); p--) continue;
  return *p == '&' && p > source && p[-1] == '(';
}

/* Writes the place p otherwise, if it is the one, and says where to go on; else NULL. */
static const char *mutate(text *out, const text *shared, const char *source, const char *p, const char *end) {
  if (*p == '[' && p > source && p[-1] == ')' && !ends_reference(source, p) && mutates(MUTATE_MEMORY, source, p))
    return add_text(out, "[1 + "), end;
  if (is_shared(shared, p, end) && mutates(MUTATE_SHARED, source, p))
    return add(out, p, (size_t)(end - p)), add_text(out, "[1 + "), end + 1;
  if ((word_is(p, end, "__syncthreads") || word_is(p, end, "__syncwarp")) && mutates(MUTATE_BARRIER, source, p))
    return add_text(out, "(void)0"), skip_parentheses(end);
  if (is_bound(source, p) && mutates(MUTATE_BOUND, source, p))
    return add_text(out, *p == '<' ? "< 1 + " : ">= 1 + "), p + (*p == '<' ? 2 : 3);
  return NULL;
}

/* "(&name)[", of which p is at the "&": an array that a function is given. */
static void note_reference(text *shared, const char *p) {
  const char *end = skip_word(p + 1);
  if (end == p + 1 || end[0] != ')' || end[1] != '[') return;
  add(shared, p + 1, (size_t)(end - p - 1));
  add_text(shared, " ");
}

/* The next piece of a text. Faults are put into kernels, and into the functions that are parts of one: those that are
 * __forceinline__, which stand in front of the kernels. */
static const char *translate_piece(text *out, text *table, text *shared, bool *begun, const char *source,
                                   const char *p) {
  const char *end = in_word(*p) ? skip_word(p) : skip_item(p);
  if (word_is(p, end, "__forceinline__")) shared->n = 1, shared->at[1] = 0, *begun = true;
  if (*begun && *p == '&' && p > source && p[-1] == '(') note_reference(shared, p);
  if (word_is(p, end, "extern")) {
    const char *behind = dynamic_shared(out, p);
    if (behind != p) return behind;
  }
  if (word_is(p, end, "asm")) {
    const char *behind = inline_ptx(out, p, end);
    if (behind != p) return behind;
  }
  if (word_is(p, end, "__global__")) note_kernel(table, end);
  if (word_is(p, end, "__shared__")) {
    note_shared(shared, p);
    end = p + strcspn(p, ";");
  }
  *begun |= table->n > 0;
  const char *behind = *begun ? mutate(out, shared, source, p, end) : NULL;
  if (behind == NULL) add(out, p, (size_t)(end - p));
  return behind != NULL ? behind : end;
}

static char *translate(const char *source) {
  text out = {0}, table = {0}, shared = {0};
  bool begun = false;
  add_text(&shared, " ");
  for (const char *p = source; *p != 0;) p = translate_piece(&out, &table, &shared, &begun, source, p);
  add_text(&out, "\nCUDA_KERNELS_BEGIN\n");
  if (table.n > 0) add_text(&out, table.at);
  add_text(&out, "CUDA_KERNELS_END\n");
  free(table.at);
  free(shared.at);
  return out.at;
}

/* ---- files ---- */

static uint64_t hash_more(uint64_t h, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return (h ^ 0xff) * 0x100000001b3u;
}

void cache_folder(char *out, size_t bytes) {
  const char *given = getenv("XLAC_CUDA_SIM_CACHE"), *tmp = getenv("TMPDIR");
  if (given != NULL && *given != 0)
    snprintf(out, bytes, "%s", given);
  else
    snprintf(out, bytes, "%s/xlac-cuda-sim-%u", tmp != NULL && *tmp != 0 ? tmp : "/tmp", (unsigned)getuid());
  mkdir(out, 0700);
}

static char *read_whole(const char *path, size_t *bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) return fd >= 0 ? close(fd), NULL : NULL;
  char *at = malloc((size_t)st.st_size + 1);
  ssize_t n = read(fd, at, (size_t)st.st_size);
  close(fd);
  if (n != st.st_size) return free(at), NULL;
  at[n] = 0;
  *bytes = (size_t)n;
  return at;
}

static int write_whole(const char *path, const char *at, size_t bytes) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  ssize_t n = write(fd, at, bytes);
  return close(fd) != 0 || n != (ssize_t)bytes ? -1 : 0;
}

static bool on_path(const char *program_name) {
  char path[4096];
  if (strchr(program_name, '/') != NULL) return access(program_name, X_OK) == 0;
  for (const char *p = getenv("PATH"); p != NULL && *p != 0; p += strcspn(p, ":"), p += *p == ':') {
    snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(p, ":"), p, program_name);
    if (access(path, X_OK) == 0) return true;
  }
  return false;
}

static const char *compiler(void) {
  const char *given = getenv("XLAC_CUDA_SIM_CXX");
  if (given != NULL && *given != 0) return given;
  return on_path("g++") ? "g++" : on_path("clang++") ? "clang++" : "c++";
}

/* ---- compiling ---- */

enum { OPTIONS = 64 };
static const char *const flags[] = {"-x",
                                    "c++",
                                    "-std=c++17",
                                    "-O1",
                                    "-ffp-contract=off",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fPIC",
                                    "-shared",
                                    "-nostdlib",
                                    "-w",
                                    "-fno-toplevel-reorder",
                                    "-fno-strict-aliasing",
                                    "-fno-stack-protector",
                                    "-fsanitize=thread",
                                    "-fsanitize=alignment,bounds,integer-divide-by-zero,shift-exponent",
                                    "-Wl,-z,now",
                                    "-Wl,--build-id=none"};
static const char *const libraries[] = {"-lm", "-lc", "-lgcc"};
static const char *const flags_of_gcc[] = {"--param", "tsan-instrument-func-entry-exit=0", "--param",
                                           "tsan-distinguish-volatile=1"};
static const char *const flags_of_clang[] = {"-Wno-everything", "-mllvm", "-tsan-instrument-func-entry-exit=0"};

static int run(const char *const *arguments, const char *log) {
  pid_t child;
  int status = 0;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  int failed = posix_spawnp(&child, arguments[0], &files, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return -1;
  while (waitpid(child, &status, 0) < 0) continue;
  return status;
}

/* The options of NVRTC that mean something here, and those that are known and do not; -1: an option that NVRTC does not
 * have. */
static int take_option(const char *option, const char **out, uint32_t *n, int *capability) {
  static const char *const ignored[] = {"--std=",
                                        "-std=",
                                        "--use_fast_math",
                                        "-use_fast_math",
                                        "--fmad=",
                                        "-fmad=",
                                        "--prec-",
                                        "-prec-",
                                        "--ftz=",
                                        "-ftz=",
                                        "-default-device",
                                        "--device-as-default-execution-space",
                                        "-lineinfo",
                                        "--generate-line-info",
                                        "-G",
                                        "--device-debug",
                                        "--maxrregcount=",
                                        "-maxrregcount=",
                                        "--extra-device-vectorization",
                                        "--restrict",
                                        "-restrict",
                                        "--ptxas-options",
                                        "-Xptxas",
                                        "-w",
                                        "--disable-warnings",
                                        "-split-compile",
                                        "--split-compile",
                                        "--minimal",
                                        "--device-int128",
                                        "-device-int128",
                                        "-minimal",
                                        "--diag-",
                                        "-diag-",
                                        "--relocatable-device-code=",
                                        "-rdc=",
                                        "--dopt",
                                        "-dopt",
                                        "--no-source-include",
                                        "-no-source-include",
                                        "--extensible-whole-program",
                                        "-ewp",
                                        "-v",
                                        "--time="};
  int number;
  if (sscanf(option, "--gpu-architecture=%*[a-z]_%d", &number) == 1 || sscanf(option, "-arch=%*[a-z]_%d", &number) == 1)
    return *capability = number, 0;
  if (strncmp(option, "-D", 2) == 0 || strncmp(option, "-I", 2) == 0 || strncmp(option, "-U", 2) == 0)
    return out[(*n)++] = option, 0;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
    if (strncmp(option, ignored[i], strlen(ignored[i])) == 0) return 0;
  return -1;
}

/* From now on each log says that a kernel spills, unless the source was given this option. NULL: none does. */
static char *spills_without;
EXPORT void cudasim_spills(const char *option) {
  free(spills_without);
  spills_without = option != NULL ? strdup(option) : NULL;
}

static void note_spills(program *p, int n, const char *const *options) {
  bool spills = spills_without != NULL;
  for (int i = 0; i < n && spills; i++) spills = strcmp(options[i], spills_without) != 0;
  free(p->log);
  p->log = strdup(spills ? "ptxas         .     16 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads"
                         : "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
}

static int compile_to(program *p, const char *base, const char *const *extra, uint32_t n_extra, const char *self) {
  char in[4200], out[4200], log[4200], final[4200];
  const char *arguments[OPTIONS + 64];
  uint32_t n = 0;
  static uint32_t made; /* threads of a process may compile the same source */
  uint32_t number = __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
  snprintf(in, sizeof in, "%s.%d-%u.cpp", base, getpid(), number);
  snprintf(out, sizeof out, "%s.%d-%u.so", base, getpid(), number);
  snprintf(log, sizeof log, "%s.%d-%u.log", base, getpid(), number);
  snprintf(final, sizeof final, "%s.so", base);
  const char *cxx = compiler();
  bool clang = strstr(cxx, "clang") != NULL;
  arguments[n++] = cxx;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (!clang || strcmp(flags[i], "-fno-toplevel-reorder") != 0) arguments[n++] = flags[i];
  if (clang)
    for (size_t i = 0; i < sizeof flags_of_clang / sizeof *flags_of_clang; i++) arguments[n++] = flags_of_clang[i];
  else
    for (size_t i = 0; i < sizeof flags_of_gcc / sizeof *flags_of_gcc; i++) arguments[n++] = flags_of_gcc[i];
  for (uint32_t i = 0; i < n_extra; i++) arguments[n++] = extra[i];
  const char *rest[] = {in, "-o", out, "-x", "none", self};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) arguments[n++] = rest[i];
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) arguments[n++] = libraries[i];
  arguments[n] = NULL;
  int result = NVRTC_INTERNAL_ERROR;
  if (write_whole(in, p->source, strlen(p->source)) == 0)
    result = run(arguments, log) == 0 ? NVRTC_SUCCESS : NVRTC_COMPILATION;
  size_t bytes;
  free(p->log);
  p->log = read_whole(log, &bytes);
  if (result == NVRTC_SUCCESS) p->image = read_whole(out, &p->image_bytes);
  if (result == NVRTC_SUCCESS && (p->image == NULL || rename(out, final) != 0)) result = NVRTC_INTERNAL_ERROR;
  unlink(in);
  unlink(log);
  if (result != NVRTC_SUCCESS) unlink(out);
  return result;
}

/* Sources as they were given are kept in the folder XLAC_CUDA_SIM_KEEP, to be looked at. */
static void keep_source(const program *p) {
  static uint32_t number;
  const char *place = getenv("XLAC_CUDA_SIM_KEEP");
  char path[4200];
  if (place == NULL || *place == 0) return;
  snprintf(path, sizeof path, "%.4000s/%d-%u.cu", place, getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
  if (write_whole(path, p->source, strlen(p->source)) != 0) report(SUCCESS, "cannot write %s", path);
}

static int compile_cached(program *p, const char *const *extra, uint32_t n_extra) {
  char base[4096], place[4000], path[4200];
  Dl_info self;
  if (dladdr((void *)&sim, &self) == 0) return NVRTC_INTERNAL_ERROR;
  uint64_t a = hash_more(0xcbf29ce484222325u, p->source, strlen(p->source)),
           b = hash_more(0x9e3779b97f4a7c15u, p->source, strlen(p->source));
  for (uint32_t i = 0; i < n_extra; i++) a = hash_more(a, extra[i], strlen(extra[i]));
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) a = hash_more(a, flags[i], strlen(flags[i]));
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    a = hash_more(a, libraries[i], strlen(libraries[i]));
  a = hash_more(a, compiler(), strlen(compiler()));
  cache_folder(place, sizeof place);
  snprintf(base, sizeof base, "%s/%016llx%016llx", place, (unsigned long long)a, (unsigned long long)b);
  snprintf(path, sizeof path, "%s.so", base);
  free(p->image);
  p->image = read_whole(path, &p->image_bytes);
  return p->image != NULL ? NVRTC_SUCCESS : compile_to(p, base, extra, n_extra, self.dli_fname);
}

/* ---- entry points ---- */

#define ENTER_COMPILER(name)                             \
  do {                                                   \
    int failed_ = api_enter(#name);                      \
    if (failed_ != SUCCESS) return NVRTC_INTERNAL_ERROR; \
  } while (0)

EXPORT int nvrtcVersion(int *major, int *minor) {
  ENTER_COMPILER(nvrtcVersion);
  if (major == NULL || minor == NULL) return NVRTC_INVALID_INPUT;
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(int error) {
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION"};
  return error >= 0 && error < 7         ? names[error]
         : error == NVRTC_INTERNAL_ERROR ? "NVRTC_ERROR_INTERNAL_ERROR"
                                         : "NVRTC_ERROR unknown";
}

EXPORT int nvrtcCreateProgram(program **out, const char *source, const char *name, int n_headers,
                              const char *const *headers, const char *const *include_names) {
  ENTER_COMPILER(nvrtcCreateProgram);
  (void)headers, (void)include_names;
  if (out == NULL || source == NULL) return NVRTC_INVALID_INPUT;
  if (n_headers != 0) return NVRTC_PROGRAM_CREATION_FAILURE;
  program *p = calloc(1, sizeof *p);
  p->source = strdup(source);
  p->name = strdup(name != NULL && *name != 0 ? name : "default_program");
  *out = p;
  return NVRTC_SUCCESS;
}

EXPORT int nvrtcDestroyProgram(program **p) {
  ENTER_COMPILER(nvrtcDestroyProgram);
  if (p == NULL || *p == NULL) return NVRTC_INVALID_PROGRAM;
  free((*p)->source), free((*p)->name), free((*p)->image), free((*p)->log);
  free(*p);
  *p = NULL;
  return NVRTC_SUCCESS;
}

EXPORT int nvrtcCompileProgram(program *p, int n, const char *const *options) {
  const char *extra[OPTIONS];
  char define[64];
  uint32_t n_extra = 0;
  int capability = 75;
  ENTER_COMPILER(nvrtcCompileProgram);
  if (p == NULL) return NVRTC_INVALID_PROGRAM;
  for (int i = 0; i < n; i++)
    if (n_extra >= OPTIONS - 8 || take_option(options[i], extra, &n_extra, &capability) != 0) {
      free(p->log);
      if (asprintf(&p->log, "nvrtc: error: unrecognized option %s found", options[i]) < 0) p->log = NULL;
      return NVRTC_INVALID_OPTION;
    }
  snprintf(define, sizeof define, "-D__CUDA_ARCH__=%d", capability * 10);
  extra[n_extra++] = define;
  keep_source(p);
  text whole = {0};
  add(&whole, cuda_host_text, (size_t)(cuda_host_end - cuda_host_text));
  add_text(&whole, "\n#line 1 \"");
  add_text(&whole, p->name);
  add_text(&whole, "\"\n");
  char *translated = translate(p->source);
  add_text(&whole, translated);
  free(translated);
  char *source = p->source;
  p->source = whole.at;
  int result = compile_cached(p, extra, n_extra);
  p->source = source;
  free(whole.at);
  if (result == NVRTC_SUCCESS) note_spills(p, n, options);
  return result;
}

static int sized(const char *at, size_t n, size_t *bytes) {
  if (bytes == NULL) return NVRTC_INVALID_INPUT;
  *bytes = n;
  return at != NULL ? NVRTC_SUCCESS : NVRTC_INVALID_PROGRAM;
}

EXPORT int nvrtcGetProgramLogSize(program *p, size_t *bytes) {
  ENTER_COMPILER(nvrtcGetProgramLogSize);
  return p == NULL ? NVRTC_INVALID_PROGRAM : sized("", (p->log != NULL ? strlen(p->log) : 0) + 1, bytes);
}

EXPORT int nvrtcGetProgramLog(program *p, char *log) {
  ENTER_COMPILER(nvrtcGetProgramLog);
  if (p == NULL || log == NULL) return NVRTC_INVALID_PROGRAM;
  strcpy(log, p->log != NULL ? p->log : "");
  return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetCUBINSize(program *p, size_t *bytes) {
  ENTER_COMPILER(nvrtcGetCUBINSize);
  return p == NULL ? NVRTC_INVALID_PROGRAM : sized(p->image, p->image_bytes, bytes);
}

EXPORT int nvrtcGetCUBIN(program *p, char *out) {
  ENTER_COMPILER(nvrtcGetCUBIN);
  if (p == NULL || p->image == NULL || out == NULL) return NVRTC_INVALID_PROGRAM;
  memcpy(out, p->image, p->image_bytes);
  return NVRTC_SUCCESS;
}

/* There is no PTX: the image again, which modules are loaded from. */
EXPORT int nvrtcGetPTXSize(program *p, size_t *bytes) {
  ENTER_COMPILER(nvrtcGetPTXSize);
  return p == NULL ? NVRTC_INVALID_PROGRAM : sized(p->image, p->image_bytes, bytes);
}

EXPORT int nvrtcGetPTX(program *p, char *out) {
  ENTER_COMPILER(nvrtcGetPTX);
  if (p == NULL || p->image == NULL || out == NULL) return NVRTC_INVALID_PROGRAM;
  memcpy(out, p->image, p->image_bytes);
  return NVRTC_SUCCESS;
}

EXPORT int nvrtcGetNumSupportedArchs(int *n) {
  ENTER_COMPILER(nvrtcGetNumSupportedArchs);
  return n == NULL ? NVRTC_INVALID_INPUT : (*n = 4, NVRTC_SUCCESS);
}

EXPORT int nvrtcGetSupportedArchs(int *out) {
  static const int known[] = {80, 90, 100, 120};
  ENTER_COMPILER(nvrtcGetSupportedArchs);
  if (out == NULL) return NVRTC_INVALID_INPUT;
  memcpy(out, known, sizeof known);
  return NVRTC_SUCCESS;
}
