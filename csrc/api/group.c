/* Programs on many devices: what each device has of arguments and results, calls with shards, and what partitioning
 * came to. */
#include "../ir/sdy/sdy.h"
#include "executable.h"

#include "../spmd/spmd.h"

static int group_check(const xlac_executable *exe, xlac_error *err) {
  assert(exe->rt);
  if (exe->rt->n_devices) return 0;
  return base_hint(err, base_fail(err, XLAC_E_BAD_ARGUMENT, "the program was compiled for one device"),
                   "compile it for several devices (devices=8), as many as its mesh has");
}

void xlac_executable_group(const xlac_executable *exe, xlac_group *out) {
  *out = (xlac_group){.n_devices = 0};
  if (!exe->rt->n_devices) return;
  const spmd_program *p = spmd_group_program(exe->rt);
  *out = (xlac_group){p->n_devices, p->n_arguments, p->n_results, p->replicas, p->partitions};
}

/* In either way of writing shardings: on a mesh of one device, or as XLA's text. */
static bool group_is_single(const ir_module *m, const ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "sdy.sharding");
  const sdy_shardings *list = a ? sdy_of(a, SDY_SHARDINGS) : NULL;
  const char *text = ir_m_get_str(op, "mhlo.sharding");
  for (uint32_t i = 0; list && i < list->n; i++) {
    const sdy_mesh *mesh = sdy_mesh_of(m, list->v[i]);
    if (mesh && sdy_mesh_is_maximal(mesh)) return true;
  }
  return text && strncmp(text, "{maximal", 8) == 0;
}

int xlac_module_name_single_calls(xlac_module *m, const char *from, const char *to, xlac_error *err) {
  TRY(api_check_text(from, "the name", err));
  TRY(api_check_text(to, "the new name", err));
  TRY(api_lock_edit(m, err));
  const ir_mattr *name = ir_m_string(m->ir, to, strlen(to));
  bool ok = name != NULL;
  IR_FOR_COMPUTATIONS(c, m->ir) {
    IR_FOR_OPS(op, c) {
      const char *target = op->opcode == IR_OP_CUSTOM_CALL ? ir_m_get_str(op, "call_target_name") : NULL;
      if (ok && target && strcmp(target, from) == 0 && group_is_single(m->ir, op))
        ok = ir_m_set(op, "call_target_name", name);
    }
  }
  return api_done(m, ok ? 0 : base_oom(err, "a program's calls"));
}

xlac_module *xlac_executable_local(xlac_executable *exe) {
  return exe->local.ir ? &exe->local : NULL;
}

bool xlac_executable_shard(const xlac_executable *exe, bool result, uint32_t leaf, uint32_t device, xlac_shard *out) {
  if (!exe->rt->n_devices) return false;
  const spmd_program *p = spmd_group_program(exe->rt);
  if (leaf >= (result ? p->n_results : p->n_arguments) || device >= p->n_devices) return false;
  const spmd_leaf *l = result ? &p->results[leaf] : &p->arguments[leaf];
  const ir_type *t = result ? exe->rt->result_types[leaf] : exe->rt->argument_types[leaf];
  if (l->bytes == 0) return false;
  *out = (xlac_shard){.dtype = t->dtype,
                      .rank = l->rank,
                      .whole = l->dims,
                      .dims = l->shard,
                      .start = l->starts + (size_t)device * l->rank,
                      .bytes = spmd_shard_bytes(l),
                      .first = l->first[device],
                      .contiguous = l->contiguous,
                      .n_parts = l->n_parts,
                      .part = l->part ? l->part[device] : 0,
                      .how = l->reduction == SDY_MAX   ? '>'
                             : l->reduction == SDY_MIN ? '<'
                                                       : '+'};
  return true;
}

const xlac_device *xlac_executable_shard_memory(const xlac_executable *exe, uint32_t device) {
  uint32_t from = 0, here = 0;
  if (!exe->rt->n_devices) return NULL;
  spmd_group_here(exe->rt, &from, &here);
  if (device < from || device - from >= here) return NULL;
  return api_device_out(spmd_group_device(exe->rt, device - from));
}

int xlac_executable_call_shards(const xlac_executable *exe, const xlac_interpret_options *options,
                                void *const *arguments, void *const *results, xlac_error *err) {
  rt_call_options inner;
  TRY(group_check(exe, err));
  TRY(api_read_call_options(&inner, options, err));
  return spmd_group_call_shards(exe->rt, &inner, arguments, results, err);
}

bool xlac_executable_shard_donation(const xlac_executable *exe, uint32_t index, xlac_donation *out) {
  if (!exe->rt->n_devices) return false;
  const plan_program *p = spmd_group_local(exe->rt)->plan;
  if (index >= p->n_donations) return false;
  const plan_donation *d = &p->donations[index];
  *out = (xlac_donation){d->argument, d->result, d->must, d->in_place};
  return true;
}

int xlac_executable_sharding(const xlac_executable *exe, char **json, size_t *n, xlac_error *err) {
  base_text t;
  TRY(group_check(exe, err));
  base_text_init(&t, base_alloc_libc);
  spmd_put_report(&t, spmd_group_program(exe->rt), spmd_group_way(exe->rt));
  return api_give_text(&t, json, n, err);
}
