/* What the client asks of a compiled program: all of it is made when the program is, since getters can't fail. */
#include <stdio.h>

#include "pjrt.h"
#include "wire.h"

/* A queue's thread takes some 10 us to begin: what is about as short is run by the caller. In elements of work. */
enum { EXECUTABLE_SHORT = 1 << 14 };

PJRT_Executable *pjrt_executable_retain(PJRT_Executable *e) {
  assert(atomic_load(&e->refs) > 0);
  atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
  return e;
}

static void executable_free_layout(pjrt_shape *s) {
  pjrt_free((void *)(uintptr_t)s->minor_to_major);
}

void pjrt_executable_release(PJRT_Executable *e) {
  if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  xlac_executable_destroy(e->exe);
  pjrt_free(e->options);
  pjrt_free(e->source);
  pjrt_free(e->devices);
  for (uint32_t i = 0; e->parameters && i < e->n_parameters; i++) executable_free_layout(&e->parameters[i].shape);
  for (uint32_t i = 0; e->results && i < e->n_results; i++) executable_free_layout(&e->results[i].shape);
  pjrt_free(e->parameters);
  pjrt_free(e->results);
  pjrt_free(e->optimized);
  pjrt_free(e->kinds);
  pjrt_free(e->kind_sizes);
  pjrt_free(e->dims);
  pjrt_free(e->ranks);
  pjrt_free(e->types);
  pjrt_free(e->layouts);
  for (uint32_t i = 0; e->sharding_sizes && e->shardings && i < e->n_results + e->n_parameters; i++)
    if (e->sharding_sizes[i]) pjrt_free((char *)(uintptr_t)e->shardings[i]);
  pjrt_free(e->shardings);
  pjrt_free(e->sharding_sizes);
  pthread_mutex_destroy(&e->lock);
  pjrt_client_release(e->client);
  pjrt_free(e);
}

/* --- what it takes and gives --- */

static PJRT_Error *executable_shape(const xlac_type *t, pjrt_shape *s, size_t *bytes) {
  xlac_type_info info;
  xlac_type_get(t, &info);
  if (info.kind == XLAC_TYPE_TOKEN) {
    *s = (pjrt_shape){BASE_DTYPE_INVALID, 0, NULL, NULL};
    *bytes = 0;
    return NULL;
  }
  if (info.kind != XLAC_TYPE_TENSOR)
    return pjrt_fail(PJRT_UNIMPLEMENTED, "the program takes or gives what is neither an array nor a token");
  *s = (pjrt_shape){info.dtype, info.rank, info.dims, NULL};
  return pjrt_shape_bytes(s, bytes);
}

/* A shard's, where each device has its part. */
static PJRT_Error *executable_leaf(const PJRT_Executable *e, bool result, uint32_t i, const xlac_type *t, pjrt_shape *s,
                                   size_t *bytes) {
  xlac_shard shard;
  if (!e->group || !xlac_executable_shard(e->exe, result, i, 0, &shard)) return executable_shape(t, s, bytes);
  *s = (pjrt_shape){shard.dtype, shard.rank, shard.dims, NULL};
  return pjrt_shape_bytes(s, bytes);
}

static PJRT_Error *executable_read_parameters(PJRT_Executable *e) {
  while (xlac_executable_param(e->exe, e->n_parameters, NULL)) e->n_parameters++;
  e->parameters = pjrt_alloc((e->n_parameters + 1) * sizeof *e->parameters);
  if (!e->parameters) return pjrt_out_of_memory("a program's parameters");
  for (uint32_t i = 0; i < e->n_parameters; i++)
    PJRT_TRY(executable_leaf(e, false, i, xlac_executable_param(e->exe, i, NULL), &e->parameters[i].shape,
                             &e->parameters[i].bytes));
  return NULL;
}

static PJRT_Error *executable_read_results(PJRT_Executable *e) {
  const xlac_type *t = xlac_executable_result(e->exe);
  xlac_type_info info;
  xlac_type_get(t, &info);
  bool tuple = info.kind == XLAC_TYPE_TUPLE;
  e->n_results = tuple ? info.n_elements : 1;
  e->results = pjrt_alloc((e->n_results + 1) * sizeof *e->results);
  if (!e->results) return pjrt_out_of_memory("a program's results");
  for (uint32_t i = 0; i < e->n_results; i++) {
    e->results[i].donor = UINT32_MAX;
    PJRT_TRY(
        executable_leaf(e, true, i, tuple ? xlac_type_element(t, i) : t, &e->results[i].shape, &e->results[i].bytes));
  }
  return NULL;
}

