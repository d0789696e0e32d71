/* Drives the plugin from many threads, without Python: what programs do to it, all at the same time.
 *
 *     driver PLUGIN.so THREADS TURNS [DEVICES]
 *
 * Each turn of a thread puts arrays, enqueues a chain of calls some of which are given their arguments, deletes what
 * still runs, reads results by events and callbacks, and passes errors on. At the end nothing may be in use, and after
 * the first tenth of the turns memory may not have grown, whatever the number of turns. With several devices, each turn
 * also calls a program of all of them, whose devices meet in a collective, and gives it its arguments. The first tenth
 * is recorded by a profiler. Prints what it did; exit status 1 where something was wrong. tests/pjrt/sanitize.py builds
 * it with the plugin's own files under a sanitizer (PJRT_LINKED). */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/pjrt/abi_extensions.h"

enum { ELEMENTS = 1 << 14, CHAIN = 6, DEVICES_MAX = 16 };

static const char *const LOOP =
    "module @loop { func.func public @main(%x: tensor<16384xf32>) -> tensor<16384xf32> {\n"
    "  %n = stablehlo.constant dense<20> : tensor<i32>\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %f = stablehlo.constant dense<1.0> : tensor<16384xf32>\n"
    "  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<16384xf32>\n"
    "    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "           stablehlo.return %c : tensor<i1> }\n"
    "    do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "         %w = stablehlo.add %v, %f : tensor<16384xf32>\n"
    "         stablehlo.return %j, %w : tensor<i32>, tensor<16384xf32> }\n"
    "  return %0#1 : tensor<16384xf32> } }";
static const char *const GIVEN =
    "module @given { func.func public @main(%a: tensor<16384xf32> {tf.aliasing_output = 0 : i32}) -> "
    "tensor<16384xf32> {\n"
    "  %0 = stablehlo.add %a, %a : tensor<16384xf32>\n"
    "  return %0 : tensor<16384xf32> } }";
/* Each element plus the largest of all: every device has a part. */
static const char *const GROUP =
    "module @group { sdy.mesh @m = <[\"x\"=%d]>\n"
    "func.func public @main(%%a: tensor<%dxf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>, tf.aliasing_output = 0 : "
    "i32}) -> (tensor<%dxf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) {\n"
    "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %%0 = stablehlo.reduce(%%a init: %%z) applies stablehlo.maximum across dimensions = [0] : (tensor<%dxf32>, "
    "tensor<f32>) -> tensor<f32>\n"
    "  %%1 = stablehlo.broadcast_in_dim %%0, dims = [] : (tensor<f32>) -> tensor<%dxf32>\n"
    "  %%2 = stablehlo.add %%a, %%1 : tensor<%dxf32>\n"
    "  return %%2 : tensor<%dxf32> } }";

static const PJRT_Api *api;
static PJRT_Client *client;
static PJRT_Device *device, *devices[DEVICES_MAX];
static int n_devices = 1;
static PJRT_LoadedExecutable *loop, *given, *group;
static atomic_int wrong, called_back, expected_back;

/* --- slots --- */

#define ARGS(name, ...) PJRT_##name##_Args args = {.struct_size = sizeof args, __VA_ARGS__}

static bool failed(PJRT_Error *error) {
  if (!error) return false;
  PJRT_Error_Destroy_Args args = {.struct_size = sizeof args, .error = error};
  api->Error_Destroy(&args);
  return true;
}

static void expect(bool right, const char *what) {
  if (right) return;
  atomic_fetch_add(&wrong, 1);
  fprintf(stderr, "wrong: %s\n", what);
}

static void destroy_buffer(PJRT_Buffer *b) {
  ARGS(Buffer_Destroy, .buffer = b);
  expect(!failed(api->Buffer_Destroy(&args)), "a buffer is destroyed");
}

static void destroy_event(PJRT_Event *e) {
  ARGS(Event_Destroy, .event = e);
  expect(!failed(api->Event_Destroy(&args)), "an event is destroyed");
}

