/* What the IR keeps as text, to messages: meshes of named axes, origins, and the table of how to recover them. */
#include "../../ir/sdy/mesh_groups.h"
#include "../hlo/print.h"
#include "write.h"
#include "../hlo/read.h"

/* Modules within modules: an entry of the recovery table may hold one, which may have a table. The texts are read
 * with HLO's reader into a module made for the purpose, w->scratch, and written from there. */
enum { MAX_RECOVERY_NESTING = 16 };

/* The reader of text keeps these verbatim and unchecked, so that they may be anything in braces. */
static int not_understood(proto_writer *w, const char *what, const base_istr *text) {
  return base_fail(w->err, XLAC_E_BAD_ATTRIBUTE, "%s has no place in HloModuleProto: %.200s", what, text->s);
}

/* --- meshes --- */

/* Names and sizes of a mesh. */
static void write_axes(base_text *out, const ir_mesh_groups *m) {
  for (uint32_t i = 0; i < m->n_axes; i++) {
    size_t at = proto_begin(out, 1);
    proto_put_bytes(out, 1, m->names[i].p, m->names[i].n);
    proto_put_int(out, 2, m->sizes[i]);
    proto_end(out, at);
  }
}

/*   0,2,1,3 */
static bool write_device_list(base_text *out, base_slice list) {
  ir_mesh_groups cursor = {.p = list.p, .end = list.p + list.n};
  size_t at = proto_begin(out, 2);
  int64_t v;
  do {
    if (!ir_mesh_take_int(&cursor, &v)) return false;
    proto_put_varint(out, (uint64_t)v);
  } while (ir_mesh_take(&cursor, ","));
  proto_end(out, at);
  return cursor.p == cursor.end;
}

/* Devices 0, 1, 2, ... need no mention. */
static bool write_device_ids(base_text *out, const ir_mesh_groups *m) {
  int64_t dims[IR_MAX_MESH_AXES], perm[IR_MAX_MESH_AXES];
  uint32_t n = m->n_id_dims;
  if (!m->has_ids) return true;
  if (m->list.p) return write_device_list(out, m->list);
  for (uint32_t i = 0; i < n; i++) {
    dims[i] = m->id_dims[i];
    perm[i] = m->n_id_perm ? m->id_perm[i] : i;
  }
  text_normal_iota(&n, dims, perm);
  if (n <= 1) return true;
  size_t at = proto_begin(out, 3);
  proto_put_list(out, 1, dims, n);
  proto_put_list(out, 2, perm, n);
  proto_end(out, at);
  return true;
}

/* false where the devices can't be read. */
static bool write_mesh(base_text *out, uint32_t number, const ir_mesh_groups *m) {
  size_t at = proto_begin(out, number);
  write_axes(out, m);
  if (!write_device_ids(out, m)) return false;
  proto_end(out, at);
  return true;
}

/* The axis by its number, and the part of it unless `whole`. */
static void write_axis_ref(base_text *out, uint32_t number, const ir_mesh_ref *ref, bool whole) {
  assert(number > 0);
  size_t at = proto_begin(out, number);
  assert(ref->axis < IR_MAX_MESH_AXES);
  proto_put_int(out, 1, ref->axis);
  if (!whole) {
    size_t part = proto_begin(out, 2);
    proto_put_int(out, 1, ref->pre);
    proto_put_int(out, 2, ref->size);
    proto_end(out, part);
  }
  proto_end(out, at);
}

/*   mesh['a'=2,'b'=4] {'a'}   in field 93 */
int proto_write_mesh_groups(proto_writer *w, const base_istr *text) {
  ir_mesh_groups m;
  if (!ir_mesh_groups_read(&m, text)) return not_understood(w, "this list of replica groups", text);
  size_t at = proto_begin(w->out, 93);
  if (!write_mesh(w->out, 1, &m)) return not_understood(w, "this list of replica groups", text);
  for (uint32_t i = 0; i < m.n_refs; i++) {
    const ir_mesh_ref *ref = &m.refs[i];
    write_axis_ref(w->out, 2, ref, ref->pre == 1 && ref->size == m.sizes[ref->axis]);
  }
  proto_end(w->out, at);
  return 0;
}

