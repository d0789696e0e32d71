/* MLIR attributes as data. Ops, computations and modules in MLIR form carry one sorted dictionary of them; HLO-form ops
 * carry ir_attr (attr.h) instead. Values are immutable and live in the module's arena; nothing is uniqued, so compare
 * with ir_mattr_equal. Source: the MLIR language reference, and the attribute definitions of StableHLO 1.20. */
#ifndef XLAC_IR_ATTRS_MATTR_H
#define XLAC_IR_ATTRS_MATTR_H

#include "attr.h"

typedef struct ir_mattr ir_mattr;

typedef enum ir_mattr_kind {
  IR_M_UNIT,         /* unit */
  IR_M_BOOL,         /* true, false: v.b */
  IR_M_INTEGER,      /* 5 : i64. v.i, and type (index and i64 too) */
  IR_M_FLOAT,        /* 1.0 : f32. v.f is the value rounded to type, v.literal NULL; the bits of a NaN in v.bits */
  IR_M_STRING,       /* "x": str (bytes, unescaped); type when written with one, else NULL */
  IR_M_TYPE,         /* a type as an attribute: type */
  IR_M_SYMBOL,       /* @a::@b: v.list of STRINGs, the root first */
  IR_M_ARRAY,        /* [a, b]: v.list */
  IR_M_DICT,         /* {a = 1}: v.dict */
  IR_M_DENSE_ARRAY,  /* array<i64: 1, 2>: v.literal of rank 1, type is the element type */
  IR_M_DENSE,        /* dense<...> : type. v.literal, of the type's dtype and dims (storage type where quantised); one
                        element and `splat` where written or stored as a splat */
  IR_M_DENSE_STRING, /* dense<["a", "b"]> : type. v.list */
  IR_M_RESOURCE,     /* dense_resource<key> : type. str is the key; v.literal its data, or NULL when there is none */
  IR_M_ENUM,   /* #stablehlo<precision HIGHEST> and the bare words of pretty forms: name "precision", v.i the word's
                  number (words.h), str its spelling */
  IR_M_STRUCT, /* #stablehlo.gather<offset_dims = [0], ...>: name "gather", fields in v.dict in ODS order as far as
                  written; see ir_mattr_structs in mattr.c */
  IR_M_OPAQUE, /* any other dialect's attribute: str is the whole text after '#', e.g. mhlo.sharding<...> */
  IR_M_LOC,    /* a location: v.loc */
  IR_M_SDY     /* #sdy.sharding<@m, [{}]> and all others of that dialect: v.sdy; sdy.h */
} ir_mattr_kind;

/* A list, one block. */
typedef struct ir_mattrs {
  uint32_t n;
  const ir_mattr *v[];
} ir_mattrs;

/* One entry of a dictionary; the key is interned in the module. */
typedef struct ir_mentry {
  const base_istr *key;
  const ir_mattr *value;
} ir_mentry;
typedef struct ir_mdict {
  uint32_t n;
  ir_mentry v[]; /* IR_M_DICT and op dictionaries: sorted by key bytes, no key twice */
} ir_mdict;

/* MLIR's locations, as loc(...) spells them. */
typedef enum ir_mloc_kind {
  IR_LOC_UNKNOWN,
  IR_LOC_FILE,     /* "f":line:col, with end_line and end_col for a range */
  IR_LOC_NAME,     /* "name"(child); child may be NULL */
  IR_LOC_CALLSITE, /* callsite(child at caller) */
  IR_LOC_FUSED     /* fused<metadata>[a, b]; metadata may be NULL */
} ir_mloc_kind;
typedef struct ir_mloc {
  uint8_t kind; /* ir_mloc_kind */
  bool range;   /* FILE: has an end */
  uint32_t line, col, end_line, end_col;
  const base_istr *name;                     /* FILE: the file; NAME: the name */
  const ir_mattr *child, *caller, *metadata; /* IR_M_LOC each, metadata any */
  const ir_mattrs *parts;                    /* FUSED */
} ir_mloc;

/* One attribute. `kind` says which members count; the rest is zero. */
struct ir_mattr {
  uint8_t kind; /* ir_mattr_kind */
  bool splat;
  bool hex;            /* FLOAT: the text gave bits (0x7FC00000) */
  uint8_t sub;         /* SDY: sdy_kind */
  const char *dialect; /* ENUM and STRUCT: "stablehlo" or "chlo", constant */
  const char *name;    /* ENUM and STRUCT: constant, from mattr.c */
  const base_istr *str;
  const ir_type *type;
  union {
    uint64_t bits; /* FLOAT: the value's bits in its type, for types up to 64 bits; RESOURCE: its data's alignment as
                    written, or 0 */
    struct {
      uint32_t line, col; /* STRUCT: where it was read, for errors; 0: nowhere */
    } at;
  };
  union {
    bool b;
    int64_t i;
    double f;
    const ir_mattrs *list;
    const ir_mdict *dict;
    const ir_literal *literal;
    const ir_mloc *loc;
    const void *sdy; /* the struct of that kind in sdy.h */
  } v;
};

/* --- makers: mattr.c. In m's arena; NULL when out of memory. Lists and dictionaries are copied, dictionaries sorted.
 * --- */
