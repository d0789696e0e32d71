/* The parts of rt_cpu_count that read files, apart so that a test can hand them made-up ones. Thread-safe. */
#ifndef XLAC_RUNTIME_CPUS_H
#define XLAC_RUNTIME_CPUS_H

#include <stdint.h>

/* CPUs that the cgroups named in `membership` (a file like /proc/self/cgroup) and all above them allow, by the quotas
 * found under `mount` (like /sys/fs/cgroup): the smallest ceil(quota / period), or UINT32_MAX where there is no quota.
 */
uint32_t rt_cgroup_cpus(const char *membership, const char *mount);

#endif
