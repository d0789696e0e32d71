/* Arrays that still have to be added up between devices, along the axes that their shardings call unreduced. Passes
 * carry them through a program; callers can't bring or take them, and what runs whole on every device has no such
 * parts. */
#include <stdio.h>

#include "../shard/common/common.h"
#include "inside.h"

static bool unreduced_has(const ir_mattr *a) {
  const sdy_sharding *one = a ? sdy_of(a, SDY_SHARDING) : NULL;
  const sdy_shardings *list = a ? sdy_of(a, SDY_SHARDINGS) : NULL;
  bool found = one && one->unreduced.n;
  for (uint32_t i = 0; list && i < list->n && !found; i++) found = list->v[i]->unreduced.n != 0;
  return found;
}

/* An op one of whose shardings has unreduced axes; NULL: there is none. */
static const ir_op *unreduced_find(const ir_module *m) {
  static const char *const keys[] = {"sdy.sharding", "sharding", "in_shardings", "out_shardings", "out_sharding"};
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (unreduced_has(ir_mattr_of(op, keys[i]))) return op;
    }
  }
  return NULL;
}

static int unreduced_refuse(const ir_op *at, const char *what, uint32_t i, xlac_error *err) {
  int status = base_fail_at(err, XLAC_E_LEGALIZE, at->line, at->col, at->name->s,
                            "%s %u still has to be added up between devices (its sharding has unreduced axes)", what,
                            (unsigned)i);
  return base_hint(err, status, "reshard it within the program: what goes in and out is whole or cut");
}

int spmd_refuse_unreduced(const ir_module *m, xlac_error *err) {
  const ir_computation *f = shc_main((ir_module *)(uintptr_t)m, true);
  if (!f) return 0;
  for (uint32_t i = 0; i < f->n_params; i++) {
    const sdy_sharding *s = sdy_get((ir_value){f->params[i], 0});
    if (s && s->unreduced.n) return unreduced_refuse(f->params[i], "argument", i, err);
  }
  for (uint32_t i = 0; i < f->n_results; i++) {
    const sdy_sharding *s = sdy_get_result(f, i);
    if (s && s->unreduced.n) return unreduced_refuse(f->results[i].op, "result", i, err);
  }
  const ir_op *inside = unreduced_find(m);
  if (!inside) return 0;
  int status = base_fail_at(err, XLAC_E_LEGALIZE, inside->line, inside->col, inside->name->s,
                            "the sharding has unreduced axes: arrays that still have to be added up between devices");
  return base_hint(err, status, "use shardings without them: partial sums are then added up where they are made");
}
