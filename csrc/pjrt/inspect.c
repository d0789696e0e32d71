/* jax.debug.inspect_array_sharding: a custom call whose backend_config is a function of the client's and its data,
 * which is told while the program is compiled how the operand is cut. */
#include <stdlib.h>

#include "../api/plugin.h"
#include "pjrt.h"
#include "wire.h"

/* As jaxlib has them. */
typedef struct inspect_args {
  char *sharding; /* an OpSharding */
  size_t sharding_size;
  const char *error; /* its answer, NULL: it went well */
  void *scratch;
  void (*free_error)(struct inspect_args *args);
} inspect_args;
typedef struct inspect_callback {
  void (*call)(void *data, inspect_args *args);
  void *data;
} inspect_callback;

enum { INSPECT_OTHER = 3, INSPECT_MANUAL = 4, INSPECT_BYTES = 4096 };

typedef struct inspect_message {
  unsigned char bytes[INSPECT_BYTES];
  size_t n;
} inspect_message;

static void inspect_put(inspect_message *m, uint32_t field, uint64_t value) {
  m->n += wire_put_varint(m->bytes + m->n, (uint64_t)field << 3);
  m->n += wire_put_varint(m->bytes + m->n, value);
}

/* "2,1,4" up to what ends it, as numbers of a field. */
static const char *inspect_put_list(inspect_message *m, uint32_t field, const char *at) {
  while (*at >= '0' && *at <= '9' && m->n < INSPECT_BYTES - 32) {
    char *end;
    inspect_put(m, field, strtoull(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return at;
}

/* "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", with the devices listed where they are in no order. False:
 * of another kind. */
static bool inspect_put_tiles(inspect_message *m, const char *text) {
  static const char head[] = "{devices=[";
  if (strncmp(text, head, sizeof head - 1) != 0) return false;
  inspect_put(m, 1, INSPECT_OTHER);
  const char *at = inspect_put_list(m, 3, text + sizeof head - 1);
  if (*at++ != ']') return false;
  if (strncmp(at, "<=[", 3) == 0) {
    at = inspect_put_list(m, 9, at + 3);
    if (*at++ != ']') return false;
    bool turned = strncmp(at, "T(", 2) == 0;
    if (!turned) inspect_put(m, 10, 0); /* one dimension, in its order */
    if (turned) at = inspect_put_list(m, 10, at + 2);
    if (turned && *at++ != ')') return false;
  } else {
    at = inspect_put_list(m, 4, at);
  }
  if (strcmp(at, " last_tile_dim_replicate}") == 0) inspect_put(m, 6, 1);
  return strcmp(at, "}") == 0 || strcmp(at, " last_tile_dim_replicate}") == 0;
}

/* No bytes are an array that is whole. */
static int inspect_read(inspect_message *m, const char *sharding, xlac_error *err) {
  m->n = 0;
  if (!*sharding || strcmp(sharding, "{replicated}") == 0) return 0;
  if (strcmp(sharding, "{manual}") == 0) {
    inspect_put(m, 1, INSPECT_MANUAL);
    return 0;
  }
  if (inspect_put_tiles(m, sharding)) return 0;
  return base_fail(err, XLAC_E_INTERNAL, "jax.debug.inspect_array_sharding: the sharding %.200s has no form for JAX",
                   sharding);
}

static int inspect_tell(void *ctx, const char *config, size_t n, const char *sharding, xlac_error *err) {
  inspect_message m;
  inspect_callback callback;
  (void)ctx;
  assert(config && sharding);
  if (n != sizeof callback)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "InspectSharding has %zu bytes of backend_config; %zu were expected", n,
                     sizeof callback);
  TRY(inspect_read(&m, sharding, err));
  memcpy(&callback, config, sizeof callback);
  inspect_args args = {.sharding = (char *)m.bytes, .sharding_size = m.n};
  callback.call(callback.data, &args);
  if (!args.error) return 0;
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "%.400s", args.error);
  if (args.free_error) args.free_error(&args);
  return status;
}

int pjrt_inspect_shardings(xlac_module *m, bool saved, xlac_error *err) {
  return api_module_inspect(m, "InspectSharding", saved ? NULL : inspect_tell, NULL, err);
}
