/* HLO text: reader and printer, the face of text/hlo/ to the other rooms. MLIR's is mlir/mlir.h, that of
 * HloModuleProto proto/proto.h.
 *
 * Readers and printers keep no state between calls and may run on several threads at once, on different modules.
 * Printing does not change a module, so that several threads may print one. Functions return 0, or a negative code
 * with *err filled: XLAC_E_SYNTAX and its kin with line and column in the text, XLAC_E_TOO_DEEP and XLAC_E_TOO_LARGE
 * for inputs that ask for more than they should, XLAC_E_OUT_OF_MEMORY. Output parameters are written on success
 * only. */
#ifndef XLAC_TEXT_TEXT_H
#define XLAC_TEXT_TEXT_H

#include "../ir/ir.h"

/* The deepest nesting that readers follow, whatever they are asked for: they recurse, and so do those that walk what
 * they have made. 0 asks for the usual depth; more than the maximum is cut down to it without an error. */
enum { TEXT_USUAL_DEPTH = 256, TEXT_MAX_DEPTH = 1024 };
static inline uint32_t text_depth_limit(uint32_t asked) {
  if (asked == 0) return TEXT_USUAL_DEPTH;
  return asked < TEXT_MAX_DEPTH ? asked : TEXT_MAX_DEPTH;
}

/* NULL in place of options means all defaults: the C library's allocator, lenient reading. */
typedef struct text_parse_options {
  base_alloc alloc;
  uint32_t max_depth; /* of nesting: text_depth_limit */
  /* Refuse what XLA's documentation shows or newer XLA has, but XLA 0.10.2's reader refuses: input_output_alias={
   * {}: 0 }, flat async shapes (f32[64], f32[32], s32[]), attributes repeated on updates and dones, atan, shuffle,
   * collective-reduce. */
  bool strict;
  bool chlo;   /* MLIR ops without attributes by their names, as compiled programs have them */
  bool halves; /* complex numbers as they stand: XLA's reader takes a real part that is a NaN for both */
} text_parse_options;

/* Reads a whole module. The text need not be terminated and may hold any bytes. No verification. Time is linear in
 * n; the module's memory is at most ~10 n plus literals that the text spells out. *out is the caller's, to be
 * destroyed by ir_module_destroy; it lives on `alloc` and does not refer to `text`. */
XLAC_MUST_USE int text_parse_hlo(ir_module **out, const char *text, size_t n, const text_parse_options *options,
                                 xlac_error *err);
/* "f32[2,3]{1,0}", "(f32[], s32[2])" and so on, read whole. These two make their result in m's arena and read
 * leniently. */
XLAC_MUST_USE int text_parse_type(ir_module *m, const char *text, size_t n, const ir_type **out, xlac_error *err);
/* "{devices=[2,2]<=[4]}" read whole. */
XLAC_MUST_USE int text_parse_sharding(ir_module *m, const char *text, size_t n, const ir_sharding **out,
                                      xlac_error *err);
/* The value of attribute `key` as it would stand after "key=", read whole; for editing ops from Python. Called
 * computations and control predecessors are set on the op through this too, by name. An op that calls itself or
 * comes before itself is refused (XLAC_E_EDIT). When this fails the op is as it was. */
XLAC_MUST_USE int text_parse_attr(ir_op *op, const char *key, size_t key_n, const char *text, size_t n,
                                  xlac_error *err);

/* The first three read back as the same program; TEXT_FINGERPRINT is for comparing and leaves out what does not
 * count. */
typedef enum text_mode {
  TEXT_DEFAULT,    /* XLA's HloModule::ToString with large constants printed */
  TEXT_SHORT,      /* HloPrintOptions::ShortParsable */
  TEXT_CANONICAL,  /* HloPrintOptions::Canonical */
  TEXT_FINGERPRINT /* HloPrintOptions::Fingerprint */
} text_mode;

/* NULL in place of options means TEXT_DEFAULT and false everywhere. */
typedef struct text_print_options {
  text_mode mode;
  bool elide_large_constants; /* {...} for more than 10 elements, as XLA's own default */
  bool operand_shapes;        /* also write the operands' shapes */
  bool no_metadata;
  bool no_ids;     /* HloPrintOptions::set_print_ids(false) */
  uint32_t indent; /* extra levels of two blanks */
  bool exact;      /* constants read back to the bit, where XLA's own digits do not */
} text_print_options;

/* Fails for a module in HLO form that its text does not hold: compiled programs keep ops and types of StableHLO's that
 * HLO has no text for, and quantised types, which print as what they are stored as. */
XLAC_MUST_USE int text_check_hlo(const ir_module *m, xlac_error *err);
/* The computations in the order of the module where callees come first there, else as they print. This is the order of
 * fingerprints' text and of protos: whoever reads a proto numbers stack frames in it. NULL when out of memory. */
ir_computation **text_module_order(const ir_module *m, base_arena *arena, uint32_t *n);
/* A number of what the module is, whatever its ops, its computations and itself are called and in what order they
 * stand; in the time of printing each computation once. Nonzero only when out of memory. print_fingerprint.c */
XLAC_MUST_USE int text_fingerprint(uint64_t *out, const ir_module *m, xlac_error *err);
/* Near texts differ in all bits. */
uint64_t text_hash(const char *s, size_t n);
/* Nonzero only when out of memory. Appends to out, which also holds what was written before a failure. The canonical
 * modes, which write called computations out at each call, also fail for texts that are too deep or too long. */
XLAC_MUST_USE int text_print_hlo(base_text *out, const ir_module *m, const text_print_options *options,
                                 xlac_error *err);
XLAC_MUST_USE int text_print_computation(base_text *out, const ir_computation *c, const text_print_options *options,
                                         xlac_error *err);
XLAC_MUST_USE int text_print_op(base_text *out, const ir_op *op, const text_print_options *options, xlac_error *err);
/* For messages and other printers: they append, and being out of memory shows in out->failed only. */
void text_put_type(base_text *out, const ir_type *t, bool layouts); /* with the comments every fifth tuple element */
void text_put_sharding(base_text *out, const ir_sharding *s, bool metadata);
/* In XLA's digits; `exact`: in digits that read back to the bit where XLA's do not. */
void text_put_literal(base_text *out, const ir_literal *l, bool exact);
/* What stands after "key=" for this attribute of op. */
void text_put_attr_value(base_text *out, const ir_op *op, const ir_attr *a);

#endif
