/* Fuzzes the reader of MLIR bytecode, and what it takes goes through all stages (common/stages.c). Programs given as
 * text are written as portable artifacts first. Drivers as in fuzz_reader.c. */
#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run_stages(data, size, &(fuzz_stages){.format = XLAC_FORMAT_MLIR_BYTECODE});
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 2000
#define FUZZ_MUTATE fuzz_mutate_bytes
#define FUZZ_PREPARE fuzz_take_bytecode
#include "driver.h"
#endif
