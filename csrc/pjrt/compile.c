/* Programs: read, compiled, loaded on the devices of their assignment, and saved. */
#include <stdio.h>

#include "pjrt.h"
#include "wire.h"

/* --- compiling --- */

static PJRT_Error *program_parse(const PJRT_Program *p, xlac_module **out) {
  static const struct {
    const char *format;
    int32_t is;
  } formats[] = {{"mlir", XLAC_FORMAT_AUTO}, {"hlo", XLAC_FORMAT_HLO_PROTO}};
  xlac_error err;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    if (strlen(formats[i].format) != p->format_size || memcmp(formats[i].format, p->format, p->format_size) != 0)
      continue;
    const xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .format = formats[i].is};
    return xlac_module_parse(out, p->code, p->code_size, &options, &err) ? pjrt_error_of(&err) : NULL;
  }
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "programs are of format \"mlir\" or \"hlo\", not \"%.*s\"",
                   (int)p->format_size, p->format);
}

static void program_options_of(const pjrt_client_options *client, const pjrt_compile_options *o, xlac_runtime *rt,
                               xlac_compile_options *out) {
  *out = (xlac_compile_options){XLAC_OPTIONS(xlac_compile_options),
                                .threads = o->threads >= 0 ? (uint32_t)o->threads : client->threads,
                                .blas_path = client->blas[0] ? client->blas : NULL,
                                .no_fusion = o->no_fusion,
                                .no_passes = o->no_passes,
                                .runtime = rt,
                                .numerics = o->fast ? XLAC_NUMERICS_FAST : XLAC_NUMERICS_STRICT};
}

/* A client of NULL compiles for a topology, with a runtime of the executable's own. */
static PJRT_Error *program_module(PJRT_Client *c, const pjrt_client_options *client, xlac_module *m, bool saved,
                                  const pjrt_compile_options *o, const char *bytes, size_t n, PJRT_Executable **out) {
  xlac_error err;
  xlac_executable *exe = NULL;
  xlac_compile_options options;
  uint64_t participants = (uint64_t)o->n_replicas * o->n_partitions;
  if (participants < 1 || participants > PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "a program for %u replicas of %u devices", o->n_replicas, o->n_partitions);
  program_options_of(client, o, c ? c->runtime : NULL, &options);
  if (participants > 1) options.n_devices = (uint32_t)participants;
  if (participants > 1 && pjrt_mark_single_calls(m, &err)) return pjrt_error_of(&err);
  if (participants > 1 && pjrt_inspect_shardings(m, saved, &err)) return pjrt_error_of(&err);
  if (xlac_compile(m, &options, &exe, &err)) return pjrt_error_of(&err);
  return pjrt_executable_make(out, c, exe, m, o, bytes, n);
}

/* Ops whose shards a function of Python's computes, in programs of several devices: the package writes the program
 * anew, without them (python/xlac/jax/partitioning.py). What it gives is its own until the thread calls it again. */
typedef int program_python(const char *code, uint64_t size, const char **out, uint64_t *out_size, char *error,
                           uint64_t error_size);

static bool program_names(const PJRT_Program *p, const char *word) {
  size_t n = strlen(word);
  const char *end = p->code + p->code_size, *at = p->code;
  while ((at = memchr(at, word[0], (size_t)(end - at))) && (size_t)(end - at) >= n && memcmp(at, word, n) != 0) at++;
  return at && (size_t)(end - at) >= n;
}

/* Programs that come as text (python/xlac/jax/compiling.py) have CHLO's ops and complex functions yet. xlac's own
 * functions would serve them, but a program that comes in the portable form would give other bits than the same program
 * as text. */
static PJRT_Error *program_expand(const PJRT_Program *p, xlac_module *m) {
  xlac_error err;
  if (!program_names(p, "chlo.") && !program_names(p, "complex<")) return NULL;
  return xlac_module_run(m, "chlo-legalize-to-stablehlo,stablehlo-complex-math-expander", NULL, &err)
             ? pjrt_error_of(&err)
             : NULL;
}

