/* Attributes: an op carries a short list of (key, value). The key's kind, fixed in attrs.def, says which field of the
 * value is used. Values are immutable, live in the module's arena, and may be shared between ops of one module. */
#ifndef XLAC_IR_ATTRS_ATTR_H
#define XLAC_IR_ATTRS_ATTR_H

#include "../types/literal.h"
#include "../../base/list.h"
#include "words.h"

typedef struct ir_op ir_op;
typedef struct ir_computation ir_computation;

/* One for each row of attrs.def. */
typedef enum ir_attr_key {
  IR_ATTR_NONE = 0,
#define ATTR(key, text, kind) IR_ATTR_##key,
#include "attrs.def"
#undef ATTR
  IR_ATTR_COUNT
} ir_attr_key;

/* How a value is held, read and printed. */
typedef enum ir_attr_kind {
  IR_KIND_NONE = 0,
  IR_KIND_BOOL,       /* v.b */
  IR_KIND_INT,        /* v.i */
  IR_KIND_FLOAT,      /* v.f */
  IR_KIND_STRING,     /* v.str, printed quoted with C escapes */
  IR_KIND_NAME,       /* v.i, a word's number (words.h), printed bare: direction=LT, fft_type=RFFT, algorithm=... */
  IR_KIND_NAMES,      /* v.ints, such numbers */
  IR_KIND_INTS,       /* v.ints, {0,1} */
  IR_KIND_BOOLS,      /* v.ints of 0/1, {true,false} */
  IR_KIND_INT_LISTS,  /* v.lists, {{2,8},{1}} */
  IR_KIND_PAIRS,      /* v.lists, each of two: {{0,1},{1,2}} */
  IR_KIND_TYPE,       /* v.type */
  IR_KIND_TYPES,      /* v.types */
  IR_KIND_WINDOW,     /* v.window */
  IR_KIND_CONV_DIMS,  /* v.conv */
  IR_KIND_PADDING,    /* v.padding */
  IR_KIND_SLICE,      /* v.slice */
  IR_KIND_GROUPS,     /* v.groups */
  IR_KIND_SHARDING,   /* v.sharding */
  IR_KIND_METADATA,   /* v.metadata */
  IR_KIND_CONFIG,     /* v.config */
  IR_KIND_DICT,       /* v.dict */
  IR_KIND_STATISTICS, /* v.dict plus the index */
  IR_KIND_ACCURACY,   /* v.accuracy */
  IR_KIND_ORIGIN,     /* v.str: the braced text, normalised, printed verbatim */
  IR_KIND_ALIASING,   /* v.aliasing */
  IR_KIND_LITERAL,    /* v.literal */
  IR_KIND_DOMAIN,     /* v.domain */
  IR_KIND_CALLED,     /* in the text only: op->called holds the computations */
  IR_KIND_OPS         /* in the text only: op->control_preds */
} ir_attr_kind;

/* --- lists, as one block each: a count and the elements behind it --- */
typedef struct ir_ints {
  uint32_t n;
  int64_t v[];
} ir_ints;

/* Where the list has it first; -1: nowhere. The list may be NULL, which is none. */
static inline int64_t ir_ints_at(const ir_ints *list, int64_t v) {
  return list ? base_list_at(list->v, list->n, v) : -1;
}

static inline bool ir_ints_has(const ir_ints *list, int64_t v) {
  return ir_ints_at(list, v) >= 0;
}

typedef struct ir_int_lists {
  uint32_t n;
  const ir_ints *v[];
} ir_int_lists;

typedef struct ir_types {
  uint32_t n;
  const ir_type *v[];
} ir_types;

/* One window dimension. Counts of elements; defaults 1,1,0,0,1,1,false. */
typedef struct ir_window_dim {
  int64_t size, stride, padding_low, padding_high, window_dilation, base_dilation;
  bool reversal;
} ir_window_dim;
/* window={size=3x3 stride=2x2 pad=1_1x1_1}: one entry for each windowed dimension, in the operand's order. */
typedef struct ir_window {
  uint32_t n;
  ir_window_dim v[];
} ir_window;

/* dim_labels=b01f_01io->b01f. Spatial dimensions index the n spatial axes in window order. */
typedef struct ir_conv_dims {
  uint32_t n_spatial;
  int64_t input_batch, input_feature, kernel_input_feature, kernel_output_feature, output_batch, output_feature;
  const int64_t *input_spatial, *kernel_spatial, *output_spatial;
} ir_conv_dims;

