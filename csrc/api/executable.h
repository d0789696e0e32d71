/* What an executable is, inside. */
#ifndef XLAC_API_EXECUTABLE_H
#define XLAC_API_EXECUTABLE_H

#include "api.h"
#include "cache.h"
#include "variant.h"

enum { API_MAX_PASSES = 32 };

struct xlac_executable {
  rt_executable *rt;
  rt_device_set *devices; /* a reference: those that its variants may need */
  xlac_module view;       /* of the compiled module */
  xlac_module local;      /* of a group: that of each device's program */
  xlac_module *source;    /* of a group: a copy of what it was compiled from, and how; else NULL */
  rt_device **seats;      /* where it is compiled for; of a group, by device */
  uint32_t n_donated, *donated;
  bool no_passes;
  double seconds[XLAC_COMPILE_STAGES];
  xlac_compile_options options; /* that shape the plan; no pointers */
  xlac_counters *counters;      /* or NULL */
  api_variants *variants;
  char *blas_path; /* or NULL */
  double pass_began;
  char cache[DRIVER_CACHE_NOTE]; /* what came of the cache on disk */
  uint32_t n_passes;
  struct {
    const char *name;
    double seconds;
  } passes[API_MAX_PASSES];
};

/* How devices make its programs. Points to nothing of the caller's options, as variants are built long after they have
 * gone. */
rt_build_options api_build_options(const xlac_executable *exe);

#endif