/* Whether it came to a good end. */
static bool await(PJRT_Event *e) {
  ARGS(Event_Await, .event = e);
  bool good = !failed(api->Event_Await(&args));
  destroy_event(e);
  return good;
}

static PJRT_LoadedExecutable *compile(const char *text, const unsigned char *options, size_t n) {
  PJRT_Program program = {.struct_size = sizeof program,
                          .code = (char *)(uintptr_t)text,
                          .code_size = strlen(text),
                          .format = "mlir",
                          .format_size = 4};
  ARGS(Client_Compile, .client = client, .program = &program, .compile_options = (const char *)options,
       .compile_options_size = n);
  expect(!failed(api->Client_Compile(&args)), "a program is compiled");
  return args.executable;
}

/* For all devices, in their order: a CompileOptionsProto whose build options have the number of partitions and the
 * device assignment. All lengths are below 128. */
static PJRT_LoadedExecutable *compile_group(void) {
  char text[2048];
  unsigned char options[8 * DEVICES_MAX], assignment = (unsigned char)(4 + 4 * n_devices), *at = options;
  int n = n_devices * ELEMENTS;
  snprintf(text, sizeof text, GROUP, n_devices, n, n, n, n, n, n);
  const unsigned char head[] = {3 << 3 | 2, (unsigned char)(assignment + 6),
                                4 << 3,     1,
                                5 << 3,     (unsigned char)n_devices,
                                9 << 3 | 2, assignment,
                                1 << 3,     1,
                                2 << 3,     (unsigned char)n_devices};
  memcpy(at, head, sizeof head);
  at += sizeof head;
  for (int i = 0; i < n_devices; i++) {
    const unsigned char one[] = {3 << 3 | 2, 2, 1 << 3, (unsigned char)i};
    memcpy(at, one, sizeof one);
    at += sizeof one;
  }
  return compile(text, options, (size_t)(at - options));
}

static PJRT_Buffer *put_on(PJRT_Device *where, const float *data, PJRT_Event **done) {
  static const int64_t dims[] = {ELEMENTS};
  ARGS(Client_BufferFromHostBuffer, .client = client, .data = data, .type = PJRT_BUFFER_F32, .dims = dims,
       .num_dims = 1, .host_buffer_semantics = PJRT_HOST_IMMUTABLE_ZERO_COPY, .device = where);
  expect(!failed(api->Client_BufferFromHostBuffer(&args)), "an array is put");
  *done = args.done_with_host_buffer;
  return args.buffer;
}

static PJRT_Buffer *put(const float *data, PJRT_Event **done) {
  return put_on(device, data, done);
}

/* NULL where the call fails at once. */
static PJRT_Buffer *run(PJRT_LoadedExecutable *exe, PJRT_Buffer *argument, PJRT_Event **done) {
  PJRT_Buffer *out = NULL, *const list[] = {argument}, *const *const lists[] = {list}, **const outs[] = {&out};
  PJRT_ExecuteOptions options = {.struct_size = sizeof options};
  ARGS(LoadedExecutable_Execute, .executable = exe, .options = &options, .argument_lists = lists, .num_devices = 1,
       .num_args = 1, .output_lists = outs, .device_complete_events = done);
  return failed(api->LoadedExecutable_Execute(&args)) ? NULL : out;
}

/* On all devices; the results take the arguments' places. */
static bool run_group(PJRT_Buffer **buffers, PJRT_Event **done) {
  PJRT_Buffer *out[DEVICES_MAX] = {NULL}, *in[DEVICES_MAX], *const * arguments[DEVICES_MAX], **outputs[DEVICES_MAX];
  for (int i = 0; i < n_devices; i++) {
    in[i] = buffers[i];
    arguments[i] = &in[i];
    outputs[i] = &out[i];
  }
  PJRT_ExecuteOptions options = {.struct_size = sizeof options};
  ARGS(LoadedExecutable_Execute, .executable = group, .options = &options, .argument_lists = arguments,
       .num_devices = (size_t)n_devices, .num_args = 1, .output_lists = outputs, .device_complete_events = done);
  bool good = !failed(api->LoadedExecutable_Execute(&args));
  for (int i = 0; good && i < n_devices; i++) {
    destroy_buffer(buffers[i]);
    buffers[i] = out[i];
  }
  return good;
}

