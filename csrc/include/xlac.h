/* xlac: the one public header. Plain C, also read by cffi: no macros inside declarations, no system headers
 * beyond <stdint.h>, <stddef.h> and <stdbool.h>.
 *
 * Errors: a function that can fail returns 0 on success and a negative value on failure, and fills the caller's
 * `xlac_error`, always its last argument, which may be NULL. On failure every output is left untouched.
 * Ownership: what a `create`, `parse`, `clone`, `print` or an `out` parameter hands out is the caller's, to be given
 * back to the function named at its type; every other pointer is borrowed and says how long it lives. Threads: distinct
 * handles may be used from distinct threads. What one handle allows is said at its type.
 * Arguments: a pointer may be NULL only where its comment says so (an array of no elements may always be). Texts and
 * numbers that stand for something (formats, modes, orders, element types) are checked: a function that can fail does
 * so with the code BAD_ARGUMENT for a text that is NULL or a number that is none of its enum, one that looks something
 * up finds nothing. Handles, outputs and structs are not checked, and neither is whether a part is of that module. */
#ifndef XLAC_H
#define XLAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* What went wrong. `code` is stable (docs/errors.md has a section for each, XLAC-E0142 and so on). `line` and `col`
 * count from 1 in the text the module was read from, 0 where there is none. `op` names the op concerned, or is empty.
 * `message` says what was wrong, what was expected and what was found; `hint` what to do about it, or is empty. */
typedef struct xlac_error {
  int32_t code;
  uint32_t line;
  uint32_t col;
  char op[96];
  char message[640];
  char hint[256];
} xlac_error;

/* A program. Destroy with xlac_module_destroy. Thread-safe: every function that takes one locks it for as long as it
 * works; while xlac_interpret runs one, other threads may read and run it too, and edits fail with the code EDIT. */
typedef struct xlac_module xlac_module;
/* Parts of a module, borrowed from it: valid until the module is destroyed, even after they are removed from the
 * program (xlac_op_is_live tells). Functions that take a module and a part of it need that part to be of that module.
 */
typedef struct xlac_computation xlac_computation;
typedef struct xlac_op xlac_op;
typedef struct xlac_type xlac_type;
/* An array, a tuple of values, or a token. Reference counted: release with xlac_value_release. Thread-safe; immutable.
 */
typedef struct xlac_value xlac_value;
/* Custom-call implementations by target name. Destroy with xlac_registry_destroy. Thread-safe for reading. */
typedef struct xlac_registry xlac_registry;

/* --- the library --- */

/* "0.1.0". Static. */
const char *xlac_version(void);
/* The name ("VERIFY_SHAPE") and the one-line title of an error code, or NULL for a number that is none. Static. */
const char *xlac_error_name(int32_t code);
const char *xlac_error_title(int32_t code);
/* The codes in ascending order: code number `index`, or 0 past the end. */
int32_t xlac_error_code_at(uint32_t index);
/* Gives back memory that a function handed out as text. NULL is fine. */
void xlac_free(void *memory);

/* --- interrupts --- */

/* A way to stop calls that take long: parsing, verifying, passes, printing, translating, fingerprints, sharding
 * propagation, clustering, lowering and compiling ask `interrupted` at least every 50 ms or so; true makes them fail
 * with the code INTERRUPTED, and so do all further ones until the hook is set anew. Runs have a hook of their own among
 * their options. xlac_module_run leaves the module wherever its passes were: give it a clone, or set no hook and stop
 * between passes by its callback. */
typedef struct xlac_interrupt {
  bool (*interrupted)(void *ctx); /* NULL: nobody can */
  void *ctx;
} xlac_interrupt;

/* Sets the calling thread's hook and gives the one before. It is called on that thread, while locks are held: it must
 * not call functions on a handle that is in use. */
xlac_interrupt xlac_set_interrupt(xlac_interrupt hook);

/* --- element types: numbers from 1 to xlac_dtype_count() - 1, not stable between versions; their names are --- */

uint32_t xlac_dtype_count(void);
/* "bf16", or NULL for a number that is none. Static. */
const char *xlac_dtype_text(uint32_t dtype);
/* The type of that name, or 0. */
uint32_t xlac_dtype_from_text(const char *text);
/* Bytes of one element in memory (at least one: narrow types are not packed), and its logical bits. 0 for no type. */
uint32_t xlac_dtype_bytes(uint32_t dtype);
uint32_t xlac_dtype_bits(uint32_t dtype);
/* "pred", "sint", "uint", "float" or "complex". Static; NULL for no type. */
const char *xlac_dtype_kind(uint32_t dtype);
/* "float32"; where NumPy itself has no such type ("bfloat16", "int4"), the name in package ml_dtypes, and
 * *of_ml_dtypes. */
const char *xlac_dtype_numpy(uint32_t dtype, bool *of_ml_dtypes);
/* code and bits of a DLDataType (dlpack.h 1.1), its lanes being 1. */
void xlac_dtype_dlpack(uint32_t dtype, uint8_t *code, uint8_t *bits);

/* --- the op table: numbers from 1 to xlac_opcode_count() - 1, not stable between versions; their names are --- */

typedef struct xlac_opcode_info {
  const char *text; /* "add", static as all strings here */
  const char *doc;  /* one sentence */
  int32_t arity;    /* number of operands, or -1: any */
  uint32_t n_attrs; /* of its own; every op may also carry the common ones */
  bool infers;      /* the result type follows from operands and attributes */
  bool elementwise, commutative, collective, side_effect, data_movement, nondeterministic, newer;
  bool async_start, async_update, async_done;
} xlac_opcode_info;

typedef struct xlac_attr_info {
  const char *text; /* "dimensions" */
  const char *kind; /* how its value is written: "ints", "bool", "string", "called", ...: see docs/ops.md */
  bool required;
} xlac_attr_info;

uint32_t xlac_opcode_count(void);
/* The opcode of that HLO name ("add") or MLIR name ("stablehlo.add"), or 0. */
uint32_t xlac_opcode_from_text(const char *text);
/* The opcode that NumPy, PyTorch or JAX call so ("exp", "where", "matmul"), or 0; of names that are HLO's too, 0. */
uint32_t xlac_opcode_elsewhere(const char *text);
/* false for a number that is none. */
bool xlac_opcode_get(uint32_t opcode, xlac_opcode_info *out);
bool xlac_opcode_attr(uint32_t opcode, uint32_t index, xlac_attr_info *out);
/* The kind of the attribute of that name ("ints"), or NULL where no op has such an attribute. Static. */
const char *xlac_attr_kind(const char *text);

/* --- modules --- */

typedef enum xlac_format {
  XLAC_FORMAT_AUTO = 0,         /* a serialized module where the bytes begin like one, else text */
  XLAC_FORMAT_HLO = 1,          /* XLA's text */
  XLAC_FORMAT_HLO_PROTO = 2,    /* a serialized HloModuleProto, or an HloProto or HloSnapshot that holds one */
  XLAC_FORMAT_MLIR = 3,         /* MLIR text: StableHLO, CHLO */
  XLAC_FORMAT_MLIR_BYTECODE = 4 /* a StableHLO portable artifact */
} xlac_format;

/* Option structs can grow: new members come after all that are there, in bytes that older structs do not have. Each
 * begins with its own size, which says what members the caller knows; those that it does not know have their defaults,
 * so that programs built with an older header run with a newer library. The other way round works as long as the
 * members that the library does not know are zero. Zero is the default of every other member:
 *
 *   xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .max_depth = 16};
 *
 * Where an options pointer may be NULL, that means all defaults. A size of 0, or one that no version of the struct has,
 * is an error with the code BAD_ARGUMENT. */
#define XLAC_OPTIONS(type) .struct_size = sizeof(type)

typedef struct xlac_parse_options {
  uint32_t struct_size;    /* sizeof(xlac_parse_options) */
  int32_t format;          /* xlac_format */
  uint32_t max_depth;      /* of nesting, up to 1024; 0: 256 */
  bool allow_unregistered; /* MLIR: keep ops of dialects that are not known */
  bool documented_forms;   /* deprecated and not looked at: documented forms are read unless `strict` */
  bool strict;             /* HLO: refuse what XLA 0.10.2 refuses, though XLA's documentation shows it or newer XLA has
                              it: docs/xla-differences.md */
} xlac_parse_options;

typedef enum xlac_print_mode {
  XLAC_PRINT_DEFAULT = 0,    /* as XLA's HloModule::ToString, with large constants */
  XLAC_PRINT_SHORT = 1,      /* XLA's ShortParsable */
  XLAC_PRINT_CANONICAL = 2,  /* XLA's Canonical */
  XLAC_PRINT_FINGERPRINT = 3 /* XLA's Fingerprint */
} xlac_print_mode;

/* The fields before `generic` are for modules in HLO form, the rest for those in MLIR form. */
typedef struct xlac_print_options {
  uint32_t struct_size;       /* sizeof(xlac_print_options) */
  int32_t mode;               /* xlac_print_mode */
  bool elide_large_constants; /* {...} for constants of more than 10 elements */
  bool operand_shapes;        /* the operands' shapes too */
  bool no_metadata;
  bool no_ids;
  uint32_t indent; /* levels of two blanks */
  int32_t format;  /* xlac_format: AUTO is the module's own, HLO translates StableHLO first */
  bool generic;    /* MLIR's generic form of every op */
  bool locations;  /* loc(...) on every op */
} xlac_print_options;

