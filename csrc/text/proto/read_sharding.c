/* Shardings, replica groups and metadata from their messages. What the IR keeps as text, meshes of named axes, is
 * put together here in XLA's spelling.
 *
 * xla.OpSharding has a kind and, by it, tiles, devices, elements, or (field 14) a sharding by the axes of a mesh.
 * Replica groups come in one of three fields: 92 as an iota, 93 by the axes of a mesh, 87 as lists; older XLA has
 * them in 49. */
#include "../hlo/print.h"
#include "read.h"
#include "../hlo/read.h"

/* --- metadata --- */

/* A payload is there itself, or by its number in the module's list. Numbers count the module's field 22. */
static int read_payload(proto_reader *r, proto_message in, const base_istr **out) {
  proto_field f;
  uint32_t at = r->module.first;
  if (proto_count(&r->s, in, 1, PROTO_LENGTH)) return proto_read_str(r, in, 1, out);
  if (!proto_find(&r->s, in, 2, PROTO_VARINT, &f)) return 0;
  for (uint64_t i = 0; i <= f.value; i++) {
    proto_field payload;
    if (!proto_next(&r->s, r->module, 22, PROTO_LENGTH, &at, &payload))
      return proto_fail(&r->s, f.p, XLAC_E_BAD_PROTO, "payload %llu, but the module has %llu",
                        (unsigned long long)f.value, (unsigned long long)i);
    if (i == f.value) return proto_intern(r, (const char *)payload.p, (size_t)payload.value, out);
  }
  return 0;
}

/* Kept as text, "{1,2}". */
static int read_profile(proto_reader *r, proto_message in, const base_istr **out) {
  uint32_t from;
  TRY(proto_list(&r->s, in, 5, &from));
  r->bytes.n = 0;
  base_putc(&r->bytes, '{');
  text_put_ints(&r->bytes, r->s.numbers.items + from, r->s.numbers.n - from);
  base_putc(&r->bytes, '}');
  bool any = r->s.numbers.n > from;
  r->s.numbers.n = from;
  if (r->bytes.failed) return proto_no_memory(&r->s);
  return any ? proto_intern(r, r->bytes.s, r->bytes.n, out) : 0;
}

/* Plain fields by table, the others one by one. */
int proto_read_metadata(proto_reader *r, proto_message in, const ir_metadata **out) {
  ir_metadata *m = BASE_NEW(&r->m->arena, ir_metadata);
  proto_message payload;
  if (!m) return proto_no_memory(&r->s);
  for (uint32_t i = 0; i < proto_n_metadata_fields; i++) {
    const proto_metadata_field *f = &proto_metadata_fields[i];
    void *member = (char *)m + f->offset;
    if (f->is_string)
      TRY(proto_read_str(r, in, f->number, member));
    else
      *(int64_t *)member = proto_int(&r->s, in, f->number);
  }
  int64_t frame = proto_int(&r->s, in, 15);
  m->stack_frame_id = frame > 0 && frame <= (int64_t)r->m->sources.n_frames ? (uint32_t)frame : 0;
  TRY(read_profile(r, in, &m->profile_type));
  TRY(proto_open_sub(&r->s, in, 20, &payload));
  TRY(read_payload(r, payload, &m->payload));
  proto_close(&r->s, payload);
  *out = m;
  return 0;
}

/* --- meshes --- */

/* A ref names its axis by number; *axis is that axis of the mesh. */
static int check_axis(proto_reader *r, proto_message mesh, proto_message ref, proto_field *axis) {
  int64_t index = proto_int(&r->s, ref, 1);
  uint32_t at = mesh.first;
  for (int64_t i = 0; i <= index && proto_next(&r->s, mesh, 1, PROTO_LENGTH, &at, axis); i++)
    if (i == index) return 0;
  return proto_fail(&r->s, proto_place(r, ref), XLAC_E_BAD_SHARDING_TEXT, "axis %lld of a mesh that has fewer",
                    (long long)index);
}

