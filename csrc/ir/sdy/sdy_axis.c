/* Meshes, and the algebra of axes and sub-axes; replica groups given by axes of a mesh.
 *
 * A sub-axis "x":(pre)size of an axis of full size n is the span from pre to pre * size among the divisors of n,
 * major to minor: with "x" of size 8, "x":(1)2 is the most significant bit of a device's place along x, "x":(2)2 the
 * next, "x":(4)2 the last, "x":(2)4 the last two. Spans meet where one's end is the other's pre, and merge there:
 * (1)2 and (2)2 make (1)4. Two sub-axes coexist where one factorisation of n has both: (1)4 and (2)4 do, (1)2 and
 * (1)3 of 6 do not. */
#include "../../base/number/number.h"
#include "mesh_groups.h"
#include "sdy.h"

/* --- meshes --- */

/* Linear: meshes have a few axes. */
int sdy_mesh_find(const sdy_mesh *mesh, const base_istr *name) {
  assert(mesh);
  for (uint32_t i = 0; i < mesh->n_axes; i++)
    if (sdy_name_equal(mesh->axes[i].name, name)) return (int)i;
  return -1;
}

/* Factors of sizes are positive, so only growth can overflow. */
static int64_t sdy_saturated(int64_t a, int64_t b) {
  int64_t product = 0;
  return base_mul_i64(a, b, &product) ? product : INT64_MAX;
}

int64_t sdy_mesh_size(const sdy_mesh *mesh) {
  int64_t size = 1;
  for (uint32_t i = 0; i < mesh->n_axes; i++) size = sdy_saturated(size, mesh->axes[i].size);
  return size;
}

/* False without a list of ids. */
bool sdy_mesh_ids_are_iota(const sdy_mesh *mesh) {
  if (mesh->n_axes == 0 || sdy_mesh_size(mesh) != mesh->n_ids) return false;
  for (uint32_t i = 0; i < mesh->n_ids; i++)
    if (mesh->ids[i] != i) return false;
  return true;
}

/* Meshes are symbols at module level, each a computation of one op. */
ir_op *sdy_mesh_op(const ir_module *m, const base_istr *name) {
  for (const ir_computation *c = m->first; c; c = c->next) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const ir_mattr *symbol = ir_mattr_of(c->first, "sym_name");
    if (symbol && sdy_name_equal(symbol->str, name)) return c->first;
  }
  return NULL;
}

/* NULL too where the symbol's attribute is not a mesh. */
const sdy_mesh *sdy_mesh_named(const ir_module *m, const base_istr *name) {
  const ir_op *op = sdy_mesh_op(m, name);
  return op ? sdy_of(ir_mattr_of(op, "mesh"), SDY_MESH) : NULL;
}

/* NULL where the module has no mesh of that name: the verifier reports it. */
const sdy_mesh *sdy_mesh_of(const ir_module *m, const sdy_sharding *s) {
  assert(s);
  return s->mesh_name ? sdy_mesh_named(m, s->mesh_name) : s->mesh;
}

/* --- axes --- */

/* An axis that the mesh does not have counts as size 1. */
int64_t sdy_axis_size(sdy_axis a, const sdy_mesh *mesh) {
  if (a.size) return a.size;
  int i = sdy_mesh_find(mesh, a.name);
  return i < 0 ? 1 : mesh->axes[i].size;
}

/* A whole axis ends at its full size. */
int64_t sdy_axis_end(sdy_axis a, const sdy_mesh *mesh) {
  return a.size ? sdy_saturated(a.pre, a.size) : sdy_axis_size(a, mesh);
}

sdy_axis sdy_axis_span(const base_istr *name, int64_t pre, int64_t end, const sdy_mesh *mesh) {
  assert(pre >= 1 && end % pre == 0);
  int i = sdy_mesh_find(mesh, name);
  if (pre == 1 && i >= 0 && mesh->axes[i].size == end) return (sdy_axis){.name = name};
  return (sdy_axis){name, pre, end / pre};
}

/* Into how many parts a dimension with these axes is cut. */
int64_t sdy_axes_size(sdy_axes a, const sdy_mesh *mesh) {
  int64_t size = 1;
  for (uint32_t i = 0; i < a.n; i++) size = sdy_saturated(size, sdy_axis_size(a.v[i], mesh));
  return size;
}