/* padding=1_2_1: low_high_interior; interior elements go between each two neighbours. */
typedef struct ir_padding_dim {
  int64_t low, high, interior; /* low and high may be negative */
} ir_padding_dim;
typedef struct ir_padding {
  uint32_t n;
  ir_padding_dim v[];
} ir_padding;

/* slice={[0:8:2]}: start, limit (exclusive), stride. */
typedef struct ir_slice_dim {
  int64_t start, limit, stride;
} ir_slice_dim;
typedef struct ir_slice {
  uint32_t n;
  ir_slice_dim v[];
} ir_slice;

/* Replica groups: explicit lists, or the iota form [groups,size]<=[reshape]T(perm) kept as written. */
typedef struct ir_groups {
  bool iota;
  const ir_int_lists *lists; /* explicit */
  uint32_t n_dims;           /* iota: tile dims, usually 2 */
  const int64_t *dims;
  uint32_t n_reshape;
  const int64_t *reshape, *perm;
  const base_istr *mesh_text; /* the mesh-axes form of newer XLA, kept verbatim, or NULL */
} ir_groups;

/* What a sharding says as a whole; the same words mark the kinds of subgroup dims. */
typedef enum ir_sharding_kind {
  IR_SHARDING_REPLICATED,
  IR_SHARDING_MAXIMAL,
  IR_SHARDING_MANUAL,
  IR_SHARDING_UNKNOWN,
  IR_SHARDING_UNREDUCED,
  IR_SHARDING_TILED,
  IR_SHARDING_TUPLE
} ir_sharding_kind;

typedef struct ir_metadata ir_metadata;

/* An HLO sharding as data. Device lists stay in the form they were written in (explicit or iota). */
typedef struct ir_sharding ir_sharding;
struct ir_sharding {
  uint8_t kind;    /* ir_sharding_kind */
  int64_t device;  /* maximal */
  uint32_t n_dims; /* tiled: tile assignment dims, subgroup dims included */
  const int64_t *dims;
  bool iota; /* <=[reshape]T(perm) */
  uint32_t n_devices;
  const int64_t *devices; /* explicit, row-major */
  uint32_t n_reshape;
  const int64_t *reshape, *perm; /* perm NULL: identity */
  bool replicate_on_last_dim;
  uint32_t n_subgroups;     /* last_tile_dims={...}: the last n dims have these kinds */
  const uint8_t *subgroups; /* ir_sharding_kind each: REPLICATED, MANUAL, UNREDUCED, ... */
  int8_t group;             /* 0 none, 1 shard_as, 2 shard_like */
  int64_t group_id;
  uint32_t n_metadata;
  const ir_metadata *const *metadata;
  uint32_t n_elements; /* tuple */
  const ir_sharding *const *elements;
  const base_istr *named_text; /* mesh-axes (V3) form of newer XLA, kept verbatim, or NULL */
};

/* metadata={...}. Strings NULL when absent, numbers 0; has_* where 0 could have been written. */
struct ir_metadata {
  const base_istr *op_type, *op_name, *source_file, *deduplicated_name, *scheduling_name, *payload, *profile_type;
  int64_t source_line, source_end_line, source_column, source_end_column;
  int64_t size_of_generated_code, size_of_memory_working_set;
  uint32_t stack_frame_id; /* 1-based row of the module's StackFrames, 0 none */
  bool preserve_layout;
};

/* backend_config: what XLA's backends write; kept and printed, never interpreted by xlac. */
typedef struct ir_config_text {
  bool raw; /* a JSON object kept as text; else a quoted string */
  const base_istr *text;
} ir_config_text;

/* frontend_attributes={a="b"}: strings, or raw blobs. */
typedef struct ir_dict_entry {
  const base_istr *key;
  const base_istr *value;
  bool raw; /* value is a braced blob or number kept verbatim, not a quoted string */
} ir_dict_entry;
typedef struct ir_dict {
  uint32_t n;
  int64_t visualizing_index; /* statistics only, else 0 */
  ir_dict_entry v[];
} ir_dict;

/* result_accuracy={tolerance={atol=0, rtol=1e-5, ulps=2}} or {mode=highest}. */
typedef struct ir_accuracy {
  uint8_t mode; /* ir_accuracy_mode */
  double atol, rtol;
  int64_t ulps;
} ir_accuracy;

/* One alias: an output index path to (operand or parameter number, its index path). */
typedef struct ir_alias {
  const ir_ints *output;
  int64_t operand;
  const ir_ints *index;
  bool must; /* input_output_alias only */
} ir_alias;
typedef struct ir_aliasing {
  uint32_t n;
  ir_alias v[];
} ir_aliasing;

