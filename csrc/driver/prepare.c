/* Translation to HLO form, and the passes before planning. */
#include "prepare.h"

#include "../base/map.h"
#include "../convert/convert.h"
#include "../ir/names.h"
#include "../ir/verify/verify.h"
#include "../pipeline/for_hlo.h"

/* Before a program is planned. Each of these keeps the bits of every result, but for reassociate. What others fused is
 * fused anew: here a kernel may be larger, or must be smaller. */
#define DRIVER_PASSES(more)                                                         \
  "inline-calls{fusions=true},batch-norm-expander,while-loop-simplifier{unroll=8}," \
  "inline-calls{fusions=true},"                                                     \
  "constant-folding{max-elements=4096 max-work=1},algebraic-simplification," more   \
  "while-loop-invariant-code-motion,cse,dce"
static const char *const driver_passes[] = {
    DRIVER_PASSES(""),
    DRIVER_PASSES("reassociate,algebraic-simplification,"),
};

/* NULL where HLO can't spell it: arguments that come from bytes have no names, and others may be numbers. */
static const base_istr *prepare_name_of(const ir_op *param, ir_module *to) {
  const base_istr *name = param->name;
  return ir_is_name(name->s, name->n) && !ir_name_is_reserved(name->s, name->n) ? ir_intern(to, name->s, name->n)
                                                                                : NULL;
}

/* Parameters are called as in the source, which translation has lost, but where an op of the copy has that name. A name
 * is only a name: there is no harm in giving up. */
static void prepare_name_parameters(const ir_computation *from, ir_module *to) {
  base_map names;
  uint64_t owner = 0;
  if (from->n_params != to->entry->n_params) return;
  base_map_init(&names, base_alloc_libc);
  for (uint32_t i = 0; i < from->n_params; i++) {
    const base_istr *s = prepare_name_of(from->params[i], to);
    if (!s || base_map_get(&names, base_key(s), &owner)) continue;
    if (!base_map_set(&names, base_key(s), (uint64_t)i + 1)) break;
  }
  IR_FOR_COMPUTATIONS(c, to)
  IR_FOR_OPS(op, c)
  if (base_map_get(&names, base_key(op->name), &owner)) (void)base_map_set(&names, base_key(op->name), 0);
  for (uint32_t i = 0; i < from->n_params; i++) {
    const base_istr *s = prepare_name_of(from->params[i], to);
    if (s && base_map_get(&names, base_key(s), &owner) && owner == (uint64_t)i + 1) to->entry->params[i]->name = s;
  }
  base_map_free(&names);
}

static int prepare_translate(ir_module *m, ir_module **out, xlac_error *err) {
  const convert_to_hlo_options executable = {.executable = true};
  ir_module *expanded = NULL;
  TRY(pipeline_expand_for_executor(m, &expanded, err));
  int status = convert_to_hlo(out, expanded ? expanded : m, &executable, err);
  if (expanded) ir_module_destroy(expanded);
  if (status == 0) prepare_name_parameters(m->entry, *out);
  return status;
}

int driver_translate(ir_module *m, ir_module **out, xlac_error *err) {
  return m->form == IR_FORM_MLIR ? prepare_translate(m, out, err) : ir_module_clone(out, m, err);
}

/* Whether the shard of the output can lie where that of the parameter does; what is not an array is the verifier's. */
static bool prepare_alias_fits(const ir_module *local, const ir_alias *a) {
  const ir_computation *e = local->entry;
  const ir_type *out = ir_type_at(ir_root(e)->type, a->output->v, a->output->n), *in = NULL;
  if (a->operand >= 0 && a->operand < e->n_params)
    in = ir_type_at(e->params[a->operand]->type, a->index->v, a->index->n);
  if (!out || !in || !ir_is_tensor(out) || !ir_is_tensor(in)) return true;
  return ir_type_xla_bytes(out) == ir_type_xla_bytes(in);
}

/* Arrays of one size may be cut into shards of two sizes: those don't take each other's memory. */
static int prepare_fit_aliases(ir_module *local, xlac_error *err) {
  ir_config *config = ir_edit_config(local);
  ir_alias *kept = BASE_ARRAY(&local->arena, ir_alias, (size_t)config->n_aliases + 1);
  uint32_t n = 0;
  if (!kept) return base_oom(err, "the aliases of shards");
  for (uint32_t i = 0; i < config->n_aliases; i++)
    if (prepare_alias_fits(local, &config->aliases[i])) kept[n++] = config->aliases[i];
  config->aliases = kept;
  config->n_aliases = n;
  return 0;
}

/* Which devices have each tile of an argument that is cut into `tiles`, tile by tile. */
static const int64_t *prepare_holders(const spmd_leaf *leaf, uint32_t n_devices, uint32_t tiles, base_arena *arena) {
  int64_t *holders = BASE_ARRAY(arena, int64_t, n_devices);
  uint32_t at = 0;
  assert(n_devices % tiles == 0);
  for (uint32_t tile = 0; holders && tile < tiles; tile++)
    for (uint32_t i = 0; i < n_devices; i++) {
      int64_t here = 0;
      for (uint32_t d = 0; d < leaf->rank; d++)
        here = here * (leaf->dims[d] / leaf->shard[d]) + leaf->starts[(size_t)i * leaf->rank + d] / leaf->shard[d];
      if (here == tile) holders[at++] = i;
    }
  assert(!holders || at == n_devices);
  return holders;
}

