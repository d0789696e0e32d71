/* What the fuzzers share. Each of them is a file of the folder above with LLVMFuzzerTestOneInput, for libFuzzer, and
 * with driver.h a program of its own. Everything here is on xlac.h alone, so that it sees what users see. */
#ifndef XLAC_TESTS_FUZZ_H
#define XLAC_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlac.h"

/* --- base.c: inputs, random numbers, findings --- */

enum { FUZZ_MAX_INPUT = 1 << 16 };

/* An input, in memory of FUZZ_MAX_INPUT bytes. */
typedef struct fuzz_file {
  uint8_t *data;
  size_t n;
} fuzz_file;

uint64_t fuzz_random(uint64_t *state);
/* Below n, which is not 0. */
uint32_t fuzz_below(uint64_t *state, uint32_t n);
uint64_t fuzz_hash(const void *data, size_t n);
/* Replaces [at, at + drop) by n bytes, as far as there is room. `with` may lie in the buffer. */
void fuzz_splice(fuzz_file *buf, size_t at, size_t drop, const void *with, size_t n);
/* Says what was found and aborts. err may be NULL. */
_Noreturn void fuzz_report(const char *what, const xlac_error *err);
/* Reports a failure whose error says nothing. Returns whether there was one. */
bool fuzz_failed(int status, const xlac_error *err);

/* --- stages.c: everything that can be done with a program --- */

typedef struct fuzz_stages {
  int32_t format; /* xlac_format of the input */
  bool positions; /* the errors of the reader have a line */
} fuzz_stages;
/* Reads the input and takes what was read through every stage: access, verify, print, bytes, translation, passes, and
 * the engines. Which options the stages get depends on the bytes. Returns whether the input was read. */
bool fuzz_run_stages(const void *data, size_t n, const fuzz_stages *options);

/* How many inputs got how far, for the last line of a run. */
typedef enum fuzz_count {
  FUZZ_PARSED,
  FUZZ_VERIFIED,
  FUZZ_TRANSLATED,
  FUZZ_PIPELINES,
  FUZZ_INTERPRETED,
  FUZZ_COMPARED,
  FUZZ_BOTH_REFUSE,
  FUZZ_CHAOTIC,
  FUZZ_COUNTS
} fuzz_count;
extern uint64_t fuzz_counts[FUZZ_COUNTS];
void fuzz_print_counts(void);

/* --- walk.c, arguments.c, compare.c, engines.c: parts of it --- */

/* Asks for everything there is to know about the module's parts. */
void fuzz_walk(xlac_module *m);
/* Whether all values of the program are small and few, so that it may run. Sizes known at run time only count little.
 */
bool fuzz_is_small(xlac_module *m);

enum { FUZZ_MAX_ARGS = 64 };
typedef struct fuzz_arguments {
  uint32_t n;
  xlac_value *values[FUZZ_MAX_ARGS];
} fuzz_arguments;
/* One for each parameter of the entry; sizes that are known at run time only are drawn for each argument by itself, but
 * are mostly the same, unless they are to be `apart`. False where a parameter takes none of the values there are. */
bool fuzz_draw_arguments(xlac_module *m, bool apart, uint64_t *state, fuzz_arguments *out);
void fuzz_free_arguments(fuzz_arguments *args);
/* The same with each float changed in its last places; false where there is none. */
bool fuzz_shake_arguments(const fuzz_arguments *args, fuzz_arguments *out);

typedef enum fuzz_likeness {
  FUZZ_BITS,    /* bit by bit */
  FUZZ_NUMBERS, /* integers exactly, floats up to what another order of sums gives, NaN for NaN */
  FUZZ_STEPS,   /* so, but for integers that stand for quantised numbers: computed in f32, they may be a step, or f32's
                   rounding, off */
} fuzz_likeness;
/* NULL where two results are alike; else what differs. */
const char *fuzz_compare(const xlac_value *a, const xlac_value *b, fuzz_likeness how);

/* Whether all floats of an array are finite, and far from being too large for sums. */
bool fuzz_is_finite(const xlac_value *v);

/* Interprets, compiles and runs, serializes, loads and runs a verified program: the same values, or no engine gives
 * any. */
void fuzz_run_engines(xlac_module *m, uint64_t *state);

/* --- seeds.c: what a file gives a fuzzer to begin with; false where it is of another format --- */

bool fuzz_take_hlo(fuzz_file *file);
bool fuzz_take_mlir(fuzz_file *file);
/* Portable artifacts, also of a program in MLIR text. */
bool fuzz_take_bytecode(fuzz_file *file);
/* An HloModuleProto of a program in HLO text. */
bool fuzz_take_proto(fuzz_file *file);

/* --- mutators: change an input; `other` is another one to take parts of --- */

/* Tokens, types, lists and lines of HLO or MLIR text. */
void fuzz_mutate_text(fuzz_file *buf, const fuzz_file *other, uint64_t *state);
/* Fields of a protobuf message. */
void fuzz_mutate_wire(fuzz_file *buf, const fuzz_file *other, uint64_t *state);
/* Bits and bytes. */
void fuzz_mutate_bytes(fuzz_file *buf, const fuzz_file *other, uint64_t *state);

/* --- search.c: going on after a finding --- */

/* Where FUZZ_FINDINGS names a folder, the process that calls this stays behind to see how its child fares: what aborts
 * is kept there, number.input and number.log, and another child goes on behind it. Both numbers are looked at again
 * later. With FUZZ_MUTATED the n_files inputs that are not mutated are passed over. */
void fuzz_search_begin(uint64_t *runs, uint64_t *state, uint64_t n_files);
/* Notes where the child is, which ends behind FUZZ_COUNT inputs where that is given. */
void fuzz_search_note(const fuzz_file *input);

#endif
