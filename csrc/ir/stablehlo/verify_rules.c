/* The table of rules. */
#include "verify.h"

#define SETS(...) ((const uint32_t[]){__VA_ARGS__})
#define IN(...) .in = SETS(__VA_ARGS__), .n_in = sizeof(SETS(__VA_ARGS__)) / sizeof(uint32_t),
#define OUT(...) .out = SETS(__VA_ARGS__), .n_out = sizeof(SETS(__VA_ARGS__)) / sizeof(uint32_t),
#undef TRAITS
#undef INFER
#undef VERIFY
#define TRAITS(set) .traits = (set),
#define INFER(name) .infer = sv_infer_##name,
#define VERIFY(name) .verify = sv_verify_##name,
#define RULE(opcode, columns) [IR_OP_##opcode] = {columns},

static const sv_rule sv_rules[IR_OP_COUNT] = {
#include "rules.def"
};

#undef RULE
#undef SETS
#undef IN
#undef OUT
#undef TRAITS
#undef INFER
#undef VERIFY

const sv_rule *sv_rule_of(unsigned opcode) {
  assert(opcode < IR_OP_COUNT);
  const sv_rule *r = &sv_rules[opcode];
  return r->in || r->out || r->infer || r->verify ? r : NULL;
}
