/* Inside the reader and writer of MLIR bytecode: not for other rooms. Format: the MLIR bytecode reference; the VHLO
 * dialect of StableHLO 1.20.
 *
 * A portable artifact is a container (header, sections of strings, dialects and op names, offsets and data of
 * attributes and types, properties, and IR) whose ops are VHLO's. Reading translates while it reads, so that no VHLO
 * op is ever made:
 *   container.c   numbers, strings, sections           entry.c      attributes and types by number
 *   builtin.c vhlo.c sdy.c tensor.c   their encodings  attrs.c      an op's attributes, from VHLO's form
 *   ir.c   ops and regions                             read.c       entry point, module and functions
 * The writers (write*.c) go the other way. tables.c has what both need to know of VHLO, by version. */
#ifndef XLAC_TEXT_BYTECODE_BYTECODE_H
#define XLAC_TEXT_BYTECODE_BYTECODE_H

#include "../mlir/mlir.h"

/* StableHLO versions by major and minor number; patches don't change the format. BC_NOW is the newest version that
 * is read and written, BC_OLDEST the oldest that anything was serialized with. */
#define BC_V(major, minor) ((major) * 1000 + (minor))
#define BC_NOW BC_V(1, 20)
#define BC_OLDEST BC_V(0, 9)
#define BC_DEFAULT_VERSION "1.17.0"

/* Versions of the container in which something began. */
enum {
  BC_DIALECT_VERSIONS = 1,
  BC_LAZY_REGIONS = 2,
  BC_USE_ORDERS = 3,
  BC_ELIDED_LOCATIONS = 4,
  BC_PROPERTIES = 5,
  BC_CONTAINER_NOW = 6
};

enum {
  BC_S_STRING,
  BC_S_DIALECT,
  BC_S_ENTRIES,
  BC_S_OFFSETS,
  BC_S_IR,
  BC_S_RESOURCE,
  BC_S_RESOURCE_OFFSET,
  BC_S_DIALECT_VERSIONS,
  BC_S_PROPERTIES,
  BC_S_COUNT
};

/* The mask byte of an op: which parts it has. */
enum {
  BC_OP_ATTRS = 1,
  BC_OP_RESULTS = 2,
  BC_OP_OPERANDS = 4,
  BC_OP_SUCCESSORS = 8,
  BC_OP_REGIONS = 16,
  BC_OP_USE_ORDERS = 32,
  BC_OP_PROPERTIES = 64
};

/* Codes of the builtin dialect's attributes and types. */
enum {
  BC_B_ARRAY,
  BC_B_DICT,
  BC_B_STRING,
  BC_B_STRING_TYPED,
  BC_B_SYMBOL,
  BC_B_NESTED_SYMBOL,
  BC_B_TYPE,
  BC_B_UNIT,
  BC_B_INTEGER,
  BC_B_FLOAT,
  BC_B_LOC_CALLSITE,
  BC_B_LOC_FILE,
  BC_B_LOC_FUSED,
  BC_B_LOC_FUSED_METADATA,
  BC_B_LOC_NAME,
  BC_B_LOC_UNKNOWN,
  BC_B_RESOURCE,
  BC_B_DENSE_ARRAY,
  BC_B_DENSE,
  BC_B_DENSE_STRING,
  BC_B_SPARSE,
  BC_B_DISTINCT,
  BC_B_LOC_RANGE
};
enum {
  BC_BT_INTEGER,
  BC_BT_INDEX,
  BC_BT_FUNCTION,
  BC_BT_BF16,
  BC_BT_F16,
  BC_BT_F32,
  BC_BT_F64,
  BC_BT_F80,
  BC_BT_F128,
  BC_BT_COMPLEX,
  BC_BT_MEMREF,
  BC_BT_MEMREF_SPACE,
  BC_BT_NONE,
  BC_BT_TENSOR,
  BC_BT_TENSOR_ENCODING,
  BC_BT_TUPLE,
  BC_BT_UNRANKED_MEMREF,
  BC_BT_UNRANKED_MEMREF_SPACE,
  BC_BT_UNRANKED,
  BC_BT_VECTOR,
  BC_BT_VECTOR_SCALABLE,
  BC_BT_TF32,
  BC_BT_NARROW /* from here on the floats of fewer bits than 16: column BUILTIN of dtypes.def */
};

