/* Executables as bytes. What is kept is the program after the passes, as text, and how to plan it: planning is a matter
 * of microseconds, and everything that a reader checks in a program is checked again. So bytes that somebody has forged
 * can't do more than any program can; the checksum is against accidents.
 *
 *   8 magic, 4 format, 4 flags, 4 threads, 4 devices, 16 version of xlac, 8 size of the text, the text, 8 checksum
 *
 * Numbers are little-endian. Of a program of several devices (a group) it is the one that was compiled, behind a line
 * with the numbers of its donated parameters: it is partitioned again. */
#include "../base/str.h"
#include "../text/text.h"
#include "api.h"
#include "cache.h"
#include "executable.h"

enum {
  CONTAINER_FORMAT = 1,
  CONTAINER_HEAD = 48,
  CONTAINER_TAIL = 8,
  CONTAINER_NO_BLAS = 1,
  CONTAINER_NO_FUSION = 2,
  CONTAINER_FAST = 4, /* numerics */
  CONTAINER_MLIR = 8, /* of a group: the text's form */
  CONTAINER_NO_PASSES = 16,
  CONTAINER_FLAGS = 31
};

/* A byte that is not a text, and line ends of both kinds, which careless copying changes. */
static const unsigned char container_magic[8] = {0x89, 'X', 'L', 'A', 'C', '\r', '\n', 0x1a};

/* Little-endian on any machine. */
static void container_put(unsigned char *at, uint64_t v, int bytes) {
  assert(bytes > 0 && bytes <= 8);
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t container_get(const unsigned char *at, int bytes) {
  assert(bytes > 0 && bytes <= 8);
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint64_t)at[i] << (8 * i);
  return v;
}

/* Each step is one to one in the state and in the word, so one changed word always shows. */
static uint64_t container_sum(const unsigned char *p, size_t n) {
  uint64_t h = 0x9e3779b97f4a7c15u ^ n;
  for (size_t i = 0; i < n; i += 8) {
    h = (h ^ container_get(p + i, n - i < 8 ? (int)(n - i) : 8)) * 0xff51afd7ed558ccdu;
    h = h << 29 | h >> 35;
  }
  return h ^ h >> 32;
}

/* The options of reading what a compiled program prints. */
static const text_parse_options container_text = {.chlo = true, .halves = true};

/* Fails for what HLO's text can't hold. */
static int container_refuse_text(const xlac_error *why, xlac_error *err) {
  if (why->code == XLAC_E_OUT_OF_MEMORY) return base_oom(err, "serializing");
  if (why->code == XLAC_E_INTERRUPTED) return base_interrupted(err);
  return base_hint(
      err,
      base_fail_at(err, XLAC_E_BAD_EXECUTABLE, 0, 0, why->op, "the program can't be serialized: %.500s", why->message),
      "serialize the module instead (Module.to_bytes), and compile it where it is loaded");
}

/* What is written must be read, so it is loaded once. Cheap: with one thread and without BLAS, as only
 * reading and planning are tried. What the text form can't hold is found here, where the caller can do
 * something about it, not on another machine. */
static int container_prove(const void *bytes, size_t n, xlac_error *err) {
  const xlac_compile_options cheap = {XLAC_OPTIONS(xlac_compile_options), .threads = 1, .no_blas = true};
  xlac_executable *again = NULL;
  xlac_error why = {0};
  int status = xlac_executable_load(bytes, n, &cheap, &again, &why);
  xlac_executable_destroy(again);
  return status == 0 ? 0 : container_refuse_text(&why, err);
}

/* Constants to the bit: where XLA's digits read back as another number, they are not used. */
int api_print_exact(base_text *out, const ir_module *m, xlac_error *err) {
  const text_print_options exact = {.exact = true};
  TRY(text_check_hlo(m, err));
  return text_print_hlo(out, m, &exact, err);
}

int api_parse_exact(ir_module **out, const char *text, size_t n, xlac_error *err) {
  TRY(text_parse_hlo(out, text, n, &container_text, err));
  (*out)->unbounded = true;
  return 0;
}

static void container_put_donated(base_text *t, const xlac_executable *exe) {
  for (uint32_t i = 0; i < exe->n_donated; i++) base_putf(t, "%u ", (unsigned)exe->donated[i]);
  base_puts(t, "\n");
}

