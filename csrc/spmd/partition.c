/* From a program with shardings to the program of one device.
 *
 *   import       what JAX or XLA wrote becomes shardings of sdy on meshes
 *   propagate    every value gets a sharding
 *   reshard      the shardings of each op go together; reshards are collectives
 *   localise     values become shards, collectives StableHLO's
 *
 * The way is tried with all shardings, and where a pass has no answer with fewer: sums are made where their parts are,
 * or programs run whole on every device at the worst. */
#include <stdio.h>

#include "../convert/convert.h"
#include "../ir/sdy/sdy.h"
#include "../pipeline/pipeline.h"
#include "../shard/common/common.h"
#include "inside.h"

static const char PROPAGATE[] = "sdy-propagation-pipeline";
static const char AGREE[] = "func.func(sdy-insert-explicit-reshards{enable-full-version=true again=true})";
static const char COLLECTIVES[] =
    "canonicalize{enable-patterns=sdy-reshard},func.func(sdy-reshard-to-collectives),"
    "canonicalize{enable-patterns=sdy-collective}";

static int part_run(ir_module *m, const char *passes, xlac_error *err) {
  return pipeline_run_text(m, passes, strlen(passes), NULL, err);
}

/* --- import --- */

static bool part_has_attribute(const ir_module *m, const char *key) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (ir_mattr_of(op, key)) return true;
    }
    for (uint32_t i = 0; c->result_mlir && i < c->n_results; i++)
      if (c->result_mlir[i] && ir_mdict_get(c->result_mlir[i], key)) return true;
  }
  return false;
}

/* Shardings as JAX's Shardy mode sends them through HLO lie in frontend attributes, those of XLA in mhlo.sharding. */
static int part_import(ir_module *m, xlac_error *err) {
  if (shc_has(m, IR_OP_SDY_MESH)) return 0;
  if (part_has_attribute(m, "mhlo.frontend_attributes") ||
      (m->mlir && ir_mdict_get(m->mlir, "mhlo.frontend_attributes")))
    return part_run(m, "xla-sdy-round-trip-import-pipeline", err);
  return part_has_attribute(m, "mhlo.sharding") ? part_run(m, "xla-sdy-stablehlo-import-pipeline", err) : 0;
}

/* The function that runs is the one that passes take for it, by its name: also where they make others. */
static int part_name_entry(ir_module *m, xlac_error *err) {
  ir_computation *entry = m->entry;
  if (!entry || entry->kind != IR_FUNCTION || shc_main(m, false)) return 0;
  const base_istr *name = ir_intern(m, "main", 4);
  if (!name) return base_oom(err, "a copy of a program");
  ir_set_computation_name(entry, name);
  return 0;
}

static int part_copy(ir_module *m, ir_module **out, xlac_error *err) {
  if (m->form != IR_FORM_MLIR) return convert_from_hlo(out, m, err);
  TRY(ir_module_clone(out, m, err));
  return part_name_entry(*out, err);
}

/* --- meshes --- */

static int64_t part_count(const ir_module *m, const char *key) {
  const ir_mattr *a = m->mlir ? ir_mdict_get(m->mlir, key) : NULL;
  return a && a->kind == IR_M_INTEGER && a->v.i > 0 ? a->v.i : 1;
}

typedef struct part_meshes {
  const ir_module *m;
  int64_t size, other; /* other: a second size; 0: there is none */
} part_meshes;

static const sdy_sharding *part_see_mesh(void *ctx, const sdy_sharding *s) {
  part_meshes *x = ctx;
  const sdy_mesh *mesh = sdy_mesh_of(x->m, s);
  if (!mesh || sdy_mesh_is_maximal(mesh) || sdy_mesh_is_empty(mesh)) return s;
  int64_t n = sdy_mesh_size(mesh);
  if (n == 1) return s; /* it cuts nothing, as in a program exported from one device that another one calls */
  if (x->size == 1) x->size = n;
  if (n != x->size) x->other = n;
  return s;
}

/* Devices of the meshes that the program's shardings are on; 1 where it has none. All have the same size. */
static int part_mesh_size(ir_module *m, int64_t *size, xlac_error *err) {
  part_meshes x = {m, 1, 0};
  TRY(shc_map(m, part_see_mesh, &x, err));
  *size = x.size;
  if (x.other == 0) return 0;
  return base_fail(err, XLAC_E_VERIFY_SHARDING,
                   "a mesh of the program has %lld devices, another one %lld: expected meshes of one size",
                   (long long)x.size, (long long)x.other);
}