/* Codes of VHLO's attributes and types. */
enum {
  BC_V_ARRAY = 1,
  BC_V_BOOL,
  BC_V_COMPARISON_DIRECTION,
  BC_V_COMPARISON_TYPE,
  BC_V_API_VERSION,
  BC_V_DICT,
  BC_V_FFT_TYPE,
  BC_V_FLOAT,
  BC_V_INTEGER,
  BC_V_ALIAS,
  BC_V_PRECISION,
  BC_V_RNG_ALGORITHM,
  BC_V_RNG_DISTRIBUTION,
  BC_V_STRING,
  BC_V_TENSOR,
  BC_V_TRANSPOSE,
  BC_V_TYPE,
  BC_V_BOUNDS,
  BC_V_ACCURACY_MODE,
  BC_V_ACCURACY,
  BC_V_SUB_AXIS,
  BC_V_AXIS_REF,
  BC_V_MESH_GROUPS,
  BC_V_MESH_AXIS,
  BC_V_MESH,
  BC_V_COUNT
};
enum {
  BC_VT_BOOL = 0,
  BC_VT_COMPLEX = 1,
  BC_VT_FUNCTION = 8,
  BC_VT_INDEX = 9,
  BC_VT_TENSOR = 20,
  BC_VT_TENSOR_ENCODING = 21,
  BC_VT_TOKEN = 22,
  BC_VT_TUPLE = 23,
  BC_VT_QUANT = 24,
  BC_VT_UNRANKED = 25,
  BC_VT_WITNESS = 26,
  BC_VT_QUANT_AXIS = 30,
  BC_VT_NONE = 33,
  BC_VT_TF32 = 34,
  BC_VT_BUFFER = 41,
  BC_VT_FUTURE = 42,
  BC_VT_COUNT = 43
};

/* --- the tables: tables.c --- */

/* One VHLO op in a range of versions: a row of ops.def. An op whose attributes changed has a row for each form. */
typedef struct bc_row {
  const char *name;
  uint16_t opcode;      /* IR_OP_INVALID: func and return, which are not ops here */
  uint16_t first, last; /* StableHLO versions */
  const char *attrs;    /* names with blanks between */
} bc_row;
/* NULL where VHLO has no such op. */
const bc_row *bc_row_by_name(const char *name, size_t n);
/* The row of `opcode` in a version; NULL when that version has none. */
const bc_row *bc_row_by_opcode(unsigned opcode, unsigned version);
/* Takes the next word off *list; false at the end. */
bool bc_next_word(const char **list, base_slice *word);

/* VHLO's scalar types: that of a code, or BASE_DTYPE_INVALID; the first version that has a type, or 0. */
base_dtype bc_scalar_of(uint64_t code);
unsigned bc_scalar_since(base_dtype t);
/* Floats among MLIR's own types: the code, or 0; and the type of a code, or BASE_DTYPE_INVALID. */
unsigned bc_float_code(base_dtype t);
base_dtype bc_float_of(uint64_t code);
/* The name of the enum that an attribute code stands for ("precision"), or NULL; and the code of a name, or 0. */
const char *bc_enum_of(uint64_t code);
/* And back; 0 where it is none of VHLO's enums. */
uint64_t bc_enum_code(const char *name);

/* What an optional attribute is when it is not written. */
typedef enum bc_default_kind {
  BC_D_NONE,
  BC_D_EMPTY,
  BC_D_NUMBER,
  BC_D_SPLAT,
  BC_D_WORD,
  BC_D_ACCURACY
} bc_default_kind;
/* A value that StableHLO leaves out and VHLO always says. */
typedef struct bc_default {
  uint8_t kind;
  int64_t number;   /* NUMBER, and the elements of a SPLAT */
  const char *word; /* of an enum */
} bc_default;
/* Its kind is BC_D_NONE where the attribute has no default. */
bc_default bc_default_of(unsigned opcode, const ir_mattr_spec *spec);
/* Whether `a`, in StableHLO's form, says no more than its absence would. */
bool bc_is_default(unsigned opcode, const ir_mattr_spec *spec, const ir_mattr *a);

/* Fields of VHLO ops that are one struct in StableHLO: the op's attribute of which `field` is a part, or NULL, and the
 * field's name there. */
const ir_mattr_spec *bc_struct_of_field(unsigned opcode, base_slice field, const ir_field_info **info);

/* --- reading --- */

typedef enum bc_dialect { BC_BUILTIN, BC_VHLO, BC_SDY, BC_OTHER } bc_dialect;

/* An attribute or type of the file: where its bytes lie, and what they stand for once that has been asked for. */
typedef struct bc_entry {
  const uint8_t *p;
  uint32_t n, dialect;
  uint32_t weight; /* nodes of the tree that it prints as: bounds what a small file may grow to */
  bool custom, busy, done;
  union {
    const ir_mattr *attr;
    const ir_type *type;
  };
  const ir_mattr *array; /* the same as array<...>, once needed */
} bc_entry;