/* --- named shardings --- */

/* 'a' or 'a':(1)2 at the cursor c, of the axes of m. */
static bool take_named_ref(ir_mesh_groups *c, const ir_mesh_groups *m, ir_mesh_ref *ref, bool *whole) {
  if (!ir_mesh_take(c, "'")) return false;
  const char *close = memchr(c->p, '\'', (size_t)(c->end - c->p));
  if (!close) return false;
  size_t n = (size_t)(close - c->p);
  uint32_t i = 0;
  while (i < m->n_axes && !(m->names[i].n == n && memcmp(m->names[i].p, c->p, n) == 0)) i++;
  if (i == m->n_axes) return false;
  c->p = close + 1;
  *ref = (ir_mesh_ref){.axis = i};
  *whole = !ir_mesh_take(c, ":");
  return *whole || (ir_mesh_take(c, "(") && ir_mesh_take_int(c, &ref->pre) && ir_mesh_take(c, ")") &&
                    ir_mesh_take_int(c, &ref->size));
}

/* {'a', 'b':(1)2, ?}: refs into field `number`; *open where a '?' ends the list. */
static bool write_ref_list(base_text *out, ir_mesh_groups *c, const ir_mesh_groups *m, uint32_t number, bool *open) {
  *open = false;
  if (!ir_mesh_take(c, "{")) return false;
  for (uint32_t n = 0; !ir_mesh_take(c, "}"); n++) {
    ir_mesh_ref ref;
    bool whole;
    if (*open || (n && !ir_mesh_take(c, ","))) return false;
    if (ir_mesh_take(c, "?")) {
      *open = true;
      continue;
    }
    if (!take_named_ref(c, m, &ref, &whole)) return false;
    write_axis_ref(out, number, &ref, whole);
  }
  return true;
}

/*   [{'a'}, {'b', ?}] */
static bool write_dim_shardings(base_text *out, ir_mesh_groups *c, const ir_mesh_groups *m) {
  if (!ir_mesh_take(c, "[")) return false;
  for (uint32_t n = 0; !ir_mesh_take(c, "]"); n++) {
    bool open;
    if (n && !ir_mesh_take(c, ",")) return false;
    size_t at = proto_begin(out, 3);
    if (!write_ref_list(out, c, m, 1, &open)) return false;
    proto_put_int(out, 2, !open);
    proto_end(out, at);
  }
  return true;
}

/* What is read on the way (metadata, names) is made in a module that is thrown away with the writer. */
static int scratch_reader(proto_writer *w, text_reader *r, const char *text, size_t n) {
  *r = (text_reader){.alloc = w->out->alloc}; /* so that it can be closed in any case */
  if (!w->scratch) TRY(ir_module_create(&w->scratch, "_", w->out->alloc, w->err));
  return text_reader_open(r, w->scratch, w->out->alloc, text, n, NULL, w->err);
}

/* metadata={...} or metadata={{...}, {...}}, up to the sharding's closing brace. */
static int write_named_metadata(proto_writer *w, const char *p, const char *end) {
  text_reader r;
  const ir_metadata *m;
  int status = scratch_reader(w, &r, p, (size_t)(end - p));
  bool list = status == 0 && r.lx.p[0] == '{' && r.lx.p[1] == '{';
  if (list) text_eat(&r.lx, '{');
  while (status == 0) {
    status = text_read_metadata(&r, &m);
    if (status == 0) proto_write_metadata(w, 6, m);
    if (!list || status != 0 || !text_eat(&r.lx, ',')) break;
  }
  text_reader_close(&r);
  return status;
}

