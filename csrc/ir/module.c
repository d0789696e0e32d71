/* Modules, computations and ops come into being here. */
#include "ir.h"
#include "types/type_table.h"

int ir_module_create(ir_module **out, const char *name, base_alloc alloc, xlac_error *err) {
  ir_module *m = base_malloc(alloc, sizeof *m);
  if (!m) return base_oom(err, "a module");
  memset(m, 0, sizeof *m);
  m->alloc = alloc;
  base_arena_init(&m->arena, alloc);
  base_interner_init(&m->strings, &m->arena);
  base_map_init(&m->name_counters, alloc);
  m->config.replica_count = 1;
  m->config.num_partitions = 1;
  m->name = ir_intern(m, name, strlen(name));
  if (!m->name || ir_type_table_create(m) != 0) {
    ir_module_destroy(m);
    return base_oom(err, "a module");
  }
  *out = m;
  return 0;
}

void ir_module_destroy(ir_module *m) {
  if (!m) return;
  ir_type_table_destroy(m);
  base_map_free(&m->name_counters);
  base_interner_free(&m->strings);
  base_arena_free(&m->arena);
  base_free(m->alloc, m);
}

const base_istr *ir_intern(ir_module *m, const char *s, size_t n) {
  return base_intern(&m->strings, s, n);
}

/* Interned strings include every name ever used, so a string that is not interned is a name nobody has. */
static const base_istr *numbered_name(ir_module *m, const base_istr *stem) {
  uint64_t next = 1;
  base_map_get(&m->name_counters, base_key(stem), &next);
  base_text t;
  base_text_init(&t, m->alloc);
  for (;; next++) {
    t.n = 0;
    base_put(&t, stem->s, stem->n);
    base_putc(&t, '.');
    base_put_u64(&t, next);
    if (t.failed || !base_intern_find(&m->strings, t.s, t.n)) break;
  }
  const base_istr *name = t.failed ? NULL : ir_intern(m, t.s, t.n);
  base_text_free(&t);
  if (!base_map_set(&m->name_counters, base_key(stem), next + 1)) return NULL;
  return name;
}

const base_istr *ir_fresh_name(ir_module *m, const char *stem) {
  size_t n = strlen(stem);
  if (!base_intern_find(&m->strings, stem, n)) return ir_intern(m, stem, n);
  const base_istr *base = ir_intern(m, stem, n);
  return base ? numbered_name(m, base) : NULL;
}

ir_computation *ir_computation_new(ir_module *m, const char *name, size_t name_n) {
  ir_computation *c = BASE_NEW(&m->arena, ir_computation);
  if (!c || !(c->name = ir_intern(m, name, name_n))) return NULL;
  c->module = m;
  c->id = m->n_computation_ids++;
  c->prev = m->last;
  if (m->last) {
    m->last->next = c;
  } else {
    m->first = c;
  }
  m->last = c;
  m->n_computations++;
  if (!m->entry) m->entry = c;
  m->verified = false;
  return c;
}

static void link_last(ir_computation *c, ir_op *op) {
  op->parent = c;
  op->prev = c->last;
  if (c->last) {
    c->last->next = op;
  } else {
    c->first = op;
  }
  c->last = op;
  c->n_ops++;
}

static void init_slots(ir_op *op, uint32_t n_operands) {
  for (uint32_t i = 0; i < n_operands; i++) {
    op->operands[i].user = op;
    op->operands[i].slot = i;
  }
}

ir_op *ir_op_new_n(ir_computation *c, ir_opcode opcode, uint32_t n_results, const ir_type *const *types,
                   const base_istr *name, uint32_t n_operands, uint32_t n_called) {
  assert(opcode > IR_OP_INVALID && opcode < IR_OP_COUNT && n_results <= UINT16_MAX);
  ir_module *m = c->module;
  /* One block: the op, its operand slots, its called computations. */
  size_t operand_bytes = (size_t)n_operands * sizeof(ir_use),
         called_bytes = (size_t)n_called * sizeof(ir_computation *);
  ir_op *op = base_arena_zalloc(&m->arena, sizeof *op + operand_bytes + called_bytes);
  if (!op) return NULL;
  op->operands = (ir_use *)(op + 1);
  op->called = (ir_computation **)((char *)(op + 1) + operand_bytes);
  op->opcode = (uint16_t)opcode;
  op->n_results = (uint16_t)n_results;
  op->n_operands = n_operands;
  op->n_called = n_called;
  op->name = name;
  op->type = n_results ? types[0] : NULL;
  op->types = &op->type;
  if (n_results > 1 && !(op->types = base_arena_memdup(&m->arena, types, n_results * sizeof *types))) return NULL;
  init_slots(op, n_operands);
  op->id = m->n_ids++;
  link_last(c, op);
  m->verified = false;
  return op;
}

ir_op *ir_op_new(ir_computation *c, ir_opcode opcode, const ir_type *type, const base_istr *name, uint32_t n_operands,
                 uint32_t n_called) {
  return ir_op_new_n(c, opcode, 1, &type, name, n_operands, n_called);
}
