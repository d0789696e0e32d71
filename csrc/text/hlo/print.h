/* Internal to the printer: what a run of it carries along. All writers append to p->out and never fail by
 * themselves; the public functions look at out->failed and p->status once, at the end.
 *
 *   text_print_hlo -> text_write_computation -> text_write_op -> text_write_attributes -> text_write_attr_value
 * Names: text_write_* know of the run, text_put_* need nothing but the text to append to. */
#ifndef XLAC_TEXT_HLO_PRINT_H
#define XLAC_TEXT_HLO_PRINT_H

#include "../text.h"

/* Called bodies nest at most this deep in the canonical modes, and the text ends at TEXT_MAX_CANONICAL bytes and
 * TEXT_MAX_PER_OP for each op of the module: every call is written out there, so a short module can stand for a text of
 * any length. */
enum { TEXT_MAX_NESTING = 512, TEXT_MAX_PER_OP = 4096 };
#define TEXT_MAX_CANONICAL ((size_t)1 << 28)

/* One run of the printer. Tables that cover the whole module are made by text_print_hlo; printing one computation or
 * op does without them and looks for callers itself. */
typedef struct text_printer {
  base_text *out;
  const ir_module *module;
  /* What differs between the modes. */
  bool percent, ids, metadata, backend_config, program_shape, control_deps, canonical, bodies, operand_shapes;
  bool index_comments, io_config, full_groups, large_constants, essential_constants, exact;
  bool named;                   /* inside a computation: canonical names stand before ops and as operands */
  uint32_t indent;              /* levels of two blanks */
  uint32_t nesting;             /* of bodies written inside ops */
  size_t start;                 /* out->n at the beginning */
  int status;                   /* the first failure but for memory */
  base_arena arena;             /* orders and tables of this run */
  base_map type_places;         /* type -> place of its text in out */
  struct text_digests *digests; /* what stands for the bodies of computations; NULL: their text */
  uint32_t *canonical_names;    /* by op id: its number plus one, or 0 */
  uint32_t n_canonical;         /* names given out in the computation being printed */
  uint32_t *frames;             /* new row of each row of StackFrames, 0 dropped; NULL: rows keep their numbers */
  struct text_sources *sources; /* the renumbered tables, or NULL */
  uint32_t *callers;            /* by computation id: ops that call it; NULL: not counted */
  bool *fused;                  /* by computation id: called by a fusion; NULL: not looked for */
  bool *inside;                 /* by computation id: stands inside its async start as sugar */
  base_map chains;              /* async op -> its start, low bit set when the chain is sugar */
} text_printer;

/* print_module.c: the header line; what the others look up about callers. */
void text_write_header(text_printer *p, const ir_module *m);
bool text_survey_module(text_printer *p);
/* print_module.c `m` may be any module, or NULL where an attribute is printed alone. text_printer_finish frees what
 * this makes. */
void text_printer_init(text_printer *p, base_text *out, const ir_module *m, const text_print_options *options);
/* How many bytes the canonical modes may print of one module, since bodies are printed wherever they are called. */
size_t text_canonical_limit(const text_printer *p);
XLAC_MUST_USE int text_printer_finish(text_printer *p, xlac_error *err);

/* print_computation.c. A computation prints as scheduled where it is, a body inside an op always in post-order. */
void text_write_computation(text_printer *p, const ir_computation *c);
void text_write_body(text_printer *p, const ir_computation *c);

/* print_sources.c: renumbers the source tables by first use in text order, which sets p->frames, and writes them. */
void text_number_sources(text_printer *p);
void text_write_sources(text_printer *p);

/* print_fingerprint.c: a number in the place of the body. */
void text_write_digest(text_printer *p, const ir_computation *c);

/* print_computation.c */
void text_write_op(text_printer *p, const ir_op *op);
/* With '%' where the mode has it. */
void text_write_name(text_printer *p, const base_istr *name);
void text_write_operand_name(text_printer *p, const ir_op *op);

/* print_extra.c: everything after the operands, each with ", " before it. */
void text_write_attributes(text_printer *p, const ir_op *op);
void text_write_own_attributes(text_printer *p, const ir_op *op);
void text_write_called(text_printer *p, const ir_op *op);

/* print_computation.c. NULL when op is not an async op or its chain is broken. */
const ir_op *text_async_start(text_printer *p, const ir_op *op, bool *is_sugar);

/* print_attr.c */
void text_write_attr_value(text_printer *p, const ir_op *op, const ir_attr *a);
void text_write_metadata(text_printer *p, const ir_metadata *m); /* with its braces */
/* These are used by other printers too, and know nothing of modes. */
void text_put_dict(base_text *out, const ir_dict *d);
void text_put_groups(base_text *out, const ir_groups *g, bool expand);
void text_put_index(base_text *out, const ir_ints *index); /* {1,0} */
void text_put_ints(base_text *out, const int64_t *v, uint32_t n);
void text_put_double(base_text *out, double v); /* six significant digits */

/* print_attr.c */
void text_put_escaped(base_text *out, const char *s, size_t n); /* without quotes */
void text_put_quoted(base_text *out, const base_istr *s);
/* XLA forgets to escape a few strings; this does so only where the text would not read back otherwise. */
void text_put_raw_quoted(base_text *out, const base_istr *s);
bool text_is_json_dict(const char *s, size_t n); /* one braced object and nothing else: printed without quotes */

/* print_sharding.c: "<=[2,4]T(1,0)" in its shortest form. perm may be NULL. */
void text_put_iota(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n);
/* The same without "<="; returns how many dimensions were left, 1 when the list is 0, 1, 2, ... */
uint32_t text_put_iota_dims(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n);

/* print_sharding.c: groups given by mesh axes, in XLA's spelling or, when `expand`, as lists of devices; false, and
 * nothing written, when the text is not understood. */
bool text_put_mesh_groups(base_text *out, const base_istr *text, bool expand);

/* print_type.c */
void text_write_type(text_printer *p, const ir_type *t); /* with layouts, through the cache */
/* "/\*index=5*\/" before every fifth element of a list. */
void text_put_index_comment(base_text *out, uint32_t i);

/* print_type.c. Small ones print even where large constants are elided: arrays of up to ten elements. */
bool text_literal_is_small(const ir_literal *l);
void text_put_essential_literal(base_text *out, const ir_literal *l); /* as fingerprints show constants */

/* print_sharding.c. `frames` as in text_printer. */
void text_put_metadata_fields(base_text *out, const ir_metadata *m, const uint32_t *frames, uint32_t n_frames);

#endif
