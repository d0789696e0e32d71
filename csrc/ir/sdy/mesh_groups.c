/* Reads replica groups given by mesh axes. */
#include "mesh_groups.h"

#include "../../base/number/number.h"

bool ir_mesh_take(ir_mesh_groups *m, const char *word) {
  while (m->p < m->end && *m->p == ' ') m->p++;
  size_t n = strlen(word);
  if ((size_t)(m->end - m->p) < n || memcmp(m->p, word, n) != 0) return false;
  m->p += n;
  return true;
}

bool ir_mesh_take_int(ir_mesh_groups *m, int64_t *v) {
  while (m->p < m->end && *m->p == ' ') m->p++;
  const char *after = base_parse_i64(m->p, m->end, v);
  if (!after) return false;
  m->p = after;
  return true;
}

static bool take_axis_name(ir_mesh_groups *m, base_slice *name) {
  if (!ir_mesh_take(m, "'")) return false;
  const char *close = memchr(m->p, '\'', (size_t)(m->end - m->p));
  if (!close) return false;
  *name = (base_slice){m->p, (size_t)(close - m->p)};
  m->p = close + 1;
  return true;
}

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
  for (; !ir_mesh_take(m, close); (*n)++) {
    if (*n == IR_MAX_MESH_AXES || (*n && !ir_mesh_take(m, ",")) || !ir_mesh_take_int(m, &v[*n])) return false;
  }
  return true;
}

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

static bool take_refs(ir_mesh_groups *m) {
  if (!ir_mesh_take(m, "{")) return false;
  while (!ir_mesh_take(m, "}")) {
    if (m->n_refs == IR_MAX_MESH_AXES || (m->n_refs && !ir_mesh_take(m, ","))) return false;
    if (!take_ref(m, &m->refs[m->n_refs])) return false;
    m->n_refs++;
  }
  return m->p == m->end;
}

bool ir_mesh_groups_read(ir_mesh_groups *out, const base_istr *text) {
  *out = (ir_mesh_groups){.p = text->s, .end = text->s + text->n, .group_size = 1};
  if (!take_axes(out) || !take_device_ids(out) || !take_refs(out)) return false;
  for (uint32_t i = 0; i < out->n_refs; i++)
    if (!base_mul_i64(out->group_size, out->refs[i].size, &out->group_size)) return false;
  return out->group_size >= 1 && out->n_devices % out->group_size == 0;
}