static int container_print(xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  static const mlir_print_options located = {.locations = true};
  xlac_module *m = exe->source ? exe->source : xlac_executable_module(exe);
  base_text t;
  base_text_init(&t, base_alloc_libc);
  if (exe->source) container_put_donated(&t, exe);
  api_lock(m);
  xlac_error why = {0};
  int status = api_done(
      m, m->ir->form == IR_FORM_MLIR ? text_print_mlir(&t, m->ir, &located, &why) : api_print_exact(&t, m->ir, &why));
  if (status == 0) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return container_refuse_text(&why, err);
}

/* The bytes are the caller's, freed with xlac_free. The version of xlac is for people: readers go by the
 * format alone. */
int xlac_executable_serialize(xlac_executable *exe, char **bytes, size_t *n, xlac_error *err) {
  char *text = NULL;
  size_t length = 0, all = 0;
  TRY(container_print(exe, &text, &length, err));
  unsigned char *out =
      base_add(length, CONTAINER_HEAD + CONTAINER_TAIL, &all) ? base_malloc(base_alloc_libc, all) : NULL;
  if (!out) {
    xlac_free(text);
    return base_oom(err, "a serialized executable");
  }
  xlac_compile_options options = api_executable_options(exe);
  memset(out, 0, CONTAINER_HEAD);
  memcpy(out, container_magic, sizeof container_magic);
  container_put(out + 8, CONTAINER_FORMAT, 4);
  container_put(out + 12,
                (options.no_blas ? CONTAINER_NO_BLAS : 0) | (options.no_fusion ? CONTAINER_NO_FUSION : 0) |
                    (options.numerics == XLAC_NUMERICS_FAST ? CONTAINER_FAST : 0) |
                    (exe->no_passes ? CONTAINER_NO_PASSES : 0) |
                    (exe->source && exe->source->ir->form == IR_FORM_MLIR ? CONTAINER_MLIR : 0),
                4);
  container_put(out + 16, (uint64_t)options.threads * (options.n_devices ? options.n_devices : 1), 4);
  container_put(out + 20, options.n_devices, 4);
  strncpy((char *)out + 24, xlac_version(), 15);
  container_put(out + 40, length, 8);
  memcpy(out + CONTAINER_HEAD, text, length);
  container_put(out + CONTAINER_HEAD + length, container_sum(out, CONTAINER_HEAD + length), 8);
  xlac_free(text);
  int status = container_prove(out, all, err);
  if (status) {
    base_free(base_alloc_libc, out);
    return status;
  }
  *bytes = (char *)out;
  *n = all;
  return 0;
}

/* What to do is the same whatever is wrong. */
static int container_refuse(xlac_error *err, int status) {
  return base_hint(err, status, "compile the program again, and serialize it with this version of xlac");
}

/* Nothing of the text is looked at before magic, format, length and checksum agree. */
static int container_check(const unsigned char *p, size_t n, xlac_error *err) {
  if (n < sizeof container_magic || memcmp(p, container_magic, sizeof container_magic) != 0)
    return container_refuse(err, base_fail(err, XLAC_E_BAD_EXECUTABLE,
                                           "these bytes are not a serialized executable: they don't begin like one"));
  if (n < CONTAINER_HEAD + CONTAINER_TAIL)
    return container_refuse(
        err, base_fail(err, XLAC_E_BAD_EXECUTABLE, "the serialized executable is cut short after %zu bytes", n));
  uint64_t format = container_get(p + 8, 4), length = container_get(p + 40, 8);
  if (format != CONTAINER_FORMAT)
    return container_refuse(err, base_fail(err, XLAC_E_BAD_EXECUTABLE,
                                           "the executable was serialized in format %llu; this version reads format %d",
                                           (unsigned long long)format, (int)CONTAINER_FORMAT));
  if (length != n - CONTAINER_HEAD - CONTAINER_TAIL)
    return container_refuse(err, base_fail(err, XLAC_E_BAD_EXECUTABLE,
                                           "the serialized executable has %zu bytes, its head says %llu: it is cut "
                                           "short, or something follows it",
                                           n, (unsigned long long)length + CONTAINER_HEAD + CONTAINER_TAIL));
  if (container_sum(p, n - CONTAINER_TAIL) != container_get(p + n - CONTAINER_TAIL, 8))
    return container_refuse(
        err, base_fail(err, XLAC_E_BAD_EXECUTABLE, "the serialized executable is damaged: its checksum is wrong"));
  if (container_get(p + 12, 4) & ~(uint64_t)CONTAINER_FLAGS)
    return container_refuse(
        err, base_fail(err, XLAC_E_BAD_EXECUTABLE, "the serialized executable has options that are unknown here"));
  return 0;
}