typedef struct xlac_verify_options {
  uint32_t struct_size; /* sizeof(xlac_verify_options) */
  bool xla_compat;      /* accept what XLA 0.10.2 accepts against its own documentation: docs/xla-differences.md */
  /* accept any float type for another, as XLA does while its passes move precisions about; such a module can't be run
   */
  bool mixed_floats;
} xlac_verify_options;

typedef struct xlac_stats {
  uint64_t n_computations, n_ops, n_bytes; /* bytes: of memory the module holds */
} xlac_stats;

typedef struct xlac_config {
  bool is_scheduled, has_entry_layout;
  int64_t replica_count, num_partitions;
  uint32_t n_aliases, n_donors, n_frontend_attributes;
} xlac_config;

/* One entry of input_output_alias (or, without the output, of buffer_donor). Index paths lead into tuples; borrowed. */
typedef struct xlac_alias {
  uint32_t n_output, n_index;
  const int64_t *output;
  int64_t parameter;
  const int64_t *index;
  bool must;
} xlac_alias;

/* Reads a whole module from n bytes of text or of a proto (any bytes, need not be terminated). Not verified. options
 * may be NULL; so may text where n is 0. */
int xlac_module_parse(xlac_module **out, const char *text, size_t n, const xlac_parse_options *options,
                      xlac_error *err);
/* An empty module to build in: give it a computation with a root before anything else than editing. */
int xlac_module_create(xlac_module **out, const char *name, xlac_error *err);
/* A deep copy, sharing nothing. Parts keep their order, not their addresses. */
int xlac_module_clone(xlac_module **out, xlac_module *m, xlac_error *err);
/* Frees the module and all its parts. NULL is fine. Nobody else may be using it. */
void xlac_module_destroy(xlac_module *m);

/* The module, one computation or one op as text, *n bytes and a terminating 0, freed with xlac_free. options may be
 * NULL. Fails on a module under construction: one without an entry, or with a computation that has no root. */
int xlac_module_print(xlac_module *m, const xlac_print_options *options, char **text, size_t *n, xlac_error *err);
int xlac_computation_print(xlac_module *m, xlac_computation *c, const xlac_print_options *options, char **text,
                           size_t *n, xlac_error *err);
int xlac_op_print(xlac_module *m, xlac_op *op, const xlac_print_options *options, char **text, size_t *n,
                  xlac_error *err);
/* The module as a serialized HloModuleProto, *n bytes, freed with xlac_free. `format` is XLAC_FORMAT_HLO_PROTO. What
 * the proto does not hold, and so is lost, is in docs/formats.md. */
int xlac_module_serialize(xlac_module *m, int32_t format, char **bytes, size_t *n, xlac_error *err);
/* A module in MLIR form as a StableHLO portable artifact of that version ("1.17.0"; NULL: the newest that jaxlib 0.10.2
 * reads too), *n bytes, freed with xlac_free. */
int xlac_module_write_artifact(xlac_module *m, const char *version, char **bytes, size_t *n, xlac_error *err);
/* Checks every rule; the error has line, column and op of the first broken one. options may be NULL. */
int xlac_module_verify(xlac_module *m, const xlac_verify_options *options, xlac_error *err);
/* Whether the module was found to be valid, strictly or leniently, and has not been edited since. One that isn't is
 * verified before it runs or is compiled. */
bool xlac_module_is_verified(xlac_module *m);
/* A number that is the same for modules that differ in names, metadata and order of text only. */
int xlac_module_fingerprint(xlac_module *m, uint64_t *out, xlac_error *err);
void xlac_module_stats(xlac_module *m, xlac_stats *out);

/* Borrowed until the name is changed or the module destroyed. */
const char *xlac_module_name(xlac_module *m);
/* Whether the module is in MLIR form (StableHLO: functions, regions, several results an op), else in HLO form. */
bool xlac_module_is_mlir(xlac_module *m);
/* The module in HLO form: what StableHLO means in HLO's ops. Fails where an op has no HLO form, and on a module that is
 * in HLO form already. `m` stays as it is. */
int xlac_module_to_hlo(xlac_module **out, xlac_module *m, xlac_error *err);
/* The other way: the module in MLIR form, as StableHLO and CHLO. HLO's tuples become several results, computations
 * functions and regions. Fails where an op has no such form, and on a module that is in MLIR form already. */
int xlac_module_to_stablehlo(xlac_module **out, xlac_module *m, xlac_error *err);
int xlac_module_set_name(xlac_module *m, const char *name, xlac_error *err);

void xlac_module_config(xlac_module *m, xlac_config *out);
/* Entry number `index`; false past the end. Borrowed until the aliases or donors change. */
bool xlac_module_alias(xlac_module *m, uint32_t index, xlac_alias *out);
bool xlac_module_donor(xlac_module *m, uint32_t index, xlac_alias *out);
bool xlac_module_frontend_attribute(xlac_module *m, uint32_t index, const char **key, const char **value);
/* Lets (or, with `must`, makes) output buffer `output` reuse the parameter's; replaces an entry of the same output. */
int xlac_module_set_alias(xlac_module *m, const xlac_alias *alias, xlac_error *err);
/* Lets any output reuse the buffer; `output` is not looked at. */
int xlac_module_add_donor(xlac_module *m, const xlac_alias *donor, xlac_error *err);
/* Donors too. */
int xlac_module_clear_aliases(xlac_module *m, xlac_error *err);

/* --- computations --- */

/* The entry is NULL until a module under construction has a computation. */
xlac_computation *xlac_module_entry(xlac_module *m);
int xlac_module_set_entry(xlac_module *m, xlac_computation *c, xlac_error *err);
/* In the order of the text: first (c NULL) or next; NULL at the end. */
xlac_computation *xlac_computation_next(xlac_module *m, xlac_computation *c);
/* NULL when there is none of that name. */
xlac_computation *xlac_computation_find(xlac_module *m, const char *name);
/* Appends an empty one; its name gets a number when it is taken. The first becomes the entry. */
int xlac_computation_create(xlac_computation **out, xlac_module *m, const char *name, xlac_error *err);
/* Copies c of module `from`, with what it calls, to m. `from` may be m itself. */
int xlac_computation_import(xlac_computation **out, xlac_module *m, xlac_module *from, xlac_computation *c,
                            xlac_error *err);
/* Removes a computation that nobody calls and that is not the entry. */
int xlac_computation_remove(xlac_module *m, xlac_computation *c, xlac_error *err);
bool xlac_computation_is_live(xlac_module *m, xlac_computation *c);
/* Borrowed, until renamed. */
const char *xlac_computation_name(xlac_module *m, xlac_computation *c);
int xlac_computation_rename(xlac_module *m, xlac_computation *c, const char *name, xlac_error *err);
uint32_t xlac_computation_op_count(xlac_module *m, xlac_computation *c);
uint32_t xlac_computation_param_count(xlac_module *m, xlac_computation *c);
/* NULL past the end or where the parameter of that number is missing. */
xlac_op *xlac_computation_param(xlac_module *m, xlac_computation *c, uint32_t number);
/* NULL while there is none. */
xlac_op *xlac_computation_root(xlac_module *m, xlac_computation *c);
int xlac_computation_set_root(xlac_module *m, xlac_computation *c, xlac_op *op, xlac_error *err);
/* "main" or the name of another thread. Borrowed. */
const char *xlac_computation_thread(xlac_module *m, xlac_computation *c);
/* Line and column in the text, 0 where there is none. */
void xlac_computation_position(xlac_module *m, xlac_computation *c, uint32_t *line, uint32_t *col);

/* --- types: immutable --- */

typedef enum xlac_type_kind {
  XLAC_TYPE_TENSOR,
  XLAC_TYPE_TUPLE,
  XLAC_TYPE_TOKEN,
  XLAC_TYPE_OPAQUE,
  XLAC_TYPE_BUFFER,
  XLAC_TYPE_FUTURE,
  /* The rest is in MLIR form only. */
  XLAC_TYPE_UNRANKED, /* tensor<*xf32> */
  XLAC_TYPE_ELEMENT,  /* a bare element type: f32, !quant.uniform<...> */
  XLAC_TYPE_FUNCTION, /* (a, b) -> c: its elements are the inputs, then the results */
  XLAC_TYPE_OTHER     /* index, memref<...>, !shape.shape: as xlac_type_print has it */
} xlac_type_kind;

typedef struct xlac_type_info {
  int32_t kind;        /* xlac_type_kind */
  uint32_t dtype;      /* of tensors, ranked or not, and element types; s64 where the text has index; else 0 */
  uint32_t rank;       /* of tensors, else 0 */
  const int64_t *dims; /* rank of them; the bound where dynamic, INT64_MIN where not bounded either */
  const bool *dynamic; /* rank of them, or NULL: none is */
  uint32_t n_elements; /* of tuples, futures, functions; 1 for a buffer, whose element 0 is its tensor; else 0 */
} xlac_type_info;

void xlac_type_get(const xlac_type *t, xlac_type_info *out);
/* NULL past the end. */
const xlac_type *xlac_type_element(const xlac_type *t, uint32_t index);
/* "f32[2,3]{1,0}", without layouts unless asked; freed with xlac_free. NULL when out of memory. */
char *xlac_type_print(const xlac_type *t, bool layouts);