static void note(PJRT_Error *error, void *ctx) {
  (void)ctx;
  failed(error);
  atomic_fetch_add(&called_back, 1);
}

static void call_back(PJRT_Buffer *b) {
  ARGS(Buffer_ReadyEvent, .buffer = b);
  if (failed(api->Buffer_ReadyEvent(&args))) return;
  PJRT_Event_OnReady_Args on = {.struct_size = sizeof on, .event = args.event, .callback = note};
  atomic_fetch_add(&expected_back, 1);
  expect(!failed(api->Event_OnReady(&on)), "a callback is taken");
  destroy_event(args.event);
}

static PJRT_Event *read_back(PJRT_Buffer *b, float *to) {
  ARGS(Buffer_ToHostBuffer, .src = b, .dst = to, .dst_size = ELEMENTS * sizeof *to);
  expect(!failed(api->Buffer_ToHostBuffer(&args)), "an array is read");
  return args.event;
}

/* --- what a thread does --- */

/* A chain of calls, none of which is waited for; every buffer on the way is deleted or donated while they run. */
static void turn_chain(float *in, float *out, int turn) {
  PJRT_Event *lent, *done[CHAIN];
  PJRT_Buffer *b = put(in, &lent);
  for (int i = 0; i < CHAIN; i++) {
    bool gives = (turn + i) % 2 != 0 && i > 0;
    PJRT_Buffer *next = run(gives ? given : loop, b, &done[i]);
    expect(next != NULL, "a call");
    if ((turn + i) % 3 == 0) call_back(next);
    destroy_buffer(b);
    b = next;
  }
  PJRT_Event *read = read_back(b, out);
  destroy_buffer(b);
  expect(await(read), "the result is read");
  for (int i = 0; i < CHAIN; i++) expect(await(done[i]), "a call ends well");
  expect(await(lent), "the array is given back");
  float x = in[0];
  for (int i = 0; i < CHAIN; i++) x = (turn + i) % 2 != 0 && i > 0 ? x + x : x + 20;
  expect(out[0] == x && out[ELEMENTS - 1] == x, "the result of a chain");
}

/* An array that NumPy looks at is copied, not donated. */
static void turn_viewed(float *in, float *out) {
  PJRT_Event *lent, *done;
  PJRT_Buffer *b = put(in, &lent), *first = run(loop, b, &done);
  expect(await(done), "a call ends well");
  PJRT_Buffer_IncreaseExternalReferenceCount_Args more = {.struct_size = sizeof more, .buffer = first};
  expect(!failed(api->Buffer_IncreaseExternalReferenceCount(&more)), "a reference");
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args at = {.struct_size = sizeof at, .buffer = first};
  expect(!failed(api->Buffer_OpaqueDeviceMemoryDataPointer(&at)), "an address");
  PJRT_Buffer *second = run(given, first, &done);
  expect(await(done) && await(read_back(second, out)), "a call ends well");
  expect(*(const float *)at.device_memory_ptr == in[0] + 20 && out[0] == 2 * (in[0] + 20), "what is viewed stays");
  PJRT_Buffer_DecreaseExternalReferenceCount_Args less = {.struct_size = sizeof less, .buffer = first};
  expect(!failed(api->Buffer_DecreaseExternalReferenceCount(&less)), "a reference less");
  expect(run(loop, first, &done) == NULL, "what was donated is not an argument");
  destroy_buffer(first);
  destroy_buffer(second);
  destroy_buffer(b);
  expect(await(lent), "the array is given back");
}

