/* MLIR text and bytecode: readers and printers of modules in MLIR form. The face of text/mlir/ and text/bytecode/ to
 * the other rooms.
 *
 * Nothing is kept between calls; different modules may be read and printed by several threads at once, and one
 * module may be printed by several. Functions return 0, or a negative code with *err filled. Errors in text have
 * line and column, those in bytecode the offset. */
#ifndef XLAC_TEXT_MLIR_MLIR_H
#define XLAC_TEXT_MLIR_MLIR_H

#include "../text.h"

/* NULL in place of options means the usual depth, the C library's allocator and known dialects only. */
typedef struct mlir_parse_options {
  base_alloc alloc;
  uint32_t max_depth;      /* of nesting: text_depth_limit */
  bool allow_unregistered; /* ops of dialects that xlac does not know; their attributes and types are always kept */
} mlir_parse_options;

/* Reads a module, or bare functions, which become the body of an unnamed module. Any bytes; the text need not be
 * terminated. Checks syntax, names (%a, @f), the types of uses, and the kinds of inherent attributes;
 * stablehlo_verify does the rest. Ops of registered dialects that are not known (stablehlo.foo) are errors. Time is
 * linear in n. *out is the caller's, to be destroyed by ir_module_destroy; NULL after a failure. The module does not
 * refer to `text`. */
XLAC_MUST_USE int text_parse_mlir(ir_module **out, const char *text, size_t n, const mlir_parse_options *options,
                                  xlac_error *err);
/* "tensor<2x3xf32>", "!stablehlo.token", ... read whole. */
XLAC_MUST_USE int text_parse_mlir_type(ir_module *m, const char *text, size_t n, const ir_type **out, xlac_error *err);
/* An attribute read whole. */
XLAC_MUST_USE int text_parse_mlir_attr(ir_module *m, const char *text, size_t n, const ir_mattr **out, xlac_error *err);

/* NULL in place of options means the pretty form without locations and with all constants. */
typedef struct mlir_print_options {
  bool generic;        /* MLIR's generic op form, as with mlir-opt --mlir-print-op-generic */
  bool locations;      /* loc(...) on ops and #loc aliases at the end, as with --mlir-print-debuginfo */
  uint32_t elide_over; /* dense_resource<__elided__> for constants of more elements; 0: never */
} mlir_print_options;

/* The text that MLIR's own printer gives for the module, byte for byte. Nonzero only when out of memory. Any module
 * in MLIR form can be printed, verified or not; an op that its pretty form can't say is printed generically. */
XLAC_MUST_USE int text_print_mlir(base_text *out, const ir_module *m, const mlir_print_options *options,
                                  xlac_error *err);
/* Names of values are those of the whole function's text. */
XLAC_MUST_USE int text_print_mlir_op(base_text *out, const ir_op *op, const mlir_print_options *options,
                                     xlac_error *err);
/* Calls fn with the name, "%3#1", that printing the module gives each value, as long as it returns 0: in the order of
 * the text, but for an op's results, which come before the values of its regions. Names are unique within a region and
 * those around it: functions use them again, and so do regions side by side. */
typedef int text_name_fn(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err);
XLAC_MUST_USE int text_name_mlir_values(const ir_module *m, text_name_fn *fn, void *ctx, xlac_error *err);
/* For messages and other printers: they append, and being out of memory shows in out->failed only. */
void text_put_mlir_type(base_text *out, const ir_type *t);
void text_put_mlir_attr(base_text *out, const ir_mattr *a);

typedef struct bytecode_parse_options {
  base_alloc alloc;
  uint32_t max_depth; /* text_depth_limit */
} bytecode_parse_options;

/* Whether the bytes begin with MLIR bytecode's magic. */
bool text_is_bytecode(const void *bytes, size_t n);
/* Reads a portable artifact (VHLO 0.9.0 to 1.20.0 in MLIR bytecode 0 to 6) to StableHLO in MLIR form. Errors name
 * the offset; a newer version names itself and what to do. Ops of VHLO become those of StableHLO of today, as the
 * upgrade passes of StableHLO make them. */
XLAC_MUST_USE int text_parse_bytecode(ir_module **out, const void *bytes, size_t n,
                                      const bytecode_parse_options *options, xlac_error *err);
/* Writes a portable artifact of StableHLO version `version` ("1.17.0"; NULL: the newest that jaxlib 0.10.2 reads
 * too).
 *
 * Fails, and names the op or attribute, where the version asked for can't say something. */
XLAC_MUST_USE int text_write_bytecode(base_text *out, const ir_module *m, const char *version, xlac_error *err);

#endif