/* 'a' or 'a':(1)2 */
static int put_axis_ref(proto_reader *r, base_text *out, proto_message mesh, proto_field f) {
  proto_message ref, axis_message, part;
  proto_field axis;
  TRY(proto_open_field(&r->s, f, &ref));
  TRY(check_axis(r, mesh, ref, &axis));
  TRY(proto_open_field(&r->s, axis, &axis_message));
  base_slice name = proto_bytes(&r->s, axis_message, 1);
  proto_close(&r->s, axis_message);
  base_putf(out, "'%.*s'", (int)(name.n < 4096 ? name.n : 4096), name.n ? name.p : "");
  if (proto_count(&r->s, ref, 2, PROTO_LENGTH)) {
    TRY(proto_open_sub(&r->s, ref, 2, &part));
    base_putf(out, ":(%lld)%lld", (long long)proto_int(&r->s, part, 1), (long long)proto_int(&r->s, part, 2));
    proto_close(&r->s, part);
  }
  proto_close(&r->s, ref);
  return 0;
}

/* All refs in field `number`, `separator` between them; *n counts them. */
static int put_axis_refs(proto_reader *r, base_text *out, proto_message mesh, proto_message in, uint32_t number,
                         const char *separator, uint32_t *n) {
  uint32_t at = in.first;
  proto_field f;
  for (*n = 0; proto_next(&r->s, in, number, PROTO_LENGTH, &at, &f); ++*n) {
    if (*n) base_puts(out, separator);
    TRY(put_axis_ref(r, out, mesh, f));
  }
  return 0;
}

/*   , device_ids=([4,2]T(1,0)) */
static int put_iota_ids(proto_reader *r, base_text *out, proto_message mesh) {
  proto_message iota;
  uint32_t dims, perm;
  TRY(proto_open_sub(&r->s, mesh, 3, &iota));
  TRY(proto_list(&r->s, iota, 1, &dims));
  TRY(proto_list(&r->s, iota, 2, &perm));
  base_puts(out, ", device_ids=([");
  text_put_ints(out, r->s.numbers.items + dims, perm - dims);
  base_putc(out, ']');
  if (perm - dims > 1 || r->s.numbers.n - perm > 1) {
    base_puts(out, "T(");
    text_put_ints(out, r->s.numbers.items + perm, r->s.numbers.n - perm);
    base_putc(out, ')');
  }
  base_putc(out, ')');
  r->s.numbers.n = dims;
  proto_close(&r->s, iota);
  return 0;
}

/*   mesh['a'=2,'b'=4], device_ids=(...) */
static int put_mesh(proto_reader *r, base_text *out, proto_message mesh) {
  uint32_t at = mesh.first, n = 0, from;
  proto_field f;
  base_puts(out, "mesh[");
  for (; proto_next(&r->s, mesh, 1, PROTO_LENGTH, &at, &f); n++) {
    proto_message axis;
    TRY(proto_open_field(&r->s, f, &axis));
    base_slice name = proto_bytes(&r->s, axis, 1);
    base_putf(out, "%s'%.*s'=%lld", n ? "," : "", (int)(name.n < 4096 ? name.n : 4096), name.n ? name.p : "",
              (long long)proto_int(&r->s, axis, 2));
    proto_close(&r->s, axis);
  }
  base_putc(out, ']');
  if (proto_count(&r->s, mesh, 3, PROTO_LENGTH)) return put_iota_ids(r, out, mesh);
  TRY(proto_list(&r->s, mesh, 2, &from));
  if (r->s.numbers.n > from) {
    base_puts(out, ", device_ids=(");
    text_put_ints(out, r->s.numbers.items + from, r->s.numbers.n - from);
    base_putc(out, ')');
  }
  r->s.numbers.n = from;
  return 0;
}