/* domain={kind="sharding", entry={...}, exit={...}}. */
typedef struct ir_domain {
  const base_istr *kind;
  const ir_sharding *entry, *exit;
} ir_domain;

/* A key with its value. `kind` follows from the key and says which member of the union is in use; pointers are to
 * immutable values in the module's arena. */
typedef struct ir_attr {
  uint16_t key;  /* ir_attr_key */
  uint16_t kind; /* ir_attr_kind, from the key */
  union {
    bool b;
    int64_t i;
    double f;
    const base_istr *str;
    const ir_ints *ints;
    const ir_int_lists *lists;
    const ir_type *type;
    const ir_types *types;
    const ir_window *window;
    const ir_conv_dims *conv;
    const ir_padding *padding;
    const ir_slice *slice;
    const ir_groups *groups;
    const ir_sharding *sharding;
    const ir_metadata *metadata;
    const ir_config_text *config;
    const ir_dict *dict;
    const ir_accuracy *accuracy;
    const ir_aliasing *aliasing;
    const ir_literal *literal;
    const ir_domain *domain;
  } v;
} ir_attr;

/* The row of attrs.def: the HLO word and the kind. */
typedef struct ir_attr_info {
  const char *text;
  uint8_t kind;
} ir_attr_info;
extern const ir_attr_info ir_attr_table[IR_ATTR_COUNT];
/* The key with this HLO name, or IR_ATTR_NONE. "slice_sizes" gives SLICE_SIZES; the reader maps it for
 * collective-permute. */
ir_attr_key ir_attr_from_text(const char *s, size_t n);

/* NULL when the op has none under this key. */
const ir_attr *ir_attr_find(const ir_op *op, ir_attr_key key);
/* Adds or replaces. false when out of memory. */
XLAC_MUST_USE bool ir_attr_set(ir_op *op, ir_attr value);
void ir_attr_remove(ir_op *op, ir_attr_key key);
static inline ir_attr ir_attr_make(ir_attr_key key) {
  ir_attr a;
  memset(&a, 0, sizeof a);
  a.key = (uint16_t)key;
  a.kind = ir_attr_table[key].kind;
  return a;
}

/* Reading with a default, for code after verification. Lists are never NULL: absent reads as empty. */
int64_t ir_get_int(const ir_op *op, ir_attr_key key, int64_t otherwise);
bool ir_get_bool(const ir_op *op, ir_attr_key key, bool otherwise);
double ir_get_float(const ir_op *op, ir_attr_key key, double otherwise);
const ir_ints *ir_get_ints(const ir_op *op, ir_attr_key key);
/* The word's number, of the enum of the key's words; 0 when absent. */
int ir_get_word(const ir_op *op, ir_attr_key key);
/* The string's bytes, or "". */
const char *ir_get_str(const ir_op *op, ir_attr_key key);
const ir_window *ir_get_window(const ir_op *op);       /* NULL when absent */
const ir_conv_dims *ir_get_conv_dims(const ir_op *op); /* NULL when absent */
const ir_sharding *ir_get_sharding(const ir_op *op);   /* NULL when absent */
const ir_metadata *ir_get_metadata(const ir_op *op);   /* NULL when absent */

/* Setters by kind, all false when out of memory; the key must be of that kind. Bytes are copied. */
XLAC_MUST_USE bool ir_set_int(ir_op *op, ir_attr_key key, int64_t v);
XLAC_MUST_USE bool ir_set_bool(ir_op *op, ir_attr_key key, bool v);
XLAC_MUST_USE bool ir_set_word(ir_op *op, ir_attr_key key, int number);
XLAC_MUST_USE bool ir_set_float(ir_op *op, ir_attr_key key, double v);
XLAC_MUST_USE bool ir_set_ints(ir_op *op, ir_attr_key key, uint32_t n, const int64_t *v);
XLAC_MUST_USE bool ir_set_str(ir_op *op, ir_attr_key key, const char *s, size_t n);

/* Makers in the module's arena; NULL when out of memory. */
const ir_ints *ir_ints_make(ir_module *m, uint32_t n, const int64_t *v);
/* A value of any module copied into `m` (types, strings, literals and all). false when out of memory. */
XLAC_MUST_USE bool ir_attr_import(ir_module *m, const ir_attr *from, ir_attr *to);
const ir_dict *ir_dict_import(ir_module *m, const ir_dict *d);
/* Structural equality, across modules too. */
bool ir_attr_equal(const ir_attr *a, const ir_attr *b);
uint64_t ir_attr_hash(const ir_attr *a);

#endif
