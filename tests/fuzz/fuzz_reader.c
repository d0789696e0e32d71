/* Fuzzes the HLO reader, and the printer on what the reader takes: a text that parses must print, and the print must
 * parse again and print the same. Two drivers: libFuzzer (clang -fsanitize=fuzzer), and with -DFUZZ_MAIN a program of
 * its own that mutates the files it is given with a seeded generator: fuzz_reader SEED LIMIT FILE...      exits 0, or
 * aborts on the first finding after writing it to fuzz-finding.hlo */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/text/text.h"
#ifndef XLAC_PARTIAL /* test_fuzz_reader.py builds it without most of the core */
#include "common/fuzz.h"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s\n", what, err->code, err->line, err->col, err->message);
  abort();
}

static bool print_module(const ir_module *m, base_text *out) {
  xlac_error err = {0};
  text_print_options options = {.mode = TEXT_DEFAULT};
  base_text_init(out, base_alloc_libc);
  return text_print_hlo(out, m, &options, &err) == 0;
}

/* Reads `from`, which must be a module, and prints it. */
static bool reprint(const base_text *from, base_text *to) {
  xlac_error err = {0};
  ir_module *m = NULL;
  if (text_parse_hlo(&m, from->s, from->n, NULL, &err) != 0) report("the print does not parse", &err);
  if (!print_module(m, to)) report("the second print fails", &err);
  bool has_tables = m->sources.n_frames > 0;
  ir_module_destroy(m);
  return has_tables;
}

/* What is printed must read back, and print the same from the second time on (a blank in a string that passes for JSON
 * goes at the first, as in XLA); but that XLA numbers source tables anew at each print. */
static void check_print(const base_text *first) {
  base_text second, third;
  bool has_tables = reprint(first, &second);
  reprint(&second, &third);
  bool same = second.n == third.n && memcmp(second.s, third.s, second.n) == 0;
  if (!same && !has_tables) report("print, parse, print differs", &(xlac_error){0});
  base_text_free(&second);
  base_text_free(&third);
}

/* Inputs whose print is known not to read back (docs/xla-differences.md): wrapped ops that have no text of their own.
 */
static bool has_unprintable_op(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (ir_opcode_has(op->opcode, IR_NEWER)) return true;
    }
  }
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = NULL;
  bool strict = size && (data[size - 1] & 1);
  text_parse_options options = {.strict = strict};
  int status = text_parse_hlo(&m, (const char *)data, size, &options, &err);
  if (status != 0) {
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    if (err.line == 0 && err.code != XLAC_E_OUT_OF_MEMORY) report("an error without position", &err);
    return 0;
  }
  base_text text;
  if (!print_module(m, &text)) report("the print fails", &err);
  if (!has_unprintable_op(m)) check_print(&text);
  base_text_free(&text);
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_WORDS                                                                                                    \
  "{", "}", "(", ")", "[", "]", ",", "=", " = ", "->", "%", "ROOT ", "ENTRY", "f32[2]", "s4[]", "()", "{...}", "nan", \
      "-0", "<=", "T(1)", "/*", "*/", "//", "\"", "\\", "?", "x", "_", "-start", "-done", "9223372036854775807",      \
      "-9223372036854775808", "18446744073709551616", "1e999", "0", "sharding={devices=[2,2]<=[4]}",                  \
      "metadata={op_name=\"a\"}", "calls=", "to_apply=", "async-start", "tuple", "get-tuple-element", "index=0",      \
      "dimensions={0}", "constant(", "parameter(0)", "b(", "token[]"
#include "driver.h"
#endif