/*   , [{'a'}, {'b':(1)2, ?}] */
static int put_dim_shardings(proto_reader *r, base_text *out, proto_message mesh, proto_message in) {
  uint32_t at = in.first, n = 0, n_refs;
  proto_field f;
  base_puts(out, ", [");
  for (; proto_next(&r->s, in, 3, PROTO_LENGTH, &at, &f); n++) {
    proto_message dim;
    TRY(proto_open_field(&r->s, f, &dim));
    base_puts(out, n ? ", {" : "{");
    TRY(put_axis_refs(r, out, mesh, dim, 1, ", ", &n_refs));
    if (!proto_int(&r->s, dim, 2)) base_puts(out, n_refs ? ", ?" : "?");
    base_putc(out, '}');
    proto_close(&r->s, dim);
  }
  base_putc(out, ']');
  return 0;
}

/*   , replicated={'a'} */
static int put_axis_group(proto_reader *r, base_text *out, proto_message mesh, proto_message in, uint32_t number,
                          const char *name) {
  uint32_t n;
  if (proto_count(&r->s, in, number, PROTO_LENGTH) == 0) return 0;
  base_putf(out, ", %s={", name);
  TRY(put_axis_refs(r, out, mesh, in, number, ", ", &n));
  base_putc(out, '}');
  return 0;
}

/* In single braces where there is one, in double ones else. */
static int put_named_metadata(proto_reader *r, base_text *out, proto_message in) {
  uint32_t at = in.first, n = 0, total = proto_count(&r->s, in, 6, PROTO_LENGTH);
  proto_field f;
  if (total == 0) return 0;
  base_puts(out, ", metadata={");
  for (; proto_next(&r->s, in, 6, PROTO_LENGTH, &at, &f); n++) {
    proto_message message;
    const ir_metadata *m;
    TRY(proto_open_field(&r->s, f, &message));
    TRY(proto_read_metadata(r, message, &m));
    proto_close(&r->s, message);
    if (n) base_puts(out, ", ");
    if (total > 1) base_putc(out, '{');
    text_put_metadata_fields(out, m, NULL, UINT32_MAX);
    if (total > 1) base_putc(out, '}');
  }
  base_putc(out, '}');
  return 0;
}

/* A mesh without axes and with one device is a maximal sharding. */
static int put_named_sharding(proto_reader *r, base_text *out, proto_message in) {
  proto_message mesh;
  uint32_t from;
  TRY(proto_open_sub(&r->s, in, 2, &mesh));
  TRY(proto_list(&r->s, mesh, 2, &from));
  bool maximal = proto_count(&r->s, mesh, 1, PROTO_LENGTH) == 0 && r->s.numbers.n == from + 1;
  long long device = maximal ? (long long)r->s.numbers.items[from] : 0;
  r->s.numbers.n = from;
  base_putc(out, '{');
  if (maximal) {
    base_putf(out, "maximal_mesh[device_id=%lld]", device);
  } else {
    TRY(put_mesh(r, out, mesh));
    TRY(put_dim_shardings(r, out, mesh, in));
    TRY(put_axis_group(r, out, mesh, in, 4, "replicated"));
    TRY(put_axis_group(r, out, mesh, in, 5, "unreduced"));
    TRY(put_axis_group(r, out, mesh, in, 7, "manual"));
  }
  proto_close(&r->s, mesh);
  TRY(put_named_metadata(r, out, in));
  base_putc(out, '}');
  return 0;
}

/* The whole, braces included, becomes one string of the IR. */
static int read_named_sharding(proto_reader *r, proto_message in, ir_sharding *s) {
  proto_message named;
  base_text text;
  base_text_init(&text, r->s.alloc);
  int status = proto_open_sub(&r->s, in, 14, &named);
  if (status == 0) status = put_named_sharding(r, &text, named);
  if (status == 0) proto_close(&r->s, named);
  if (status == 0 && text.failed) status = proto_no_memory(&r->s);
  if (status == 0) status = proto_intern(r, text.s, text.n, &s->named_text);
  base_text_free(&text);
  s->kind = IR_SHARDING_TILED;
  return status;
}

/* --- device assignments --- */

/* An iota in XLA's normal form; perm stays NULL where it is the identity of one dimension. The lists are normalised
 * in place on the stack and then copied. */