/* -1, 0 or 1 without overflow. */
static int sdy_compare_i64(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

/* A whole axis ends later than any sub-axis that begins where it does. */
int sdy_axis_compare(sdy_axis a, sdy_axis b, const sdy_mesh *mesh) {
  if (!sdy_name_equal(a.name, b.name)) {
    int i = sdy_mesh_find(mesh, a.name), k = sdy_mesh_find(mesh, b.name);
    return sdy_compare_i64(i < 0 ? INT64_MAX : i, k < 0 ? INT64_MAX : k);
  }
  int c = sdy_compare_i64(sdy_axis_pre(a), sdy_axis_pre(b));
  return c ? c : sdy_compare_i64(a.size ? a.size : INT64_MAX, b.size ? b.size : INT64_MAX);
}

/* A whole axis overlaps all of its sub-axes. */
bool sdy_axis_overlaps(sdy_axis a, sdy_axis b) {
  if (!sdy_name_equal(a.name, b.name)) return false;
  if (!a.size || !b.size) return true;
  return a.pre < sdy_saturated(b.pre, b.size) && b.pre < sdy_saturated(a.pre, a.size);
}

/* Only a whole axis contains a whole one, since a sub-axis is smaller by definition. */
bool sdy_axis_contains(sdy_axis a, sdy_axis b) {
  if (!sdy_name_equal(a.name, b.name)) return false;
  if (!a.size) return true;
  return b.size && a.pre <= b.pre && sdy_saturated(a.pre, a.size) >= sdy_saturated(b.pre, b.size);
}

/* Where two spans of one axis begin and end. */
typedef struct sdy_spans {
  int64_t first, second; /* the smaller and the larger pre */
  int64_t end, last;     /* the smaller and the larger end */
} sdy_spans;

static sdy_spans sdy_spans_of(sdy_axis a, sdy_axis b) {
  assert(a.size && b.size);
  int64_t x = sdy_saturated(a.pre, a.size), y = sdy_saturated(b.pre, b.size);
  sdy_spans s = {a.pre, b.pre, x, y};
  if (a.pre > b.pre) s.first = b.pre, s.second = a.pre;
  if (x > y) s.end = y, s.last = x;
  return s;
}

/* Apart: the gap between them must be a factor. Overlapping: all four ends must divide one another in order. */
bool sdy_axis_coexists(sdy_axis a, sdy_axis b) {
  if (!a.size || !b.size || !sdy_name_equal(a.name, b.name)) return true;
  sdy_spans s = sdy_spans_of(a, b);
  if (s.end <= s.second) return s.second % s.end == 0;
  return s.end % s.second == 0 && s.second % s.first == 0 && s.last % s.end == 0;
}

/* Where one is the whole axis the other is the overlap. */
bool sdy_axis_overlap(sdy_axis a, sdy_axis b, sdy_axis *out) {
  assert(out);
  if (!sdy_name_equal(a.name, b.name)) return false;
  *out = a.size ? a : b;
  if (!a.size || !b.size) return true;
  sdy_spans s = sdy_spans_of(a, b);
  if (s.end <= s.second || !sdy_axis_coexists(a, b)) return false;
  *out = (sdy_axis){a.name, s.second, s.end / s.second};
  return true;
}

bool sdy_axis_before(sdy_axis a, sdy_axis b, sdy_axis *out) {
  assert(out);
  *out = a;
  if (!sdy_axis_coexists(a, b)) return false;
  if (!sdy_axis_overlaps(a, b)) return true;
  int64_t pre = sdy_axis_pre(a), until = sdy_axis_pre(b);
  if (pre >= until) return false;
  *out = (sdy_axis){a.name, pre, until / pre};
  return true;
}

bool sdy_axis_after(sdy_axis a, sdy_axis b, const sdy_mesh *mesh, sdy_axis *out) {
  assert(out);
  *out = a;
  if (!sdy_axis_coexists(a, b)) return false;
  if (!sdy_axis_overlaps(a, b)) return true;
  int64_t end = sdy_axis_end(a, mesh), from = sdy_axis_end(b, mesh);
  if (end <= from) return false;
  *out = (sdy_axis){a.name, from, end / from};
  return true;
}

/* Whole axes have nothing next to them. */
bool sdy_axis_can_merge(sdy_axis a, sdy_axis b) {
  return a.size && b.size && sdy_name_equal(a.name, b.name) && sdy_saturated(a.pre, a.size) == b.pre;
}

/* The whole axis where the two sub-axes make it up. */
sdy_axis sdy_axis_merge(sdy_axis a, sdy_axis b, const sdy_mesh *mesh) {
  assert(sdy_axis_can_merge(a, b));
  return sdy_axis_span(a.name, a.pre, sdy_saturated(b.pre, b.size), mesh);
}

/* --- lists --- */

/* Any of a's with b. */
bool sdy_axes_overlap(sdy_axes a, sdy_axis b) {
  for (uint32_t i = 0; i < a.n; i++)
    if (sdy_axis_overlaps(a.v[i], b)) return true;
  return false;
}

/* By insertion: lists are short, and mostly sorted. */
void sdy_axes_sort(sdy_axis *v, uint32_t n, const sdy_mesh *mesh) {
  assert(v || n == 0);
  for (uint32_t i = 1; i < n; i++) { /* lists are short */
    sdy_axis a = v[i];
    uint32_t k = i;
    for (; k && sdy_axis_compare(a, v[k - 1], mesh) < 0; k--) v[k] = v[k - 1];
    v[k] = a;
  }
}

/* After sorting, neighbours in a sub-axis's sense are neighbours in the list. */
uint32_t sdy_axes_sort_and_merge(sdy_axis *v, uint32_t n, const sdy_mesh *mesh) {
  assert(v || n == 0);
  sdy_axes_sort(v, n, mesh);
  uint32_t to = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (to && sdy_axis_can_merge(v[to - 1], v[i]))
      v[to - 1] = sdy_axis_merge(v[to - 1], v[i], mesh);
    else
      v[to++] = v[i];
  }
  return to;
}

