/* Attributes of an instruction from its fields: the plain ones by table. */
#include "read.h"

static int read_word_number(proto_reader *r, proto_message in, const proto_attr *row, int64_t number,
                            const base_istr **out) {
  const char *word = proto_number_word(row->words, number);
  if (word) return proto_intern(r, word, strlen(word), out);
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "%lld is no value of '%s'", (long long)number,
                    ir_attr_table[row->key].text);
}

static int read_enum(proto_reader *r, proto_message in, const proto_attr *row, bool needed, ir_attr *a) {
  int64_t v = proto_int(&r->s, in, row->field);
  if (v == 0 && !needed) return a->key = IR_ATTR_NONE, 0;
  return read_word_number(r, in, row, v, &a->v.str);
}

static int read_enums(proto_reader *r, proto_message in, const proto_attr *row, ir_attr *a) {
  uint32_t from;
  bool any = false;
  TRY(proto_list(&r->s, in, row->field, &from));
  uint32_t n = r->s.numbers.n - from;
  ir_names *names = base_arena_alloc(&r->m->arena, sizeof *names + n * sizeof names->v[0]);
  if (!names) return proto_no_memory(&r->s);
  names->n = n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t v = r->s.numbers.items[from + i];
    any = any || v;
    TRY(read_word_number(r, in, row, v, &names->v[i]));
  }
  r->s.numbers.n = from;
  a->v.names = names;
  if (!any) a->key = IR_ATTR_NONE;
  return 0;
}

static int read_word(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row, ir_attr *a) {
  const char *const *words = ir_attr_words(op->opcode, (ir_attr_key)row->key);
  TRY(proto_read_str(r, in, row->field, &a->v.str));
  if (!a->v.str) return a->key = IR_ATTR_NONE, 0;
  assert(words);
  for (; *words; words++)
    if (strlen(*words) == a->v.str->n && memcmp(*words, a->v.str->s, a->v.str->n) == 0) return 0;
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "'%.60s' is no value of '%s'", a->v.str->s,
                    ir_attr_table[row->key].text);
}

/* Numbers for which 0 says nothing, or the usual. */
static bool says_nothing(unsigned key, int64_t v) {
  switch (key) {
    case IR_ATTR_FEATURE_GROUP_COUNT:
    case IR_ATTR_BATCH_GROUP_COUNT:
      return v == 0 || v == 1;
    case IR_ATTR_CHANNEL_ID:
      return v <= 0;
    default:
      return false;
  }
}

static int read_one(proto_reader *r, proto_message in, const proto_attr *row, ir_attr *a) {
  uint32_t from;
  TRY(proto_list(&r->s, in, row->field, &from));
  uint32_t n = r->s.numbers.n - from;
  a->v.i = n ? r->s.numbers.items[from] : 0;
  r->s.numbers.n = from;
  if (n == 0 && row->key == IR_ATTR_INFERRED_DIMENSION) a->key = IR_ATTR_NONE;
  if (n == 1 || (n == 0 && a->key == IR_ATTR_NONE)) return 0;
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "'%s' is one number",
                    ir_attr_table[row->key].text);
}

/* Fills `a`; its key becomes NONE where the instruction says nothing of it. `needed`: the op must have it. */
static int read_plain_value(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row, bool needed,
                            ir_attr *a) {
  proto_field f;
  switch ((proto_form)row->form) {
    case PROTO_FORM_INT:
      a->v.i = proto_int(&r->s, in, row->field);
      if ((!needed && a->v.i == 0) || says_nothing(row->key, a->v.i)) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_PRESENT:
      a->v.i = proto_int(&r->s, in, row->field);
      if (!proto_find(&r->s, in, row->field, PROTO_VARINT, &f)) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_BOOL:
      a->v.b = proto_int(&r->s, in, row->field) != 0;
      if (!needed && !a->v.b) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_FLOAT:
      a->v.f = (double)proto_float(&r->s, in, row->field);
      return 0;
    case PROTO_FORM_STRING:
      if (needed) return proto_read_any_str(r, in, row->field, &a->v.str);
      TRY(proto_read_str(r, in, row->field, &a->v.str));
      if (!a->v.str) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_WORD:
      return read_word(r, in, op, row, a);
    case PROTO_FORM_ENUM:
      return read_enum(r, in, row, needed, a);
    case PROTO_FORM_ENUMS:
      return read_enums(r, in, row, a);
    case PROTO_FORM_ONE:
      return read_one(r, in, row, a);
    case PROTO_FORM_INTS:
      TRY(proto_read_ints(r, in, row->field, &a->v.ints));
      if (!needed && a->v.ints->n == 0) a->key = IR_ATTR_NONE;
      return 0;
    default:
      return proto_read_message_value(r, in, op, row, a);
  }
}

