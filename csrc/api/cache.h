/* Compilation by way of the cache on disk. */
#ifndef XLAC_API_CACHE_H
#define XLAC_API_CACHE_H

#include "../driver/cache.h"
#include "../driver/compile.h"
#include "api.h"

/* driver_finish, or what an entry of the cache spares of it. note: what came of the cache, "" where there is none.
 * Takes m, also on failure. */
XLAC_MUST_USE int api_finish(ir_module *m, const xlac_compile_options *options, driver_options *line,
                             driver_times *times, char note[DRIVER_CACHE_NOTE], rt_executable **out, xlac_error *err);
/* The lines of the key of m, and the entry's file. */
XLAC_MUST_USE int api_cache_put_key(base_text *out, const ir_module *m, const xlac_compile_options *options,
                                    const driver_options *line, xlac_error *err);

/* A compiled program as HLO text that reads back as it is, constants to the bit; fails for what that can't hold.
 * container.c */
XLAC_MUST_USE int api_print_exact(base_text *out, const ir_module *m, xlac_error *err);
XLAC_MUST_USE int api_parse_exact(ir_module **out, const char *text, size_t n, xlac_error *err);

#endif
