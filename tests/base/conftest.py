"""Builds csrc/base with the helpers of shim.h as one cffi module, once a session."""

import importlib.util
import os
import pathlib

import cffi
import pytest

HERE = pathlib.Path(__file__).parent
CSRC = HERE.parents[1] / "csrc"
DEVICES = {"device", "devices", "host", "host_device", "host_queue"}  # what knows programs: tests/device
SOURCES = sorted([*(CSRC / "base").rglob("*.c"), *(p for p in (CSRC / "runtime").rglob("*.c") if p.stem not in DEVICES)])

CDEF = """
typedef struct xlac_error { int32_t code; uint32_t line; uint32_t col; char op[96]; char message[640]; char hint[256]; }
    xlac_error;
typedef enum base_code { BASE_OK, ... } base_code;
int base_fail(xlac_error *err, base_code code, const char *format, ...);
int base_fail_at(xlac_error *err, base_code code, uint32_t line, uint32_t col, const char *op, const char *format, ...);
int base_hint(xlac_error *err, int status, const char *format, ...);
int base_oom(xlac_error *err, const char *what);
const char *base_code_title(int code);
const char *base_code_name(int code);

typedef struct base_dtype_info {
  const char *text;
  uint8_t kind, bits, bytes, exponent_bits, mantissa_bits;
  int16_t bias;
  ...;
} base_dtype_info;
const base_dtype_info *base_dtype_of(int t);
void base_convert(int to, void *dst, int from, const void *src, size_t n);
double base_load_f64(int t, const void *p);
int64_t base_load_i64(int t, const void *p);
void base_store_f64(int t, void *p, double v);
void base_store_i64(int t, void *p, int64_t v);
int base_dtype_from_text(const char *s, size_t n);
int base_dtype_real_part(int t);
bool base_float_has_inf(int t);
bool base_float_has_nan(int t);
bool base_float_has_negative_zero(int t);
bool base_float_is_signed(int t);
void shim_encode_f32(int t, const float *v, uint32_t *out, size_t n);
void shim_encode_f64(int t, const double *v, uint32_t *out, size_t n);
void shim_decode_f32(int t, const uint32_t *bits, float *out, size_t n);
void shim_decode_f64(int t, const uint32_t *bits, double *out, size_t n);

const char *base_parse_f64(const char *p, const char *end, double *out);
const char *base_parse_f32(const char *p, const char *end, float *out);
const char *base_parse_i64(const char *p, const char *end, int64_t *out);
const char *base_parse_u64(const char *p, const char *end, uint64_t *out);
size_t base_print_float(int t, uint64_t bits, char *out);
size_t shim_parse_f64(const char *text, size_t n, double *out, size_t room, size_t *at);
size_t shim_parse_f32(const char *text, size_t n, float *out, size_t room, size_t *at);
size_t shim_print(int t, const void *bits, size_t n, char *out);
typedef struct base_power5 { uint64_t high, low; } base_power5;
const base_power5 *shim_power5(int q);

typedef struct base_alloc { void *(*fn)(void *ctx, void *ptr, size_t size); void *ctx; } base_alloc;
extern const base_alloc base_alloc_libc;
typedef struct shim_faulty { long left, live, calls; } shim_faulty;
base_alloc shim_faulty_alloc(shim_faulty *f);
typedef struct base_arena { base_alloc alloc; char *at, *end; size_t used; ...; } base_arena;
void base_arena_init(base_arena *a, base_alloc alloc);
void base_arena_free(base_arena *a);
void *base_arena_alloc(base_arena *a, size_t size);
void *base_arena_zalloc(base_arena *a, size_t size);
void *base_arena_aligned(base_arena *a, size_t size, size_t align);
void *base_arena_array(base_arena *a, size_t n, size_t size);
void base_arena_foresee(base_arena *a, size_t bytes);
char *base_arena_strndup(base_arena *a, const char *s, size_t n);
void *base_arena_memdup(base_arena *a, const void *p, size_t n);
bool base_vec_grow(base_alloc alloc, void **items, uint32_t *cap, size_t item_size, size_t need);
bool shim_vec_push(base_alloc alloc, size_t n, uint64_t *sum);

typedef struct base_map { uint32_t n, cap; ...; } base_map;
void base_map_init(base_map *m, base_alloc alloc);
void base_map_free(base_map *m);
void base_map_clear(base_map *m);
bool base_map_set(base_map *m, uint64_t key, uint64_t value);
bool base_map_get(const base_map *m, uint64_t key, uint64_t *value);

typedef struct base_istr { uint32_t n; uint32_t hash; char s[]; } base_istr;
typedef struct base_interner { uint32_t n, cap; ...; } base_interner;
void base_interner_init(base_interner *t, base_arena *arena);
void base_interner_free(base_interner *t);
const base_istr *base_intern(base_interner *t, const char *s, size_t n);
const base_istr *base_intern_find(const base_interner *t, const char *s, size_t n);
uint32_t base_hash(const char *s, size_t n);
typedef struct base_text { char *s; size_t n, cap; bool failed; ...; } base_text;
void base_text_init(base_text *t, base_alloc alloc);
void base_text_free(base_text *t);
void base_put(base_text *t, const char *s, size_t n);
void base_putc(base_text *t, char c);
void base_puts(base_text *t, const char *s);
void base_put_i64(base_text *t, int64_t v);
void base_put_u64(base_text *t, uint64_t v);
void base_putf(base_text *t, const char *format, ...);
char *base_text_cstr(base_text *t);

typedef struct rt_pool rt_pool;
uint32_t rt_cpu_count(void);
uint32_t rt_cgroup_cpus(const char *membership, const char *mount);
int rt_pool_create(rt_pool **out, uint32_t threads, base_alloc alloc, xlac_error *err);
void rt_pool_destroy(rt_pool *p);
uint32_t rt_pool_size(const rt_pool *p);
uint32_t rt_pool_started(const rt_pool *p);
uint32_t shim_parallel(rt_pool *p, size_t n, size_t grain, uint8_t *visits, uint64_t *ends, bool nested, int work);
uint64_t shim_storm(rt_pool *p, size_t calls, size_t n);
"""

