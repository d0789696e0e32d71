/* How arrays are cut, as the client reads it: an OpSharding, which lists the devices of each tile. What the executable
 * says of each device's part is turned round. */
#include "pjrt.h"
#include "wire.h"

enum { SHARDING_OTHER = 3, SHARDING_REPLICATED = 0, SHARDING_UNREDUCED = 6 };

typedef struct sharding_cut {
  const xlac_executable *exe;
  bool result;
  uint32_t leaf, n_devices, rank;
  uint64_t parts[IR_MAX_RANK], n_tiles; /* along each dimension; in all */
  uint32_t n_added;                     /* arrays that are to be added up, for each tile */
} sharding_cut;

/* False where each device has all of it. Nothing can be told of the parts of no elements. */
static bool sharding_read(sharding_cut *c) {
  xlac_shard s;
  if (!xlac_executable_shard(c->exe, c->result, c->leaf, 0, &s)) return false;
  c->rank = s.rank;
  c->n_tiles = 1;
  for (uint32_t d = 0; d < s.rank; d++) {
    c->parts[d] = s.dims[d] > 0 ? (uint64_t)(s.whole[d] / s.dims[d]) : 1;
    c->n_tiles *= c->parts[d];
  }
  c->n_added = s.n_parts;
  assert(c->n_tiles > 0 && c->n_devices % (c->n_tiles * s.n_parts) == 0);
  return c->n_tiles > 1 || c->n_added > 1;
}

/* The number of a device's tile, in row-major order, and which of its parts the device has. */
static uint64_t sharding_tile(const sharding_cut *c, uint32_t device, uint32_t *part) {
  xlac_shard s = {.part = 0};
  uint64_t tile = 0;
  bool there = xlac_executable_shard(c->exe, c->result, c->leaf, device, &s);
  assert(there);
  *part = s.part;
  for (uint32_t d = 0; there && d < c->rank; d++)
    tile = tile * c->parts[d] + (s.dims[d] > 0 ? (uint64_t)(s.start[d] / s.dims[d]) : 0);
  return tile;
}

static size_t sharding_put_list(unsigned char *out, uint32_t field, const uint64_t *list, size_t n) {
  unsigned char number[12];
  size_t bytes = 0, at;
  for (size_t i = 0; i < n; i++) bytes += wire_put_varint(number, list[i]);
  at = wire_put_head(out, field, bytes);
  for (size_t i = 0; i < n; i++) at += wire_put_varint(out + at, list[i]);
  return at;
}

/* Devices tile by tile; of a tile part by part, and of a part copies in ascending order: XLA's normal form. */
static void sharding_order(const sharding_cut *c, uint64_t *devices) {
  size_t copies = (size_t)(c->n_devices / c->n_tiles / c->n_added);
  uint32_t filled[PJRT_DEVICES_MAX] = {0};
  for (uint32_t i = 0; i < c->n_devices; i++) {
    uint32_t part = 0;
    uint64_t tile = sharding_tile(c, i, &part), at = tile * c->n_added + part;
    assert(at < c->n_tiles * c->n_added && filled[at] < copies);
    devices[at * copies + filled[at]++] = i;
  }
}

/* With the devices that have the same tile as last dimensions, where there are several: those of parts that are added
 * up, and those of copies. */
static size_t sharding_write(const sharding_cut *c, const uint64_t *devices, unsigned char *out) {
  uint64_t dims[IR_MAX_RANK + 2], copies = c->n_devices / c->n_tiles / c->n_added, kinds[2], n_kinds = 0;
  size_t at = 0, rank = c->rank;
  memcpy(dims, c->parts, sizeof c->parts);
  if (c->n_added > 1) kinds[n_kinds++] = SHARDING_UNREDUCED, dims[rank++] = c->n_added;
  if (copies > 1) kinds[n_kinds++] = SHARDING_REPLICATED, dims[rank++] = copies;
  out[at++] = 1 << 3; /* type */
  out[at++] = SHARDING_OTHER;
  at += sharding_put_list(out + at, 3, dims, rank);
  at += sharding_put_list(out + at, 4, devices, c->n_devices);
  if (c->n_added > 1) {
    at += sharding_put_list(out + at, 8, kinds, n_kinds); /* last_tile_dims */
  } else if (copies > 1) {
    out[at++] = 6 << 3; /* replicate_on_last_tile_dim */
    out[at++] = 1;
  }
  return at;
}

PJRT_Error *pjrt_sharding_make(const xlac_executable *exe, bool result, uint32_t leaf, const char **text, size_t *n) {
  xlac_group group;
  xlac_executable_group(exe, &group);
  sharding_cut c = {.exe = exe, .result = result, .leaf = leaf, .n_devices = group.n_devices};
  uint64_t devices[PJRT_DEVICES_MAX];
  *n = 0;
  assert(c.n_devices <= PJRT_DEVICES_MAX);
  if (!sharding_read(&c)) return NULL;
  unsigned char *bytes = pjrt_alloc(80 + 12 * ((size_t)c.rank + 2 + c.n_devices));
  if (!bytes) return pjrt_out_of_memory("a sharding");
  sharding_order(&c, devices);
  *n = sharding_write(&c, devices, bytes);
  *text = (char *)bytes;
  return NULL;
}
