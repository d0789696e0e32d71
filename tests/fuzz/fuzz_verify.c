/* Fuzzes the verifier with parsed modules edited in ways that no text can express (cycles, foreign operands, exchanged
 * types, missing attributes). Whatever comes, ir_verify must return; an error has a code, a message and, where the op
 * came from text, a position; the same question gets the same answer; what the strict verifier accepts the lenient one
 * accepts; and what is accepted after edits goes through all stages (common/stages.c). Drivers as in fuzz_reader.c. */
#include "../../csrc/ir/verify/verify.h"
#include "../../csrc/text/text.h"
#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- what must hold --- */

static int verify_as(ir_module *m, bool lenient, xlac_error *err) {
  ir_verify_options options = {.xla_compat = lenient};
  *err = (xlac_error){0};
  m->verified = false;
  return ir_verify(m, &options, err);
}

static bool check_module(ir_module *m, bool from_text) {
  xlac_error strict, again, lenient;
  int status = verify_as(m, false, &strict);
  if (status != verify_as(m, false, &again) || memcmp(&strict, &again, sizeof strict) != 0)
    fuzz_report("two answers", &again);
  if (status == 0 && verify_as(m, true, &lenient) != 0) fuzz_report("strict is more lenient than lenient", &lenient);
  if (status == 0) return true;
  if (strict.code != -status || !strict.message[0]) fuzz_report("an error without code or message", &strict);
  if (from_text && strict.line == 0) fuzz_report("an error without position", &strict);
  return false;
}

/* What the edits have made of the program, as text. */
static void run_stages(const ir_module *m) {
  xlac_error err = {0};
  base_text text;
  text_print_options options = {.mode = TEXT_DEFAULT};
  base_text_init(&text, base_alloc_libc);
  if (text_print_hlo(&text, m, &options, &err) != 0) fuzz_report("the print fails", &err);
  fuzz_run_stages(text.s, text.n, &(fuzz_stages){.format = XLAC_FORMAT_HLO});
  base_text_free(&text);
}

/* --- edits of a module --- */

static ir_op *any_op(const ir_module *m, uint64_t *state) {
  uint64_t skip = fuzz_random(state) % (m->n_ids + 1);
  ir_op *found = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      found = op;
      if (skip-- == 0) return op;
    }
  }
  return found;
}

static ir_computation *any_computation(const ir_module *m, uint64_t *state) {
  uint64_t skip = fuzz_random(state) % (m->n_computations + 1);
  ir_computation *c = m->first;
  while (c && c->next && skip--) c = c->next;
  return c;
}

static void edit(ir_module *m, uint64_t *state) {
  ir_op *op = any_op(m, state), *other = any_op(m, state);
  uint64_t n = fuzz_random(state);
  if (!op || !other) return;
  switch (fuzz_random(state) % 10) {
    case 0: /* from before, from after, from elsewhere */
      if (op->n_operands) ir_set_operand(op, (uint32_t)(n % op->n_operands), (ir_value){other, 0});
      break;
    case 1:
      if (!ir_add_operand(op, (ir_value){other, 0})) exit(3);
      break;
    case 2:
      if (op->n_operands) ir_operand_remove(op, (uint32_t)(n % op->n_operands));
      break;
    case 3:
      ir_set_type(op, other->type);
      break;
    case 4:
      if (op->n_attrs) ir_attr_remove(op, (ir_attr_key)op->attrs[n % op->n_attrs].key);
      break;
    case 5:
      if (op->n_called) op->called[n % op->n_called] = any_computation(m, state);
      break;
    case 6:
      if (!ir_set_root(op->parent, op)) exit(3);
      break;
    case 7:
      if (other->parent == op->parent && !ir_add_control_pred(op, other)) exit(3);
      break;
    case 8:
      if (op->parent->n_params) op->parent->params[n % op->parent->n_params] = n % 3 ? op : NULL;
      break;
    default:
      if (other->n_attrs && !ir_attr_set(op, other->attrs[n % other->n_attrs])) exit(3);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = NULL;
  if (text_parse_hlo(&m, (const char *)data, size, NULL, &err) != 0) return 0;
  check_module(m, true);
  uint64_t state = size;
  for (size_t i = 0; i < size; i += 17) state = state * 31 + data[i];
  for (int i = 0; i < 3; i++) {
    edit(m, &state);
    if (check_module(m, false)) run_stages(m);
  }
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 1000
#define FUZZ_MUTATE fuzz_mutate_text
#define FUZZ_PREPARE fuzz_take_hlo
#include "driver.h"
#endif
