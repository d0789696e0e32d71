/* A group that has joined a network runs those of its devices that are this process's; the other processes run theirs
 * in the same call. Shards of whole results that no device here has come from the first device that has them. */
#include <stdio.h>

#include "group.h"

/* --- who has which shards --- */

static bool group_is_same(const spmd_leaf *leaf, uint32_t a, uint32_t b) {
  return leaf->offsets[a] == leaf->offsets[b] && (!leaf->part || leaf->part[a] == leaf->part[b]);
}

/* Whether some device before it has the shard of `device`. */
static bool group_is_had(const spmd_leaf *leaf, uint32_t device) {
  for (uint32_t d = 0; d < device; d++)
    if (group_is_same(leaf, d, device)) return true;
  return false;
}

/* Whether some device of the process has it, before `end`. */
static bool group_has(const group_executable *g, const spmd_leaf *leaf, uint32_t device, uint32_t process,
                      uint32_t end) {
  for (uint32_t d = 0; d < end; d++)
    if (g->process[d] == process && group_is_same(leaf, d, device)) return true;
  return false;
}

/* --- a call --- */

/* Where a shard of a result is, or goes: in the whole array, or in the block. */
static char *group_result_at(const group_executable *g, const group_job *job, uint32_t i, uint32_t device) {
  const spmd_leaf *leaf = &g->program->results[i];
  int64_t at = g->result_at[i][device];
  return at < 0 ? (char *)job->results[i] + leaf->offsets[device] * leaf->bytes : job->block + at;
}

static uint64_t group_tag(const group_executable *g, uint32_t i, uint32_t device) {
  return (1ull << 63) + (uint64_t)i * g->program->n_devices + device;
}

/* To every process that lacks it. */
static int group_send(const group_executable *g, const group_job *job, const rt_participant *us, uint32_t i,
                      uint32_t device, xlac_error *err) {
  const spmd_leaf *leaf = &g->program->results[i];
  size_t bytes = (size_t)spmd_shard_bytes(leaf);
  for (uint32_t p = 0; p < rt_network_size(g->net); p++) {
    if (group_has(g, leaf, device, p, g->program->n_devices)) continue;
    int status = rt_network_send_begin(g->net, p, us, job->run, group_tag(g, i, device), bytes, err);
    if (status == 0) status = rt_network_send_some(g->net, p, us, group_result_at(g, job, i, device), bytes, err);
    TRY(rt_network_send_end(g->net, p, us, status, err));
  }
  return 0;
}

static int group_receive(const group_executable *g, const group_job *job, const rt_participant *us, uint32_t i,
                         uint32_t device, xlac_error *err) {
  const spmd_leaf *leaf = &g->program->results[i];
  rt_receipt r = {.peer = g->process[device],
                  .run = job->run,
                  .tag = group_tag(g, i, device),
                  .to = group_result_at(g, job, i, device),
                  .bytes = (size_t)spmd_shard_bytes(leaf)};
  rt_network_expect(g->net, &r);
  TRY(rt_network_await(g->net, us, &r, "the results", err));
  if (g->result_at[i][device] >= 0 && !spmd_adds_up(leaf, device)) spmd_join(leaf, device, job->results[i], r.to);
  return 0;
}

/* All are sent before any is waited for. */
static int group_collect(const group_executable *g, const group_job *job, const rt_participant *us, xlac_error *err) {
  const spmd_program *p = g->program;
  for (uint32_t i = 0; i < p->n_results; i++)
    for (uint32_t k = 0; p->results[i].bytes && k < g->here; k++)
      if (!group_is_had(&p->results[i], g->mine[k])) TRY(group_send(g, job, us, i, g->mine[k], err));
  for (uint32_t i = 0; i < p->n_results; i++)
    for (uint32_t d = 0; p->results[i].bytes && d < p->n_devices; d++)
      if (!spmd_is_here(g, d) && p->results[i].first[d]) TRY(group_receive(g, job, us, i, d, err));
  return 0;
}

