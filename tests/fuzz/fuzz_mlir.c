/* Fuzzes the MLIR text reader, and on what it takes the verifier, the printer and the translation to HLO: no crash, no
 * hang, every error with a code, a message and a place. Drivers as in fuzz_reader.c. */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/stablehlo/stablehlo.h"
#include "../../csrc/text/mlir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s\n", what, err->code, err->line, err->col, err->message);
  abort();
}

static void print_in(const ir_module *m, const mlir_print_options *options) {
  xlac_error err = {0};
  base_text text;
  base_text_init(&text, base_alloc_libc);
  if (text_print_mlir(&text, m, options, &err) != 0) report("the print fails", &err);
  base_text_free(&text);
}

static void translate(ir_module *m, bool executable) {
  xlac_error err = {0};
  ir_module *hlo = NULL;
  stablehlo_to_hlo_options options = {.executable = executable};
  int status = stablehlo_to_hlo(&hlo, m, &options, &err);
  if (status != 0 && !err.message[0]) report("an error without message", &err);
  ir_module_destroy(hlo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = NULL;
  mlir_parse_options options = {.alloc = base_alloc_libc, .allow_unregistered = size && (data[size - 1] & 1)};
  int status = text_parse_mlir(&m, (const char *)data, size, &options, &err);
  if (status != 0) {
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    if (err.line == 0 && err.code != XLAC_E_OUT_OF_MEMORY) report("an error without position", &err);
    return 0;
  }
  print_in(m, &(mlir_print_options){0});
  print_in(m, &(mlir_print_options){.generic = true, .locations = true});
  if (stablehlo_verify(m, &err) == 0) {
    translate(m, true);
    translate(m, false);
  }
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_WORDS                                                                                                  \
  "{", "}", "(", ")", "[", "]", "<", ">", ",", "=", ":", "->", "%0", "%arg0", "@main", "#loc", "^bb0:", "module",   \
      "func.func", "return", "tensor<2xf32>", "tensor<?xi32>", "tensor<*xf32>", "!stablehlo.token", "dense<", "0x", \
      "array<i64: 1>", "loc(\"a\":1:2)", "stablehlo.add", "\"stablehlo.reduce\"", "stablehlo.while", "cond", "do",  \
      "applies", "across dimensions = [0]", "#stablehlo.bounds<3>", "!quant.uniform<i8:f32, 0.5:1>", "tuple<",      \
      "complex<f32>", "true", "-1", "1.0e99", "9223372036854775808", "\"", "\\", "//", "#stablehlo.gather<",        \
      "batching_dims = [0] x [0]", "private", "attributes {"
#include "driver.h"
#endif