/* A name of the table of ops. Exactly one of row, cast and full says what kind of op it is; builtin.module has none. */
typedef struct bc_op_name {
  uint32_t dialect;
  bool registered;
  base_slice name;
  const bc_row *row;
  uint32_t n_attrs; /* of the row */
  uint16_t opcode;
  bool cast;             /* builtin.unrealized_conversion_cast: its results are its operands */
  const base_istr *full; /* of other dialects: "sdy.mesh" */
} bc_op_name;

/* A row of the table of dialects. */
typedef struct bc_dialect_name {
  base_slice name;
  uint8_t known; /* bc_dialect */
} bc_dialect_name;

/* Ops with the same properties share the number of these: they get one dictionary. */
typedef struct bc_properties {
  base_slice data;
  const bc_op_name *op; /* whose attributes `dict` holds; NULL: not made yet */
  const ir_mdict *dict;
} bc_properties;

/* One artifact being read. `scratch` goes with the reader, everything that stays is in the module's arena. Slices
 * point into the caller's bytes. */
typedef struct bc_reader {
  ir_module *m;
  xlac_error *err;
  base_arena scratch;
  const uint8_t *base, *end;
  unsigned container;
  base_slice producer;
  uint32_t depth, max_depth;
  uint64_t n_claimed;  /* values that regions said they have */
  uint64_t n_declared; /* arguments that declarations said they have */
  uint64_t weight;     /* of the entry being read */
  uint32_t n_strings, n_dialects, n_op_names, n_attrs, n_types, n_properties;
  base_slice *strings;
  const base_istr **interned;
  bc_dialect_name *dialects;
  bc_op_name *op_names;
  bc_entry *attrs, *types;
  bc_properties *properties;
  base_slice sections[BC_S_COUNT];
  const base_istr *nameless;
  const ir_mattr *unknown_loc;
} bc_reader;

/* A place in the file and the end of what it may read; copies are cheap, and keep the place for an error. */
typedef struct bc_cursor {
  bc_reader *r;
  const uint8_t *p, *end;
} bc_cursor;

/* container.c The error says the offset of the cursor in the file. */
int bc_fail(const bc_cursor *c, base_code code, const char *format, ...) BASE_PRINTF(3, 4);
#define BC_BAD(c, ...) bc_fail((c), XLAC_E_BAD_PROTO, __VA_ARGS__)
int bc_no_memory(bc_reader *r);
/* Bytes up to the end of the section or entry. */
static inline size_t bc_left(const bc_cursor *c) {
  return (size_t)(c->end - c->p);
}
/* At the beginning of a section. */
static inline bc_cursor bc_cursor_on(bc_reader *r, base_slice s) {
  return (bc_cursor){r, (const uint8_t *)s.p, (const uint8_t *)s.p + s.n};
}
/* These read one thing and move on; at the end of the cursor's bytes they fail. */
XLAC_MUST_USE int bc_byte(bc_cursor *c, uint8_t *out);
/* MLIR's encoding: one to nine bytes, little-endian, whose length stands in the first byte. */
XLAC_MUST_USE int bc_varint(bc_cursor *c, uint64_t *out);
/* A varint whose low bit is the sign: 0, -1, 1, -2 ... */
XLAC_MUST_USE int bc_signed(bc_cursor *c, int64_t *out);
/* A varint whose low bit is a flag. */
XLAC_MUST_USE int bc_flagged(bc_cursor *c, uint64_t *out, bool *flag);
/* A count of things that take at least `each` bytes of what is left (0: any). */
XLAC_MUST_USE int bc_count(bc_cursor *c, size_t each, uint32_t *out);
/* The next n bytes as they are; they live as long as the file's. */
XLAC_MUST_USE int bc_bytes(bc_cursor *c, size_t n, base_slice *out);
/* A length and that many bytes; *out points into the file. */
XLAC_MUST_USE int bc_blob(bc_cursor *c, base_slice *out);
/* The byte of a section, its length, padding where it says so, and its data. */
XLAC_MUST_USE int bc_section(bc_cursor *c, uint8_t *id, base_slice *out);
/* `index` is checked; *out points into the file. */
XLAC_MUST_USE int bc_string(bc_cursor *c, uint64_t index, base_slice *out);
/* The number of a string, as an interned one. */
XLAC_MUST_USE int bc_read_string(bc_cursor *c, const base_istr **out);
/* An integer of a known width, as its bits. */
XLAC_MUST_USE int bc_int_bits(bc_cursor *c, unsigned width, uint64_t *out);

/* container.c Header and all sections but the IR's. */
XLAC_MUST_USE int bc_read_container(bc_reader *r);

