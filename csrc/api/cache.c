/* Compilation by way of the cache on disk (driver/cache.h). Whatever goes wrong with that, the program is compiled as
 * without, and the executable says what it was. */
#include <stdio.h>

#include "../driver/cache.h"
#include "../base/heed.h"
#include "cache.h"

/* Numbers of parameters, in the order in which they were given. */
static void cached_put_donors(base_text *out, const xlac_compile_options *options) {
  for (uint32_t i = 0; i < options->n_donate; i++) base_putf(out, "%s%u", i ? "," : "", options->donate[i]);
  if (!options->n_donate) BASE_PUT(out, "none");
}

/* What the entry is called; false where there can be none. */
static bool cached_name(driver_cache *c, const ir_module *m, const driver_options *line,
                        const xlac_compile_options *options) {
  base_text donors;
  base_text_init(&donors, c->alloc);
  cached_put_donors(&donors, options);
  const char *text = base_text_cstr(&donors);
  bool named = text && driver_cache_name(c, m, line, xlac_version(), text);
  base_text_free(&donors);
  return named;
}

/* Where ops stood in the caller's text is not kept; where they stand in the entry's says nothing. */
static void cached_forget_places(ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    c->line = c->col = 0;
    IR_FOR_OPS(op, c) op->line = op->col = 0;
  }
}

/* The executable of an entry. The passes have run, and donors are in the program. */
static int cached_load(driver_cache *c, driver_entry *e, const driver_options *line, driver_times *times,
                       rt_executable **out, xlac_error *err) {
  const rt_saved_code saved = {.bytes = e->code.p, .n = e->code.n};
  driver_options again = *line;
  ir_module *m = NULL;
  again.edit = NULL;
  again.no_passes = true;
  again.build.saved = &saved;
  int status = api_parse_exact(&m, e->text.p, e->text.n, err);
  if (status == 0) {
    cached_forget_places(m);
    ir_note_verified(m, IR_VERIFIED_LENIENTLY); /* it was, and the file is as it was written */
    status = driver_finish(m, &again, times, out, err);
  }
  base_free(c->alloc, e->bytes);
  e->bytes = NULL;
  return status;
}

static void cached_store(driver_cache *c, const rt_executable *exe, const base_text *code) {
  base_text text;
  xlac_error why = {0};
  base_text_init(&text, c->alloc);
  if (!code->failed && api_print_exact(&text, exe->module, &why) == 0)
    driver_cache_write(c, (base_slice){text.s, text.n}, (base_slice){code->s, code->n});
  else
    snprintf(c->note, sizeof c->note, "not stored: %.130s", why.message);
  base_text_free(&text);
}

/* What the interpreter runs whole has nothing that a cache could spare. Takes m, also on failure. */
static int cached_make(driver_cache *c, ir_module *m, driver_options *line, driver_times *times, rt_executable **out,
                       xlac_error *err) {
  base_text code;
  base_text_init(&code, c->alloc);
  const rt_saved_code saved = {.out = &code};
  line->build.saved = &saved;
  int status = driver_finish(m, line, times, out, err);
  line->build.saved = NULL;
  if (status == 0 && !(*out)->plan->interpreted) cached_store(c, *out, &code);
  base_text_free(&code);
  return status;
}

/* Takes m, also on failure. */
static int cached_finish(driver_cache *c, ir_module *m, const xlac_compile_options *options, driver_options *line,
                         driver_times *times, rt_executable **out, xlac_error *err) {
  driver_entry e;
  xlac_error why = {0};
  if (!cached_name(c, m, line, options)) return driver_finish(m, line, times, out, err);
  if (!driver_cache_read(c, &e)) return cached_make(c, m, line, times, out, err);
  if (cached_load(c, &e, line, times, out, &why) == 0) {
    ir_module_destroy(m);
    return 0;
  }
  if (base_heed_stopped()) {
    ir_module_destroy(m);
    return base_interrupted(err);
  }
  snprintf(c->note, sizeof c->note, "stored in place of an entry that can't be loaded: %.90s", why.message);
  return cached_make(c, m, line, times, out, err);
}

int api_finish(ir_module *m, const xlac_compile_options *options, driver_options *line, driver_times *times,
               char note[DRIVER_CACHE_NOTE], rt_executable **out, xlac_error *err) {
  driver_cache c;
  int status;
  bool cached = driver_cache_open(&c, options->cache, base_alloc_libc) && !line->partitioned &&
                strcmp(line->device->facts.kind, "cpu") == 0;
  if (cached)
    status = cached_finish(&c, m, options, line, times, out, err);
  else
    status = driver_finish(m, line, times, out, err);
  snprintf(note, DRIVER_CACHE_NOTE, "%s", c.note);
  driver_cache_close(&c);
  return status;
}

int api_cache_put_key(base_text *out, const ir_module *m, const xlac_compile_options *options,
                      const driver_options *line, xlac_error *err) {
  driver_cache c;
  int status = 0;
  bool open = driver_cache_open(&c, options->cache, base_alloc_libc);
  if (!open)
    status = base_fail(err, XLAC_E_BAD_ARGUMENT,
                       "there is no cache: XLAC_CACHE names no folder, and xlac.cache.enable() was not called");
  else if (!cached_name(&c, m, line, options))
    status = base_fail(err, XLAC_E_BAD_ARGUMENT, "%s", c.note[0] ? c.note : "out of memory");
  else
    base_putf(out, "%.*sentry %s\n", (int)c.key.n, c.key.s, c.path);
  driver_cache_close(&c);
  return status;
}