/* What each device runs. */
static xlac_module *executable_program(const PJRT_Executable *e) {
  return e->group ? xlac_executable_local(e->exe) : xlac_executable_module(e->exe);
}

static bool executable_donation(const PJRT_Executable *e, uint32_t i, xlac_donation *out) {
  return e->group ? xlac_executable_shard_donation(e->exe, i, out) : xlac_executable_donation(e->exe, i, out);
}

/* A result as long as what a device donates, for whichever needs it. What has none stays the caller's, as in XLA. */
static void executable_match_donor(PJRT_Executable *e, pjrt_parameter *p) {
  for (uint32_t i = 0; i < e->n_results && !p->donated; i++) {
    if (e->results[i].taken || e->results[i].bytes != p->bytes) continue;
    p->donated = e->results[i].taken = true;
  }
}

/* What the module says may be donated, and which results take it. */
static void executable_read_donations(PJRT_Executable *e) {
  xlac_module *m = executable_program(e);
  xlac_alias a;
  xlac_donation d;
  for (uint32_t i = 0; xlac_module_alias(m, i, &a); i++) {
    if (a.parameter >= e->n_parameters) continue;
    e->parameters[a.parameter].donated = true;
    int64_t result = a.n_output ? a.output[0] : 0;
    if (result < e->n_results) e->results[result].taken = true;
  }
  for (uint32_t i = 0; xlac_module_donor(m, i, &a); i++)
    if (a.parameter < e->n_parameters) executable_match_donor(e, &e->parameters[a.parameter]);
  for (uint32_t i = 0; !e->values && executable_donation(e, i, &d); i++) {
    assert(d.argument < e->n_parameters && "leaves are parameters, none of which is a tuple");
    if (d.result >= e->n_results && !e->parameters[d.argument].donated)
      continue; /* it would be room for other values */
    e->parameters[d.argument].donated = true;
    if (d.result < e->n_results) e->results[d.result].donor = d.argument;
  }
  for (uint32_t i = 0; i < e->n_parameters; i++) e->gives = e->gives || e->parameters[i].donated;
}

/* --- what is asked again and again --- */

/* Kinds of memories of results and of parameters, dimensions and types of results. */
static PJRT_Error *executable_make_lists(PJRT_Executable *e) {
  size_t n = (size_t)e->n_results + e->n_parameters + 1, n_dims = 1;
  for (uint32_t i = 0; i < e->n_results; i++) n_dims += e->results[i].shape.rank;
  e->kinds = pjrt_alloc(n * sizeof(char *));
  e->kind_sizes = pjrt_alloc(n * sizeof *e->kind_sizes);
  e->layouts = pjrt_alloc(n * sizeof(void *));
  e->shardings = pjrt_alloc(n * sizeof(char *));
  e->sharding_sizes = pjrt_alloc(n * sizeof *e->sharding_sizes);
  e->dims = pjrt_alloc(n_dims * sizeof *e->dims);
  e->ranks = pjrt_alloc(n * sizeof *e->ranks);
  e->types = pjrt_alloc(n * sizeof *e->types);
  if (!e->shardings || !e->sharding_sizes || !e->kinds || !e->kind_sizes || !e->layouts || !e->dims || !e->ranks ||
      !e->types)
    return pjrt_out_of_memory("what is known of a program");
  int64_t *dim = e->dims;
  for (uint32_t i = 0; i < e->n_results + e->n_parameters; i++) {
    bool result = i < e->n_results;
    uint32_t kind = result ? e->results[i].memory_kind : e->parameters[i - e->n_results].memory_kind;
    uint32_t leaf = result ? i : i - e->n_results;
    e->shardings[i] = "";
    if (e->group) PJRT_TRY(pjrt_sharding_make(e->exe, result, leaf, &e->shardings[i], &e->sharding_sizes[i]));
    e->kinds[i] = pjrt_memory_kind_name(kind);
    e->kind_sizes[i] = strlen(e->kinds[i]);
    if (!result) continue;
    const pjrt_shape *s = &e->results[i].shape;
    e->ranks[i] = s->rank;
    e->types[i] = pjrt_type(s->dtype);
    for (uint32_t d = 0; d < s->rank; d++) *dim++ = s->dims[d];
  }
  assert(dim < e->dims + n_dims);
  return NULL;
}

static PJRT_Error *executable_name_it(PJRT_Executable *e) {
  uint64_t hash = 0;
  xlac_error err;
  xlac_module *m = executable_program(e);
  e->name = xlac_module_name(m);
  if (xlac_module_fingerprint(m, &hash, &err)) return pjrt_error_of(&err);
  snprintf(e->fingerprint, sizeof e->fingerprint, "%016llx", (unsigned long long)hash);
  return NULL;
}