static int read_proto_iota(proto_reader *r, proto_message in, uint32_t dims_field, uint32_t perm_field, uint32_t *n,
                           const int64_t **reshape, const int64_t **perm) {
  assert(dims_field != perm_field);
  uint32_t dims_from, perm_from;
  uint64_t seen = 0;
  TRY(proto_list(&r->s, in, dims_field, &dims_from));
  TRY(proto_list(&r->s, in, perm_field, &perm_from));
  int64_t *dims = r->s.numbers.items + dims_from, *order = r->s.numbers.items + perm_from;
  *n = perm_from - dims_from;
  bool fits = *n >= 1 && *n <= IR_MAX_RANK && r->s.numbers.n - perm_from == *n;
  for (uint32_t i = 0; fits && i < *n; i++) {
    fits = order[i] >= 0 && order[i] < (int64_t)*n && !(seen >> order[i] & 1) && dims[i] >= 0;
    if (fits) seen |= UINT64_C(1) << order[i];
  }
  if (!fits)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT,
                      "an iota whose dimensions and order don't fit");
  text_normal_iota(n, dims, order);
  *reshape = base_arena_memdup(&r->m->arena, dims, *n * sizeof *dims);
  *perm = *n > 1 ? base_arena_memdup(&r->m->arena, order, *n * sizeof *order) : NULL;
  r->s.numbers.n = dims_from;
  return *reshape && (*n == 1 || *perm) ? 0 : proto_no_memory(&r->s);
}

/* -1 for a negative dimension or a product beyond 64 bits. */
static int64_t product_of_dims(const int64_t *dims, uint32_t n) {
  int64_t count = 1;
  for (uint32_t i = 0; i < n; i++)
    if (dims[i] < 0 || !base_mul_i64(count, dims[i], &count)) return -1;
  return count;
}

/* xla.OpSharding.Type to the IR's kinds. */
static const uint8_t sharding_kinds[] = {IR_SHARDING_REPLICATED, IR_SHARDING_MAXIMAL, IR_SHARDING_TUPLE,
                                         IR_SHARDING_TILED,      IR_SHARDING_MANUAL,  IR_SHARDING_UNKNOWN,
                                         IR_SHARDING_UNREDUCED};

/* Kinds of the last tile dimensions; a tuple or tiles can't be one. */
static int read_tile_kinds(proto_reader *r, proto_message in, ir_sharding *s) {
  assert(s->n_dims <= IR_MAX_RANK);
  uint32_t from;
  TRY(proto_list(&r->s, in, 8, &from));
  uint32_t n = r->s.numbers.n - from;
  uint8_t *kinds = base_arena_alloc(&r->m->arena, n + 1);
  if (!kinds) return proto_no_memory(&r->s);
  for (uint32_t i = 0; i < n; i++) {
    int64_t v = r->s.numbers.items[from + i];
    if (v < 0 || v > 6 || v == 2 || v == 3 || n > s->n_dims)
      return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT,
                        "kinds of the last tile dimensions don't fit");
    kinds[i] = sharding_kinds[v];
  }
  r->s.numbers.n = from;
  s->n_subgroups = n;
  s->subgroups = n ? kinds : NULL;
  return 0;
}

/* Devices are a list or an iota, as many as there are tiles. */
static int read_tiling(proto_reader *r, proto_message in, ir_sharding *s) {
  TRY(proto_read_array(r, in, 3, &s->n_dims, &s->dims));
  TRY(proto_read_array(r, in, 4, &s->n_devices, &s->devices));
  int64_t tiles = product_of_dims(s->dims, s->n_dims), devices = s->n_devices;
  if (s->n_dims == 0 || s->n_dims > IR_MAX_RANK || tiles < 0)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT, "a tile assignment needs 1 to %d dimensions",
                      IR_MAX_RANK);
  s->iota = s->n_devices == 0;
  if (s->iota) {
    TRY(read_proto_iota(r, in, 9, 10, &s->n_reshape, &s->reshape, &s->perm));
    devices = product_of_dims(s->reshape, s->n_reshape);
  }
  if (devices != tiles)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT, "%lld devices for %lld tiles",
                      (long long)devices, (long long)tiles);
  s->replicate_on_last_dim = proto_int(&r->s, in, 6) != 0;
  return read_tile_kinds(r, in, s);
}