/* The sharding of an argument of whose tiles each is on several devices; NULL: it is none, or memory has run out. */
static const ir_sharding *prepare_sharding_of(const spmd_program *p, const spmd_leaf *leaf, base_arena *arena,
                                              bool *failed) {
  int64_t tiles = 1, *dims = NULL;
  for (uint32_t d = 0; d < leaf->rank; d++) tiles *= leaf->shard[d] ? leaf->dims[d] / leaf->shard[d] : 0;
  if (p->rehearsal || p->replicas > 1 || tiles < 2 || 2 * tiles > p->n_devices || p->n_devices % tiles) return NULL;
  ir_sharding *s = BASE_NEW(arena, ir_sharding);
  dims = BASE_ARRAY(arena, int64_t, leaf->rank + (size_t)1);
  const int64_t *holders = prepare_holders(leaf, p->n_devices, (uint32_t)tiles, arena);
  *failed = !s || !dims || !holders;
  if (*failed) return NULL;
  for (uint32_t d = 0; d < leaf->rank; d++) dims[d] = leaf->dims[d] / leaf->shard[d];
  dims[leaf->rank] = p->n_devices / tiles;
  *s = (ir_sharding){.kind = IR_SHARDING_TILED,
                     .n_dims = leaf->rank + 1,
                     .dims = dims,
                     .n_devices = p->n_devices,
                     .devices = holders,
                     .replicate_on_last_dim = true};
  return s;
}

/* Says of parameters which several devices have alike how they are cut, as XLA says it in what it has partitioned. */
static int prepare_say_alike(const spmd_program *p, ir_module *local, xlac_error *err) {
  static const ir_sharding whole = {.kind = IR_SHARDING_REPLICATED};
  const ir_computation *e = local->entry;
  bool failed = false;
  for (uint32_t i = 0; i < p->n_arguments && e->n_params == p->n_arguments && !failed; i++) {
    const spmd_leaf *leaf = &p->arguments[i];
    ir_attr attr = ir_attr_make(IR_ATTR_SHARDING);
    if (leaf->n_parts > 1 || ir_attr_find(e->params[i], IR_ATTR_SHARDING)) continue;
    attr.v.sharding = leaf->split ? prepare_sharding_of(p, leaf, &local->arena, &failed) : &whole;
    if (attr.v.sharding) failed = !ir_attr_set(e->params[i], attr);
  }
  return failed ? base_oom(err, "the parameters of a device") : 0;
}

int driver_partition(ir_module *m, uint32_t n_devices, bool rehearsal, ir_module **out, spmd_program **partitioned,
                     xlac_error *err) {
  spmd_program *p = NULL;
  ir_module *local = NULL;
  TRY(spmd_partition(m, n_devices, rehearsal, &p, err));
  int status = driver_translate(p->local, &local, err);
  if (status == 0) status = prepare_fit_aliases(local, err);
  if (status == 0) status = prepare_say_alike(p, local, err);
  if (status) {
    ir_module_destroy(local);
    spmd_program_destroy(p);
    return status;
  }
  ir_module_destroy(p->local);
  p->local = NULL;
  ir_config *config = ir_edit_config(local);
  config->replica_count = p->replicas;
  config->num_partitions = p->partitions;
  *out = local;
  *partitioned = p;
  return 0;
}

/* The passes know the types of HLO, all sizes known or bounded, in tuples too; quantised ones are
 * StableHLO's. CHLO's functions are ops like any that go element by element. One op that the passes don't
 * know leaves the whole program as it is: slower, but right. */
static bool prepare_is_hlo(const ir_module *ir) {
  IR_FOR_COMPUTATIONS(c, ir)
  IR_FOR_OPS(op, c) {
    bool plain = ir_opcode_has(op->opcode, IR_ELEMENTWISE) && ir_is_tensor(op->type) && !op->type->has_dynamic;
    if (op->type->quant || ir_is_unbounded(op->type) || (ir_opcode_has(op->opcode, IR_MLIR_ONLY) && !plain))
      return false;
  }
  return true;
}

int driver_run_passes(ir_module *m, const driver_options *options, xlac_error *err) {
  assert(m->form == IR_FORM_HLO);
  const ir_verify_options lenient = {.xla_compat = true};
  const char *passes = options->passes ? options->passes : driver_passes[options->build.fast];
  if (!prepare_is_hlo(m)) return 0;
  TRY(pipeline_run_text(m, passes, strlen(passes), options->watch, err));
  if (options->then) TRY(pipeline_run_text(m, options->then, strlen(options->then), options->watch, err));
  return ir_verify(m, &lenient, err);
}