/* The numbers before the program of a group. *at: where that begins. */
static int container_read_donated(const char *text, size_t n, size_t *at, uint32_t **out, uint32_t *n_out,
                                  xlac_error *err) {
  const char *end = memchr(text, '\n', n);
  size_t line = end ? (size_t)(end - text) : 0;
  *at = line + 1;
  *n_out = 0;
  if (!end) return container_refuse(err, base_fail(err, XLAC_E_BAD_EXECUTABLE, "no program follows its donations"));
  if (!(*out = base_malloc(base_alloc_libc, (line + 1) * sizeof **out))) return base_oom(err, "an executable");
  for (const char *s = text; s < end; s++) {
    uint32_t v = 0;
    for (; s < end && *s >= '0' && *s <= '9' && v < 1u << 24; s++) v = 10 * v + (uint32_t)(*s - '0');
    if (s == end || *s != ' ')
      return container_refuse(err, base_fail(err, XLAC_E_BAD_EXECUTABLE, "its donations are not numbers"));
    (*out)[(*n_out)++] = v;
  }
  return 0;
}

static int container_load_group(const char *text, size_t n, uint64_t flags, xlac_compile_options *own,
                                xlac_executable **out, xlac_error *err) {
  static const xlac_parse_options parse = {XLAC_OPTIONS(xlac_parse_options), .format = XLAC_FORMAT_MLIR,
                                           .allow_unregistered = true};
  xlac_module *m = NULL;
  ir_module *ir = NULL;
  uint32_t *donated = NULL;
  size_t at = 0;
  int status = container_read_donated(text, n, &at, &donated, &own->n_donate, err);
  own->donate = donated;
  own->no_passes = (flags & CONTAINER_NO_PASSES) != 0;
  if (status == 0 && (flags & CONTAINER_MLIR)) {
    status = xlac_module_parse(&m, text + at, n - at, &parse, err);
  } else if (status == 0) {
    status = api_parse_exact(&ir, text + at, n - at, err);
    if (status == 0) status = api_wrap(&m, ir, err);
  }
  if (status == 0) status = xlac_compile(m, own, out, err);
  xlac_module_destroy(m);
  base_free(base_alloc_libc, donated);
  return status;
}

/* Options of the call win where they narrow (no BLAS, threads); numerics are those it was compiled with,
 * as passes have used them already. */
int xlac_executable_load(const void *bytes, size_t n, const xlac_compile_options *options, xlac_executable **out,
                         xlac_error *err) {
  const unsigned char *p = bytes;
  xlac_compile_options own;
  xlac_module *m = NULL;
  TRY(api_read_compile_options(&own, options, err));
  TRY(container_check(p, n, err));
  uint64_t flags = container_get(p + 12, 4);
  if (!own.threads) own.threads = (uint32_t)container_get(p + 16, 4);
  own.no_blas |= (flags & CONTAINER_NO_BLAS) != 0;
  own.no_fusion |= (flags & CONTAINER_NO_FUSION) != 0;
  own.numerics = flags & CONTAINER_FAST ? XLAC_NUMERICS_FAST : XLAC_NUMERICS_STRICT;
  own.n_devices = (uint32_t)container_get(p + 20, 4);
  const char *text = (const char *)p + CONTAINER_HEAD;
  size_t length = n - CONTAINER_HEAD - CONTAINER_TAIL;
  if (own.n_devices) return container_load_group(text, length, flags, &own, out, err);
  own.no_passes = true; /* they have been run */
  ir_module *ir = NULL;
  TRY(api_parse_exact(&ir, text, length, err));
  TRY(api_wrap(&m, ir, err));
  int status = xlac_compile(m, &own, out, err);
  xlac_module_destroy(m);
  return status;
}