static PJRT_Error *executable_fill(PJRT_Executable *e, xlac_module *source, const pjrt_compile_options *o,
                                   const char *options, size_t n) {
  e->options = pjrt_copy_text(options, n);
  e->devices = pjrt_alloc((o->n_devices + 1) * sizeof *e->devices);
  if (!e->options || !e->devices) return pjrt_out_of_memory("an executable");
  e->options_size = n;
  for (uint32_t i = 0; i < o->n_devices; i++) e->devices[i] = o->devices[i];
  e->n_devices = o->n_devices;
  e->n_replicas = o->n_replicas;
  e->n_partitions = o->n_partitions;
  if (e->n_devices && e->n_devices != e->n_replicas * e->n_partitions)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "the device assignment has %u devices, the program %u", e->n_devices,
                     e->n_replicas * e->n_partitions);
  e->group = e->n_replicas * e->n_partitions > 1;
  xlac_executable_get(e->exe, &e->info);
  e->values = e->info.interpreted != NULL && !e->group; /* a group calls with shards also then */
  PJRT_TRY(executable_read_parameters(e));
  PJRT_TRY(executable_read_results(e));
  PJRT_TRY(executable_name_it(e));
  executable_read_donations(e);
  if (source) PJRT_TRY(pjrt_executable_place(e, source));
  PJRT_TRY(pjrt_check_calls(executable_program(e), &e->calls));
  e->inline_ = !e->calls && e->info.work < EXECUTABLE_SHORT;
  return executable_make_lists(e);
}

PJRT_Error *pjrt_executable_make(PJRT_Executable **out, PJRT_Client *c, xlac_executable *exe, xlac_module *source,
                                 const pjrt_compile_options *o, const char *options, size_t options_size) {
  PJRT_Executable *e = pjrt_alloc(sizeof *e);
  if (!e) {
    xlac_executable_destroy(exe);
    return pjrt_out_of_memory("an executable");
  }
  atomic_init(&e->refs, 1);
  e->exe = exe;
  e->client = c ? pjrt_client_retain(c) : NULL;
  pthread_mutex_init(&e->lock, NULL);
  PJRT_Error *error = executable_fill(e, source, o, options, options_size);
  if (error) {
    pjrt_executable_release(e);
    return error;
  }
  *out = e;
  return NULL;
}

PJRT_Error *pjrt_executable_destroy(PJRT_Executable_Destroy_Args *args) {
  pjrt_executable_release(args->executable);
  return NULL;
}

/* --- getters --- */

PJRT_Error *pjrt_executable_name(PJRT_Executable_Name_Args *args) {
  args->executable_name = args->executable->name;
  args->executable_name_size = strlen(args->executable_name);
  return NULL;
}

PJRT_Error *pjrt_executable_num_replicas(PJRT_Executable_NumReplicas_Args *args) {
  args->num_replicas = args->executable->n_replicas;
  return NULL;
}

PJRT_Error *pjrt_executable_num_partitions(PJRT_Executable_NumPartitions_Args *args) {
  args->num_partitions = args->executable->n_partitions;
  return NULL;
}

PJRT_Error *pjrt_executable_num_outputs(PJRT_Executable_NumOutputs_Args *args) {
  args->num_outputs = args->executable->n_results;
  return NULL;
}

PJRT_Error *pjrt_executable_size_of_generated_code_in_bytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *args) {
  args->size_in_bytes = -1;
  return NULL;
}

PJRT_Error *pjrt_executable_output_memory_kinds(PJRT_Executable_OutputMemoryKinds_Args *args) {
  args->num_outputs = args->executable->n_results;
  args->memory_kinds = args->executable->kinds;
  args->memory_kind_sizes = args->executable->kind_sizes;
  return NULL;
}

PJRT_Error *pjrt_executable_parameter_memory_kinds(PJRT_Executable_ParameterMemoryKinds_Args *args) {
  const PJRT_Executable *e = args->executable;
  args->num_parameters = e->n_parameters;
  args->memory_kinds = e->kinds + e->n_results;
  args->memory_kind_sizes = e->kind_sizes + e->n_results;
  return NULL;
}

PJRT_Error *pjrt_executable_output_element_types(PJRT_Executable_OutputElementTypes_Args *args) {
  args->output_types = args->executable->types;
  args->num_output_types = args->executable->n_results;
  return NULL;
}