/* `p` is what is to be compiled, in memory of *text where that is not NULL. */
static PJRT_Error *program_partition(const pjrt_client_options *client, PJRT_Program *p, char **text) {
  char why[MEETING_ERROR] = "";
  const char *out = NULL;
  uint64_t n = 0;
  if (!client->python_partition || !program_names(p, "CustomSPMDPartitioning")) return NULL;
  program_python *call = (program_python *)(uintptr_t)client->python_partition;
  if (call(p->code, p->code_size, &out, &n, why, sizeof why)) return pjrt_fail(PJRT_INTERNAL, "%s", why);
  if (!(*text = pjrt_copy_text(out, n))) return pjrt_out_of_memory("a program");
  p->code = *text;
  p->code_size = n;
  return NULL;
}

/* Takes the executable where it fails. */
static PJRT_Error *program_keep_source(const PJRT_Program *program, PJRT_Executable *e) {
  if (!(e->group || e->placed) || program->format_size != 4) return NULL; /* "mlir" */
  e->source = pjrt_copy_text(program->code, program->code_size);
  e->source_size = program->code_size;
  if (e->source) return NULL;
  pjrt_executable_release(e);
  return pjrt_out_of_memory("a program");
}

static PJRT_Error *program_compile(PJRT_Client *c, const pjrt_client_options *client, const PJRT_Program *given,
                                   bool saved, const char *bytes, size_t n, PJRT_Executable **out) {
  pjrt_compile_options o;
  xlac_module *m = NULL;
  PJRT_Program program = *given;
  char *text = NULL;
  int64_t start = pjrt_trace_now();
  PJRT_Error *error = pjrt_read_compile_options(&o, bytes, n);
  if (!error && o.n_partitions > 1) error = program_partition(client, &program, &text);
  if (!error) error = program_parse(&program, &m);
  if (!error && saved) error = program_expand(&program, m);
  if (!error) error = program_module(c, client, m, saved, &o, bytes, n, out);
  if (!error) error = program_keep_source(&program, *out);
  if (!error) pjrt_trace_compilation((*out)->name, start);
  pjrt_free(text);
  xlac_module_destroy(m);
  pjrt_compile_options_free(&o);
  return error;
}

PJRT_Error *pjrt_client_compile(PJRT_Client_Compile_Args *args) {
  PJRT_Executable *e = NULL;
  PJRT_TRY(program_compile(args->client, &args->client->options, args->program, false, args->compile_options,
                           args->compile_options_size, &e));
  return pjrt_executable_load(&args->executable, args->client, e);
}

PJRT_Error *pjrt_compile(PJRT_Compile_Args *args) {
  return program_compile(args->client, &args->topology->options, args->program, false, args->compile_options,
                         args->compile_options_size, &args->executable);
}

/* --- loading --- */

static void program_free_loaded(PJRT_LoadedExecutable *l) {
  pjrt_executable_release(l->executable);
  pjrt_client_release(l->client);
  pjrt_free(l->devices);
  pjrt_free(l->logical);
  pjrt_free(l);
}

/* Without an assignment a program is on the first devices, of this process where it has so many. */
static int32_t program_device_id(const PJRT_LoadedExecutable *l, uint32_t i) {
  const PJRT_Executable *e = l->executable;
  if (e->n_devices) return e->devices[i];
  return (int32_t)(i + (e->n_replicas * e->n_partitions <= l->client->here ? l->client->from : 0));
}

/* The devices of this process, and the process of each. */
static PJRT_Error *program_assign(PJRT_LoadedExecutable *l, uint32_t *processes) {
  const PJRT_Executable *e = l->executable;
  for (uint32_t i = 0; i < e->n_replicas * e->n_partitions; i++) {
    int32_t id = program_device_id(l, i);
    if (id < 0 || (uint32_t)id >= l->client->n_devices)
      return pjrt_fail(PJRT_INVALID_ARGUMENT, "the program is for device %d; devices are 0 to %u", id,
                       l->client->n_devices - 1);
    PJRT_Device *d = l->client->device_list[id];
    processes[i] = (uint32_t)d->description.process;
    if (!pjrt_is_here(d)) continue;
    l->devices[l->n_devices] = d;
    l->logical[l->n_devices++] = (PJRT_LogicalDeviceIds){(int)(i / e->n_partitions), (int)(i % e->n_partitions)};
  }
  if (l->n_devices) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "no device of %s is one of process %u", e->name, l->client->options.node);
}

