/* Fuzzes the reader of MLIR text, and what it takes goes through all stages (common/stages.c). Drivers as in
 * fuzz_reader.c. */
#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run_stages(data, size, &(fuzz_stages){.format = XLAC_FORMAT_MLIR, .positions = true});
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 4000
#define FUZZ_MUTATE fuzz_mutate_text
#define FUZZ_PREPARE fuzz_take_mlir
#define FUZZ_WORDS                                                                                                  \
  "{", "}", "(", ")", "[", "]", "<", ">", ",", "=", ":", "->", "%0", "%arg0", "@main", "#loc", "^bb0:", "module",   \
      "func.func", "return", "tensor<2xf32>", "tensor<?xi32>", "tensor<*xf32>", "!stablehlo.token", "dense<", "0x", \
      "array<i64: 1>", "loc(\"a\":1:2)", "stablehlo.add", "\"stablehlo.reduce\"", "stablehlo.while", "cond", "do",  \
      "applies", "across dimensions = [0]", "#stablehlo.bounds<3>", "!quant.uniform<i8:f32, 0.5:1>", "tuple<",      \
      "complex<f32>", "true", "-1", "1.0e99", "9223372036854775808", "\"", "\\", "//", "#stablehlo.gather<",        \
      "batching_dims = [0] x [0]", "private", "attributes {"
#include "driver.h"
#endif
