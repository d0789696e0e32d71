/* Modules, functions, launches. An image is what compile.c makes: a shared library for the host, whose bytes stand in
 * for a cubin. Each load opens a copy of its own. */
#define _GNU_SOURCE
#include "sim.h"

#include <assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODULE = 0x4d4f4455, OPT_IN = 232448, STATIC_MOST = 49152 };

/* As in cuda_host.cuh. */
typedef struct image_kernel {
  const char *name;
  void (*call)(void **parameters);
  const uint32_t *sizes; /* of parameters */
  uint32_t n, most_threads;
} image_kernel;

static size_t image_bytes(const unsigned char *image) {
  Elf64_Ehdr h;
  memcpy(&h, image, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_DYN) return 0;
  return h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
}

/* By a path of its own: the loader knows libraries by their paths. */
static void *open_image(const void *image, size_t bytes) {
  char path[4200];
  cache_folder(path, 4096);
  strcat(path, "/load-XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) return NULL;
  void *library = write(fd, image, bytes) == (ssize_t)bytes ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) report(INVALID_IMAGE, "an image that the host cannot load: %s", dlerror());
  close(fd);
  unlink(path);
  return library;
}

/* ---- what the image says ---- */

static void find_extent(sim_module *m, const struct link_map *map, const unsigned char *image) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
  const Elf64_Phdr *p = (const Elf64_Phdr *)(image + h->e_phoff);
  m->low = ~(address)0;
  for (int i = 0; i < h->e_phnum; i++) {
    if (p[i].p_type != PT_LOAD) continue;
    address at = map->l_addr + p[i].p_vaddr;
    if (at < m->low) m->low = at;
    if (at + p[i].p_memsz > m->high) m->high = at + p[i].p_memsz;
  }
}

static const Elf64_Shdr *section_named(const unsigned char *image, const char *name) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
  const Elf64_Shdr *s = (const Elf64_Shdr *)(image + h->e_shoff);
  const char *names = (const char *)image + s[h->e_shstrndx].sh_offset;
  for (int i = 0; i < h->e_shnum; i++)
    if (strcmp(names + s[i].sh_name, name) == 0) return &s[i];
  return NULL;
}

/* The mangled name of a variable in a function of C is _ZZ, length and name of the function, E, length and name of its
 * own. */
static void plain_name(const char *symbol, char *out, size_t bytes, char *function, size_t function_bytes) {
  unsigned n = 0, length = 0;
  int at = 0;
  function[0] = 0;
  snprintf(out, bytes, "%s", symbol);
  if (strncmp(symbol, "_ZZ", 3) != 0 || sscanf(symbol + 3, "%u%n", &n, &at) != 1) return;
  const char *f = symbol + 3 + at;
  if (strlen(f) <= n) return;
  snprintf(function, function_bytes, "%.*s", (int)n, f);
  const char *v = f + n;
  while (*v != 0 && *v != 'E') v++;
  if (*v == 'E' && sscanf(v + 1, "%u%n", &length, &at) == 1)
    snprintf(out, bytes, "%.*s", (int)length, v + 1 + at);
  else if (*v == 'E')
    snprintf(out, bytes, "%s", v + 1);
}

static void add_shared(sim_module *m, const char *symbol, address at, size_t bytes) {
  char name[64], function[256];
  plain_name(symbol, name, sizeof name, function, sizeof function);
  if (strncmp(name, "cuda_guard_", 11) == 0) return;
  m->shared = realloc(m->shared, (m->n_shared + 1) * sizeof *m->shared);
  sim_shared *v = &m->shared[m->n_shared++];
  *v = (sim_shared){.at = at, .bytes = bytes};
  memcpy(v->name, name, sizeof name);
  for (sim_kernel *k = m->kernels; k != NULL; k = k->next)
    if (function[0] == 0 || strcmp(k->name, function) == 0) k->static_shared += (uint32_t)bytes;
}

static void find_shared(sim_module *m, const struct link_map *map, const unsigned char *image) {
  const Elf64_Shdr *section = section_named(image, "cuda_shared"), *symbols = section_named(image, ".symtab"),
                   *strings = section_named(image, ".strtab");
  if (section == NULL || symbols == NULL || strings == NULL) return;
  const Elf64_Sym *s = (const Elf64_Sym *)(image + symbols->sh_offset);
  for (size_t i = 0; i < symbols->sh_size / sizeof *s; i++)
    if (ELF64_ST_TYPE(s[i].st_info) == STT_OBJECT && s[i].st_value >= section->sh_addr &&
        s[i].st_value < section->sh_addr + section->sh_size)
      add_shared(m, (const char *)image + strings->sh_offset + s[i].st_name, map->l_addr + s[i].st_value, s[i].st_size);
  m->section = calloc(1, sizeof *m->section);
  *m->section = (allocation){.at = map->l_addr + section->sh_addr, .bytes = section->sh_size, .kind = MEMORY_SHARED};
  shadow_add(m->section);
}