/* --- ops: reading --- */

typedef struct xlac_op_info {
  const char *name;              /* without '%'; borrowed until renamed */
  const char *opcode;            /* "add"; static */
  const xlac_type *type;         /* of the first result; an empty tuple where there is none */
  xlac_computation *computation; /* NULL once removed */
  uint32_t id;                   /* unique in the module, dense from 0 */
  uint32_t n_operands, n_called, n_control_predecessors, n_attrs;
  int64_t parameter; /* its number, or -1 */
  uint32_t line, col;
} xlac_op_info;

/* In the order of the text: first (op NULL) or next op of c; NULL at the end. */
xlac_op *xlac_op_next(xlac_module *m, xlac_computation *c, xlac_op *op);
/* The op of that name anywhere in the module, or in c when it is not NULL; NULL when there is none. Linear. */
xlac_op *xlac_op_find(xlac_module *m, xlac_computation *c, const char *name);
bool xlac_op_is_live(xlac_module *m, xlac_op *op);
void xlac_op_get(xlac_module *m, xlac_op *op, xlac_op_info *out);
/* Each returns NULL past the end. */
xlac_op *xlac_op_operand(xlac_module *m, xlac_op *op, uint32_t index);
xlac_computation *xlac_op_called(xlac_module *m, xlac_op *op, uint32_t index);
/* Writes up to `cap` ops that must run before op, in the order of the text; returns how many there are. */
uint32_t xlac_op_control_predecessors(xlac_module *m, xlac_op *op, xlac_op **before, uint32_t cap);
/* The same of users: each op that uses a result of op, once, in no stated order. Takes time by their number, which is
 * why xlac_op_info does not have it: ask with cap 0. */
uint32_t xlac_op_users(xlac_module *m, xlac_op *op, xlac_op **users, uint32_t cap);
/* The name of attribute number `index` ("dimensions"), in the order of printing; NULL past the end. Called computations
 * and control predecessors are not counted among them. Static. */
const char *xlac_op_attr_key(xlac_module *m, xlac_op *op, uint32_t index);
/* The value of an attribute as it stands after "key=", freed with xlac_free; *text is NULL when the op has none of that
 * name. */
int xlac_op_attr(xlac_module *m, xlac_op *op, const char *key, char **text, xlac_error *err);
/* The value of a constant; the caller releases it. Fails on other ops and on constants elided in the text. */
int xlac_op_constant(xlac_module *m, xlac_op *op, xlac_value **out, xlac_error *err);

/* --- ops: making and editing --- */

/* One attribute as text, as in HLO: {"dimensions", "{0,1}"}. */
typedef struct xlac_attr {
  const char *key;
  const char *text;
} xlac_attr;

/* What a new op is made of. `type` is its result type as text, or NULL to infer it. `name` may be NULL; it gets a
 * number when it is taken. Called computations are attributes: {"to_apply", "add"}. */
typedef struct xlac_op_spec {
  const char *opcode;
  const char *type;
  const char *name;
  uint32_t n_operands, n_attrs;
  xlac_op *const *operands;
  const xlac_attr *attrs;
} xlac_op_spec;

/* Appends an op to c. What it is made of is checked against the op table, and the result by verification of the module.
 */
int xlac_op_create(xlac_op **out, xlac_module *m, xlac_computation *c, const xlac_op_spec *spec, xlac_error *err);
/* The parameter of the given number, of a type given as text. */
int xlac_op_create_parameter(xlac_op **out, xlac_module *m, xlac_computation *c, int64_t number, const char *type,
                             const char *name, xlac_error *err);
/* A constant holding a copy of the value. */
int xlac_op_create_constant(xlac_op **out, xlac_module *m, xlac_computation *c, const xlac_value *value,
                            const char *name, xlac_error *err);
/* Sets or replaces an attribute from text as it stands after "key="; text NULL removes it. "sharding", "metadata" and
 * "to_apply" are attributes too. */
int xlac_op_set_attr(xlac_module *m, xlac_op *op, const char *key, const char *text, xlac_error *err);
int xlac_op_set_operand(xlac_module *m, xlac_op *op, uint32_t index, xlac_op *operand, xlac_error *err);
/* Another result type, as text; NULL infers it anew. */
int xlac_op_set_type(xlac_module *m, xlac_op *op, const char *type, xlac_error *err);
int xlac_op_rename(xlac_module *m, xlac_op *op, const char *name, xlac_error *err);
/* Every use of `op` (operands, control edges, being the root) becomes one of `with`, of the same computation and type.
 */
int xlac_op_replace_uses(xlac_module *m, xlac_op *op, xlac_op *with, xlac_error *err);
/* Removes an op that nobody uses and that is not the root. */
int xlac_op_remove(xlac_module *m, xlac_op *op, xlac_error *err);
/* Moves op in the order of its computation, before another op or (NULL) to the end. */
int xlac_op_move(xlac_module *m, xlac_op *op, xlac_op *before, xlac_error *err);

/* --- passes --- */

typedef struct xlac_pass_info {
  const char *name, *doc; /* static */
  uint32_t n_options;
} xlac_pass_info;
/* Pass number `index`, and its options; false past the end. */
bool xlac_pass_get(uint32_t index, xlac_pass_info *out);
bool xlac_pass_option(uint32_t index, uint32_t option, const char **name, const char **doc);

/* Called with the module as a pass left it, which it may read but not edit. Nonzero stops the pipeline. */
typedef int (*xlac_pass_callback)(void *ctx, const char *pass, xlac_module *m);
typedef struct xlac_pipeline_options {
  uint32_t struct_size;     /* sizeof(xlac_pipeline_options) */
  xlac_pass_callback after; /* may be NULL */
  void *ctx;
  bool verify_each; /* verify after every pass */
} xlac_pipeline_options;
/* Runs passes on m in place: "dce,cse", "constant-folding{max-elements=64}", "builtin.module(a,b)". The text is checked
 * before anything runs, and m is verified first, as leniently as XLA. A pass that fails leaves m valid but maybe
 * changed: clone it to keep the old one. */
int xlac_module_run(xlac_module *m, const char *pipeline, const xlac_pipeline_options *options, xlac_error *err);
/* Propagates shardings as the pass sdy-user-priority-propagate does, in place, and says how in *text, *n bytes of JSON
 * and a terminating 0, freed with xlac_free: the values with their shardings, each step that brought an axis to a value
 * (from which value, through which op and factor), where axes were written down first, and which axes were in each
 * other's way. The module must be one of StableHLO that the import passes have seen (sdy-import-pipeline); it is
 * verified. Fields: docs/sharding.md. Source: the Shardy dialect. */
int xlac_module_explain_sharding(xlac_module *m, char **text, size_t *n, xlac_error *err);
/* Every op of the dialect sdy in the module that moves or adds up data between devices, as JSON: the op, the shardings
 * before and after, the bytes that a device sends at least, and the line of the program it comes from. Freed with
 * xlac_free. The module is not changed, but nobody may read it meanwhile. */
int xlac_module_reshards(xlac_module *m, char **text, size_t *n, xlac_error *err);
/* Writes a sharding ("#sdy.sharding<@mesh, [{\"x\"}, {?}]>"; "" for none) down on a value of a StableHLO module, in
 * place: on an argument ("%arg0", named as in the module's text), on a result of the main function ("result 0"), or in
 * a constraint that all readers of another value get; or the axes of a mesh, of its name ("@mesh", which may be new),
 * "#sdy.mesh<[\"x\"=4]>". Verified afterwards; an error may leave the module changed. */
int xlac_module_annotate(xlac_module *m, const char *value, const char *sharding, xlac_error *err);

/* What the time model of async chains takes for granted; 0 for what is usual. */
typedef struct xlac_async_model {
  double gigaflops, memory_gigabytes, link_gigabytes; /* a second; link: of copies and collectives */
} xlac_async_model;

/* The module's async chains in the order its ops have, with what is waited for by the model, as JSON, freed with
 * xlac_free: {"scheduled": bool, "computations": [{"name", "ops", "makespan", "work", "exposed", "chains": [{"op",
 * "lane", "line", "updates", "start", "done", "length", "issued", "begins", "ends", "reached", "exposed", "needs",
 * "ready", "behind", "reader", "read"}]}]}; times are nanoseconds. docs/async.md. model may be NULL. */
int xlac_module_explain_async(xlac_module *m, const xlac_async_model *model, char **json, size_t *n, xlac_error *err);

/* --- values --- */

typedef enum xlac_value_kind { XLAC_VALUE_ARRAY, XLAC_VALUE_TUPLE, XLAC_VALUE_TOKEN } xlac_value_kind;

typedef struct xlac_value_info {
  int32_t kind;        /* xlac_value_kind */
  uint32_t dtype;      /* of arrays */
  uint32_t rank;       /* of arrays */
  const int64_t *dims; /* rank of them */
  int64_t count;       /* elements of an array */
  size_t bytes;
  const void *data;    /* row-major, dense; aligned to 64 bytes unless lent */
  uint32_t n_elements; /* of tuples */
} xlac_value_info;

/* An array on the caller's memory, not copied: row-major, dense, any alignment. `release` (may be NULL) is called with
 * `ctx` when xlac is done with it, from any thread. */
