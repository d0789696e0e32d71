/* The fingerprint of a module: of its header, and of its computations as they print in the mode of that name, but with
 * a number for each called body, which is found once. Written out, a short text can stand for any length. */
#include "../../base/heed.h"
#include "print.h"

/* Of one computation's text, called bodies as digests: 128 bits, so that none is taken for another. */
typedef struct print_digest {
  uint64_t high, low;
} print_digest;

typedef struct text_digests {
  print_digest *of; /* by computation id */
  bool *known;
} text_digests;

/* 64-bit FNV-1a with a final mix, so that near texts differ in all bits. */
static uint64_t digest_text(uint64_t h, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

uint64_t text_hash(const char *s, size_t n) {
  return digest_text(0xcbf29ce484222325u, s, n);
}

static print_digest digest_of(const char *s, size_t n) {
  return (print_digest){text_hash(s, n), digest_text(0x84222325cbf29ce4u, s, n)};
}

void text_write_digest(text_printer *p, const ir_computation *c) {
  if (!p->digests->known[c->id]) p->status = XLAC_E_TOO_DEEP; /* it calls itself */
  base_putc(p->out, '{');
  base_put_u64(p->out, p->digests->of[c->id].high);
  base_putc(p->out, ' ');
  base_put_u64(p->out, p->digests->of[c->id].low);
  base_putc(p->out, '}');
}

/* The digest of a computation whose callees have theirs. */
static void digest_computation(text_printer *p, const ir_computation *c) {
  size_t start = p->out->n;
  text_write_computation(p, c);
  if (base_heed_tick(1 + (p->out->n - start) / 64)) p->out->failed = true;
  if (p->out->failed || p->status) return;
  p->digests->of[c->id] = digest_of(p->out->s + start, p->out->n - start);
  p->digests->known[c->id] = true;
}

/* Their order in the module does not count: callees come first, and the sum of all is taken. */
static void digest_all(text_printer *p, print_digest *sum) {
  uint32_t n = 0;
  ir_computation **order = ir_computation_order(p->module, &p->arena, &n);
  if (!order) p->out->failed = true;
  for (uint32_t i = 0; i < n; i++) {
    digest_computation(p, order[i]);
    if (p->out->failed || p->status) return;
    print_digest d = p->digests->of[order[i]->id];
    *sum = (print_digest){sum->high + d.high, sum->low + d.low};
  }
}

static bool digests_make(text_printer *p, text_digests *d) {
  size_t n = (size_t)p->module->n_computation_ids + 1;
  d->of = BASE_ARRAY(&p->arena, print_digest, n);
  d->known = base_arena_zalloc(&p->arena, n * sizeof *d->known);
  p->digests = d;
  return d->of && d->known && text_survey_module(p);
}

int text_fingerprint(uint64_t *out, const ir_module *m, xlac_error *err) {
  static const text_print_options options = {.mode = TEXT_FINGERPRINT};
  print_digest sum = {0, 0};
  text_digests digests;
  text_printer p;
  base_text t;
  base_text_init(&t, base_alloc_libc);
  text_printer_init(&p, &t, m, &options);
  if (digests_make(&p, &digests))
    digest_all(&p, &sum);
  else
    t.failed = true;
  size_t header = t.n;
  if (!t.failed) {
    text_write_header(&p, m);
    base_put_u64(&t, sum.high);
    base_putc(&t, ' ');
    base_put_u64(&t, sum.low);
  }
  int status = text_printer_finish(&p, err);
  if (status == 0) *out = text_hash(t.s + header, t.n - header);
  base_text_free(&t);
  return status;
}