/* A chain of calls of all devices, with work of one device before it and behind it. */
static void turn_group(float *in, float *out) {
  PJRT_Event *lent[DEVICES_MAX], *done[CHAIN][DEVICES_MAX], *first;
  PJRT_Buffer *buffers[DEVICES_MAX];
  for (int i = 0; i < n_devices; i++) buffers[i] = put_on(devices[i], in, &lent[i]);
  PJRT_Buffer *moved = run(loop, buffers[0], &first);
  expect(moved && await(first), "a call");
  destroy_buffer(buffers[0]);
  buffers[0] = moved;
  int n = 0;
  for (bool good = true; good && n < CHAIN; n += good) {
    good = run_group(buffers, done[n]);
    expect(good, "a call on all devices");
  }
  float most = in[0] + 20, last = in[0];
  for (int i = 0; i < n; i++, most += most) last += most;
  for (int i = 0; i < n_devices; i++) {
    expect(await(read_back(buffers[i], out)), "a shard is read");
    expect(out[ELEMENTS - 1] == (i ? last : most), "the result of all devices");
    destroy_buffer(buffers[i]);
    expect(await(lent[i]), "the array is given back");
    for (int k = 0; k < n; k++) expect(await(done[k][i]), "a call ends well");
  }
}

/* What failed makes all fail that is computed from it. */
static void turn_failing(float *out) {
  static const int64_t dims[] = {ELEMENTS};
  PJRT_Event *done;
  PJRT_Device_DefaultMemory_Args m = {.struct_size = sizeof m, .device = device};
  expect(!failed(api->Device_DefaultMemory(&m)), "a memory");
  ARGS(Client_CreateErrorBuffer, .client = client, .error_code = PJRT_INTERNAL, .error_message = "odd",
       .error_message_size = 3, .shape_dims = dims, .shape_num_dims = 1, .shape_element_type = PJRT_BUFFER_F32,
       .memory = m.memory);
  expect(!failed(api->Client_CreateErrorBuffer(&args)), "an error buffer");
  PJRT_Buffer *next = run(loop, args.buffer, &done);
  expect(next && !await(done), "a call with an error as its argument fails");
  expect(!await(read_back(next, out)), "and so does reading its result");
  destroy_buffer(next);
  destroy_buffer(args.buffer);
}

static int turns;

static void *thread_main(void *arg) {
  float *in = malloc(ELEMENTS * sizeof *in), *out = malloc(ELEMENTS * sizeof *out);
  for (int i = 0; i < ELEMENTS; i++) in[i] = (float)(intptr_t)arg;
  for (int turn = 0; turn < turns; turn++) {
    turn_chain(in, out, turn);
    if (turn % 4 == 0) turn_viewed(in, out);
    if (n_devices > 1) turn_group(in, out);
    if (turn % 4 == 2) turn_failing(out);
  }
  free(in);
  free(out);
  return NULL;
}

