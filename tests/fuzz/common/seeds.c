/* What a file gives a fuzzer to begin with. */
#include "fuzz.h"

static xlac_module *seed_parse(const fuzz_file *file, int32_t format) {
  xlac_module *m = NULL;
  xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .format = format, .allow_unregistered = true};
  return xlac_module_parse(&m, (const char *)file->data, file->n, &options, NULL) == 0 ? m : NULL;
}

static bool seed_is_bytecode(const fuzz_file *file) {
  return file->n > 4 && memcmp(file->data, "ML\xefR", 4) == 0;
}

static bool seed_take_text(const fuzz_file *file, int32_t format) {
  xlac_module *m = file->n < FUZZ_MAX_INPUT && !seed_is_bytecode(file) ? seed_parse(file, format) : NULL;
  xlac_module_destroy(m);
  return m != NULL;
}

bool fuzz_take_hlo(fuzz_file *file) {
  return seed_take_text(file, XLAC_FORMAT_HLO);
}

bool fuzz_take_mlir(fuzz_file *file) {
  return seed_take_text(file, XLAC_FORMAT_MLIR);
}

/* Replaces the text by what `write` makes of it. */
static bool seed_replace(fuzz_file *file, char *bytes, size_t n) {
  bool fits = n <= FUZZ_MAX_INPUT;
  if (fits) memcpy(file->data, bytes, n);
  if (fits) file->n = n;
  xlac_free(bytes);
  return fits;
}

bool fuzz_take_bytecode(fuzz_file *file) {
  if (seed_is_bytecode(file)) return true;
  char *bytes = NULL;
  size_t n = 0;
  xlac_module *m = seed_parse(file, XLAC_FORMAT_MLIR);
  bool done = m && xlac_module_write_artifact(m, NULL, &bytes, &n, NULL) == 0;
  xlac_module_destroy(m);
  return done && seed_replace(file, bytes, n);
}

bool fuzz_take_proto(fuzz_file *file) {
  char *bytes = NULL;
  size_t n = 0;
  xlac_module *m = seed_is_bytecode(file) ? NULL : seed_parse(file, XLAC_FORMAT_HLO);
  bool done = m && xlac_module_serialize(m, XLAC_FORMAT_HLO_PROTO, &bytes, &n, NULL) == 0;
  xlac_module_destroy(m);
  return done && seed_replace(file, bytes, n);
}
