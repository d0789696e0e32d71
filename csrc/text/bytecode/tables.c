/* What VHLO has: its ops and their attributes by version, its scalar types and enums, and the values that StableHLO
 * leaves out.
 *
 * Versions are BC_V(major, minor). Whether something may be written for a target version is read from the same rows
 * that reading goes by. */
#include "bytecode.h"

/* Ops of VHLO: name, opcode, first and last version, attributes in their order. */
static const bc_row bc_rows[] = {
#define ROW(name, code, first, last, attrs) {name, IR_OP_##code, first, last, attrs},
#include "vhlo_ops.def"
#undef ROW
};
enum { BC_ROWS = sizeof bc_rows / sizeof *bc_rows };

/* n bytes against a name, as strcmp; bytes may be 0 as in any string of a file. */
static int bc_name_order(const char *row, const char *name, size_t n) {
  size_t length = strlen(row), least = length < n ? length : n;
  int order = memcmp(row, name, least);
  return order ? order : (length > n) - (length < n);
}

/* Rows are sorted by name ("add_v1"), and searched by halving. */
const bc_row *bc_row_by_name(const char *name, size_t n) {
  assert(name);
  size_t low = 0, high = BC_ROWS;
  while (low < high) {
    size_t at = (low + high) / 2;
    int order = bc_name_order(bc_rows[at].name, name, n);
    if (order == 0) return &bc_rows[at];
    if (order < 0) {
      low = at + 1;
    } else {
      high = at;
    }
  }
  return NULL;
}

/* Several rows may be of one opcode, each for a range of versions. */
const bc_row *bc_row_by_opcode(unsigned opcode, unsigned version) {
  assert(opcode < IR_OP_COUNT);
  for (size_t i = 0; i < BC_ROWS; i++) {
    const bc_row *row = &bc_rows[i];
    if (row->opcode == opcode && row->first <= version && version <= row->last) return row;
  }
  return NULL;
}

/* Words have one blank between. */
bool bc_next_word(const char **list, base_slice *word) {
  assert(*list);
  if (!**list) return false;
  const char *end = strchr(*list, ' ');
  *word = (base_slice){*list, end ? (size_t)(end - *list) : strlen(*list)};
  *list += word->n + (end ? 1 : 0);
  return true;
}

/* --- types and enums --- */

/* Few enough for a search from the beginning. A type without a version is one that VHLO has no code for (u1, complex
 * numbers): its code 0 in the table means nothing. */
base_dtype bc_scalar_of(uint64_t code) {
  for (int t = BASE_DTYPE_INVALID + 1; t < BASE_DTYPE_COUNT; t++)
    if (bc_scalar_since((base_dtype)t) && base_dtype_table[t].vhlo == code) return (base_dtype)t;
  return BASE_DTYPE_INVALID;
}

/*   f8E4M3    BC_V(1, 7) */
unsigned bc_scalar_since(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  return BC_V(info->vhlo_major, info->vhlo_minor);
}

/* Codes of builtin's float types; 0 is an integer's, so that it can mean none. */
unsigned bc_float_code(base_dtype t) {
  return base_dtype_of(t)->builtin;
}

/* Code 0 is an integer's, so no float is asked for by it. */
base_dtype bc_float_of(uint64_t code) {
  for (int t = BASE_DTYPE_INVALID + 1; code && t < BASE_DTYPE_COUNT; t++)
    if (base_dtype_table[t].builtin == code) return (base_dtype)t;
  return BASE_DTYPE_INVALID;
}

/* VHLO's codes of enum attributes, and StableHLO's names of these enums. */
static const char *const bc_enums[BC_V_COUNT] = {
    [BC_V_COMPARISON_DIRECTION] = "comparison_direction",
    [BC_V_COMPARISON_TYPE] = "comparison_type",
    [BC_V_API_VERSION] = "custom_call_api_version",
    [BC_V_FFT_TYPE] = "fft_type",
    [BC_V_PRECISION] = "precision",
    [BC_V_RNG_ALGORITHM] = "rng_algorithm",
    [BC_V_RNG_DISTRIBUTION] = "rng_distribution",
    [BC_V_TRANSPOSE] = "transpose",
    [BC_V_ACCURACY_MODE] = "result_accuracy_mode",
};

/* NULL for a code that is not an enum's. */
const char *bc_enum_of(uint64_t code) {
  return code < BC_V_COUNT ? bc_enums[code] : NULL;
}

uint64_t bc_enum_code(const char *name) {
  for (uint64_t i = 0; i < BC_V_COUNT; i++)
    if (bc_enums[i] && strcmp(bc_enums[i], name) == 0) return i;
  return 0;
}

/* --- values that StableHLO leaves out --- */

/* VHLO writes every attribute; these are the values that stand for an absent one of StableHLO. Source: the defaults
 * of StablehloLegalizeToVhlo. */