PJRT_Error *pjrt_executable_output_dimensions(PJRT_Executable_OutputDimensions_Args *args) {
  args->num_outputs = args->executable->n_results;
  args->dims = args->executable->dims;
  args->dim_sizes = args->executable->ranks;
  return NULL;
}

PJRT_Error *pjrt_executable_fingerprint(PJRT_Executable_Fingerprint_Args *args) {
  args->executable_fingerprint = args->executable->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

static void executable_drop_options(PJRT_SerializedCompileOptions *o) {
  (void)o; /* the executable's own */
}

PJRT_Error *pjrt_executable_get_compile_options(PJRT_Executable_GetCompileOptions_Args *args) {
  args->serialized_bytes = args->executable->options;
  args->serialized_bytes_size = args->executable->options_size;
  args->serialized_compile_options = NULL;
  args->serialized_compile_options_deleter = executable_drop_options;
  return NULL;
}

/* HloModuleProto.host_program_shape, which is what HloModuleConfigProto.entry_computation_layout is. */
static wire_reader executable_program_shape(const char *module, size_t n) {
  const unsigned char *at = (const unsigned char *)module;
  wire_reader r = {at, at + n, false}, found = {at, at, false};
  wire_field f;
  while (wire_next(&r, &f))
    if (f.number == 4 && f.wire == 2) found = f.bytes;
  return found;
}

/* How many there are, and that nothing is propagated to parameters and results any more: fields of an
 * HloModuleConfigProto. At most 32 bytes. */
static size_t executable_put_config(const PJRT_Executable *e, unsigned char *at) {
  static const unsigned char settled[] = {0};
  static const uint32_t lists[] = {33, 27};
  size_t n = 0;
  at[n++] = 4 << 3; /* replica_count */
  n += wire_put_varint(at + n, e->n_replicas);
  at[n++] = 5 << 3; /* num_partitions */
  n += wire_put_varint(at + n, e->n_partitions);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    n += wire_put_head(at + n, lists[i], sizeof settled);
    memcpy(at + n, settled, sizeof settled);
    n += sizeof settled;
  }
  assert(n <= 32);
  return n;
}

static size_t executable_put_sharding(const PJRT_Executable *e, unsigned char *at, uint32_t field, uint32_t i) {
  size_t n = wire_put_head(at, field, e->sharding_sizes[i]);
  if (e->sharding_sizes[i]) memcpy(at + n, e->shardings[i], e->sharding_sizes[i]);
  return n + e->sharding_sizes[i];
}

/* Fields of an HloModuleProto by which jaxlib 0.9.0, which doesn't ask the extension, learns what each device has: the
 * sharding of the results, a tuple (type 2) where they are not one, and those of the parameters. */
static size_t executable_put_shardings(const PJRT_Executable *e, unsigned char *at) {
  size_t n = 0, inner = 2;
  unsigned char head[16];
  if (!e->group) return 0;
  for (uint32_t i = 0; i < e->n_results; i++)
    inner += wire_put_head(head, 5, e->sharding_sizes[i]) + e->sharding_sizes[i];
  if (e->n_results == 0) n += wire_put_head(at, 12, 0); /* of no results there is one, too */
  if (e->n_results == 1) n += executable_put_sharding(e, at, 12, 0);
  if (e->n_results > 1) {
    n += wire_put_head(at, 12, inner);
    at[n++] = 1 << 3;
    at[n++] = 2;
    for (uint32_t i = 0; i < e->n_results; i++) n += executable_put_sharding(e, at + n, 5, i);
  }
  for (uint32_t i = 0; i < e->n_parameters; i++) n += executable_put_sharding(e, at + n, 14, e->n_results + i);
  return n;
}

/* Room for what executable_put_shardings writes. */
static size_t executable_shardings_room(const PJRT_Executable *e) {
  size_t room = 32;
  for (uint32_t i = 0; e->group && i < e->n_results + e->n_parameters; i++) room += e->sharding_sizes[i] + 32;
  return room;
}