/* --- replica groups given by mesh axes, newer XLA's text: mesh['a'=2,'b'=4] {'b':(1)2} ---
 *
 * A recursive descent over the text that the HLO reader kept verbatim. Every `take` returns false where the text does
 * not go on as it should; the caller then reports the attribute as a whole. */
bool ir_mesh_take(ir_mesh_groups *m, const char *word) {
  while (m->p < m->end && *m->p == ' ') m->p++;
  size_t n = strlen(word);
  if ((size_t)(m->end - m->p) < n || memcmp(m->p, word, n) != 0) return false;
  m->p += n;
  return true;
}

/* Sign and range are the caller's to check. */
bool ir_mesh_take_int(ir_mesh_groups *m, int64_t *v) {
  while (m->p < m->end && *m->p == ' ') m->p++;
  const char *after = base_parse_i64(m->p, m->end, v);
  if (!after) return false;
  m->p = after;
  return true;
}

/* 'name', of any bytes but the quote. */
static bool take_axis_name(ir_mesh_groups *m, base_slice *name) {
  if (!ir_mesh_take(m, "'")) return false;
  const char *close = memchr(m->p, '\'', (size_t)(m->end - m->p));
  if (!close) return false;
  *name = (base_slice){m->p, (size_t)(close - m->p)};
  m->p = close + 1;
  return true;
}

/* Axes with their sizes, at most IR_MAX_MESH_DEVICES devices in all; strides for row-major device numbers. */
static bool take_axes(ir_mesh_groups *m) {
  if (!ir_mesh_take(m, "mesh[")) return false;
  while (!ir_mesh_take(m, "]")) {
    uint32_t i = m->n_axes;
    if (i == IR_MAX_MESH_AXES || (i && !ir_mesh_take(m, ","))) return false;
    if (!take_axis_name(m, &m->names[i]) || !ir_mesh_take(m, "=") || !ir_mesh_take_int(m, &m->sizes[i])) return false;
    if (m->sizes[i] < 1 || m->sizes[i] > IR_MAX_MESH_DEVICES) return false;
    m->n_axes++;
  }
  m->n_devices = 1;
  for (uint32_t i = m->n_axes; i-- > 0;) {
    m->strides[i] = m->n_devices;
    m->n_devices *= m->sizes[i];
    if (m->n_devices > IR_MAX_MESH_DEVICES) return false;
  }
  return true;
}

