/* Fuzzes the reader of HloModuleProto with messages whose fields are dropped, repeated and given other names, numbers
 * and ids, and what it takes goes through all stages (common/stages.c). Programs given as text are written as messages
 * first. Drivers as in fuzz_reader.c. */
#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run_stages(data, size, &(fuzz_stages){.format = XLAC_FORMAT_HLO_PROTO});
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 2000
#define FUZZ_MUTATE fuzz_mutate_wire
#define FUZZ_PREPARE fuzz_take_proto
#include "driver.h"
#endif