/* What several processes run they run together. What is loaded once more has joined them. */
static PJRT_Error *program_share(const PJRT_LoadedExecutable *l, const uint32_t *processes) {
  PJRT_Executable *e = l->executable;
  PJRT_Error *error = NULL;
  char label[200];
  uint32_t n = e->n_replicas * e->n_partitions;
  if (n == l->n_devices) return NULL;
  snprintf(label, sizeof label, "%.120s, program %s", e->name, e->fingerprint);
  pthread_mutex_lock(&e->lock);
  if (!e->shared) error = pjrt_world_share(l->client->world, e->exe, label, processes, n);
  e->shared = !error;
  e->inline_ = false; /* others may be late */
  pthread_mutex_unlock(&e->lock);
  return error;
}

PJRT_Error *pjrt_executable_load(PJRT_LoadedExecutable **out, PJRT_Client *c, PJRT_Executable *e) {
  PJRT_LoadedExecutable *l = pjrt_alloc(sizeof *l);
  if (!l) {
    pjrt_executable_release(e);
    return pjrt_out_of_memory("an executable");
  }
  l->executable = e;
  l->client = pjrt_client_retain(c);
  uint32_t n = e->n_replicas * e->n_partitions, processes[PJRT_DEVICES_MAX];
  l->devices = pjrt_alloc(n * sizeof(PJRT_Device *));
  l->logical = pjrt_alloc(n * sizeof *l->logical);
  assert(n <= PJRT_DEVICES_MAX);
  PJRT_Error *error = l->devices && l->logical ? program_assign(l, processes) : pjrt_out_of_memory("an executable");
  if (!error) error = program_share(l, processes);
  if (error) {
    program_free_loaded(l);
    return error;
  }
  *out = l;
  return NULL;
}

PJRT_Error *pjrt_client_load(PJRT_Client_Load_Args *args) {
  return pjrt_executable_load(&args->loaded_executable, args->client, pjrt_executable_retain(args->executable));
}