static int part_grid(spmd_program *p, ir_module *m, xlac_error *err) {
  int64_t mesh = 1, replicas = part_count(m, "mhlo.num_replicas");
  TRY(part_mesh_size(m, &mesh, err));
  p->replicas = replicas;
  p->partitions = p->n_devices / replicas;
  if (p->n_devices % replicas == 0 && (mesh == 1 || mesh == p->partitions)) return 0;
  int status = base_fail(err, XLAC_E_VERIFY_SHARDING,
                         "the program is for %lld replicas on a mesh of %lld devices: expected %lld devices, found %u",
                         (long long)replicas, (long long)mesh, (long long)(mesh * replicas), (unsigned)p->n_devices);
  return base_hint(err, status, "compile it with devices=%lld", (long long)(mesh * replicas));
}

/* --- what goes in and out --- */

static int part_leaves(spmd_program *p, const ir_module *m, xlac_error *err) {
  const ir_computation *f = shc_main(m, true);
  if (!f) return shc_no_main(m, err);
  p->n_arguments = f->n_params;
  p->n_results = f->n_results;
  p->arguments = BASE_ARRAY(&p->arena, spmd_leaf, (size_t)f->n_params + 1);
  p->results = BASE_ARRAY(&p->arena, spmd_leaf, (size_t)f->n_results + 1);
  if (!p->arguments || !p->results) return base_oom(err, "shards");
  for (uint32_t i = 0; i < f->n_params; i++)
    TRY(spmd_leaf_make(&p->arguments[i], p, m, f->params[i]->type, sdy_get((ir_value){f->params[i], 0}), err));
  for (uint32_t i = 0; i < f->n_results; i++)
    TRY(spmd_leaf_make(&p->results[i], p, m, f->results[i].op->types[f->results[i].index], sdy_get_result(f, i), err));
  return 0;
}

/* --- the line --- */

static int part_localise(spmd_program *p, ir_module *m, xlac_error *err) {
  char passes[140];
  assert(m->form == IR_FORM_MLIR && p->partitions > 0);
  bool parts = spmd_has_parts(m);
  TRY(part_run(m, "inline", err)); /* of a pad in a function of its own (jnp.pad) forms would not see who reads it */
  TRY(spmd_make_forms(m, err));
  TRY(spmd_make_known(m, err)); /* propagation takes rules away at its end */
  TRY(part_run(m, AGREE, err));
  TRY(spmd_make_local(p, m, err));
  if (parts) TRY(spmd_check_parts(m, err));
  TRY(spmd_split_reshards(m, err));
  if (parts) TRY(spmd_name_sources(m, err));
  TRY(part_run(m, COLLECTIVES, err));
  TRY(spmd_note_moves(p, m, err));
  TRY(part_leaves(p, m, err));
  snprintf(passes, sizeof passes,
           "sdy-convert-global-to-local{uneven=true rehearsal=%s partition-count=%lld},sdy-drop-sharding-and-mesh",
           p->rehearsal ? "true" : "false", (long long)p->partitions);
  TRY(part_run(m, passes, err));
  TRY(spmd_note_exchanges(p, m, err));
  TRY(spmd_sum_exponentials(m, err));
  TRY(spmd_turn_sums(m, err));
  return spmd_combine_sums(m, err);
}

/* With all shardings; with sums that are made where their parts are; whole. */
typedef enum part_way { PART_AS_SAID, PART_SUMMED, PART_WHOLE } part_way;

/* m stays as it is on failure, or is taken as the local program. */
static int part_try(spmd_program *p, const ir_module *m, part_way way, xlac_error *err) {
  ir_module *copy = NULL;
  p->gathers.n = p->moves.n = 0;
  TRY(ir_module_clone(&copy, m, err));
  int status = way == PART_SUMMED ? spmd_sum_parts(copy, err) : 0;
  if (status == 0) status = way == PART_WHOLE ? spmd_make_whole(copy, err) : part_run(copy, PROPAGATE, err);
  if (status == 0) status = part_localise(p, copy, err);
  if (status)
    ir_module_destroy(copy);
  else
    p->local = copy;
  return status;
}