const ir_mattr *ir_m_unit(ir_module *m);
const ir_mattr *ir_m_bool(ir_module *m, bool v);
const ir_mattr *ir_m_int(ir_module *m, const ir_type *type, int64_t v);
const ir_mattr *ir_m_i64(ir_module *m, int64_t v);
const ir_mattr *ir_m_i32(ir_module *m, int64_t v);
const ir_mattr *ir_m_float(ir_module *m, const ir_type *type, double v);
const ir_mattr *ir_m_string(ir_module *m, const char *s, size_t n);
const ir_mattr *ir_m_type(ir_module *m, const ir_type *type);
const ir_mattr *ir_m_symbol(ir_module *m, const char *s, size_t n);
const ir_mattr *ir_m_array(ir_module *m, uint32_t n, const ir_mattr *const *v);
const ir_mattr *ir_m_dict(ir_module *m, const ir_mdict *d);
const ir_mattr *ir_m_i64s(ir_module *m, uint32_t n, const int64_t *v);  /* array<i64: ...> */
const ir_mattr *ir_m_bools(ir_module *m, uint32_t n, const int64_t *v); /* array<i1: ...> */
const ir_mattr *ir_m_dense_i64(ir_module *m, uint32_t rank, const int64_t *dims, const int64_t *v);
const ir_mattr *ir_m_dense(ir_module *m, const ir_type *type, const ir_literal *l, bool splat);
const ir_mattr *ir_m_enum(ir_module *m, const char *dialect, const char *name, int number);
const ir_mattr *ir_m_struct(ir_module *m, const char *dialect, const char *name, uint32_t n, const ir_mentry *fields);
const ir_mattr *ir_m_loc(ir_module *m, const ir_mloc *loc);
/* A sorted dictionary; the entries may come in any order. */
const ir_mdict *ir_mdict_make(ir_module *m, uint32_t n, const ir_mentry *entries);

/* --- reading --- */
/* NULL when absent, also when d is NULL. */
const ir_mattr *ir_mdict_get(const ir_mdict *d, const char *key);
/* op's attribute, or a struct's field. */
const ir_mattr *ir_mattr_of(const ir_op *op, const char *key);
const ir_mattr *ir_m_field(const ir_mattr *a, const char *key);
/* The integers of an array<i64>, array<i1>, dense<> integer tensor (splats spread out) or [1, 2]; count in *n. The
 * array lives in `arena`. NULL with *n 0 where absent or of another kind. */
const int64_t *ir_m_ints(const ir_mattr *a, base_arena *arena, uint32_t *n);
int64_t ir_m_get_int(const ir_op *op, const char *key, int64_t otherwise);
bool ir_m_get_bool(const ir_op *op, const char *key); /* unit and true: true; absent: false */
/* The number of an enum's word; 0 when absent. */
int ir_m_get_word(const ir_op *op, const char *key);
/* The bytes of a string or a flat symbol; "" when absent. */
const char *ir_m_get_str(const ir_op *op, const char *key);

/* --- editing: adds, replaces, or (NULL) removes. false when out of memory. --- */
XLAC_MUST_USE bool ir_m_set(ir_op *op, const char *key, const ir_mattr *value);
const ir_mdict *ir_mdict_with(ir_module *m, const ir_mdict *d, const char *key, const ir_mattr *value);

bool ir_mattr_equal(const ir_mattr *a, const ir_mattr *b); /* across modules too; NULL equals NULL */
bool ir_mdict_equal(const ir_mdict *a, const ir_mdict *b);
uint64_t ir_mdict_hash(const ir_mdict *d);
/* Into another module; a itself when it is already m's is fine to copy. NULL when out of memory (or a NULL). */
const ir_mattr *ir_mattr_import(ir_module *m, const ir_mattr *a);
const ir_mdict *ir_mdict_import(ir_module *m, const ir_mdict *d);

/* --- the table of StableHLO's and CHLO's structs and enums: mattr.c --- */
/* What a field of a structured attribute holds. */
typedef enum ir_field_kind {
  IR_F_I64,  /* v: IR_M_INTEGER of i64 */
  IR_F_I64S, /* IR_M_DENSE_ARRAY of i64 */
  IR_F_BOOL, /* IR_M_BOOL */
  IR_F_TYPE, /* IR_M_TYPE */
  IR_F_F64,  /* IR_M_FLOAT of f64 */
  IR_F_STRING,
  IR_F_ENUM, /* IR_M_ENUM named by `enum_name` */
  IR_F_ANY
} ir_field_kind;
/* One field of an ir_struct_info, in the order of the definition. */
typedef struct ir_field_info {
  const char *name; /* NULL ends */
  uint8_t kind;
  bool always; /* printed even when empty or zero */
  const char *enum_name;
} ir_field_info;
typedef struct ir_struct_info {
  const char *dialect, *name; /* "stablehlo", "gather" */
  const ir_field_info *fields;
} ir_struct_info;
typedef struct ir_enum_info {
  const char *dialect, *name;
  const char *const *words; /* by value, NULL ends; "" for a hole */
} ir_enum_info;
/* NULL where the dialect has none of that name. Names are given by their bytes. */
const ir_struct_info *ir_struct_find(const char *dialect, size_t dialect_n, const char *name, size_t n);
const ir_enum_info *ir_enum_find(const char *dialect, size_t dialect_n, const char *name, size_t n);

#endif