int xlac_value_lend(xlac_value **out, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                    void (*release)(void *ctx), void *ctx, xlac_error *err);
/* An array with a copy of the caller's memory; `data` NULL gives zeros. */
int xlac_value_copy(xlac_value **out, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                    xlac_error *err);
/* A tuple; it holds references of its own to the elements. */
int xlac_value_tuple(xlac_value **out, uint32_t n, xlac_value *const *elements, xlac_error *err);
int xlac_value_token(xlac_value **out, xlac_error *err);
void xlac_value_get(const xlac_value *v, xlac_value_info *out);
/* Borrowed from the tuple; NULL past the end. */
xlac_value *xlac_value_element(const xlac_value *v, uint32_t index);
void xlac_value_retain(xlac_value *v);
void xlac_value_release(xlac_value *v); /* NULL is fine */

/* --- running --- */

/* An implementation of a custom call. `operands` are borrowed for the call. `results` has the data of one zeroed array
 * for each leaf of the result type, depth first, to be filled in place; NULL for a token. Returns 0, or negative after
 * filling err's message. It may read the op through the module's handle. */
typedef int (*xlac_custom_call)(void *ctx, const xlac_op *op, uint32_t n_operands, xlac_value *const *operands,
                                uint32_t n_results, void *const *results, xlac_error *err);

int xlac_registry_create(xlac_registry **out, xlac_error *err);
void xlac_registry_destroy(xlac_registry *r);
/* Replaces an earlier one of that name. Not while a run uses the registry. `ctx` must outlive the registry. */
int xlac_registry_add(xlac_registry *r, const char *target, xlac_custom_call fn, void *ctx, xlac_error *err);
/* The same for native code, described in xlac_ffi.h: it sees buffers and attributes only, and costs a call. `native` is
 * copied; its `user` must outlive the registry. Fails with the code BAD_ARGUMENT for a target of another version. */
struct xlac_ffi_target;
int xlac_registry_add_native(xlac_registry *r, const char *target, const struct xlac_ffi_target *native,
                             xlac_error *err);

/* What the probes of a program see in runs that are given them: the operands of interpreter.probe, in order of time.
 * For any thread. */
typedef struct xlac_probes xlac_probes;
int xlac_probes_create(xlac_probes **out, xlac_error *err);
void xlac_probes_destroy(xlac_probes *p);
uint32_t xlac_probes_count(xlac_probes *p);
/* Number i: *id lives as long as p, *value is the caller's. */
int xlac_probes_get(xlac_probes *p, uint32_t i, const char **id, xlac_value **value, xlac_error *err);

/* When the interpreter runs what an async start wraps. Anything from the start to its done is allowed, and no result
 * but that of random ops depends on it: for testing. */
typedef enum xlac_async_order {
  XLAC_ASYNC_EAGER,   /* at the start */
  XLAC_ASYNC_LAZY,    /* at the done */
  XLAC_ASYNC_SHUFFLED /* somewhere between, drawn from async_seed */
} xlac_async_order;

typedef struct xlac_interpret_options {
  uint32_t struct_size; /* sizeof(xlac_interpret_options) */
  bool (*interrupted)(
      void *ctx); /* asked about every 50 ms; true stops the run with the code INTERRUPTED. May be NULL */
  void *interrupt_ctx;
  const xlac_registry *registry; /* NULL: the built-in custom calls only */
  uint64_t seed;                 /* of rng */
  int64_t replica, partition;
  xlac_probes *probes; /* where probes put what they see; NULL: nowhere */
  const char
      *blas_path;       /* of the OpenBLAS that JAX's custom calls for linear algebra run with; NULL: the usual names */
  uint32_t async_order; /* an xlac_async_order; runs of several participants are eager */
  uint64_t async_seed;
  /* Of a program compiled for the CPU, which then has a clock at every step: told of each when the call has succeeded,
   * in the order of their ends. The op's name, its metadata's op_name ("" where it has none), and nanoseconds: from the
   * call's beginning, and those it took. Steps that run as one are one, the first; async work counts where it starts;
   * of several devices, the first's are told. NULL: nobody wants to know. */
  void (*step)(void *ctx, const char *op, const char *op_name, int64_t start, int64_t ns);
  void *step_ctx;
} xlac_interpret_options;

/* Runs the entry computation in the reference interpreter, on the calling thread. Verifies the module first unless that
 * was done, as leniently as XLA (xla_compat). Arguments are borrowed, one per parameter; *out owns its memory. options
 * may be NULL. */
int xlac_interpret(xlac_module *m, const xlac_interpret_options *options, uint32_t n_args, xlac_value *const *args,
                   xlac_value **out, xlac_error *err);

/* --- compiled programs --- */

/* What executables share: memory that is used again, and threads. Thread-safe. Executables and blocks keep what they
 * need of it, so it may be destroyed before them. */
typedef struct xlac_runtime xlac_runtime;

typedef struct xlac_runtime_info {
  uint64_t taken, reused;    /* blocks taken so far, and how many of them had been used before */
  uint64_t live, live_bytes; /* blocks in use now: results, and the frames of calls */
  uint64_t peak_bytes;       /* the most that was in use at a time */
  uint64_t kept, kept_bytes; /* waiting to be used again */
  uint64_t limit_bytes;      /* the most that is kept: at first an eighth of the machine's memory */
  uint32_t threads;          /* started so far */
} xlac_runtime_info;

enum { XLAC_BLOCK_HEADER = 32 };

int xlac_runtime_create(xlac_runtime **out, xlac_error *err);
void xlac_runtime_destroy(xlac_runtime *rt); /* NULL is fine; not from inside a run */
/* Gives memory that waits to be used again back to the system, but for `keep` bytes; how much that was. */
uint64_t xlac_runtime_trim(xlac_runtime *rt, uint64_t keep);
void xlac_runtime_limit(xlac_runtime *rt, uint64_t bytes);
void xlac_runtime_get(xlac_runtime *rt, xlac_runtime_info *out);
/* A block for results, aligned to 64 bytes, not cleared. NULL when out of memory. */
void *xlac_runtime_take(xlac_runtime *rt, size_t bytes);
/* The same with `header` bytes of the caller's right before the block, aligned to 32: for what keeps track of it, so
 * that this needs no allocation. NULL also for a header of more than XLAC_BLOCK_HEADER bytes. */
void *xlac_runtime_take_headed(xlac_runtime *rt, uint32_t header, size_t bytes);
void xlac_runtime_give(void *block); /* of either kind, from any thread; NULL is fine */

/* A device of a runtime. */
typedef struct xlac_device_info {
  char name[32];                   /* "cpu:0" */
  const char *kind;                /* "cpu"; static, as the next */
  const char *memory;              /* the name of the memory where arguments and results lie */
  uint32_t ordinal, units;         /* number among those of its kind; what works in parallel: CPUs */
  uint64_t memory_bytes;           /* how much of it there is at most */
  uint64_t live_bytes, peak_bytes; /* in use now, and at most so far */
  bool host_visible;               /* the host reads and writes that memory */
} xlac_device_info;

/* Opens a device: a kind, and after a colon the number of a context, of which each has memory and threads of its own:
 * "cpu", "cpu:1", "interp" (the reference interpreter). NULL is "cpu". BAD_ARGUMENT: there is no such device. */
int xlac_runtime_open_device(xlac_runtime *rt, const char *name, xlac_device_info *out, xlac_error *err);
/* Number `index` of the devices opened so far, "cpu:0" being the first; false past the end. */
bool xlac_runtime_device(xlac_runtime *rt, uint32_t index, xlac_device_info *out);

/* A device whose memory the host does not see, for buffers: NULL stands for the host. Of a runtime, as long as that or
 * a buffer or an executable on it lives. */
typedef struct xlac_device xlac_device;
/* Opens it as xlac_runtime_open_device does; *out is NULL where its arrays lie in memory of the host's. */
int xlac_runtime_find_device(xlac_runtime *rt, const char *name, const xlac_device **out, xlac_error *err);
void xlac_device_get(const xlac_device *d, xlac_device_info *out);
/* Waits for what another library has enqueued on a stream (a CUstream as a number); XLAC_ALL_STREAMS: on all. */
#define XLAC_ALL_STREAMS UINT64_MAX
int xlac_device_join(const xlac_device *d, uint64_t stream, xlac_error *err);

/* A program compiled for a device. Immutable: any number of threads may run one at the same time. */
typedef struct xlac_executable xlac_executable;

/* A lane: threads for async operations. */
typedef struct xlac_lane {
  const char *thread; /* the execution thread whose starts it runs; "": those of all threads that have no lane */
  uint32_t threads;   /* of its own; 0: none, so that what is started is run by whoever waits for it */
} xlac_lane;
/* What a compiled program may do to floats (docs/numerics.md). */
typedef enum xlac_numerics {
  XLAC_NUMERICS_STRICT, /* elementwise work has the interpreter's bits */
  XLAC_NUMERICS_FAST    /* operations may be contracted and reassociated, functions are off by some units in the last
                           place, narrow floats are not rounded between the ops of a kernel; NaN and infinities stay */
} xlac_numerics;

