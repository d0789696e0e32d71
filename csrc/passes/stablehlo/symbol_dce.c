/* symbol-dce: removes private functions that no public one reaches.
 * Requires: nothing. Preserves: public functions, and whatever at module level is no function. */
#include "symbols.h"

typedef struct symbol_dce {
  opt_symbols symbols;
  uint8_t *live; /* by computation id */
  ir_computation **pending;
  uint32_t n;
} symbol_dce;

static void symbol_dce_mark(symbol_dce *d, ir_computation *c) {
  if (!c || d->live[c->id]) return;
  d->live[c->id] = 1;
  d->pending[d->n++] = c;
}

static void symbol_dce_name(void *ctx, const base_istr *name) {
  symbol_dce *d = ctx;
  symbol_dce_mark(d, opt_symbol(&d->symbols, name, false));
}

static void symbol_dce_walk(symbol_dce *d) {
  while (d->n) {
    const ir_computation *c = d->pending[--d->n];
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) symbol_dce_mark(d, op->called[i]);
      opt_for_symbols(op, symbol_dce_name, d);
    }
  }
}

/* Regions of a dead function are dead too: nobody has marked them. */
static void symbol_dce_sweep(const symbol_dce *d, ir_module *m) {
  if (m->entry && !d->live[m->entry->id]) m->entry = NULL;
  for (ir_computation *c = m->last, *before = NULL; c; c = before) {
    before = c->prev;
    if (!d->live[c->id]) ir_computation_remove(c);
  }
  if (!m->entry) m->entry = m->first;
}

int opt_symbol_dce(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  symbol_dce d = {.n = 0};
  base_arena arena;
  TRY(opt_symbols_make(&d.symbols, m, err));
  base_arena_init(&arena, m->alloc);
  d.live = base_arena_zalloc(&arena, (size_t)m->n_computation_ids + 1);
  d.pending = BASE_ARRAY(&arena, ir_computation *, (size_t)m->n_computations + 1);
  bool ok = d.live && d.pending;
  if (ok) {
    IR_FOR_COMPUTATIONS(c, m)
    if (c->kind == IR_SYMBOL || (c->kind == IR_FUNCTION && !opt_is_private(c))) symbol_dce_mark(&d, c);
    symbol_dce_walk(&d);
    symbol_dce_sweep(&d, m);
  }
  base_arena_free(&arena);
  opt_symbols_free(&d.symbols);
  return ok ? 0 : base_oom(err, "symbol-dce");
}