/* What follows the shardings of the dimensions: groups of axes, metadata. */
static int write_named_rest(proto_writer *w, ir_mesh_groups *c, const ir_mesh_groups *m, const base_istr *text) {
  static const struct {
    const char *word;
    uint8_t number;
  } groups[] = {{"replicated=", 4}, {"unreduced=", 5}, {"manual=", 7}};
  while (ir_mesh_take(c, ",")) {
    bool open, known = false;
    if (ir_mesh_take(c, "metadata=")) return write_named_metadata(w, c->p, c->end);
    for (uint32_t i = 0; i < 3 && !known; i++)
      if (ir_mesh_take(c, groups[i].word)) known = write_ref_list(w->out, c, m, groups[i].number, &open) && !open;
    if (!known) return not_understood(w, "this sharding", text);
  }
  return ir_mesh_take(c, "}") && c->p == c->end ? 0 : not_understood(w, "this sharding", text);
}

/* The mesh itself is written as that of replica groups is. Cuts the mesh out of the sharding's text and reads it
 * with the reader of replica groups, which wants refs behind it. */
static bool read_sharding_mesh(proto_writer *w, ir_mesh_groups *c, ir_mesh_groups *m) {
  const char *from = c->p, *to = memchr(from, ']', (size_t)(c->end - from));
  if (!to) return false;
  c->p = ++to;
  ir_mesh_groups after = *c;
  if (ir_mesh_take(&after, ",") && ir_mesh_take(&after, "device_ids=(")) {
    const char *close = after.p;
    for (uint32_t level = 1; level && close < c->end; close++) level += (*close == '(') - (*close == ')');
    c->p = to = close;
  }
  size_t n = (size_t)(to - from);
  base_istr *text = base_arena_alloc(&w->arena, sizeof *text + n + 4);
  if (!text) return false;
  text->n = (uint32_t)n + 3;
  memcpy(text->s, from, n);
  memcpy(text->s + n, " {}", 4);
  return ir_mesh_groups_read(m, text);
}

/*   {mesh['a'=2], [{'a'}], replicated={...}, metadata={...}}   or   {maximal_mesh[device_id=0], ...} */
int proto_write_named_sharding(proto_writer *w, const base_istr *text) {
  ir_mesh_groups c = {.p = text->s, .end = text->s + text->n}, m = {.p = NULL};
  size_t at = proto_begin(w->out, 14);
  int64_t device;
  if (!ir_mesh_take(&c, "{")) return not_understood(w, "this sharding", text);
  if (ir_mesh_take(&c, "maximal_mesh[device_id=")) {
    if (!ir_mesh_take_int(&c, &device) || !ir_mesh_take(&c, "]")) return not_understood(w, "this sharding", text);
    size_t mesh = proto_begin(w->out, 2);
    proto_put_list(w->out, 2, &device, 1);
    proto_end(w->out, mesh);
  } else if (!read_sharding_mesh(w, &c, &m) || !write_mesh(w->out, 2, &m) || !ir_mesh_take(&c, ",") ||
             !write_dim_shardings(w->out, &c, &m)) {
    return not_understood(w, "this sharding", text);
  }
  TRY(write_named_rest(w, &c, &m, text));
  proto_end(w->out, at);
  return 0;
}

/* --- origins --- */

/* Names are kept with their escapes, which are undone here. */
static int write_original(proto_writer *w, uint32_t number, const text_original_array *a) {
  assert(a->name.p || a->name.n == 0);
  size_t at = proto_begin(w->out, number);
  char *name = base_arena_alloc(&w->arena, a->name.n + 1);
  if (!name) return base_oom(w->err, "writing a module");
  ptrdiff_t n = a->name.n ? text_unescape(a->name.p, a->name.p + a->name.n, name) : 0;
  if (n < 0) return base_fail(w->err, XLAC_E_BAD_ATTRIBUTE, "an original array's name has a malformed escape");
  proto_put_bytes(w->out, 1, name, (size_t)n);
  if (a->path) proto_put_list(w->out, 2, a->path->v, a->path->n);
  proto_end(w->out, at);
  return 0;
}