static void find_kernels(sim_module *m, const image_kernel *table) {
  for (; table->name != NULL; table++) {
    sim_kernel *k = calloc(1, sizeof *k);
    *k = (sim_kernel){.name = intern(table->name),
                      .call = table->call,
                      .n_parameters = table->n,
                      .sizes = table->sizes,
                      .most_threads = table->most_threads,
                      .dynamic_most = STATIC_MOST,
                      .module = m,
                      .next = m->kernels};
    m->kernels = k;
  }
}

bool module_holds(const sim_module *m, address at) {
  return at >= m->low && at < m->high;
}

/* The variable that an address is in, or the last one before it. */
const sim_shared *module_shared(const sim_module *m, address at) {
  const sim_shared *best = NULL;
  if (m->section == NULL || at < m->section->at || at >= m->section->at + m->section->bytes) return NULL;
  for (uint32_t i = 0; i < m->n_shared; i++)
    if (m->shared[i].at <= at && (best == NULL || m->shared[i].at > best->at)) best = &m->shared[i];
  return best;
}

/* ---- entry points ---- */

static int load(void **module, const void *image, sim_device *d) {
  size_t bytes = image_bytes(image);
  if (bytes == 0) return INVALID_IMAGE;
  void *library = open_image(image, bytes);
  const image_kernel *table = library != NULL ? dlsym(library, "cuda_image") : NULL;
  struct link_map *map = NULL;
  if (table == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return INVALID_IMAGE;
  sim_module *m = calloc(1, sizeof *m);
  *m = (sim_module){.magic = MODULE, .library = library, .device = d};
  pthread_mutex_lock(&sim.lock);
  find_extent(m, map, image);
  find_kernels(m, table);
  find_shared(m, map, image);
  sim.n_modules++;
  pthread_mutex_unlock(&sim.lock);
  *module = m;
  return SUCCESS;
}

EXPORT int cuModuleLoadData(void **module, const void *image) {
  sim_device *d;
  ENTER_DEVICE(cuModuleLoadData, &d);
  return module == NULL || image == NULL ? INVALID_VALUE : load(module, image, d);
}

EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
  sim_device *d;
  ENTER_DEVICE(cuModuleLoadDataEx, &d);
  (void)n, (void)options, (void)values;
  return module == NULL || image == NULL ? INVALID_VALUE : load(module, image, d);
}

EXPORT int cuModuleUnload(sim_module *m) {
  ENTER_DEVICE(cuModuleUnload, NULL);
  if (m == NULL || m->magic != MODULE) return INVALID_HANDLE;
  pthread_mutex_lock(&sim.lock);
  streams_wait_all(m->device);
  m->magic = 0;
  sim.n_modules--;
  pthread_mutex_unlock(&sim.lock);
  pthread_mutex_lock(&sim.executing);
  if (m->section != NULL) {
    m->section->freed = true;
    shadow_remove(m->section);
  }
  pthread_mutex_unlock(&sim.executing);
  for (sim_kernel *k = m->kernels; k != NULL; k = k->next) k->call = NULL; /* a handle that is used late is an error */
  dlclose(m->library);
  return SUCCESS;
}

EXPORT int cuModuleGetFunction(sim_kernel **function, sim_module *m, const char *name) {
  ENTER_DEVICE(cuModuleGetFunction, NULL);
  if (function == NULL || name == NULL) return INVALID_VALUE;
  if (m == NULL || m->magic != MODULE) return INVALID_HANDLE;
  for (sim_kernel *k = m->kernels; k != NULL; k = k->next)
    if (strcmp(k->name, name) == 0) return *function = k, SUCCESS;
  return NOT_FOUND;
}

