/* Several processes: networks as xlac.h shows them, and executables that join them. */
#include "../base/heed.h"
#include "../include/xlac_network.h"
#include "../runtime/network.h"
#include "../spmd/spmd.h"
#include "executable.h"

static rt_network *api_network(xlac_network *net) {
  return (rt_network *)(void *)net;
}

int xlac_network_create(xlac_network **out, uint32_t rank, uint32_t n, const xlac_peer *peers, xlac_error *err) {
  rt_network *net = NULL;
  _Static_assert(sizeof(xlac_peer) == sizeof(rt_peer), "the same struct");
  if (n < 1 || n > RT_MOST_PROCESSES || rank >= n)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "rank %u of %u processes: expected 1 to %d, and a rank below that",
                     (unsigned)rank, (unsigned)n, RT_MOST_PROCESSES);
  TRY(rt_network_create(&net, rank, n, (const rt_peer *)(const void *)peers, base_alloc_libc, err));
  *out = (xlac_network *)(void *)net;
  return 0;
}

static bool api_network_heeds(void *ctx) {
  (void)ctx;
  return base_heed_tick(UINT32_MAX);
}

int xlac_network_gather(xlac_network *net, const void *data, size_t n, char **all, size_t *sizes, xlac_error *err) {
  const rt_participant us = {rt_network_rank(api_network(net)), api_network_heeds, NULL};
  return rt_network_gather(api_network(net), &us, data, n, all, sizes, err);
}

void xlac_network_close(xlac_network *net, const char *why) {
  rt_network_close(api_network(net), why);
}

void xlac_network_release(xlac_network *net) {
  rt_network_release(api_network(net));
}

void xlac_executable_here(const xlac_executable *exe, uint32_t *from, uint32_t *here) {
  *from = *here = 0;
  if (exe->rt->n_devices) spmd_group_here(exe->rt, from, here);
}

uint64_t xlac_executable_calls(const xlac_executable *exe) {
  rt_network *net = exe->rt->n_devices ? spmd_group_network(exe->rt) : NULL;
  return net ? rt_network_runs(net) : 0;
}

void xlac_executable_refuse(const xlac_executable *exe, uint64_t calls, const char *why) {
  rt_network *net = exe->rt->n_devices ? spmd_group_network(exe->rt) : NULL;
  if (net) rt_network_refuse(net, calls, why ? why : "a call has failed");
}

int xlac_executable_join(xlac_executable *exe, xlac_network *net, const uint32_t *processes, const char *label,
                         xlac_error *err) {
  if (!exe->rt->n_devices) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the program was compiled for one device");
  TRY(api_check_text(label, "the label", err));
  return spmd_group_join(exe->rt, api_network(net), processes, label, err);
}