/* Why not all of it is as the program says, with the line where that is. */
static int part_explain(spmd_program *p, const xlac_error *why, const char **to, xlac_error *err) {
  char text[sizeof why->message + 64];
  snprintf(text, sizeof text, why->line ? "%s (line %u)" : "%s", why->message, (unsigned)why->line);
  *to = base_arena_strndup(&p->arena, text, strlen(text));
  return *to ? 0 : base_oom(err, "a partitioned program");
}

/* What the passes have no answer for runs with its sums made at once, or whole on every device. Running out of memory,
 * or of patience, is not an answer. */
static int part_sharded(spmd_program *p, const ir_module *m, xlac_error *err) {
  xlac_error why = {.code = 0}, again = why;
  int status = part_try(p, m, PART_AS_SAID, &why);
  if (status == 0) return 0;
  bool ends = why.code == XLAC_E_OUT_OF_MEMORY || why.code == XLAC_E_INTERRUPTED;
  if (!ends && spmd_has_parts(m) && part_try(p, m, PART_SUMMED, &again) == 0)
    return part_explain(p, &why, &p->summed, err);
  if (!ends && !spmd_has_parts(m) && part_try(p, m, PART_WHOLE, &again) == 0)
    return part_explain(p, &why, &p->whole, err);
  if (err) *err = why;
  if (ends || !spmd_has_parts(m)) return status;
  return base_hint(err, status, "reshard what has unreduced axes, so that it is added up, before it is used so");
}

/* What propagation makes itself, and takes for an error where it is there before: as MLIR that passes have written. */
static int part_undo(ir_module *m, xlac_error *err) {
  if (shc_has(m, IR_OP_SDY_DATA_FLOW_EDGE)) TRY(part_run(m, "func.func(sdy-sink-data-flow-edges)", err));
  if (shc_has(m, IR_OP_SDY_FUNC_DATA_FLOW_EDGE)) TRY(part_run(m, "sdy-sink-func-data-flow-edges", err));
  return shc_has(m, IR_OP_SDY_NAMED_COMPUTATION) ? part_run(m, "sdy-export-named-computations", err) : 0;
}

/* m: imported, the program's own copy. */
static int part_line(spmd_program *p, ir_module *m, xlac_error *err) {
  TRY(part_import(m, err));
  TRY(part_undo(m, err));
  TRY(part_grid(p, m, err));
  if (shc_has(m, IR_OP_SDY_MESH)) {
    TRY(spmd_list_groups(m, err));
    if (spmd_has_parts(m)) TRY(part_run(m, "inline", err)); /* signatures would have to say them, too */
    TRY(spmd_make_known(m, err));
    return part_sharded(p, m, err);
  }
  TRY(spmd_note_moves(p, m, err));
  TRY(part_leaves(p, m, err));
  return ir_module_clone(&p->local, m, err);
}

static int part_check(uint32_t n_devices, bool rehearsal, xlac_error *err) {
  int most = rehearsal ? SPMD_MOST_REHEARSED : SPMD_MOST_DEVICES;
  if (n_devices >= 1 && n_devices <= (uint32_t)most) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "%u devices: expected 1 to %d", (unsigned)n_devices, most);
}

int spmd_partition(ir_module *m, uint32_t n_devices, bool rehearsal, spmd_program **out, xlac_error *err) {
  ir_module *copy = NULL;
  TRY(part_check(n_devices, rehearsal, err));
  spmd_program *p = base_malloc(base_alloc_libc, sizeof *p);
  if (!p) return base_oom(err, "a partitioned program");
  memset(p, 0, sizeof *p);
  base_arena_init(&p->arena, base_alloc_libc);
  p->n_devices = n_devices;
  p->rehearsal = rehearsal;
  int status = part_copy(m, &copy, err);
  if (status == 0) status = part_line(p, copy, err);
  ir_module_destroy(copy);
  if (status)
    spmd_program_destroy(p);
  else
    *out = p;
  return status;
}

void spmd_program_destroy(spmd_program *p) {
  if (!p) return;
  ir_module_destroy(p->local);
  BASE_VEC_FREE(p->arena.alloc, &p->gathers);
  BASE_VEC_FREE(p->arena.alloc, &p->moves);
  base_arena_free(&p->arena);
  base_free(base_alloc_libc, p);
}