EXPORT int cuModuleGetGlobal_v2(address *at, size_t *bytes, sim_module *m, const char *name) {
  ENTER_DEVICE(cuModuleGetGlobal_v2, NULL);
  if (m == NULL || m->magic != MODULE) return INVALID_HANDLE;
  void *p = dlsym(m->library, name);
  Dl_info info;
  const Elf64_Sym *symbol = NULL;
  if (p == NULL || dladdr1(p, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL) return NOT_FOUND;
  if (at != NULL) *at = (address)(uintptr_t)p;
  if (bytes != NULL) *bytes = symbol->st_size;
  return SUCCESS;
}

static uint32_t kernel_threads(const sim_kernel *k) {
  return k->most_threads != 0 ? k->most_threads : 1024;
}

/* CUfunction_attribute; registers are no more than a number. */
EXPORT int cuFuncGetAttribute(int *value, int attribute, sim_kernel *k) {
  ENTER_DEVICE(cuFuncGetAttribute, NULL);
  if (value == NULL || k == NULL) return INVALID_VALUE;
  switch (attribute) {
    case 0:
      return *value = (int)kernel_threads(k), SUCCESS;
    case 1:
      return *value = (int)k->static_shared, SUCCESS;
    case 2:
    case 3:
    case 7:
      return *value = 0, SUCCESS;
    case 4:
      return *value = 32, SUCCESS;
    case 5:
    case 6:
      return *value = sim.capability, SUCCESS;
    case 8:
      return *value = (int)k->dynamic_most, SUCCESS;
    default:
      return INVALID_VALUE;
  }
}

EXPORT int cuFuncSetAttribute(sim_kernel *k, int attribute, int value) {
  ENTER_DEVICE(cuFuncSetAttribute, NULL);
  if (k == NULL || (attribute != 8 && attribute != 9)) return INVALID_VALUE;
  if (attribute == 9) return SUCCESS; /* how much of the cache to prefer */
  if (value < 0 || (uint32_t)value + k->static_shared > OPT_IN) return INVALID_VALUE;
  k->dynamic_most = (uint32_t)value;
  return SUCCESS;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, sim_kernel *k, int threads, size_t dynamic) {
  ENTER_DEVICE(cuOccupancyMaxActiveBlocksPerMultiprocessor, NULL);
  if (blocks == NULL || k == NULL || threads <= 0) return INVALID_VALUE;
  size_t shared = dynamic + k->static_shared + 1024, by_shared = 233472 / shared,
         by_threads = 2048u / (unsigned)threads;
  size_t least = by_shared < by_threads ? by_shared : by_threads;
  *blocks = least < 32 ? (int)least : 32;
  return SUCCESS;
}

static int execute_launch(sim_work *w) {
  return block_run_grid((sim_launch *)w);
}
static void release_launch(sim_work *w) {
  free(((sim_launch *)w)->parameters);
}

/* Values are taken now, as a launch does. */
static void **copy_parameters(const sim_kernel *k, void **from) {
  size_t bytes = k->n_parameters * sizeof(void *);
  for (uint32_t i = 0; i < k->n_parameters; i++) bytes = (bytes + 15) / 16 * 16 + k->sizes[i];
  void **to = calloc(1, bytes + 16);
  size_t at = k->n_parameters * sizeof(void *);
  for (uint32_t i = 0; i < k->n_parameters; i++) {
    at = (at + 15) / 16 * 16;
    to[i] = (char *)to + at;
    memcpy(to[i], from[i], k->sizes[i]);
    at += k->sizes[i];
  }
  return to;
}

static int check_launch(const sim_kernel *k, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        void **parameters) {
  if (k == NULL || k->call == NULL) return INVALID_HANDLE;
  for (int i = 0; i < 3; i++)
    if (grid[i] == 0 || block[i] == 0 || block[i] > (i < 2 ? 1024u : 64u) || grid[i] > (i == 0 ? 0x7fffffffu : 65535u))
      return report(INVALID_VALUE, "kernel %s: a grid of (%u, %u, %u) blocks of (%u, %u, %u) threads", k->name, grid[0],
                    grid[1], grid[2], block[0], block[1], block[2]);
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads > 1024)
    return report(INVALID_VALUE, "kernel %s: blocks of %llu threads", k->name, (unsigned long long)threads);
  if (threads > kernel_threads(k))
    return report(LAUNCH_OUT_OF_RESOURCES, "kernel %s: blocks of %llu threads, where its launch bounds say %u", k->name,
                  (unsigned long long)threads, kernel_threads(k));
  if (shared > k->dynamic_most || shared + k->static_shared > OPT_IN || k->static_shared > STATIC_MOST)
    return report(INVALID_VALUE,
                  "kernel %s: %u bytes of dynamic and %u of static shared memory; the attribute allows %u", k->name,
                  shared, k->static_shared, k->dynamic_most);
  if (k->n_parameters > 0 && parameters == NULL) return report(INVALID_VALUE, "kernel %s: no parameters", k->name);
  for (uint32_t i = 0; i < k->n_parameters; i++)
    if (parameters[i] == NULL) return report(INVALID_VALUE, "kernel %s: no parameter %u", k->name, i);
  return SUCCESS;
}

int launch_make(sim_kernel *k, const unsigned grid[3], const unsigned block[3], unsigned shared, void **parameters,
                sim_work **out) {
  int result = check_launch(k, grid, block, shared, parameters);
  if (result != SUCCESS) return result;
  sim_launch *l = calloc(1, sizeof *l);
  *l =
      (sim_launch){.work = {.execute = execute_launch, .release = release_launch}, .kernel = k, .shared_bytes = shared};
  memcpy(l->grid, grid, sizeof l->grid);
  memcpy(l->block, block, sizeof l->block);
  l->parameters = copy_parameters(k, parameters);
  *out = &l->work;
  return SUCCESS;
}

EXPORT int cuLaunchKernel(sim_kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
  ENTER_DEVICE(cuLaunchKernel, NULL);
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  sim_work *work = NULL;
  if (extra != NULL) return NOT_SUPPORTED;
  int result = launch_make(k, grid, block, shared, parameters, &work);
  if (result != SUCCESS) return result;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  if (s == NULL || s->device != k->module->device) {
    result = s == NULL ? INVALID_HANDLE : INVALID_CONTEXT;
    release_launch(work);
    free(work);
  } else {
    result = stream_enqueue(s, work, "kernel", k->name);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}