/* entry.c: attributes and types by number, each read once Reads the attribute unless that has been done. Cycles, too
 * deep nesting and too large trees are errors. */
XLAC_MUST_USE int bc_attr_at(bc_cursor *c, uint64_t index, const ir_mattr **out);
/* The next number as the entry that it numbers. */
XLAC_MUST_USE int bc_attr(bc_cursor *c, const ir_mattr **out);
/* An attribute of this kind; `what` names it in the error. */
XLAC_MUST_USE int bc_attr_of(bc_cursor *c, ir_mattr_kind kind, const char *what, const ir_mattr **out);
/* NULL where the file says that there is none. */
XLAC_MUST_USE int bc_optional_attr(bc_cursor *c, const ir_mattr **out);
/* Lists of attributes, types and integers; they lie in scratch memory. */
XLAC_MUST_USE int bc_attrs(bc_cursor *c, uint32_t *n, const ir_mattr ***out);
XLAC_MUST_USE int bc_type_at(bc_cursor *c, uint64_t index, const ir_type **out);
XLAC_MUST_USE int bc_type(bc_cursor *c, const ir_type **out);
XLAC_MUST_USE int bc_types(bc_cursor *c, uint32_t *n, const ir_type ***out);
XLAC_MUST_USE int bc_ints(bc_cursor *c, uint32_t *n, int64_t **out);
/* Counts parts of the attribute that is being read; an error where there are too many. */
XLAC_MUST_USE int bc_weigh(bc_cursor *c, uint64_t parts);
/* One made attribute or type, or an error where there is none. */
XLAC_MUST_USE int bc_made(const bc_cursor *c, const void *made);

/* builtin.c, vhlo.c, tensor.c Each reads an entry from its code on. */
XLAC_MUST_USE int bc_builtin_attr(bc_cursor *c, const ir_mattr **out);
/* What an entry of each dialect holds. The cursor stands at the entry's first byte. */
XLAC_MUST_USE int bc_builtin_type(bc_cursor *c, const ir_type **out);
XLAC_MUST_USE int bc_vhlo_attr(bc_cursor *c, const ir_mattr **out);
XLAC_MUST_USE int bc_vhlo_type(bc_cursor *c, const ir_type **out);
/* Negative dims are unknown; an encoding of bounds goes into the dims. */
XLAC_MUST_USE int bc_make_tensor(bc_cursor *c, const ir_type *element, uint32_t rank, const int64_t *dims,
                                 const ir_mattr *encoding, const ir_type **out);
XLAC_MUST_USE int bc_make_unranked(bc_cursor *c, const ir_type *element, const ir_type **out);
XLAC_MUST_USE int bc_make_complex(bc_cursor *c, const ir_type *element, const ir_type **out);
XLAC_MUST_USE int bc_make_memref(bc_cursor *c, const ir_type *element, uint32_t rank, const int64_t *dims,
                                 const ir_type **out);
/* A type, and its elements' bytes as MLIR stores them: row-major, little-endian, bits packed, one element for a splat.
 */
XLAC_MUST_USE int bc_dense(bc_cursor *c, const ir_mattr **out);
/* `data` is stored so, too. */
XLAC_MUST_USE int bc_dense_array(bc_cursor *c, const ir_type *element, int64_t n, base_slice data,
                                 const ir_mattr **out);
XLAC_MUST_USE int bc_integer(bc_cursor *c, const ir_mattr **out); /* a type, then a value of it */
XLAC_MUST_USE int bc_float(bc_cursor *c, const ir_mattr **out);
XLAC_MUST_USE int bc_float_bits(bc_cursor *c, const ir_type *type, const ir_mattr **out);

/* attrs.c: attributes of one op, from VHLO's form to StableHLO's What the file says of an op's attributes: inherent
 * ones by the row's names, and the others. */
typedef struct bc_op_attrs {
  const bc_row *row;           /* NULL: of another dialect */
  const ir_mattr **values;     /* one for each name of the row; NULL where absent */
  uint64_t *indices;           /* their numbers, or UINT64_MAX */
  const ir_mdict *discardable; /* or NULL */
  bc_properties *properties;   /* where they came from, or NULL */
} bc_op_attrs;
/* Whether the value, as it is, is of the kind that the op's definition asks for. */
bool bc_fits(const ir_mattr_spec *spec, const ir_mattr *a);
/* The dictionary of an op's attributes in StableHLO's form; NULL for none. What is at its default in VHLO is left
 * out. */
XLAC_MUST_USE int bc_to_stablehlo(bc_cursor *c, unsigned opcode, const bc_op_attrs *from, const ir_mdict **out);

/* read.c */
XLAC_MUST_USE int bc_read_ir(bc_reader *r);

#endif