/* One element for each leaf: tuples of tuples are flat. */
static int read_sharding_list(proto_reader *r, proto_message in, ir_sharding *s) {
  uint32_t at = in.first, from = r->pointers.n;
  proto_field f;
  while (proto_next(&r->s, in, 5, PROTO_LENGTH, &at, &f)) {
    proto_message element;
    const ir_sharding *e;
    TRY(proto_open_field(&r->s, f, &element));
    TRY(proto_read_sharding(r, element, &e));
    proto_close(&r->s, element);
    if (e->kind == IR_SHARDING_TUPLE)
      return proto_fail(&r->s, f.p, XLAC_E_BAD_SHARDING_TEXT, "a tuple sharding within a tuple sharding");
    if (!BASE_VEC_PUSH(r->s.alloc, &r->pointers, e)) return proto_no_memory(&r->s);
  }
  s->n_elements = r->pointers.n - from;
  s->elements = base_arena_memdup(&r->m->arena, r->pointers.items + from, s->n_elements * sizeof *s->elements);
  r->pointers.n = from;
  return s->elements || !s->n_elements ? 0 : proto_no_memory(&r->s);
}

/* Who asked for the sharding: any number of OpMetadata, field 7. */
static int read_sharding_metadata(proto_reader *r, proto_message in, ir_sharding *s) {
  uint32_t at = in.first, n = proto_count(&r->s, in, 7, PROTO_LENGTH);
  proto_field f;
  const ir_metadata **list = BASE_ARRAY(&r->m->arena, const ir_metadata *, (size_t)n + 1);
  if (!list) return proto_no_memory(&r->s);
  for (uint32_t i = 0; proto_next(&r->s, in, 7, PROTO_LENGTH, &at, &f); i++) {
    proto_message message;
    TRY(proto_open_field(&r->s, f, &message));
    TRY(proto_read_metadata(r, message, &list[i]));
    proto_close(&r->s, message);
  }
  s->n_metadata = n;
  s->metadata = n ? list : NULL;
  return 0;
}

/*   {maximal device=3} */
static int read_maximal(proto_reader *r, proto_message in, ir_sharding *s) {
  uint32_t from;
  TRY(proto_list(&r->s, in, 4, &from));
  if (r->s.numbers.n != from + 1)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT, "a maximal sharding has one device");
  s->device = r->s.numbers.items[from];
  r->s.numbers.n = from;
  return 0;
}

/* 11 to 13 are the group that ties shardings together: shard_as or shard_like, and its id. */
int proto_read_sharding(proto_reader *r, proto_message in, const ir_sharding **out) {
  ir_sharding *s = BASE_NEW(&r->m->arena, ir_sharding);
  int64_t kind = proto_int(&r->s, in, 1);
  if (!s) return proto_no_memory(&r->s);
  *out = s;
  if (proto_count(&r->s, in, 14, PROTO_LENGTH)) return read_named_sharding(r, in, s);
  if (kind < 0 || kind >= (int64_t)sizeof sharding_kinds)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHARDING_TEXT, "%lld is not a kind of sharding",
                      (long long)kind);
  s->kind = sharding_kinds[kind];
  if (s->kind == IR_SHARDING_TUPLE) return read_sharding_list(r, in, s);
  if (s->kind == IR_SHARDING_TILED) TRY(read_tiling(r, in, s));
  if (s->kind == IR_SHARDING_MAXIMAL) TRY(read_maximal(r, in, s));
  if (proto_int(&r->s, in, 11)) {
    s->group = proto_int(&r->s, in, 13) ? 2 : 1;
    s->group_id = proto_int(&r->s, in, 12);
  }
  return read_sharding_metadata(r, in, s);
}