/* A bracketed list of at most IR_MAX_MESH_AXES numbers, after its opening. */
static bool take_numbers(ir_mesh_groups *m, const char *close, int64_t *v, uint32_t *n) {
  assert(*n == 0);
  for (; !ir_mesh_take(m, close); (*n)++) {
    if (*n == IR_MAX_MESH_AXES || (*n && !ir_mesh_take(m, ",")) || !ir_mesh_take_int(m, &v[*n])) return false;
  }
  return true;
}

/* Optional: device_ids=(0,2,1,3), kept as text and read where it is needed, or an iota, device_ids=([4,2]T(1,0)). */
static bool take_device_ids(ir_mesh_groups *m) {
  if (!ir_mesh_take(m, ",")) return true;
  if (!ir_mesh_take(m, "device_ids=(")) return false;
  m->has_ids = true;
  if (!ir_mesh_take(m, "[")) {
    const char *close = memchr(m->p, ')', (size_t)(m->end - m->p));
    m->list = (base_slice){m->p, close ? (size_t)(close - m->p) : 0};
    m->p = close ? close + 1 : m->end;
    return close != NULL;
  }
  if (!take_numbers(m, "]", m->id_dims, &m->n_id_dims)) return false;
  if (ir_mesh_take(m, "T(") && !take_numbers(m, ")", m->id_perm, &m->n_id_perm)) return false;
  for (uint32_t i = 0; i < m->n_id_perm; i++) {
    if (m->id_perm[i] < 0 || m->id_perm[i] >= m->n_id_dims) return false;
  }
  return ir_mesh_take(m, ")") && m->n_id_dims && (m->n_id_perm == 0 || m->n_id_perm == m->n_id_dims);
}

/* An axis or a sub-axis whose pre * size divides the axis; both factors are bounded first, so that their product
 * can't overflow. */
static bool take_ref(ir_mesh_groups *m, ir_mesh_ref *ref) {
  base_slice name;
  if (!take_axis_name(m, &name)) return false;
  uint32_t i = 0;
  while (i < m->n_axes && !(m->names[i].n == name.n && memcmp(m->names[i].p, name.p, name.n) == 0)) i++;
  if (i == m->n_axes) return false;
  *ref = (ir_mesh_ref){i, 1, m->sizes[i]};
  if (!ir_mesh_take(m, ":")) return true;
  if (!ir_mesh_take(m, "(") || !ir_mesh_take_int(m, &ref->pre) || !ir_mesh_take(m, ")") ||
      !ir_mesh_take_int(m, &ref->size))
    return false;
  bool is_small = ref->pre >= 1 && ref->size >= 1 && ref->pre <= m->sizes[i] && ref->size <= m->sizes[i];
  return is_small && m->sizes[i] % (ref->pre * ref->size) == 0;
}

/* The axes that a group runs over, up to the end of the text. */
static bool take_refs(ir_mesh_groups *m) {
  if (!ir_mesh_take(m, "{")) return false;
  while (!ir_mesh_take(m, "}")) {
    if (m->n_refs == IR_MAX_MESH_AXES || (m->n_refs && !ir_mesh_take(m, ","))) return false;
    if (!take_ref(m, &m->refs[m->n_refs])) return false;
    m->n_refs++;
  }
  return m->p == m->end;
}

/* Groups cover all devices: their size divides the number of devices. */
bool ir_mesh_groups_read(ir_mesh_groups *out, const base_istr *text) {
  assert(out && text);
  *out = (ir_mesh_groups){.p = text->s, .end = text->s + text->n, .group_size = 1};
  if (!take_axes(out) || !take_device_ids(out) || !take_refs(out)) return false;
  for (uint32_t i = 0; i < out->n_refs; i++)
    if (!base_mul_i64(out->group_size, out->refs[i].size, &out->group_size)) return false;
  return out->group_size >= 1 && out->n_devices % out->group_size == 0;
}
