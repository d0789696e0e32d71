/* Fuzzes the reader of MLIR bytecode, and the writer on what the reader takes: what reads must write, and that must
 * read again and write the same. Drivers as in fuzz_reader.c: fuzz_bytecode SEED LIMIT FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/text/mlir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %s\n", what, err->code, err->message);
  abort();
}

/* Older text and odd types may have no VHLO form in the newest version; that is an error and no finding. */
static bool rewrite(const void *data, size_t size, base_text *to, bool must_read) {
  xlac_error err = {0};
  ir_module *m = NULL;
  int status = text_parse_bytecode(&m, data, size, NULL, &err);
  if (status != 0) {
    if (must_read) report("what was written does not read", &err);
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    return false;
  }
  base_text_init(to, base_alloc_libc);
  status = text_write_bytecode(to, m, "1.20.0", &err);
  ir_module_destroy(m);
  if (status != 0) {
    if (err.code != -status || !err.message[0]) report("an error without code or message", &err);
    if (must_read) report("what was written and read does not write", &err);
    base_text_free(to);
    return false;
  }
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  base_text first, second;
  if (!rewrite(data, size, &first, false)) return 0;
  if (rewrite(first.s, first.n, &second, true)) {
    if (first.n != second.n || memcmp(first.s, second.s, first.n) != 0)
      report("write, read, write differs", &(xlac_error){0});
    base_text_free(&second);
  }
  base_text_free(&first);
  return 0;
}

#ifdef FUZZ_MAIN
#include "file.h"
#include "random.h"

/* Other fuzzers' seeds are text. */
static bool is_bytecode(const fuzz_file *file) {
  return text_is_bytecode(file->data, file->n);
}

static void mutate_bytes(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  size_t at = buf->n ? next_random(state) % buf->n : 0, n = next_random(state) % 40;
  uint8_t byte = (uint8_t)next_random(state), bit = (uint8_t)(1 << next_random(state) % 8);
  size_t from = other->n ? next_random(state) % other->n : 0;
  switch (next_random(state) % 7) {
    case 0:
    case 1:
      if (buf->n) buf->data[at] ^= bit;
      break;
    case 2:
      splice(buf, at, 1, &byte, 1);
      break;
    case 3:
      splice(buf, at, n, NULL, 0);
      break;
    case 4:
      splice(buf, at, n, other->data + from, n < other->n - from ? n : other->n - from);
      break;
    case 5:
      if (buf->n) buf->data[at] = (uint8_t)(buf->data[at] + 2);
      break;
    default:
      if (next_random(state) % 8 == 0) buf->n = at;
  }
}

#define FUZZ_RUNS 20000
#define FUZZ_TAKES is_bytecode
#define FUZZ_MUTATE mutate_bytes
#include "driver.h"
#endif