static void run_threads(int n) {
  pthread_t threads[64];
  for (int i = 0; i < n; i++)
    expect(pthread_create(&threads[i], NULL, thread_main, (void *)(intptr_t)i) == 0, "a thread");
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* --- the whole --- */

static int64_t bytes_in_use(void) {
  int64_t all = 0;
  for (int i = 0; i < n_devices; i++) {
    ARGS(Device_MemoryStats, .device = devices[i]);
    expect(!failed(api->Device_MemoryStats(&args)), "numbers of memory");
    all += args.bytes_in_use;
  }
  return all;
}

static void begin(void) {
  const PJRT_NamedValue several = {.struct_size = sizeof several,
                                   .name = "num_devices",
                                   .name_size = strlen("num_devices"),
                                   .type = PJRT_VALUE_INT64,
                                   .int64_value = n_devices,
                                   .value_size = 1};
  PJRT_Client_Create_Args create = {.struct_size = sizeof create, .create_options = &several, .num_options = 1};
  expect(!failed(api->Client_Create(&create)), "a client");
  client = create.client;
  PJRT_Client_Devices_Args list = {.struct_size = sizeof list, .client = client};
  expect(!failed(api->Client_Devices(&list)) && list.num_devices == (size_t)n_devices, "devices");
  memcpy(devices, list.devices, (size_t)n_devices * sizeof *devices);
  device = devices[0];
  loop = compile(LOOP, NULL, 0);
  given = compile(GIVEN, NULL, 0);
  if (n_devices > 1) group = compile_group();
}

static void end(void) {
  PJRT_LoadedExecutable *all[] = {loop, given, group};
  for (int i = 0; i < 3; i++) {
    ARGS(LoadedExecutable_Destroy, .executable = all[i]);
    expect(!failed(api->LoadedExecutable_Destroy(&args)), "an executable is destroyed");
  }
  ARGS(Client_Destroy, .client = client);
  expect(!failed(api->Client_Destroy(&args)), "the client is destroyed");
}

/* While a profiler records, and another one may not; what it has recorded is a message of some planes. */
static void run_recorded(int n) {
  const PJRT_Extension_Base *e = api->extension_start;
  while (e && e->type != PJRT_EXTENSION_PROFILER) e = e->next;
  const PLUGIN_Profiler_Api *p = e ? ((const PJRT_Profiler_Extension *)e)->profiler_api : NULL;
  PLUGIN_Profiler_Create_Args made = {.struct_size = sizeof made}, other = made;
  if (!p || p->create(&made) || p->create(&other)) return expect(false, "a profiler");
  PLUGIN_Profiler_Args args = {sizeof args, made.profiler}, second = {sizeof second, other.profiler};
  expect(!p->start(&args), "a profiler starts");
  expect(failed(p->start(&second)), "one profiler records at a time");
  run_threads(n);
  expect(!p->stop(&second) && !p->stop(&args), "a profiler stops");
  PLUGIN_Profiler_CollectData_Args data = {.struct_size = sizeof data, .profiler = made.profiler};
  expect(!p->collect_data(&data) && data.buffer_size_in_bytes > 100 && data.buffer[0] == 10, "a profile");
  expect(!p->destroy(&args) && !p->start(&second) && !p->destroy(&second), "profilers are destroyed");
}

static const PJRT_Api *find_api(const char *path) {
#ifdef PJRT_LINKED
  extern const PJRT_Api *GetPjrtApi(void);
  (void)path;
  return GetPjrtApi();
#else
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "GetPjrtApi") : NULL;
  const PJRT_Api *(*get)(void) = NULL;
  memcpy(&get, &symbol, sizeof symbol);
  return get ? get() : NULL;
#endif
}

int main(int argc, char **argv) {
  int n = argc > 3 ? atoi(argv[2]) : 0, all = argc > 3 ? atoi(argv[3]) : 0;
  n_devices = argc > 4 ? atoi(argv[4]) : 1;
  if (n < 1 || n > 64 || all < 10 || n_devices < 1 || n_devices > DEVICES_MAX || !(api = find_api(argv[1]))) {
    fprintf(stderr, "usage: driver PLUGIN.so THREADS(1-64) TURNS(10-) [DEVICES(1-16)]\n");
    return 2;
  }
  begin();
  turns = all / 10;
  run_recorded(n);
  size_t before = mallinfo2().uordblks;
  turns = all - turns;
  run_threads(n);
  size_t after = mallinfo2().uordblks;
  expect(bytes_in_use() == 0, "nothing is in use at the end");
  expect(atomic_load(&called_back) == atomic_load(&expected_back), "all callbacks came");
  /* Memory that is kept for later is at most what all threads have in use at a time. */
  size_t kept = (size_t)n * CHAIN * ELEMENTS * sizeof(float) * (size_t)n_devices + (1 << 16);
  expect(after < before + kept, "memory does not grow");
  end();
  printf("%d calls, %d callbacks, heap %+ld bytes, %d wrong\n", n * all * CHAIN, atomic_load(&called_back),
         (long)after - (long)before, atomic_load(&wrong));
  return atomic_load(&wrong) != 0;
}