/* A block that there is no memory for ends the call on all. */
int spmd_group_run_everywhere(group_executable *g, const group_job *given, bool wants_block, xlac_error *err) {
  const rt_call_options *o = given->options;
  const rt_participant us = {spmd_device_of(g, 0), o->interrupted, o->interrupt_ctx};
  group_job job = *given;
  char label[RT_LABEL_BYTES];
  xlac_error own = {.code = 0};
  snprintf(label, sizeof label, "%.280s, seed %llu", g->label, (unsigned long long)o->seed);
  TRY(rt_network_begin(g->net, &us, label, !atomic_load(&g->met), &job.run, err));
  int status = wants_block && !job.block ? base_oom(&own, "the shards of a call") : spmd_group_run_here(g, &job, &own);
  if (status == 0 && job.block) status = group_collect(g, &job, &us, &own);
  if (status) {
    rt_network_fail(g->net, job.run, &own);
    if (err) *err = own;
  } else {
    atomic_store(&g->met, true);
  }
  rt_network_end(g->net, job.run);
  return status;
}

/* --- joining --- */

/* First has the shard whoever is here; else the first of the others. */
static void group_find_first(const group_executable *g, spmd_leaf *leaf) {
  uint32_t n = g->program->n_devices, us = rt_network_rank(g->net);
  for (uint32_t d = 0; d < n; d++)
    leaf->first[d] =
        g->process[d] == us ? !group_has(g, leaf, d, us, d) : !group_has(g, leaf, d, us, n) && !group_is_had(leaf, d);
}

/* Which devices are whose. */
static int group_share(group_executable *g, const uint32_t *processes, xlac_error *err) {
  uint32_t n = g->program->n_devices, size = rt_network_size(g->net);
  g->mine = BASE_ARRAY(&g->arena, uint32_t, n);
  g->process = BASE_ARRAY(&g->arena, uint32_t, n);
  g->here = 0;
  if (!g->mine || !g->process) return base_oom(err, "the devices of a group");
  for (uint32_t d = 0; d < n; d++) {
    g->process[d] = processes ? processes[d] : d / (n / size);
    if (g->process[d] >= size)
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "device %u is of process %u; there are %u", (unsigned)d,
                       (unsigned)g->process[d], (unsigned)size);
    if (g->process[d] != rt_network_rank(g->net)) continue;
    if (!spmd_has_seat(g, d))
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "device %u is of this process, and was compiled for another one",
                       (unsigned)d);
    g->mine[g->here++] = d;
  }
  if (g->here > 0) return 0;
  return base_fail(err, XLAC_E_PARTICIPANTS, "no device of the program is one of this process");
}

int spmd_group_join(rt_executable *base, rt_network *net, const uint32_t *processes, const char *label,
                    xlac_error *err) {
  group_executable *g = (group_executable *)base;
  uint32_t n = base->n_devices, size = rt_network_size(net);
  assert(n > 0 && !g->net && !atomic_load(&g->teams));
  if (!processes && n % size)
    return base_hint(err,
                     base_fail(err, XLAC_E_PARTICIPANTS, "%u devices can't be shared evenly by %u processes",
                               (unsigned)n, (unsigned)size),
                     "each process runs as many devices as every other one: compile for a multiple");
  g->net = rt_network_retain(net);
  g->in_turns = g->in_turns && g->one->meetings == 0; /* who waits for others elsewhere keeps nobody here waiting */
  TRY(group_share(g, processes, err));
  snprintf(g->label, sizeof g->label, "%s", label);
  for (uint32_t i = 0; i < g->program->n_results; i++) group_find_first(g, &g->program->results[i]);
  return spmd_group_places(g, err);
}

rt_network *spmd_group_network(const rt_executable *base) {
  return ((const group_executable *)base)->net;
}