typedef struct xlac_compile_options {
  uint32_t struct_size;  /* sizeof(xlac_compile_options) */
  uint32_t threads;      /* 0: as many as there are CPUs to use; 1: none but the caller's */
  const char *blas_path; /* of an OpenBLAS; NULL: the usual names. Without one, dots are computed by xlac itself */
  bool no_blas, no_fusion, no_passes; /* to find out who is to blame for a difference */
  xlac_runtime *runtime;              /* NULL: one of its own */
  uint32_t n_donate;                  /* parameters all of whose arrays may be donated, as by buffer_donor */
  const uint32_t *donate;
  struct xlac_counters *counters; /* of what calls copy and reuse, kept by the executable; NULL: nobody counts */
  uint32_t n_lanes;               /* several lanes for "" are taken in turn; without any, there is one of one thread */
  const xlac_lane *lanes;
  /* Elements: async operations of less are run where they are started, devices of a group with less between their
   * collectives in turns on the caller's thread. 0: some thousands. */
  uint64_t async_work;
  xlac_numerics numerics;
  /* Of the runtime, as for xlac_runtime_open_device; NULL: "cpu". For several devices also a name for each, with commas
   * between: "cuda:0,cuda:1"; "cuda" alone is all GPUs in turn. */
  const char *device;
  /* Partitions the program by its shardings, and runs it on so many devices at once, each with its shards; arguments
   * and results are whole arrays, or shards (xlac_executable_call_shards). As many as the program's mesh has; 0: one
   * device, and no partitioning. */
  uint32_t n_devices, reserved;
  /* The folder of compiled programs (docs/cache.md): "" or "0": none; "1": xlac/executables in the user's folder of
   * caches; NULL: as the environment's XLAC_CACHE says, and none without that. */
  const char *cache;
  /* What `processes` of them run together, as number `process` of these: of n_devices, of which each has as many, only
   * this one's are prepared, and no other is opened. The executable joins their network (xlac_network.h) before its
   * first call. 0: this process has all devices, or shares them in another way. */
  uint32_t process, processes;
} xlac_compile_options;

enum { XLAC_COMPILE_COPY, XLAC_COMPILE_PASSES, XLAC_COMPILE_PLAN, XLAC_COMPILE_STAGES };

typedef struct xlac_executable_info {
  /* Bytes a call needs beside arguments, results and constants: one block, and what of it is in use at most. */
  int64_t frame_bytes, peak_bytes;
  int64_t argument_bytes, result_bytes, constant_bytes;
  uint32_t n_steps, n_kernels, n_routines; /* routines: products, convolutions, sorts, ... */
  uint32_t n_interpreted;                  /* steps that are one op by the interpreter */
  const char *interpreted;                 /* why the interpreter runs the whole program; NULL: it does not. Static */
  const char *blas; /* what the library that its products use says of itself; "": they need none, or there is none */
  uint32_t n_donations;            /* arguments that may be donated: xlac_executable_donation */
  uint32_t n_arguments, n_results; /* leaves (arrays and tokens) of all parameters and of the result */
  uint64_t work; /* elements that a call goes through, roughly; UINT64_MAX where that is not known before it runs */
  double seconds[XLAC_COMPILE_STAGES];
  xlac_numerics numerics;
} xlac_executable_info;

/* Compiles a copy of m, which is verified as leniently as XLA. Results are those of xlac_interpret; sums and products
 * of floats are associated in another order, and XLAC_NUMERICS_FAST allows more. options may be NULL. */
int xlac_compile(xlac_module *m, const xlac_compile_options *options, xlac_executable **out, xlac_error *err);
void xlac_executable_destroy(xlac_executable *exe); /* while nobody runs it; NULL is fine */
/* Compiles up to a stage, and gives as text what that leaves: "translated", "prepared" or "optimised" (the module),
 * "fused" (which ops are one kernel, and why), "kernels", "programs" (of called computations), "plan", "executable"
 * (what the device runs). Freed with xlac_free; n may be NULL. BAD_ARGUMENT: there is no such stage. */
int xlac_compile_dump(xlac_module *m, const xlac_compile_options *options, const char *stage, char **text, size_t *n,
                      xlac_error *err);
/* What the cache would know the program by if it were compiled so: lines of a word and its value, at last the entry's
 * file. Freed with xlac_free; n may be NULL. BAD_ARGUMENT where there is no cache, or it can't hold the program. */
int xlac_cache_key(xlac_module *m, const xlac_compile_options *options, char **text, size_t *n, xlac_error *err);
/* What came of the cache: "hit", "stored", "" where there is none, else a sentence. Borrowed. */
const char *xlac_executable_cache(const xlac_executable *exe);
/* The device that runs it: the interpreter where that runs the program whole. */
void xlac_executable_device(const xlac_executable *exe, xlac_device_info *out);
/* Where results of calls on buffers lie; NULL: on the host, as whole arrays of programs for several devices do. */
const xlac_device *xlac_executable_memory(const xlac_executable *exe);
/* As xlac_interpret. */
int xlac_executable_run(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                        xlac_value *const *args, xlac_value **out, xlac_error *err);
/* An argument that may be donated: its memory can then be that of a result of its size, which is the same pointer.
 */
typedef struct xlac_donation {
  uint32_t argument, result; /* leaves, counted over all parameters and over the result; result is UINT32_MAX where none
                                takes the argument's memory */
  bool must;                 /* the module says must-alias */
  bool in_place;             /* the result is computed over the argument; else it is copied there at the end */
} xlac_donation;
/* Number `index`; false past the end. */
bool xlac_executable_donation(const xlac_executable *exe, uint32_t index, xlac_donation *out);
/* What becomes of donation `index`, or why nothing does: "live later: s reads it after ...". With UINT32_MAX, a line
 * for each argument that is or could be donated. Freed with xlac_free; n may be NULL. Fails past the end. */
int xlac_executable_explain_donation(const xlac_executable *exe, uint32_t index, char **text, size_t *n,
                                     xlac_error *err);

/* The same on bare memory, without allocating anything: a pointer for each leaf of the parameters, depth first, and for
 * each leaf of the result, which are written. All is row-major and dense. Results are aligned to their elements and
 * overlap neither each other nor an argument, but that the result of a donation may be the memory of its argument.
 * Fails on programs whose shapes are known only when they run. */
int xlac_executable_call(const xlac_executable *exe, const xlac_interpret_options *options, void *const *arguments,
                         void *const *results, xlac_error *err);
/* An argument array as stored. */
typedef struct xlac_argument {
  void *data;             /* of the element of index 0 */
  const int64_t *strides; /* in bytes, as many as the leaf has dimensions; NULL: row-major and dense */
  bool given;             /* the caller needs what is in it no more, and gives it to no result: temporaries lie there */
} xlac_argument;
/* xlac_executable_call with such arguments. What has strides is read in place, by a plan for that layout which is
 * made at first sight; where that can't be (after eight layouts, inside tuples, pred and types narrower than a byte,
 * elements at several indexes), it is copied, and the executable's counters count that. */
int xlac_executable_call_at(const xlac_executable *exe, const xlac_interpret_options *options,
                            const xlac_argument *arguments, void *const *results, xlac_error *err);
/* How many bytes of argument `leaf` a call would use for temporaries if it were donated: 0 where a result takes it,
 * or none lies there. */
int64_t xlac_executable_spare(const xlac_executable *exe, uint32_t leaf);
/* The program as it was compiled, after the passes: borrowed, not to be edited. */
xlac_module *xlac_executable_module(xlac_executable *exe);
/* Type and name of a parameter, borrowed; NULL past the end. name may be NULL. */
const xlac_type *xlac_executable_param(const xlac_executable *exe, uint32_t index, const char **name);
const xlac_type *xlac_executable_result(const xlac_executable *exe);
void xlac_executable_get(const xlac_executable *exe, xlac_executable_info *out);
/* Fills err with what a call takes, and its largest values, for a caller who has no memory for the results. Returns
 * OUT_OF_MEMORY's negative code. */
int xlac_executable_out_of_memory(const xlac_executable *exe, xlac_error *err);
/* Pass number `index` of those that were run before planning, and the seconds it took; false past the end. *name is
 * static. */
bool xlac_executable_pass(const xlac_executable *exe, uint32_t index, const char **name, double *seconds);
/* xlac_executable_run, and the times of all steps as JSON (docs/executor.md), freed with xlac_free. */
int xlac_executable_profile(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                            xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err);
/* The same without a clock, as xlac_executable_run does it: of the JSON only what ran counts. */
int xlac_executable_count(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                          xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err);
/* The same while async operations run on their lanes: what went on when, and where. */
int xlac_executable_timeline(const xlac_executable *exe, const xlac_interpret_options *options, uint32_t n_args,
                             xlac_value *const *args, xlac_value **out, char **json, size_t *n, xlac_error *err);
/* Lane number `index`, borrowed; false past the end. Programs without async operations have none. */
bool xlac_executable_lane(const xlac_executable *exe, uint32_t index, xlac_lane *out);
/* The executable as *n bytes, freed with xlac_free: the program after the passes, and how it was planned, with a
 * version and a checksum. Custom calls are kept by name only. Of several devices it is what was compiled, which is
 * partitioned again when it is loaded. */
int xlac_executable_serialize(xlac_executable *exe, char **bytes, size_t *n, xlac_error *err);
/* The other way round. Refuses, with the code BAD_EXECUTABLE, what is cut short, damaged, or of another format;
 * whatever passes is verified like any program. Of the options threads, blas_path and runtime count; threads 0: as
 * serialized. numerics stay what they were. */
int xlac_executable_load(const void *bytes, size_t n, const xlac_compile_options *options, xlac_executable **out,
                         xlac_error *err);
