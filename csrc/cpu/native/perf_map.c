/* Names of machine code for Linux's perf, which reads them from /tmp/perf-PID.map: a line has the first byte, how many
 * there are and a name. They are written where the environment's XLAC_PERF_MAP is set, and not "0". Code that is freed
 * keeps its lines; of two lines for one place perf takes the later. */
#include "native_inside.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

bool nat_map_wanted(void) {
  const char *on = getenv("XLAC_PERF_MAP");
  return on && *on && strcmp(on, "0") != 0;
}

/* The text without what would end a line. */
static void map_put_name(base_text *out, const char *name) {
  BASE_PUT(out, "xlac ");
  for (; *name; name++) base_putc(out, (unsigned char)*name < ' ' ? '_' : *name);
  base_putc(out, '\n');
}

/* At the end of the file, in one piece, since several threads may write theirs. No link is followed: the folder is
 * everybody's. */
static void map_append(const char *text, size_t n) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  ssize_t written = write(file, text, n);
  (void)written;
  close(file);
}

void nat_map_write(const cpu_native_store *s, const void *pages) {
  base_text text;
  base_text_init(&text, s->alloc);
  assert(pages && s->maps);
  for (uint32_t i = 0; i < s->names.n; i++) {
    const cpu_native_named *named = &s->names.items[i];
    base_putf(&text, "%llx %x ", (unsigned long long)((uintptr_t)pages + named->entry), named->n_code);
    map_put_name(&text, (const char *)s->texts.items + named->at);
  }
  if (!text.failed && text.n) map_append(text.s, text.n);
  base_text_free(&text);
}
#else
bool nat_map_wanted(void) {
  return false;
}
void nat_map_write(const cpu_native_store *s, const void *pages) {
  (void)s;
  (void)pages;
}
#endif
