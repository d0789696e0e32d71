/* Compiled programs on disk. An entry is a file whose head says, in text, what it was made of and for; after that come
 * the program after the passes, as HLO text, and the machine code of its kernels (rt_saved_code). Entries are found by
 * their heads' sum, read only where this user alone could have written them, and believed only where all of the file
 * agrees with its sum. Any thread, any process: nothing is locked; what is written is whole or not there. */
#ifndef XLAC_DRIVER_CACHE_H
#define XLAC_DRIVER_CACHE_H

#include "../base/file.h"
#include "compile.h"

enum { DRIVER_CACHE_NOTE = 224 };

typedef struct driver_cache {
  base_alloc alloc;
  char folder[BASE_FILE_PATH], path[BASE_FILE_PATH + 64];
  base_text key;                /* the lines of the head that say what the entry depends on */
  char note[DRIVER_CACHE_NOTE]; /* what came of it: "hit", "stored", or a sentence */
} driver_cache;

/* The folder that `given` names: "" or "0": none, "1": xlac's own below the user's, NULL: as the environment's
 * XLAC_CACHE says, and none without that. false: none. To be closed in any case. */
bool driver_cache_open(driver_cache *c, const char *given, base_alloc alloc);
void driver_cache_close(driver_cache *c);

/* The key of m, a copy in HLO form, compiled with these options. version: of xlac. extra: what else was asked for of
 * the program, or "". false where m has no text or the library no number of its own: the note says which. */
bool driver_cache_name(driver_cache *c, const ir_module *m, const driver_options *options, const char *version,
                       const char *extra);

/* What an entry holds: slices of `bytes`, which is freed with c's allocator. */
typedef struct driver_entry {
  char *bytes;
  base_slice text, code;
} driver_entry;
/* false where there is none, or none to believe: then the note says why. */
bool driver_cache_read(driver_cache *c, driver_entry *out);
/* The note says how it went. The oldest used entries go where all take more than XLAC_CACHE_BYTES, or 256 MiB. */
void driver_cache_write(driver_cache *c, base_slice text, base_slice code);

#endif