/* Why ops are in one kernel or not, a line an op; freed with xlac_free. n may be NULL. */
int xlac_executable_fusion(const xlac_executable *exe, char **text, size_t *n, xlac_error *err);
/* What one call costs, by shapes alone: an elementwise op is one flop an element, a product two; elementary functions
 * count apart; bytes are those of steps, caches aside. A loop's condition and body count once, because its trip
 * count is unknown; of a conditional the most expensive branch. Of several devices, each one's. All 0 where the
 * interpreter runs the program whole. */
typedef struct xlac_cost {
  double flops, transcendentals, bytes_read, bytes_written;
} xlac_cost;
int xlac_executable_cost(const xlac_executable *exe, xlac_cost *out, xlac_error *err);
/* The plan as JSON: programs, their buffers and steps with what they cost (docs/executor.md); freed with xlac_free. n
 * may be NULL. */
int xlac_executable_report(const xlac_executable *exe, char **json, size_t *n, xlac_error *err);
/* Proves, from the plan alone, that no step writes over what is still to be read, and that results take the memory of
 * arguments only when nobody reads those any more. Fails with INTERNAL where that is not so: a fault of xlac's. */
int xlac_executable_check(const xlac_executable *exe, xlac_error *err);
/* The plan, a line a step; freed with xlac_free. n may be NULL. */
int xlac_executable_plan(const xlac_executable *exe, char **text, size_t *n, xlac_error *err);
/* All kernels of the plan in the text form below, each after a comment with its step; freed with xlac_free. n may be
 * NULL. */
int xlac_executable_kernels(const xlac_executable *exe, char **text, size_t *n, xlac_error *err);

/* --- programs on many devices: executables compiled with n_devices --- */

/* How many devices run it, at once and in this process: device = replica * partitions + partition. All 0 where it was
 * not compiled for many. */
typedef struct xlac_group {
  uint32_t n_devices, n_arguments, n_results; /* of leaves, as xlac_executable_info has them */
  int64_t replicas, partitions;
} xlac_group;
void xlac_executable_group(const xlac_executable *exe, xlac_group *out);

/* Custom calls of `from` that their shardings put on one device (maximal) are called `to`: in a program of many devices
 * all come to such a call, and who implements it can tell it from those that are each device's own. */
int xlac_module_name_single_calls(xlac_module *m, const char *from, const char *to, xlac_error *err);
/* The program of each device, after the passes: borrowed, not to be edited. NULL where it was not compiled for many. */
xlac_module *xlac_executable_local(xlac_executable *exe);

/* What one device has of an argument or result. Lists are of `rank` numbers, borrowed from the executable. */
typedef struct xlac_shard {
  uint32_t dtype, rank;
  const int64_t *whole, *dims, *start; /* sizes of the whole array and of the shard; where in the whole it begins */
  int64_t bytes;
  bool first;             /* no device before this one has the same part */
  bool contiguous;        /* it is one block of the whole */
  uint32_t n_parts, part; /* which of so many arrays it is that are added up to the whole; 1, 0: it has all of it */
  char how;               /* '+', or the largest '>' or the smallest '<' of them */
} xlac_shard;
/* Of leaf `leaf` of the arguments, or of the results. False past the end, for tokens, and where there are no shards. */
bool xlac_executable_shard(const xlac_executable *exe, bool result, uint32_t leaf, uint32_t device, xlac_shard *out);
/* In whose memory calls with shards have those of device `device` best; they may lie on the host all the same. NULL: on
 * the host; it is another process's; there are no shards. Borrowed from the executable. */
const xlac_device *xlac_executable_shard_memory(const xlac_executable *exe, uint32_t device);
/* xlac_executable_call with shards, dense and row-major: n_arguments pointers for device 0, those for device 1, and so
 * on; the same of results. Devices may share the shards of an argument, and those that have the same part may share
 * that of a result: it is written once. Else results overlap nothing, but that of a donation
 * (xlac_executable_shard_donation) the argument's of the same device, which nobody else has then.
 * BAD_ARGUMENT: it is not for many devices. PARTICIPANTS: devices wait for one another. */
int xlac_executable_call_shards(const xlac_executable *exe, const xlac_interpret_options *options,
                                void *const *arguments, void *const *results, xlac_error *err);
/* As xlac_executable_donation, for calls with shards. That function says it for whole arrays, of which fewer can be
 * donated: none that several devices read. */
bool xlac_executable_shard_donation(const xlac_executable *exe, uint32_t index, xlac_donation *out);
/* What partitioning came to, as JSON (docs/executor.md): ops that every device computes whole, why, and what would
 * help; what moves between devices; how arguments and results are cut. Freed with xlac_free; n may be NULL.
 * BAD_ARGUMENT: it is not for many devices. */
int xlac_executable_sharding(const xlac_executable *exe, char **json, size_t *n, xlac_error *err);

/* What each of options->n_devices devices would run, partitioned by the program's shardings and planned as by
 * xlac_compile, but never made: for up to 2^20 devices, in time and memory that follow the program. passes: a pipeline
 * to run after the usual ones, such as async-collective-creator,latency-hiding-scheduler; NULL: none. *local: the
 * program of one device, the caller's to destroy; its permutations and tables by device are those of one group, so it
 * is to be looked at and not to be run. *json, freed with xlac_free: {"sharding", "collectives", "donations",
 * "plan"} (docs/executor.md). BAD_ARGUMENT: it has no plan (sizes that are known only when it runs), or a bad number of
 * devices. */
int xlac_rehearse(xlac_module *m, const xlac_compile_options *options, const char *passes, xlac_module **local,
                  char **json, size_t *n, xlac_error *err);

/* --- kernels alone: what a fusion becomes, as text (docs/executor.md) --- */

/* Reads a kernel of n bytes, verifies it, and gives its text as the library writes it; freed with xlac_free. out_n may
 * be NULL. Errors have line and column. */
int xlac_kernel_text(const char *text, size_t n, char **out, size_t *out_n, xlac_error *err);
/* Memory of a kernel's run: arrays by number, their sizes in bytes. Outputs overlap neither each other nor an input. */
typedef struct xlac_kernel_call {
  uint32_t n_in, n_out;
  const void *const *in;
  const int64_t *in_bytes;
  void *const *out;
  const int64_t *out_bytes;
  uint32_t threads; /* up to 1: the caller's alone */
  bool reference;   /* one iteration after another, instead of the vector VM */
} xlac_kernel_call;
/* Reads, verifies and runs a kernel. What would read or write outside of an array is refused with BAD_ARGUMENT. */
int xlac_kernel_run(const char *text, size_t n, const xlac_kernel_call *call, xlac_error *err);

/* What one participant of a parallel run does. */
typedef struct xlac_program {
  const char *name; /* of a computation of the module; NULL: the entry */
  uint32_t n_args;
  xlac_value *const *args;
  uint32_t n_infeed; /* what its infeeds take, in order */
  xlac_value *const *infeed;
} xlac_program;

/* Runs replicas x partitions participants in lock step, each on a thread of its own, that meet in collectives, send and
 * receive. programs and results have one element for each participant, (0, 0), (0, 1), ...; so has outfeeds, which may
 * be NULL: tuples of what was fed out. Values are borrowed, results the caller's. The first participant that fails ends
 * the run; when all that are left wait for one another, the error says who waits where. options->interrupted is called
 * on the calling thread; replica and partition are ignored. */
int xlac_run_parallel(xlac_module *m, const xlac_interpret_options *options, int64_t replicas, int64_t partitions,
                      const xlac_program *programs, xlac_value **results, xlac_value **outfeeds, xlac_error *err);

/* --- counters: what is alive, and what happened where arrays come in and go out --- */

/* A set of counts. Reference counted; thread-safe. Where a function takes one, NULL counts nothing. */
typedef struct xlac_counters xlac_counters;

/* The names that xlac_counter_name gives are these in lower case, without the prefix. */
typedef enum xlac_counter {
  XLAC_COUNT_LIVE_BUFFERS, /* not deleted, with the next their bytes */
  XLAC_COUNT_LIVE_BYTES,
  XLAC_COUNT_LIVE_VIEWS, /* of buffers */
  XLAC_COUNT_ARRAYS_IN,  /* taken where they are, and their bytes */
  XLAC_COUNT_BYTES_IN,
  XLAC_COUNT_COPIES_IN, /* arrays that had to be copied on the way in, and their bytes */
  XLAC_COUNT_BYTES_COPIED_IN,
  XLAC_COUNT_ARRAYS_OUT, /* views handed out, and their bytes */
  XLAC_COUNT_BYTES_OUT,
  XLAC_COUNT_COPIES_OUT,
  XLAC_COUNT_BYTES_COPIED_OUT,
  XLAC_COUNT_DLPACK_IMPORTS,
  XLAC_COUNT_DLPACK_EXPORTS,
  XLAC_COUNT_TAKEN, /* buffers whose memory was taken (donated), and their bytes */
  XLAC_COUNT_BYTES_TAKEN,
  XLAC_COUNT_COPIES_PLAN, /* by compiled programs, because the plan says so; of more than 32 KB, and their bytes */
  XLAC_COUNT_BYTES_COPIED_PLAN,
  XLAC_COUNT_COPIES_PROTECTION, /* of arguments that a program would change, had they not been lent only */
  XLAC_COUNT_BYTES_COPIED_PROTECTION,
  XLAC_COUNT_REUSED, /* results in the memory of arguments */
  XLAC_COUNT_BYTES_REUSED,
  XLAC_COUNTERS
} xlac_counter;