PJRT_Error *pjrt_loaded_executable_destroy(PJRT_LoadedExecutable_Destroy_Args *args) {
  if (args->executable) program_free_loaded(args->executable);
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_get_executable(PJRT_LoadedExecutable_GetExecutable_Args *args) {
  args->executable = pjrt_executable_retain(args->loaded_executable->executable);
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_addressable_devices(PJRT_LoadedExecutable_AddressableDevices_Args *args) {
  args->addressable_devices = args->executable->devices;
  args->num_addressable_devices = args->executable->n_devices;
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_addressable_device_logical_ids(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args) {
  args->addressable_device_logical_ids = args->executable->logical;
  args->num_addressable_device_logical_ids = args->executable->n_devices;
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_delete(PJRT_LoadedExecutable_Delete_Args *args) {
  atomic_store(&args->executable->deleted, true);
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_is_deleted(PJRT_LoadedExecutable_IsDeleted_Args *args) {
  args->is_deleted = atomic_load(&args->executable->deleted);
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_fingerprint(PJRT_LoadedExecutable_Fingerprint_Args *args) {
  args->executable_fingerprint = args->executable->executable->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

/* --- the assignment as a DeviceAssignmentProto --- */

static void program_drop_assignment(PJRT_DeviceAssignmentSerialized *a) {
  pjrt_free(a);
}

PJRT_Error *pjrt_loaded_executable_get_device_assignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args *args) {
  const PJRT_LoadedExecutable *l = args->executable;
  const PJRT_Executable *e = l->executable;
  unsigned char *bytes = pjrt_alloc(32 + (size_t)e->n_replicas * e->n_partitions * 24), ids[12], inner[12];
  if (!bytes) return pjrt_out_of_memory("a device assignment");
  size_t n = 0;
  bytes[n++] = 1 << 3; /* replica_count */
  n += wire_put_varint(bytes + n, e->n_replicas);
  bytes[n++] = 2 << 3; /* computation_count */
  n += wire_put_varint(bytes + n, e->n_partitions);
  for (uint32_t p = 0; p < e->n_partitions; p++) { /* a ComputationDevice: packed ids of the replicas */
    size_t length = 0;
    for (uint32_t r = 0; r < e->n_replicas; r++)
      length += wire_put_varint(ids, (uint64_t)program_device_id(l, r * e->n_partitions + p));
    bytes[n++] = 3 << 3 | 2;
    n += wire_put_varint(bytes + n, 1 + wire_put_varint(inner, length) + length);
    bytes[n++] = 1 << 3 | 2;
    n += wire_put_varint(bytes + n, length);
    for (uint32_t r = 0; r < e->n_replicas; r++)
      n += wire_put_varint(bytes + n, (uint64_t)program_device_id(l, r * e->n_partitions + p));
  }
  args->serialized_bytes = (char *)bytes;
  args->serialized_bytes_size = n;
  args->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)bytes;
  args->serialized_device_assignment_deleter = program_drop_assignment;
  return NULL;
}

/* --- saving --- */

/* A saved program: a line with its kind, the lengths of the options and of the program, then both. Executables are
 * saved as the library does; groups, and what names layouts and memories, as what they were compiled from, which takes
 * milliseconds to compile again. */
static const char program_magic[] = "xlac-pjrt-1", program_source_magic[] = "xlac-pjrt-source-1";
enum { PROGRAM_HEAD = 64 };

static void program_drop_bytes(PJRT_SerializedExecutable *e) {
  pjrt_free(e);
}

PJRT_Error *pjrt_executable_serialize(PJRT_Executable_Serialize_Args *args) {
  const PJRT_Executable *e = args->executable;
  xlac_error err;
  char *program = NULL;
  size_t n = e->source_size;
  if (!e->source && xlac_executable_serialize(e->exe, &program, &n, &err)) return pjrt_error_of(&err);
  char *bytes = pjrt_alloc(PROGRAM_HEAD + e->options_size + n);
  if (bytes) {
    const char *magic = e->source ? program_source_magic : program_magic;
    snprintf(bytes, PROGRAM_HEAD, "%s %zu %zu", magic, e->options_size, n);
    if (e->options_size) memcpy(bytes + PROGRAM_HEAD, e->options, e->options_size);
    memcpy(bytes + PROGRAM_HEAD + e->options_size, e->source ? e->source : program, n);
  }
  xlac_free(program);
  if (!bytes) return pjrt_out_of_memory("a saved program");
  args->serialized_bytes = bytes;
  args->serialized_bytes_size = PROGRAM_HEAD + e->options_size + n;
  args->serialized_executable = (PJRT_SerializedExecutable *)bytes;
  args->serialized_executable_deleter = program_drop_bytes;
  return NULL;
}

static PJRT_Error *program_load_saved(PJRT_Client *c, const char *program, size_t n, const char *options,
                                      size_t options_size, PJRT_Executable **out) {
  xlac_error err;
  xlac_executable *exe = NULL;
  pjrt_compile_options o;
  xlac_compile_options compile;
  PJRT_Error *error = pjrt_read_compile_options(&o, options, options_size);
  if (!error) {
    program_options_of(&c->options, &o, c->runtime, &compile);
    if (xlac_executable_load(program, n, &compile, &exe, &err)) error = pjrt_error_of(&err);
  }
  if (!error) error = pjrt_executable_make(out, c, exe, NULL, &o, options, options_size);
  pjrt_compile_options_free(&o);
  return error;
}

PJRT_Error *pjrt_executable_deserialize_and_load(PJRT_Executable_DeserializeAndLoad_Args *args) {
  char head[PROGRAM_HEAD + 1] = "", magic[24] = "";
  const char *bytes = args->serialized_executable;
  size_t options_size = 0, n = 0, size = args->serialized_executable_size;
  PJRT_Executable *e = NULL;
  if (size >= PROGRAM_HEAD) memcpy(head, bytes, PROGRAM_HEAD);
  bool read = sscanf(head, "%23s %zu %zu", magic, &options_size, &n) == 3,
       source = !strcmp(magic, program_source_magic);
  if (!read || (!source && strcmp(magic, program_magic) != 0) || options_size > size - PROGRAM_HEAD ||
      n != size - PROGRAM_HEAD - options_size)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "the bytes are not a program that this version of xlac's plugin saved");
  const char *options = bytes + PROGRAM_HEAD;
  const char *program = options + options_size;
  if (args->overridden_serialized_compile_options) {
    options = args->overridden_serialized_compile_options;
    options_size = args->overridden_serialized_compile_options_size;
  }
  const PJRT_Program code = {.code = (char *)(uintptr_t)program, .code_size = n, .format = "mlir", .format_size = 4};
  PJRT_TRY(source ? program_compile(args->client, &args->client->options, &code, true, options, options_size, &e)
                  : program_load_saved(args->client, program, n, options, options_size, &e));
  return pjrt_executable_load(&args->loaded_executable, args->client, e);
}
