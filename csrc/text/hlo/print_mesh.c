/* Writes out replica groups given by mesh axes, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}": fingerprints
 * compare groups by the devices in them. Anything this reader of that one form does not know stays as it was written.
 */
#include "print.h"

#include "../../ir/sdy/mesh_groups.h"

/* A run of device digits: an axis of the mesh, or what an axis is cut into by the sub-axes in use. */
typedef struct mesh_part {
  int64_t size, stride;
} mesh_part;

static mesh_part mesh_part_of(const ir_mesh_groups *m, uint32_t axis, int64_t pre, int64_t size) {
  assert(axis < m->n_axes && m->sizes[axis] % (pre * size) == 0);
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
    if (until > at) parts[(*n)++] = mesh_part_of(m, axis, at, until / at);
    at = next ? next->pre * next->size : until;
  }
  return at == m->sizes[axis];
}

/* The place in the mesh that the digits of `index` in the mixed base of the parts stand for. */
static int64_t mesh_place(const mesh_part *parts, uint32_t n, int64_t index) {
  assert(index >= 0);
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

static bool read_id_list(const ir_mesh_groups *m, int64_t *devices) {
  ir_mesh_groups s = {.p = m->list.p, .end = m->list.p + m->list.n};
  for (int64_t i = 0; i < m->n_devices; i++) {
    if ((i && !ir_mesh_take(&s, ",")) || !ir_mesh_take_int(&s, &devices[i])) return false;
  }
  return !ir_mesh_take(&s, ",") && s.p == s.end;
}

/* Devices in mesh order. */
static bool read_devices(const ir_mesh_groups *m, int64_t *devices) {
  assert(m->has_ids && m->n_devices >= 1);
  mesh_part parts[IR_MAX_MESH_AXES];
  if (m->list.p) return read_id_list(m, devices);
  for (uint32_t i = 0; i < m->n_id_dims; i++) {
    uint32_t d = m->n_id_perm ? (uint32_t)m->id_perm[i] : i;
    parts[i] = (mesh_part){m->id_dims[d], 1};
    if (parts[i].size < 1) return false;
    for (uint32_t j = d + 1; j < m->n_id_dims; j++) {
      if (!base_mul_i64(parts[i].stride, m->id_dims[j], &parts[i].stride)) return false;
    }
  }
  if (part_product(parts, m->n_id_dims) != m->n_devices) return false;
  for (int64_t i = 0; i < m->n_devices; i++) devices[i] = mesh_place(parts, m->n_id_dims, i);
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

static bool put_expanded(base_text *out, const ir_mesh_groups *m) {
  mesh_part inner[IR_MAX_MESH_AXES], outer[4 * IR_MAX_MESH_AXES];
  uint32_t n_outer = 0;
  for (uint32_t i = 0; i < m->n_refs; i++) inner[i] = mesh_part_of(m, m->refs[i].axis, m->refs[i].pre, m->refs[i].size);
  for (uint32_t i = 0; i < m->n_axes; i++) {
    if (!add_unused_parts(m, i, outer, &n_outer)) return false;
  }
  int64_t n_inner = part_product(inner, m->n_refs);
  if (n_inner < 1 || n_inner * part_product(outer, n_outer) != m->n_devices) return false;
  int64_t *devices = base_malloc(out->alloc, (size_t)m->n_devices * sizeof *devices);
  bool ok = devices && (!m->has_ids || read_devices(m, devices));
  if (ok) put_mesh_lists(out, outer, n_outer, inner, m->n_refs, m->has_ids ? devices : NULL);
  base_free(out->alloc, devices);
  return ok;
}

static void put_axis(base_text *out, base_slice name) {
  base_putc(out, '\'');
  base_put(out, name.p, name.n);
  base_putc(out, '\'');
}

static void put_mesh_axes(base_text *out, const ir_mesh_groups *m) {
  BASE_PUT(out, "mesh[");
  for (uint32_t i = 0; i < m->n_axes; i++) {
    if (i) base_putc(out, ',');
    put_axis(out, m->names[i]);
    base_putc(out, '=');
    base_put_i64(out, m->sizes[i]);
  }
  base_putc(out, ']');
}

/* Nothing when they are 0, 1, 2, ... */
static void put_device_ids(base_text *out, const ir_mesh_groups *m) {
  size_t start = out->n;
  if (!m->has_ids) return;
  BASE_PUT(out, ", device_ids=(");
  uint32_t n = 0;
  if (m->list.p)
    for (size_t i = 0; i < m->list.n; i++) {
      if (m->list.p[i] != ' ') base_putc(out, m->list.p[i]);
    }
  else
    n = text_put_iota_dims(out, m->id_dims, m->n_id_perm ? m->id_perm : NULL, m->n_id_dims);
  base_putc(out, ')');
  if (n == 1) out->n = start;
}

static void put_refs(base_text *out, const ir_mesh_groups *m) {
  base_puts(out, " {");
  for (uint32_t i = 0; i < m->n_refs; i++) {
    const ir_mesh_ref *r = &m->refs[i];
    if (i) base_putc(out, ',');
    put_axis(out, m->names[r->axis]);
    if (r->pre == 1 && r->size == m->sizes[r->axis]) continue;
    BASE_PUT(out, ":(");
    base_put_i64(out, r->pre);
    base_putc(out, ')');
    base_put_i64(out, r->size);
  }
  base_putc(out, '}');
}

bool text_put_mesh_groups(base_text *out, const base_istr *text, bool expand) {
  ir_mesh_groups m;
  if (!ir_mesh_groups_read(&m, text)) return false;
  if (expand) return put_expanded(out, &m);
  put_mesh_axes(out, &m);
  put_device_ids(out, &m);
  put_refs(out, &m);
  return true;
}
