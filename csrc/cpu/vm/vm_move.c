/* Kernels that only move elements, from one array to another: a copy with strides (cpu/move), where that has better
 * loops than blocks of lanes are filled by. */
#include "../move/move.h"
#include "vm_inside.h"

struct vm_move {
  cpu_move move;
  int64_t from, to, first, end; /* bytes: element 0 of each; what is read */
};

enum { VM_MOVE_BLOCK = 32 /* bytes of neighbours that the VM takes longer to find than to copy */ };

/* The load that all of the kernel stores; NULL where it does anything else. */
static const kernel_value *vm_moved_load(const kernel *k) {
  if (k->reduction || k->n_stores != 1 || k->rank == 0 || k->rank > IR_MAX_RANK || k->count == 0) return NULL;
  const kernel_value *v = &k->values[k->stores[0].value];
  return v->kind == KERNEL_LOAD && v->n_in == 0 && !v->box ? v : NULL;
}

/* Whole neighbourhoods, transpositions, and every second of small elements. */
static bool vm_move_is_better(const cpu_move *m) {
  if (m->kind != CPU_MOVE_ROWS) return m->kind == CPU_MOVE_TILES;
  const cpu_move_dim *last = &m->dims[m->rank - 1];
  return m->block >= VM_MOVE_BLOCK || (m->block < 4 && last->to == m->block && last->from == 2 * m->block);
}

bool vm_choose_move(cpu_vm *vm, base_arena *arena) {
  const kernel *k = vm->k;
  const kernel_value *v = vm_moved_load(k);
  if (!v) return true;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype), least = 0, most = 0;
  const kernel_index *to = &k->stores[0].index;
  vm_move *c = BASE_NEW(arena, vm_move);
  if (!c || !cpu_move_make(&c->move, arena, (size_t)bytes, k->rank, k->extents, to->strides, v->index->strides))
    return false;
  if (!kernel_reach(k, v->index, &least, &most) || !vm_move_is_better(&c->move)) return true;
  c->from = v->index->offset * bytes, c->to = to->offset * bytes;
  c->first = least * bytes, c->end = (most + 1) * bytes;
  vm->move = c;
  return true;
}

bool vm_all_moved(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out) {
  const vm_move *c = vm->move;
  assert(c && vm->k->n_stores == 1);
  const char *from = in[vm->k->values[vm->k->stores[0].value].buffer];
  char *to = (char *)out[vm->k->stores[0].buffer] + c->to;
  int64_t bytes = vm->k->count * (int64_t)base_dtype_bytes((base_dtype)vm->k->values[vm->k->stores[0].value].dtype);
  bool apart = (uintptr_t)to >= (uintptr_t)(from + c->end) || (uintptr_t)(to + bytes) <= (uintptr_t)(from + c->first);
  if (!apart) return false;
  cpu_move_run(&c->move, pool, to, from + c->from);
  return true;
}