static int set_attr(proto_reader *r, ir_op *op, const ir_attr *a) {
  if (a->key == IR_ATTR_NONE) return 0;
  return ir_attr_set(op, *a) ? 0 : proto_no_memory(&r->s);
}

static int read_attr_row(proto_reader *r, proto_message in, ir_op *op, const proto_attr *row, bool needed) {
  ir_attr a = ir_attr_make((ir_attr_key)row->key);
  proto_message outer, inner;
  if (row->outer == 0) {
    TRY(read_plain_value(r, in, op, row, needed, &a));
    return set_attr(r, op, &a);
  }
  TRY(proto_open_sub(&r->s, in, row->outer, &outer));
  if (row->inner) TRY(proto_open_sub(&r->s, outer, row->inner, &inner));
  TRY(read_plain_value(r, row->inner ? inner : outer, op, row, needed, &a));
  if (row->inner) proto_close(&r->s, inner);
  proto_close(&r->s, outer);
  return set_attr(r, op, &a);
}

static int read_groups_attr(proto_reader *r, proto_message in, ir_op *op) {
  ir_attr a = ir_attr_make(IR_ATTR_REPLICA_GROUPS);
  bool present;
  TRY(proto_read_groups(r, in, &a.v.groups, &present));
  return present ? set_attr(r, op, &a) : 0;
}

static bool is_present(const proto_reader *r, proto_message in, const proto_attr *row) {
  return proto_count(&r->s, in, row->field, PROTO_LENGTH) > 0;
}

int proto_read_attrs(proto_reader *r, proto_message in, ir_op *op) {
  static const uint16_t common[] = {
      IR_ATTR_SHARDING,       IR_ATTR_FRONTEND_ATTRIBUTES,   IR_ATTR_STATISTICS,     IR_ATTR_METADATA, IR_ATTR_ORIGIN,
      IR_ATTR_BACKEND_CONFIG, IR_ATTR_PARAMETER_REPLICATION, IR_ATTR_RESULT_ACCURACY};
  for (const ir_attr_spec *spec = ir_opcode_info(op->opcode)->attrs; spec && spec->key; spec++) {
    const proto_attr *row = proto_attr_of(op->opcode, spec->key);
    if (!row) continue;
    if (spec->key == IR_ATTR_REPLICA_GROUPS) {
      TRY(read_groups_attr(r, in, op));
      continue;
    }
    bool needed = (spec->flags & IR_REQUIRED) || spec->key == IR_ATTR_LARGEST;
    if (row->form == PROTO_FORM_MESSAGE && !needed && row->key != IR_ATTR_WINDOW && !is_present(r, in, row) &&
        row->key != IR_ATTR_PERMUTE_SLICE_SIZES)
      continue;
    TRY(read_attr_row(r, in, op, row, needed));
  }
  for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
    const proto_attr *row = proto_attr_of(op->opcode, common[i]);
    assert(row);
    if (common[i] == IR_ATTR_RESULT_ACCURACY && !ir_opcode_has(op->opcode, IR_HAS_ACCURACY)) continue;
    if (row->form != PROTO_FORM_MESSAGE || is_present(r, in, row)) TRY(read_attr_row(r, in, op, row, false));
  }
  return 0;
}
