/* How many CPUs are really there: the affinity mask says which ones the scheduler may use (taskset,
 * cpusets), cgroup quotas how much time of them (docker run --cpus=1.5). A quota of 1.5 CPUs counts as 2
 * threads. */
#include "cpus.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "threads.h"

enum { PATH_ROOM = 1024, LINE_ROOM = 512, MASK_WORDS = 1024 };

/* The first line of a file, without its newline; false when there is none. */
static bool read_line(const char *path, char line[LINE_ROOM]) {
  FILE *f = fopen(path, "re");
  if (!f) return false;
  bool ok = fgets(line, LINE_ROOM, f) != NULL;
  fclose(f);
  if (ok) line[strcspn(line, "\n")] = 0;
  return ok;
}

/* Names are short words of this file. */
static bool read_line_in(const char *folder, const char *name, char line[LINE_ROOM]) {
  char path[PATH_ROOM + 32];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return read_line(path, line);
}

/* Rounded up; no quota, or nonsense: UINT32_MAX. */
static uint32_t quota_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return UINT32_MAX;
  long long cpus = (quota - 1) / period + 1;
  return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

/* cgroup v2 has "max 100000" or "150000 100000" in one file; v1 has two files, and -1 for no quota. */
static uint32_t folder_cpus(const char *folder) {
  char quota[LINE_ROOM], period[LINE_ROOM];
  if (read_line_in(folder, "cpu.max", quota)) {
    char *space = strchr(quota, ' ');
    return space && quota[0] != 'm' ? quota_cpus(atoll(quota), atoll(space)) : UINT32_MAX;
  }
  if (!read_line_in(folder, "cpu.cfs_quota_us", quota) || !read_line_in(folder, "cpu.cfs_period_us", period))
    return UINT32_MAX;
  return quota_cpus(atoll(quota), atoll(period));
}

/* The group at `group` and all above it up to the mount. Inside a container the group's path may be the host's and not
 * be there, so a missing folder counts as no quota. */
static uint32_t hierarchy_cpus(const char *mount, const char *controller, const char *group) {
  char folder[PATH_ROOM];
  int n = snprintf(folder, sizeof folder, "%s%s%s", mount, controller, strcmp(group, "/") ? group : "");
  size_t root = strlen(mount) + strlen(controller);
  if (n < 0 || (size_t)n >= sizeof folder) return UINT32_MAX;
  uint32_t least = UINT32_MAX;
  for (;;) {
    uint32_t cpus = folder_cpus(folder);
    if (cpus < least) least = cpus;
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < root) return least;
    *slash = 0;
  }
}

/* In "cpu,cpuacct" yes, in "cpuset" no. */
static bool lists_cpu(const char *controllers) {
  for (const char *p = controllers; *p; p += strcspn(p, ","), p += *p == ',')
    if (strncmp(p, "cpu", 3) == 0 && (p[3] == ',' || p[3] == 0)) return true;
  return false;
}

/* A line is "id:controllers:group"; v2's has no controllers. v1 mounts cpu and cpuacct together
 * ("/cpu,cpuacct") or by a link ("/cpu"): the smaller answer of both counts. */
static uint32_t line_cpus(char *line, const char *mount) {
  char *controllers = strchr(line, ':');
  char *group = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!group) return UINT32_MAX;
  *group++ = 0;
  ++controllers;
  group[strcspn(group, "\n")] = 0;
  if (*controllers == 0) {
    uint32_t plain = hierarchy_cpus(mount, "", group), hybrid = hierarchy_cpus(mount, "/unified", group);
    return plain < hybrid ? plain : hybrid;
  }
  if (!lists_cpu(controllers)) return UINT32_MAX;
  uint32_t single = hierarchy_cpus(mount, "/cpu", group);
  if (strcmp(controllers, "cpu") == 0) return single;
  char name[LINE_ROOM + 1];
  snprintf(name, sizeof name, "/%s", controllers);
  uint32_t joint = hierarchy_cpus(mount, name, group);
  return joint < single ? joint : single;
}

/* A process has one line per hierarchy. */
uint32_t rt_cgroup_cpus(const char *membership, const char *mount) {
  assert(membership && mount);
  FILE *f = fopen(membership, "re");
  if (!f) return UINT32_MAX;
  char line[LINE_ROOM];
  uint32_t least = UINT32_MAX;
  while (fgets(line, sizeof line, f)) {
    uint32_t cpus = line_cpus(line, mount);
    if (cpus < least) least = cpus;
  }
  fclose(f);
  return least;
}

/* Those that the machine has, whoever may use them. */
static uint32_t online_cpus(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

#ifdef __linux__
/* The system call itself, because libc declares its own only under a macro set before any header. */
static uint32_t affinity_cpus(void) {
  unsigned long mask[MASK_WORDS];
  long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  uint32_t n = 0;
  for (long i = 0; i < bytes / (long)sizeof *mask; ++i) n += (uint32_t)__builtin_popcountl(mask[i]);
  return n ? n : online_cpus();
}
#else
static uint32_t affinity_cpus(void) {
  return online_cpus();
}
#endif

uint32_t rt_cpu_count(void) {
  uint32_t affinity = affinity_cpus(), quota = rt_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
  uint32_t n = affinity < quota ? affinity : quota;
  return n ? n : 1;
}