FLAGS = ["-std=gnu11", "-O2", "-g", "-UNDEBUG", "-Wno-unused-function"]
# XLAC_SANITIZE=address,undefined LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 pytest ...
SANITIZERS = os.environ.get("XLAC_SANITIZE")
if SANITIZERS:
    FLAGS += [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=undefined"]


@pytest.fixture(scope="session")
def module(tmp_path_factory):
    """The compiled module: .lib has the C functions, .ffi makes C values.

    All files are one unit, as embedders may build it: that shows their static names to be distinct too.
    """
    where = tmp_path_factory.mktemp("base")
    builder = cffi.FFI()
    builder.cdef(CDEF)
    unit = "".join(f'#include "{p}"\n' for p in SOURCES)
    builder.set_source("xlac_base_shim", unit + '#include "shim.h"\n', include_dirs=[str(CSRC), str(HERE)],
                       extra_compile_args=FLAGS,
                       extra_link_args=[f"-fsanitize={SANITIZERS}"] if SANITIZERS else [], libraries=["pthread"])
    path = builder.compile(tmpdir=str(where))
    spec = importlib.util.spec_from_file_location("xlac_base_shim", path)
    shim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shim)
    return shim


@pytest.fixture(scope="session")
def lib(module):
    return module.lib


@pytest.fixture(scope="session")
def ffi(module):
    return module.ffi


@pytest.fixture(scope="session")
def dtypes(lib, ffi):
    """Name -> number of every element type."""
    texts, t = [], 1
    while not texts or texts[-1] != "c128":
        texts.append(ffi.string(lib.base_dtype_of(t).text).decode())
        t += 1
    return {text: i + 1 for i, text in enumerate(texts)}
