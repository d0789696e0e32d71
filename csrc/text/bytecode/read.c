/* Portable artifacts of StableHLO to modules. */
#include "bytecode.h"

bool text_is_bytecode(const void *bytes, size_t n) {
  return n >= 4 && memcmp(bytes, "ML\xEFR", 4) == 0;
}

static int bc_read_all(bc_reader *r) {
  TRY(bc_read_container(r));
  return bc_read_ir(r);
}

int text_parse_bytecode(ir_module **out, const void *bytes, size_t n, const bytecode_parse_options *options,
                        xlac_error *err) {
  base_alloc alloc = options && options->alloc.fn ? options->alloc : base_alloc_libc;
  xlac_error own = {0};
  ir_module *m;
  *out = NULL;
  TRY(ir_module_create(&m, "", alloc, err));
  m->form = IR_FORM_MLIR;
  base_arena_foresee(&m->arena, n < SIZE_MAX / 16 ? n * 16 : SIZE_MAX);
  bc_reader r = {.m = m, .err = &own, .base = bytes, .end = (const uint8_t *)bytes + n};
  r.max_depth = text_depth_limit(options ? options->max_depth : 0);
  base_arena_init(&r.scratch, alloc);
  int status = bc_read_all(&r);
  base_arena_free(&r.scratch);
  if (status != 0) {
    ir_module_destroy(m);
    if (err) *err = own;
    return status;
  }
  *out = m;
  return 0;
}