/* One leaf at the place `path`; a leaf that says nothing is left out. */
static int write_origin_leaf(proto_writer *w, text_reader *r, const int64_t *path, uint32_t depth) {
  text_original_array leaf;
  TRY(text_read_original_array(r, &leaf));
  if (!leaf.name.p) return 0;
  size_t at = proto_begin(w->out, 1);
  proto_put_list(w->out, 1, path, depth);
  TRY(write_original(w, 2, &leaf));
  proto_end(w->out, at);
  return 0;
}

/* Walks the text; parentheses and commas tell the path. */
static int write_origin_tree(proto_writer *w, text_reader *r) {
  int64_t path[IR_MAX_TYPE_DEPTH];
  uint32_t depth = 0;
  text_eat(&r->lx, '{');
  while (*r->lx.p != '}') {
    if (*r->lx.p == '{') {
      TRY(write_origin_leaf(w, r, path, depth));
    } else if (text_eat(&r->lx, '(')) {
      if (depth == IR_MAX_TYPE_DEPTH) return base_fail(w->err, XLAC_E_TOO_DEEP, "an origin nests too deeply");
      path[depth++] = 0;
    } else if (depth && text_eat(&r->lx, ')')) {
      depth--;
    } else if (depth && text_eat(&r->lx, ',')) {
      path[depth - 1]++;
    } else {
      return base_fail(w->err, XLAC_E_BAD_ATTRIBUTE, "an origin is malformed");
    }
  }
  return 0;
}

/* The text that HLO prints, read again and taken apart: {"x" {0}}, {"y"}. A synthetic call is a flag, field 2. */
int proto_write_origin(proto_writer *w, const base_istr *text) {
  text_reader r;
  size_t at = proto_begin(w->out, 88);
  if (strcmp(text->s, "{[synthetic_call]}") == 0) {
    proto_put_int(w->out, 2, 1);
    proto_end(w->out, at);
    return 0;
  }
  int status = scratch_reader(w, &r, text->s, text->n);
  if (status == 0) status = write_origin_tree(w, &r);
  text_reader_close(&r);
  proto_end(w->out, at);
  return status;
}

/* --- the recovery table --- */

/* The module's text is read and written as a message of its own. */
static int write_recovery_module(proto_writer *w, text_reader *r) {
  const base_istr *text;
  ir_module *m = NULL;
  text_parse_options options = {.alloc = w->out->alloc};
  if (w->depth == MAX_RECOVERY_NESTING)
    return base_fail(w->err, XLAC_E_TOO_DEEP, "recovery modules are nested too deeply");
  TRY(text_read_string(r, &text));
  TRY(text_parse_hlo(&m, text->s, text->n, &options, w->err));
  size_t at = proto_begin(w->out, 3);
  int status = proto_write_module(w->out, m, w->depth + 1, w->err);
  proto_end(w->out, at);
  ir_module_destroy(m);
  return status;
}

/* In the normal form that the reader of text has given the table. */
static int write_recovery_entries(proto_writer *w, text_reader *r) {
  TRY(text_want(r, '{', "before a recovery table"));
  while (*r->lx.p != '}') {
    text_original_array lost, found;
    size_t at = proto_begin(w->out, 1);
    TRY(text_read_original_array(r, &lost));
    TRY(text_want(r, ':', "between original arrays"));
    TRY(text_read_original_array(r, &found));
    TRY(write_original(w, 1, &lost));
    TRY(write_original(w, 2, &found));
    if (text_eat(&r->lx, ',')) TRY(write_recovery_module(w, r));
    proto_end(w->out, at);
  }
  return 0;
}

/* Field 20 of the module; see write_recovery_entries for the text. */
int proto_write_recovery_table(proto_writer *w, const base_istr *text) {
  text_reader r;
  size_t at = proto_begin(w->out, 20);
  int status = scratch_reader(w, &r, text->s, text->n);
  if (status == 0) status = write_recovery_entries(w, &r);
  text_reader_close(&r);
  proto_end(w->out, at);
  return status;
}