/* HloModuleProtoWithConfig: field 1 is the module, 2 the configuration, whose other fields have defaults. */
static int executable_wrap_program(PJRT_Executable *e, xlac_error *err) {
  char *module = NULL;
  size_t n = 0, at = 0;
  unsigned char head[16], facts[32];
  size_t n_facts = executable_put_config(e, facts);
  TRY(xlac_module_serialize(executable_program(e), XLAC_FORMAT_HLO_PROTO, &module, &n, err));
  wire_reader shape = executable_program_shape(module, n);
  size_t size = (size_t)(shape.end - shape.at), config = wire_put_head(head, 1, size) + size + n_facts;
  size_t room = executable_shardings_room(e);
  unsigned char *all = pjrt_alloc(n + size + 96 + room), *shardings = pjrt_alloc(room);
  if (all && shardings) {
    size_t more = executable_put_shardings(e, shardings);
    assert(more <= room);
    at += wire_put_head(all, 1, n + more);
    memcpy(all + at, module, n);
    memcpy(all + at + n, shardings, more);
    at += n + more;
    at += wire_put_head(all + at, 2, config);
    at += wire_put_head(all + at, 1, size);
    memcpy(all + at, shape.at, size);
    at += size;
    memcpy(all + at, facts, n_facts);
    at += n_facts;
    assert(at <= n + size + 96 + room);
  }
  bool made = all && shardings;
  xlac_free(module);
  pjrt_free(shardings);
  if (!made) pjrt_free(all);
  if (!made) return base_oom(err, "a program's text");
  e->optimized = (char *)all;
  e->optimized_size = at;
  return 0;
}

/* In two calls: the first asks for the size. */
PJRT_Error *pjrt_executable_optimized_program(PJRT_Executable_OptimizedProgram_Args *args) {
  static const char format[] = "hlo_with_config";
  PJRT_Executable *e = args->executable;
  PJRT_Program *p = args->program;
  xlac_error err;
  pthread_mutex_lock(&e->lock);
  int status = e->optimized ? 0 : executable_wrap_program(e, &err);
  pthread_mutex_unlock(&e->lock);
  if (status) return pjrt_error_of(&err);
  if (p->code && p->code_size < e->optimized_size)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "the program has %zu bytes, the memory it is to go to %zu",
                     e->optimized_size, p->code_size);
  p->format = format;
  p->format_size = sizeof format - 1;
  if (p->code) memcpy(p->code, e->optimized, e->optimized_size);
  p->code_size = e->optimized_size;
  return NULL;
}

/* Names are those of XLA's cost analysis. */
static int executable_count_costs(PJRT_Executable *e, xlac_error *err) {
  static const char *const names[EXECUTABLE_COSTS] = {"flops", "transcendentals", "bytes accessed"};
  xlac_cost c;
  TRY(xlac_executable_cost(e->exe, &c, err));
  const double values[EXECUTABLE_COSTS] = {c.flops, c.transcendentals, c.bytes_read + c.bytes_written};
  for (int i = 0; i < EXECUTABLE_COSTS; i++)
    e->costs[i] = (PJRT_NamedValue){.struct_size = sizeof e->costs[i],
                                    .name = names[i],
                                    .name_size = strlen(names[i]),
                                    .type = PJRT_VALUE_FLOAT,
                                    .float_value = (float)values[i],
                                    .value_size = 1};
  e->has_costs = true;
  return 0;
}

PJRT_Error *pjrt_executable_get_cost_analysis(PJRT_Executable_GetCostAnalysis_Args *args) {
  PJRT_Executable *e = args->executable;
  xlac_error err;
  pthread_mutex_lock(&e->lock);
  int status = e->has_costs || e->values ? 0 : executable_count_costs(e, &err);
  pthread_mutex_unlock(&e->lock);
  if (status) return pjrt_error_of(&err);
  args->num_properties = e->has_costs ? EXECUTABLE_COSTS : 0;
  args->properties = e->costs;
  return NULL;
}

PJRT_Error *pjrt_executable_get_compiled_memory_stats(PJRT_Executable_GetCompiledMemoryStats_Args *args) {
  const PJRT_Executable *e = args->executable;
  int64_t arguments = 0, results = 0, aliased = 0, temporary = e->values ? 0 : e->info.frame_bytes;
  for (uint32_t i = 0; i < e->n_parameters; i++) arguments += (int64_t)e->parameters[i].bytes;
  for (uint32_t i = 0; i < e->n_results; i++) {
    results += (int64_t)e->results[i].bytes;
    if (e->results[i].donor != UINT32_MAX) aliased += (int64_t)e->results[i].bytes;
  }
  memset(&args->generated_code_size_in_bytes, 0,
         sizeof *args - offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes));
  args->argument_size_in_bytes = arguments;
  args->output_size_in_bytes = results;
  args->alias_size_in_bytes = aliased;
  args->temp_size_in_bytes = temporary;
  args->peak_memory_in_bytes = arguments + results - aliased + temporary;
  args->total_size_in_bytes = args->total_allocation_bytes = args->peak_memory_in_bytes;
  return NULL;
}