/* --- replica groups --- */

/* Groups and their size, then the iota. */
static int read_iota_group_list(proto_reader *r, proto_message in, ir_groups *g) {
  int64_t dims[2] = {proto_int(&r->s, in, 1), proto_int(&r->s, in, 2)};
  g->iota = true;
  g->n_dims = 2;
  g->dims = base_arena_memdup(&r->m->arena, dims, sizeof dims);
  if (!g->dims) return proto_no_memory(&r->s);
  TRY(read_proto_iota(r, in, 3, 4, &g->n_reshape, &g->reshape, &g->perm));
  int64_t slots = product_of_dims(dims, 2), devices = product_of_dims(g->reshape, g->n_reshape);
  if (slots >= 0 && slots == devices) return 0;
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "the groups have %lld slots for %lld devices",
                    (long long)slots, (long long)devices);
}

/*   mesh['a'=2,'b'=4] {'a'} */
static int read_mesh_group_list(proto_reader *r, proto_message in, ir_groups *g) {
  proto_message mesh;
  base_text text;
  uint32_t n;
  base_text_init(&text, r->s.alloc);
  int status = proto_open_sub(&r->s, in, 1, &mesh);
  if (status == 0) status = put_mesh(r, &text, mesh);
  base_puts(&text, " {");
  if (status == 0) status = put_axis_refs(r, &text, mesh, in, 2, ",", &n);
  base_putc(&text, '}');
  if (status == 0) proto_close(&r->s, mesh);
  if (status == 0 && text.failed) status = proto_no_memory(&r->s);
  if (status == 0) status = proto_intern(r, text.s, text.n, &g->mesh_text);
  base_text_free(&text);
  return status;
}

/* Each group is a message of one list. */
static int read_group_lists(proto_reader *r, proto_message in, uint32_t number, ir_groups *g) {
  uint32_t at = in.first, n = proto_count(&r->s, in, number, PROTO_LENGTH);
  proto_field f;
  ir_int_lists *lists = base_arena_alloc(&r->m->arena, sizeof *lists + n * sizeof lists->v[0]);
  if (!lists) return proto_no_memory(&r->s);
  for (lists->n = 0; proto_next(&r->s, in, number, PROTO_LENGTH, &at, &f); lists->n++) {
    proto_message group;
    TRY(proto_open_field(&r->s, f, &group));
    TRY(proto_read_ints(r, group, 1, &lists->v[lists->n]));
    proto_close(&r->s, group);
  }
  g->lists = lists;
  return 0;
}

/* Four ways to say replica groups, the newest first:
 *
 *   92  IotaReplicaGroupList        [2,4]<=[8]
 *   93  MeshAxesReplicaGroupList    mesh axes
 *   87  CollectiveDeviceList        {{0,1},{2,3}} within a message
 *   49  ReplicaGroup, repeated      {{0,1},{2,3}}, as older XLA wrote them */
int proto_read_groups(proto_reader *r, proto_message op, const ir_groups **out, bool *present) {
  static const uint8_t fields[] = {92, 93, 87};
  proto_message list;
  ir_groups *g = BASE_NEW(&r->m->arena, ir_groups);
  if (!g) return proto_no_memory(&r->s);
  *out = g;
  *present = true;
  uint32_t which = 0;
  while (which < 3 && proto_count(&r->s, op, fields[which], PROTO_LENGTH) == 0) which++;
  *present = which < 3 || proto_count(&r->s, op, 49, PROTO_LENGTH) > 0;
  if (which == 3) return read_group_lists(r, op, 49, g); /* where older XLA put them */
  TRY(proto_open_sub(&r->s, op, fields[which], &list));
  if (which == 0) TRY(read_iota_group_list(r, list, g));
  if (which == 1) TRY(read_mesh_group_list(r, list, g));
  if (which == 2) TRY(read_group_lists(r, list, 1, g));
  proto_close(&r->s, list);
  return 0;
}