int xlac_counters_create(xlac_counters **out, xlac_error *err);
xlac_counters *xlac_counters_retain(xlac_counters *c);
void xlac_counters_release(xlac_counters *c); /* NULL is fine */
void xlac_counters_add(xlac_counters *c, uint32_t counter, int64_t n);
int64_t xlac_counters_get(const xlac_counters *c, uint32_t counter);
/* Sets all to 0 but those of what is alive. */
void xlac_counters_reset(xlac_counters *c);
/* "live_buffers"; NULL past the end. Static. */
const char *xlac_counter_name(uint32_t counter);

/* --- buffers: arrays in memory, with strides, that may be borrowed, shared and donated --- */

/* Its shape never changes; its memory may be taken once. Reference counted, released with xlac_buffer_release.
 * Thread-safe: all functions, from any thread. */
typedef struct xlac_buffer xlac_buffer;

/* Memory and who is told when it is needed no more: release(ctx), from any thread; NULL: nobody. */
typedef struct xlac_memory {
  void *data; /* of the element of index 0 */
  void (*release)(void *ctx);
  void *ctx;
} xlac_memory;

typedef struct xlac_layout {
  uint32_t dtype, rank;
  const int64_t *dims;
  const int64_t *strides;    /* in bytes, may be 0 or negative; NULL: row-major and dense */
  bool readonly;             /* nobody may write through this buffer */
  const xlac_device *device; /* whose memory it is; NULL: the host's */
} xlac_layout;

typedef struct xlac_buffer_info {
  uint32_t dtype, rank;
  const int64_t *dims;
  /* Never NULL but for rank 0. Those of dimensions of 1, or of an empty array, are as if it were dense. */
  const int64_t *strides;
  const int64_t *steps; /* the strides in elements; NULL where they are not whole numbers */
  void *data;           /* NULL once deleted, and where an empty array has none */
  int64_t count;
  size_t bytes; /* count elements; a strided array lies in more */
  bool dense;   /* row-major without gaps */
  bool aligned; /* data and strides are multiples of the element's natural alignment */
  bool readonly, deleted;
  uint32_t views;
  const xlac_device *device; /* NULL: data is the host's to read */
} xlac_buffer_info;

/* A dense one, aligned to 64 bytes, with memory of the runtime's; the contents are undefined. */
int xlac_buffer_create(xlac_buffer **out, xlac_runtime *rt, xlac_counters *counters, uint32_t dtype, uint32_t rank,
                       const int64_t *dims, xlac_error *err);
/* One on memory of another owner, who keeps it on failure. Fails where strides lead out of the address space. */
int xlac_buffer_wrap(xlac_buffer **out, xlac_counters *counters, const xlac_layout *layout, const xlac_memory *memory,
                     xlac_error *err);
/* A dense copy of what b holds. Large ones are made by the runtime's threads. */
int xlac_buffer_copy(xlac_buffer **out, xlac_runtime *rt, xlac_buffer *b, xlac_error *err);
/* A dense one in d's memory; NULL is refused. */
int xlac_buffer_create_on(xlac_buffer **out, const xlac_device *d, xlac_counters *counters, uint32_t dtype,
                          uint32_t rank, const int64_t *dims, xlac_error *err);
/* A dense copy on `to` (NULL: the host), wherever b is. xlac_buffer_copy's is where b is. */
int xlac_buffer_copy_on(xlac_buffer **out, const xlac_device *to, xlac_runtime *rt, xlac_buffer *b, xlac_error *err);
/* Says that streams of other libraries may use b's memory: it is freed when all of them are done. */
void xlac_buffer_share(xlac_buffer *b);
/* Into memory of the caller's: info.bytes of them, that don't overlap with b's. rt may be NULL: one thread. */
int xlac_buffer_copy_to(xlac_buffer *b, xlac_runtime *rt, void *to, xlac_error *err);
xlac_buffer *xlac_buffer_retain(xlac_buffer *b);
void xlac_buffer_release(xlac_buffer *b); /* NULL is fine */
/* Borrowed pointers live as long as b; data is sure to stay only while a view is open. */
void xlac_buffer_get(xlac_buffer *b, xlac_buffer_info *out);
/* Opens a view: until it is closed the memory stays where it is, and b alive. Fails with the code BUFFER_DELETED. */
int xlac_buffer_open(xlac_buffer *b, xlac_error *err);
void xlac_buffer_close(xlac_buffer *b);
/* Takes b's memory, which is the caller's from now on, to write to and to release; b counts as deleted. Of several
 * threads one succeeds. Fails with the codes BUFFER_DELETED, BUFFER_VIEWED (while views are open) and BUFFER_READONLY.
 */
int xlac_buffer_take(xlac_buffer *b, xlac_memory *out, xlac_error *err);
/* Undoes a take: for the taker, who has not written to it. */
void xlac_buffer_give_back(xlac_buffer *b);
/* For the taker, once: where that was ("step.py:12"), for the errors of later uses. Copied; may be lost for want of
 * memory. */
void xlac_buffer_taken_by(xlac_buffer *b, const char *where);
/* Releases the memory now. Fails as taking does, but read-only ones can be deleted too. */
int xlac_buffer_delete(xlac_buffer *b, xlac_error *err);

/* --- auto-clustering of TensorFlow graphs: which nodes XLA would compile together --- */

/* How the bytes of a graph are written. */
typedef enum xlac_graph_format {
  XLAC_GRAPH_AUTO = 0,  /* text where the bytes look like text, else a message */
  XLAC_GRAPH_PROTO = 1, /* a serialized GraphDef */
  XLAC_GRAPH_TEXT = 2   /* its text (.pbtxt) */
} xlac_graph_format;

/* When nodes on a device are clustered (XlaOpRegistry::AutoclusteringPolicy). */
typedef enum xlac_autoclustering_policy {
  XLAC_CLUSTER_IF_ENABLED_GLOBALLY = 0,
  XLAC_CLUSTER_IF_EXPLICITLY_REQUESTED = 1,
  XLAC_CLUSTER_ALWAYS = 2
} xlac_autoclustering_policy;

/* How XLA compiles for a type of devices (XlaOpRegistry::DeviceRegistration). */
typedef struct xlac_device_registration {
  const char *type;               /* "TPU": the part of devices' names before the number */
  const char *compilation_device; /* "XLA_CPU_JIT" or "XLA_GPU_JIT": whose kernels count */
  xlac_autoclustering_policy autoclustering_policy;
  bool cluster_resource_variable_ops_unsafely, cluster_stack_ops, cluster_tensor_array_ops, cluster_stateful_rng_ops;
  bool cluster_control_trigger, elide_assert_and_checknumerics, cluster_variant_ops, cluster_slow_ops;
  bool cluster_inaccurate_ops;
} xlac_device_registration;

/* TensorFlow's own registrations by number, with tf_xla_cpu_global_jit; false past the end. Texts are constant. */
bool xlac_cluster_device(uint32_t index, xlac_device_registration *out);

/* TensorFlow's flags (tf_xla_...) and session options under their names. Initialise with xlac_cluster_flags_init. */
typedef struct xlac_cluster_flags {
  int64_t min_cluster_size, max_cluster_size;
  int64_t clustering_fuel;               /* candidates to accept at most */
  int64_t auto_jit, auto_jit_single_gpu; /* 0: unset, the session's level counts */
  int64_t global_jit_level;              /* the session's: -1 off, 0 default (off), 1, 2 */
  const char *ops_to_cluster;            /* names of ops and categories with commas between; "": any */
  const char *cluster_exclude_ops;       /* "" or "Where" */
  const char *session_name;              /* begins the clusters' names; "": "cluster" */
  const char *default_device;            /* of nodes that ask for none */
  bool cpu_global_jit, session_cpu_global_jit, deterministic_cluster_names;
  bool disable_deadness_safety_checks_for_debugging, disable_resource_variable_safety_checks_for_debugging;
  bool clone_constants;                    /* run CloneConstantsForBetterClusteringPass first */
  bool cluster_scoping;                    /* run ClusterScopingPass before */
  bool partially_decluster;                /* run PartiallyDeclusterPass after */
  const xlac_device_registration *devices; /* n_devices of them; they win over TensorFlow's own of the same type */
  size_t n_devices;
} xlac_cluster_flags;
/* TensorFlow's defaults, but with clustering on: level 1 and cpu_global_jit. */
void xlac_cluster_flags_init(xlac_cluster_flags *flags);

/* A clustered graph. Destroy with xlac_clusters_destroy. Thread-compatible: one thread at a time. */
typedef struct xlac_clusters xlac_clusters;
typedef struct xlac_clustered_node {
  const char *name, *op, *device; /* borrowed from the clusters; device may be NULL */
  const char *cluster;            /* NULL: in none */
  const char *scope;              /* given by ClusterScopingPass; NULL for none */
  uint64_t deadness;              /* equal numbers: alive at the same times; 0 where that was not looked at */
  bool candidate;
} xlac_clustered_node;
typedef struct xlac_graph_edge {
  uint32_t src, dst;             /* nodes by number */
  int32_t src_output, dst_input; /* -1 for control edges */
} xlac_graph_edge;

