/* Fuzzes programs as HLO text: what the reader takes goes through all stages (common/stages.c). Drivers as in
 * fuzz_reader.c. */
#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run_stages(data, size, &(fuzz_stages){.format = XLAC_FORMAT_HLO, .positions = true});
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 4000
#define FUZZ_MUTATE fuzz_mutate_text
#define FUZZ_PREPARE fuzz_take_hlo
#define FUZZ_WORDS                                                                                                    \
  "{", "}", "(", ")", "[", "]", ",", "=", " = ", "->", "%", "ROOT ", "ENTRY", "f32[2]", "s4[]", "()", "{...}", "nan", \
      "-0", "<=", "T(1)", "/*", "*/", "//", "\"", "\\", "?", "x", "_", "-start", "-done", "9223372036854775807",      \
      "-9223372036854775808", "18446744073709551616", "1e999", "0", "sharding={devices=[2,2]<=[4]}",                  \
      "metadata={op_name=\"a\"}", "calls=", "to_apply=", "async-start", "tuple", "get-tuple-element", "index=0",      \
      "dimensions={0}", "constant(", "parameter(0)", "b(", "token[]"
#include "driver.h"
#endif
