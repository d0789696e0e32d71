/* What every entry point begins with; findings and the texts of errors; what tests ask of this driver besides the real
 * interface. */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_state sim = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .executing = PTHREAD_MUTEX_INITIALIZER};

/* ---- settings ---- */

long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text != NULL && *text != 0 ? strtol(text, NULL, 0) : otherwise;
}

/* ---- calls that shall fail ---- */

static struct {
  pthread_mutex_t lock;
  bool read;
  char name[64]; /* "" : none; "*": any */
  long nth, seen, count;
  int code;
  char failed[64]; /* the entry point that did */
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NAME:N[:CODE], or NULL for none: the N-th call of NAME, or of any for *, fails with CODE (999: unknown error), or
 * with -1 seems to succeed and does nothing. * passes over the calls that ask whether work is done: how many of them a
 * run makes is a matter of time, and those after them must keep their numbers. */
EXPORT int cudasim_fail(const char *text) {
  pthread_mutex_lock(&faults.lock);
  faults.read = true;
  faults.name[0] = faults.failed[0] = 0;
  faults.seen = faults.count = 0;
  faults.nth = 1;
  faults.code = 999;
  int n = text != NULL ? sscanf(text, "%63[^:]:%ld:%d", faults.name, &faults.nth, &faults.code) : 0;
  pthread_mutex_unlock(&faults.lock);
  return text == NULL || n > 0 ? SUCCESS : INVALID_VALUE;
}

/* How many calls were made since the last cudasim_fail, and which failed on demand ("" : none). */
EXPORT long cudasim_calls(const char **failed) {
  pthread_mutex_lock(&faults.lock);
  long count = faults.count;
  if (failed != NULL) *failed = faults.failed;
  pthread_mutex_unlock(&faults.lock);
  return count;
}

/* Calls of each entry point; faults.lock held. */
static long *calls_of(const char *name) {
  static struct {
    const char *name;
    long n;
  } all[256];
  int i = 0;
  while (i < 255 && all[i].name != NULL && strcmp(all[i].name, name) != 0) i++;
  if (all[i].name == NULL) all[i].name = strdup(name);
  return &all[i].n;
}

/* How often an entry point has been called since the process began. */
EXPORT long cudasim_count(const char *name) {
  pthread_mutex_lock(&faults.lock);
  long n = *calls_of(name);
  pthread_mutex_unlock(&faults.lock);
  return n;
}

int api_enter(const char *name) {
  int result = SUCCESS;
  if (!faults.read) cudasim_fail(getenv("XLAC_CUDA_SIM_FAIL"));
  pthread_mutex_lock(&faults.lock);
  faults.count++;
  ++*calls_of(name);
  bool asks = strcmp(name, "cuStreamQuery") == 0 || strcmp(name, "cuEventQuery") == 0;
  bool meant = (strcmp(faults.name, "*") == 0 && !asks) || strcmp(faults.name, name) == 0;
  if (meant && ++faults.seen == faults.nth) {
    result = faults.code;
    snprintf(faults.failed, sizeof faults.failed, "%s", name);
  }
  pthread_mutex_unlock(&faults.lock);
  return result;
}

int api_enter_device(const char *name, sim_device **out) {
  int result = api_enter(name);
  if (result != SUCCESS) return result;
  if (!sim.begun) return NOT_INITIALIZED;
  sim_device *d = current_device();
  if (d == NULL) return INVALID_CONTEXT;
  if (out != NULL) *out = d;
  return d->sticky;
}

/* ---- findings ---- */

enum { REPORTS = 256 };
static struct {
  pthread_mutex_t lock;
  char text[REPORTS][1024];
  int error[REPORTS];
  uint32_t n;
  char last[1024]; /* what cuGetErrorString says of `last_error` */
  int last_error;
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_log(const char *text) {
  const char *path = getenv("XLAC_CUDA_SIM_LOG");
  if (path == NULL || *path == 0) return;
  FILE *f = strcmp(path, "-") == 0 ? stderr : fopen(path, "a");
  if (f == NULL) return;
  fprintf(f, "cuda driver: %s\n", text);
  if (f != stderr) fclose(f);
}

int report(int error, const char *format, ...) {
  va_list arguments;
  pthread_mutex_lock(&reports.lock);
  va_start(arguments, format);
  vsnprintf(reports.last, sizeof reports.last, format, arguments);
  va_end(arguments);
  reports.last_error = error;
  if (reports.n < REPORTS) {
    reports.error[reports.n] = error;
    memcpy(reports.text[reports.n++], reports.last, sizeof reports.last);
  }
  write_log(reports.last);
  pthread_mutex_unlock(&reports.lock);
  return error;
}

/* The i-th finding since the last cudasim_clear, with its error; NULL: there is none. */
EXPORT const char *cudasim_report(uint32_t i, int *error) {
  if (i >= reports.n) return NULL;
  if (error != NULL) *error = reports.error[i];
  return reports.text[i];
}

/* Forgets findings and what they broke: contexts work again. Nothing must be running. */
EXPORT void cudasim_clear(void) {
  pthread_mutex_lock(&reports.lock);
  reports.n = 0;
  reports.last_error = SUCCESS;
  pthread_mutex_unlock(&reports.lock);
  pthread_mutex_lock(&sim.lock);
  for (int i = 0; i < DEVICES_MAX; i++) sim.devices[i].sticky = SUCCESS;
  pthread_mutex_unlock(&sim.lock);
}

/* Another order of blocks and threads from the next launch on; 0: the natural one. */
EXPORT void cudasim_seed(uint64_t seed) {
  pthread_mutex_lock(&sim.lock);
  sim.seed = seed;
  pthread_mutex_unlock(&sim.lock);
}

/* After how many accesses of memory a launch is taken to have no end; 0: the limit of the start. */
EXPORT void cudasim_limit(uint64_t accesses) {
  pthread_mutex_lock(&sim.executing);
  touch.most_accesses = accesses != 0 ? accesses : (uint64_t)setting("XLAC_CUDA_SIM_ACCESSES", 4000000000);
  pthread_mutex_unlock(&sim.executing);
}

/* What lives: a text of one line, "" where nothing does. */
EXPORT size_t cudasim_alive(char *out, size_t bytes) {
  size_t n = 0;
  out[0] = 0;
  pthread_mutex_lock(&sim.lock);
  for (const allocation *a = sim.allocations; a != NULL && n < bytes; a = a->next)
    if (a->kind != MEMORY_SHARED && a->dying == 0)
      n += (size_t)snprintf(out + n, bytes - n, "%sallocation %llu of %zu bytes on %s %d", n > 0 ? ", " : "",
                            (unsigned long long)a->number, a->bytes,
                            a->kind == MEMORY_HOST ? "the host, device" : "device", a->device);
  const struct {
    const char *what;
    uint64_t n;
  } counts[] = {{"streams", sim.n_streams}, {"events", sim.n_events}, {"modules", sim.n_modules},
                {"graphs", sim.n_graphs},   {"pools", sim.n_pools},   {"cliques", sim.n_cliques}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts && n < bytes; i++)
    if (counts[i].n > 0)
      n += (size_t)snprintf(out + n, bytes - n, "%s%llu %s", n > 0 ? ", " : "", (unsigned long long)counts[i].n,
                            counts[i].what);
  pthread_mutex_unlock(&sim.lock);
  return n;
}

/* ---- names of errors ---- */

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "stream didn't begin this capture"},
    {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {GRAPH_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because of unsupported changes"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int find_error(int code, const char **name, const char **text) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    if (errors[i].code != code) continue;
    if (name != NULL) *name = errors[i].name;
    if (text != NULL) *text = errors[i].text;
    return SUCCESS;
  }
  if (name != NULL) *name = NULL;
  if (text != NULL) *text = NULL;
  return INVALID_VALUE;
}

EXPORT int cuGetErrorName(int code, const char **name) {
  ENTER(cuGetErrorName);
  return name == NULL ? INVALID_VALUE : find_error(code, name, NULL);
}

/* The finding, where the last one had this error: so that it is what a program's message says. */
EXPORT int cuGetErrorString(int code, const char **text) {
  ENTER(cuGetErrorString);
  if (text == NULL) return INVALID_VALUE;
  if (code != SUCCESS && code == reports.last_error) return *text = reports.last, SUCCESS;
  return find_error(code, NULL, text);
}