/* Reads the n bytes of a GraphDef and clusters it as TensorFlow 2.21 does. flags may be NULL. Errors name the node. */
int xlac_cluster_graph(xlac_clusters **out, const void *bytes, size_t n, xlac_graph_format format,
                       const xlac_cluster_flags *flags, xlac_error *err);
void xlac_clusters_destroy(xlac_clusters *c);
/* What reading the bytes, making the graph and the passes took. */
typedef struct xlac_cluster_times {
  double read_seconds, import_seconds, cluster_seconds;
} xlac_cluster_times;
void xlac_clusters_times(const xlac_clusters *c, xlac_cluster_times *out);
/* Nodes by number, in TensorFlow's order: 0 is the source, 1 the sink. false past the end. */
bool xlac_clusters_node(const xlac_clusters *c, uint32_t number, xlac_clustered_node *out);
/* Edges by number. false past the end. */
bool xlac_clusters_edge(const xlac_clusters *c, uint32_t number, xlac_graph_edge *out);
/* When a node is alive, as a formula over switches: "#true", "*p:0". The text is the caller's: xlac_free. */
int xlac_clusters_deadness(const xlac_clusters *c, uint32_t number, char **text, size_t *n, xlac_error *err);
/* Ordered pairs of nodes whose uses of resources may not be in one cluster, on any device: *pairs (xlac_free) has 2 *
 * *n numbers of nodes. */
int xlac_clusters_unsafe_pairs(const xlac_clusters *c, uint32_t **pairs, size_t *n, xlac_error *err);
/* Why the node of that name is in its cluster or in none; why two nodes are not in one. The text is the caller's. */
int xlac_clusters_why(xlac_clusters *c, const char *node, char **text, size_t *n, xlac_error *err);
int xlac_clusters_why_not(xlac_clusters *c, const char *a, const char *b, char **text, size_t *n, xlac_error *err);
/* The graph with the clusters' marks (_XlaCluster, _XlaAlreadyClustered). The bytes are the caller's: xlac_free. */
int xlac_clusters_write(const xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n, xlac_error *err);
/* The same with nodes named by their cluster ("cluster_0/a", "varhandle/v", "unclustered/x"), for viewers of graphs. */
int xlac_clusters_write_annotated(const xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n,
                                  xlac_error *err);
/* The graph with each cluster as a function of its library, and a node that calls it: _XlaCompiledKernel,
 * _XlaNumConstantArgs, _XlaNumResourceArgs. Arguments are those that must be constants, others, resources. */
int xlac_clusters_write_encapsulated(xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n,
                                     xlac_error *err);
/* A GraphDef's text as a message, or the other way round. */
int xlac_graph_convert(const void *bytes, size_t n, xlac_graph_format from, xlac_graph_format to, char **out,
                       size_t *n_out, xlac_error *err);
/* The ops XLA compiles, one a line with tabs between: name, element types on CPUs, on GPUs, inputs that must be
 * constants, use of resources, categories. The text is the caller's. */
int xlac_cluster_op_list(char **text, size_t *n, xlac_error *err);

/* --- running clustered graphs: clusters compiled, the rest node by node --- */

/* The variables of a clustered graph, and what its steps share. Functions of sessions and of their steps lock the
 * clusters: any thread, one at a time. The clusters must outlive it, and not be asked anything while a step runs.
 * Destroy with xlac_session_destroy, after its steps. */
typedef struct xlac_session xlac_session;
/* One way to run the graph: from some feeds to some fetches. */
typedef struct xlac_step xlac_step;

typedef struct xlac_session_options {
  uint32_t struct_size;  /* sizeof(xlac_session_options) */
  uint32_t threads;      /* 0: as many as there are CPUs to use */
  const char *blas_path; /* of an OpenBLAS; NULL: the usual names */
  bool no_blas;
  xlac_numerics numerics;
  xlac_runtime *runtime; /* NULL: one of its own */
  bool compile_at_once;  /* clusters are compiled for each signature when it is first seen. Else by TensorFlow's lazy
                            policy: the first run, then a signature's second; never again once 10 compilations have
                            had less than 50 runs each. Until then, and then, a cluster runs node by node */
  bool always_defer;     /* clusters are never compiled */
  uint64_t seed;         /* of random ops without seeds; 0: from the system */
} xlac_session_options;

/* options may be NULL. */
int xlac_session_create(xlac_session **out, xlac_clusters *c, const xlac_session_options *options, xlac_error *err);
void xlac_session_destroy(xlac_session *s);
/* Variable number `number`, in the order in which steps met them: *name lives as long as the clusters, *value is the
 * caller's copy, NULL where it has none; value may be NULL. Fails with the code BAD_ARGUMENT past the end. */
int xlac_session_variable(xlac_session *s, uint32_t number, const char **name, xlac_value **value, xlac_error *err);
uint32_t xlac_session_variable_count(xlac_session *s);
/* Sets a variable to a copy of `value`; makes it where no step has met it yet. */
int xlac_session_set_variable(xlac_session *s, const char *name, const xlac_value *value, xlac_error *err);

/* Prunes the graph to what the fetches and targets need. Feeds and fetches are "node" or "node:output", targets are
 * nodes that shall run, whatever they give. Errors name what is not there. */
int xlac_step_create(xlac_step **out, xlac_session *s, uint32_t n_feeds, const char *const *feeds, uint32_t n_fetches,
                     const char *const *fetches, uint32_t n_targets, const char *const *targets, xlac_error *err);
void xlac_step_destroy(xlac_step *step);
/* What feed number `index` takes; false past the end. */
bool xlac_step_feed(const xlac_step *step, uint32_t index, const char **name, uint32_t *dtype);
/* One call. args: borrowed, one for each feed, arrays of its element type, dense; they are not copied unless a variable
 * or a fetch would be one. results: one for each fetch, the caller's. When it fails (errors name the node), or is
 * interrupted, variables and random generators are as they were. options may be NULL; of them, interrupted, registry
 * and seed count. */
int xlac_step_run(xlac_step *step, const xlac_interpret_options *options, xlac_value *const *args, xlac_value **results,
                  xlac_error *err);
/* What was run, compiled, and fallen back and why, as JSON: by cluster and node. The text is the caller's. */
int xlac_step_report(xlac_step *step, char **json, size_t *n, xlac_error *err);
/* An input of a graph that is lowered: of a node without inputs of its own that has one output (a Placeholder, a
 * VarHandleOp). */
typedef struct xlac_graph_input {
  const char *tensor; /* "x" or "x:0" */
  uint32_t dtype, rank;
  const int64_t *dims;
  const void *data; /* row-major, where the value is known when the graph is lowered; else NULL */
  bool variable;    /* the handle of a variable, of whose value dtype and dims are */
  bool unset;       /* a variable that has no value yet: dtype and dims are not looked at */
} xlac_graph_input;
/* The part of a GraphDef that computes the fetches ("y", "y:1") and writes variables, as StableHLO: a module whose main
 * takes the inputs that it uses and that have no data, and gives the fetches, then the variables' new values. *report
 * says which is which, as JSON with the lists "parameters", "results" and "updates" of tensors' names; the caller's, as
 * *out is. Shapes are static; what a shape depends on must be known (constants, shapes, inputs with data): the error
 * has the code LOWER and names the node. Thread-safe. Source: TensorFlow 2.21's ops. */
int xlac_graph_lower(xlac_module **out, const void *bytes, size_t n, xlac_graph_format format, uint32_t n_inputs,
                     const xlac_graph_input *inputs, uint32_t n_fetches, const char *const *fetches, char **report,
                     size_t *n_report, xlac_error *err);
/* Whether the TensorFlow op of that name can be lowered. */
bool xlac_graph_has_lowering(const char *op);

/* --- calls on buffers --- */

/* The arguments of one call, a buffer for each leaf of the parameters: lent, or donated (XLA: ExecutionInput). It
 * belongs to one thread at a time, and refers to the executable. Destroy with xlac_input_destroy, which also undoes
 * what was not run: what is borrowed is let go, and what was donated is its buffer's again. */
typedef struct xlac_input xlac_input;

/* Fails on programs that the interpreter runs whole. */
int xlac_input_create(xlac_input **out, const xlac_executable *exe, xlac_error *err);
void xlac_input_destroy(xlac_input *in); /* NULL is fine */
/* b's memory is read by the run and stays as it is; until then a view of it is open. Any strides will do. */
int xlac_input_lend(xlac_input *in, uint32_t leaf, xlac_buffer *b, xlac_error *err);
/* b's memory is taken now (of several threads one succeeds: xlac_buffer_take has the codes). In the run it becomes that
 * of the result that the program says (xlac_executable_donation), else room for temporaries; then it is released. Fails
 * with DONATION_UNUSABLE where b is not dense and aligned. */
int xlac_input_donate(xlac_input *in, uint32_t leaf, xlac_buffer *b, xlac_error *err);
/* Runs the program and fills results, one for each leaf of the result (NULL for tokens), the caller's. Then `in` is as
 * new. When it fails before the program runs, what was donated is its buffer's again; when the program fails, it is
 * gone. Thread-safe: any thread may run any input. */
int xlac_executable_run_input(const xlac_executable *exe, const xlac_interpret_options *options, xlac_input *in,
                              xlac_buffer **results, xlac_error *err);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
