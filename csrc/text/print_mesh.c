/* Writes out replica groups given by mesh axes, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}": fingerprints
 * compare groups by the devices in them. Anything this reader of that one form does not know stays as it was written.
 */
#include "print.h"

#include "../ir/mesh_groups.h"

/* A run of device digits: an axis of the mesh, or what an axis is cut into by the sub-axes in use. */
typedef struct mesh_part {
  int64_t size, stride;
} mesh_part;

static mesh_part part_of(const ir_mesh_groups *m, uint32_t axis, int64_t pre, int64_t size) {
  return (mesh_part){size, m->strides[axis] * (m->sizes[axis] / (pre * size))};
}

/* The parts of axis that no ref uses, outermost first. False when its refs overlap. */
static bool add_unused_parts(const ir_mesh_groups *m, uint32_t axis, mesh_part *parts, uint32_t *n) {
  int64_t at = 1; /* product of the sizes passed so far */
  while (at < m->sizes[axis]) {
    const ir_mesh_ref *next = NULL;
    for (uint32_t i = 0; i < m->n_refs; i++) {
      const ir_mesh_ref *r = &m->refs[i];
      if (r->axis == axis && r->size > 1 && r->pre >= at && (!next || r->pre < next->pre)) next = r;
    }
    int64_t until = next ? next->pre : m->sizes[axis];
    if (until % at != 0) return false;
    if (until > at) parts[(*n)++] = part_of(m, axis, at, until / at);
    at = next ? next->pre * next->size : until;
  }
  return at == m->sizes[axis];
}

/* The place in the mesh that the digits of `index` in the mixed base of the parts stand for. */
static int64_t mesh_place(const mesh_part *parts, uint32_t n, int64_t index) {
  int64_t place = 0;
  for (uint32_t i = n; i-- > 0;) {
    place += index % parts[i].size * parts[i].stride;
    index /= parts[i].size;
  }
  return place;
}

/* -1 when it is more than a mesh may have. */
static int64_t part_product(const mesh_part *parts, uint32_t n) {
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (!base_mul_i64(product, parts[i].size, &product) || product > IR_MAX_MESH_DEVICES) return -1;
  }
  return product;
}

/* Devices in mesh order: "0,2,4,..." or "[4,2]T(1,0)". */
static bool read_devices(const ir_mesh_groups *m, int64_t *devices) {
  ir_mesh_groups s = {.p = m->device_ids.p, .end = m->device_ids.p + m->device_ids.n};
  int64_t dims[IR_MAX_MESH_AXES], perm[IR_MAX_MESH_AXES];
  mesh_part parts[IR_MAX_MESH_AXES];
  uint32_t n = 0, n_perm = 0;
  if (!ir_mesh_take(&s, "[")) {
    for (int64_t i = 0; i < m->n_devices; i++) {
      if ((i && !ir_mesh_take(&s, ",")) || !ir_mesh_take_int(&s, &devices[i])) return false;
    }
    return s.p == s.end;
  }
  for (; !ir_mesh_take(&s, "]"); n++) {
    if (n == IR_MAX_MESH_AXES || (n && !ir_mesh_take(&s, ",")) || !ir_mesh_take_int(&s, &dims[n]) || dims[n] < 1) return false;
  }
  if (ir_mesh_take(&s, "T(")) {
    for (; !ir_mesh_take(&s, ")"); n_perm++) {
      if (n_perm == n || (n_perm && !ir_mesh_take(&s, ",")) || !ir_mesh_take_int(&s, &perm[n_perm])) return false;
      if (perm[n_perm] < 0 || perm[n_perm] >= n) return false;
    }
    if (n_perm != n) return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = n_perm ? (uint32_t)perm[i] : i;
    parts[i] = (mesh_part){dims[d], 1};
    for (uint32_t j = d + 1; j < n; j++) {
      if (!base_mul_i64(parts[i].stride, dims[j], &parts[i].stride)) return false;
    }
  }
  if (s.p != s.end || part_product(parts, n) != m->n_devices) return false;
  for (int64_t i = 0; i < m->n_devices; i++) devices[i] = mesh_place(parts, n, i);
  return true;
}

static void put_mesh_lists(base_text *out, const mesh_part *outer, uint32_t n_outer, const mesh_part *inner,
                           uint32_t n_inner, const int64_t *devices) {
  int64_t n_groups = part_product(outer, n_outer), size = part_product(inner, n_inner);
  base_putc(out, '{');
  for (int64_t i = 0; i < n_groups; i++) {
    base_puts(out, i ? ",{" : "{");
    for (int64_t j = 0; j < size; j++) {
      int64_t place = mesh_place(outer, n_outer, i) + mesh_place(inner, n_inner, j);
      if (j) base_putc(out, ',');
      base_put_i64(out, devices ? devices[place] : place);
    }
    base_putc(out, '}');
  }
  base_putc(out, '}');
}

bool text_put_mesh_groups(base_text *out, const base_istr *text) {
  ir_mesh_groups m;
  mesh_part inner[IR_MAX_MESH_AXES], outer[4 * IR_MAX_MESH_AXES];
  uint32_t n_outer = 0;
  if (!ir_mesh_groups_read(&m, text)) return false;
  for (uint32_t i = 0; i < m.n_refs; i++) inner[i] = part_of(&m, m.refs[i].axis, m.refs[i].pre, m.refs[i].size);
  for (uint32_t i = 0; i < m.n_axes; i++) {
    if (!add_unused_parts(&m, i, outer, &n_outer)) return false;
  }
  int64_t n_inner = part_product(inner, m.n_refs);
  if (n_inner < 1 || n_inner * part_product(outer, n_outer) != m.n_devices) return false;
  if (!m.device_ids.p) {
    put_mesh_lists(out, outer, n_outer, inner, m.n_refs, NULL);
    return true;
  }
  int64_t *devices = base_malloc(out->alloc, (size_t)m.n_devices * sizeof *devices);
  bool ok = devices && read_devices(&m, devices);
  if (ok) put_mesh_lists(out, outer, n_outer, inner, m.n_refs, devices);
  base_free(out->alloc, devices);
  return ok;
}