bc_default bc_default_of(unsigned opcode, const ir_mattr_spec *spec) {
  if (spec->flags & IR_REQUIRED) return (bc_default){0};
  switch (spec->constraint) {
    case IR_MC_I64:
      return (bc_default){.kind = BC_D_NUMBER, .number = opcode == IR_OP_SORT ? -1 : 0};
    case IR_MC_I32:
      return (bc_default){.kind = BC_D_NUMBER, .number = opcode == IR_OP_CUSTOM_CALL}; /* API_VERSION_ORIGINAL */
    case IR_MC_BOOL:
    case IR_MC_UNIT:
      return (bc_default){.kind = BC_D_NUMBER};
    case IR_MC_I64S:
      if (opcode == IR_OP_DYNAMIC_BROADCAST_IN_DIM) return (bc_default){.kind = BC_D_EMPTY};
      if (strcmp(spec->name, "window_dimensions") == 0) return (bc_default){0};
      return (bc_default){.kind = BC_D_SPLAT, .number = 1};
    case IR_MC_DENSE_I64:
      if (strcmp(spec->name, "padding") != 0) return (bc_default){.kind = BC_D_EMPTY};
      return (bc_default){.kind = BC_D_SPLAT};
    case IR_MC_BOOLS:
      return (bc_default){.kind = BC_D_SPLAT};
    case IR_MC_ENUM:
      return (bc_default){.kind = BC_D_WORD, .word = "NOTYPE"};
    case IR_MC_PRECISIONS:
      return (bc_default){.kind = BC_D_WORD, .word = "DEFAULT"};
    case IR_MC_STRUCT:
      return (bc_default){.kind = strcmp(spec->sub, "result_accuracy") == 0 ? BC_D_ACCURACY : BC_D_NONE};
    default:
      return (bc_default){.kind = BC_D_EMPTY};
  }
}

/* An empty string, list, dictionary or tensor. */
static bool bc_is_empty(const ir_mattr *a) {
  switch (a->kind) {
    case IR_M_STRING:
      return a->str->n == 0;
    case IR_M_ARRAY:
      return a->v.list->n == 0;
    case IR_M_DICT:
      return a->v.dict->n == 0;
    case IR_M_DENSE:
    case IR_M_DENSE_ARRAY:
      return a->v.literal->type->count == 0;
    default:
      return false;
  }
}

/* A bool is a number here: false is 0. */
static bool bc_is_number(const ir_mattr *a, int64_t number) {
  if (a->kind == IR_M_INTEGER) return a->v.i == number;
  return a->kind == IR_M_BOOL && a->v.b == (number != 0);
}

/* All elements the number, and at least one of them: MLIR calls nothing else a splat. */
static bool bc_is_splat_of(const ir_mattr *a, int64_t number) {
  if (a->kind != IR_M_DENSE && a->kind != IR_M_DENSE_ARRAY) return false;
  const ir_literal *l = a->v.literal;
  base_dtype t = (base_dtype)l->type->dtype;
  if (!base_dtype_is_integer(t) && t != XLAC_PRED) return false;
  for (int64_t i = 0; i < l->type->count; i++)
    if (base_load_i64(t, (const char *)l->data + (size_t)i * base_dtype_bytes(t)) != number) return false;
  return l->type->count > 0;
}

/* The enum's word, or a list of nothing but that. */
static bool bc_is_word(const ir_mattr *a, const char *word) {
  if (a->kind == IR_M_ENUM) return strcmp(a->str->s, word) == 0;
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (a->v.list->v[i]->kind != IR_M_ENUM || strcmp(a->v.list->v[i]->str->s, word) != 0) return false;
  return true;
}

/* All of it DEFAULT and zero. */
static bool bc_is_default_accuracy(const ir_mattr *a) {
  if (a->kind != IR_M_STRUCT) return false;
  const ir_mattr *mode = ir_m_field(a, "mode"), *ulps = ir_m_field(a, "ulps");
  const ir_mattr *atol = ir_m_field(a, "atol"), *rtol = ir_m_field(a, "rtol");
  return mode && bc_is_word(mode, "DEFAULT") && (!ulps || ulps->v.i == 0) && (!atol || atol->v.f == 0) &&
         (!rtol || rtol->v.f == 0);
}

/* Whether StableHLO's text would leave the attribute out. */
bool bc_is_default(unsigned opcode, const ir_mattr_spec *spec, const ir_mattr *a) {
  assert(a);
  bc_default d = bc_default_of(opcode, spec);
  switch (d.kind) {
    case BC_D_EMPTY:
      return bc_is_empty(a);
    case BC_D_NUMBER:
      return bc_is_number(a, d.number);
    case BC_D_SPLAT:
      return bc_is_splat_of(a, d.number);
    case BC_D_WORD:
      return bc_is_word(a, d.word);
    case BC_D_ACCURACY:
      return bc_is_default_accuracy(a);
    default:
      return false;
  }
}

/* --- fields --- */

/* channel_handle's fields have other names in VHLO. */
static const ir_field_info *bc_field_in(const char *name, base_slice field) {
  if (strcmp(name, "channel_handle") == 0) {
    if (base_slice_is(field, "channel_id")) field = BASE_SLICE("handle");
    if (base_slice_is(field, "channel_type")) field = BASE_SLICE("type");
  }
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, name, strlen(name));
  for (const ir_field_info *f = info ? info->fields : NULL; f && f->name; f++)
    if (base_slice_is(field, f->name)) return f;
  return NULL;
}

/* The attribute of the op whose struct has this field: VHLO spreads the fields of some structs over the op. */
const ir_mattr_spec *bc_struct_of_field(unsigned opcode, base_slice field, const ir_field_info **info) {
  const ir_mlir_info *op = ir_opcode_info(opcode)->mlir;
  for (const ir_mattr_spec *spec = op ? op->attrs : NULL; spec && spec->name; spec++)
    if (spec->constraint == IR_MC_STRUCT && (*info = bc_field_in(spec->sub, field))) return spec;
  return NULL;
}
