/* What to say when there is no memory for a call: how much it takes, and for what. The frame and the results are what
 * a call asks for; the largest values tell the user which op to look at. */
#include <stdio.h>

#include "plan.h"

enum { OOM_LARGEST = 3, OOM_TEXT = 64 };

/* "1.5 GB", decimal units, three digits. */
static const char *oom_size(double bytes, char *out) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  uint32_t unit = 0;
  while (bytes >= 1000 && unit < 6) bytes /= 1000, unit++;
  snprintf(out, OOM_TEXT, "%.3g %s", bytes, units[unit]);
  return out;
}

/* Values that are made, the largest first; lent ones lie in others' memory, but are as large. At most OOM_LARGEST, by
 * insertion. */
static uint32_t oom_largest(const plan_program *p, const plan_buffer **out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->first == UINT32_MAX || !b->op || b->bytes == 0) continue;
    uint32_t at = n < OOM_LARGEST ? n++ : OOM_LARGEST - 1;
    if (at == OOM_LARGEST - 1 && out[at] && out[at]->bytes >= b->bytes) continue;
    for (; at > 0 && out[at - 1]->bytes < b->bytes; at--) out[at] = out[at - 1];
    out[at] = b;
  }
  return n;
}

static void oom_put_value(base_text *t, const plan_buffer *b) {
  char size[OOM_TEXT], type[OOM_TEXT];
  base_putf(t, "%.*s %s (%s)", (int)(b->op->name->n < 40 ? b->op->name->n : 40), b->op->name->s,
            b->type ? ir_type_text(b->type, type, sizeof type) : "scratch memory", oom_size((double)b->bytes, size));
}

/* Never fails itself: a text that could not be made is left out. */
int plan_out_of_memory(const plan_program *p, xlac_error *err) {
  assert(p);
  const plan_buffer *largest[OOM_LARGEST] = {NULL};
  char frame[OOM_TEXT], peak[OOM_TEXT], made[OOM_TEXT];
  double results = 0;
  base_text t;
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (p->buffers[i].place == PLAN_RESULT && !p->buffers[i].borrowed) results += (double)p->buffers[i].bytes;
  base_text_init(&t, base_alloc_libc);
  uint32_t n = oom_largest(p, largest);
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(&t, ", ");
    oom_put_value(&t, largest[i]);
  }
  const char *values = n ? base_text_cstr(&t) : NULL;
  int status =
      base_fail(err, XLAC_E_OUT_OF_MEMORY,
                "out of memory: a call of %.60s takes %s for results and a frame of %s, of which at most %s are "
                "in use at a time%s%s",
                p->computation->name->s, oom_size(results, made), oom_size((double)p->frame_bytes, frame),
                oom_size((double)p->peak_bytes, peak), values ? "; the largest values are " : "", values ? values : "");
  base_text_free(&t);
  return base_hint(err, status, "Executable.memory shows what is alive when; trim() gives kept memory back");
}
