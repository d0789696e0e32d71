/* What convolutions, windows, pads and slices say of their dimensions.
 *
 *   window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}
 *   padding=0_0x1_2_1     slice={[0:4], [1:9:2]}     dim_labels=b01f_01io->b01f
 * These lists are joined by 'x' and '_', which are name bytes: they are read from the bytes, not as tokens. No
 * blanks are allowed inside, as in XLA, whose lexer has them as single tokens. */
#include "../../base/number/number.h"
#include "read.h"

/* --- windows --- */

/* 2x3, or any one number: pushed. Negative numbers are taken; the verifier judges them. */
static int read_by(text_reader *r) {
  const char *p = r->lx.p;
  for (;;) {
    const char *d = p + (*p == '-'), *e = d;
    while (text_is(*e, TEXT_DIGIT)) e++;
    int64_t v;
    if (e == d || base_parse_i64(p, e, &v) != e) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "integers as in 2x3");
    TRY(text_push_int(r, v));
    p = e;
    if (*p != 'x') break;
    p++;
  }
  if (text_is(*p, TEXT_NAME)) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "integers as in 2x3");
  r->lx.p = p;
  text_skip(&r->lx);
  return 0;
}

/* low_high or low_high_interior, per dimension, joined by 'x'; pushes three numbers each. Always three: 0 for an
 * interior that is not written, which windows never have. */
static int read_pads(text_reader *r, bool interior) {
  const char *p = r->lx.p, *what = interior ? "a padding as in 0_0_0x3_3_1" : "a padding as in 0_0x3_3";
  for (;; p++) {
    int n = 0;
    for (;; p++, n++) {
      const char *d = p + (*p == '-'), *e = d;
      while (text_is(*e, TEXT_DIGIT)) e++;
      int64_t v;
      if (n > 2 || e == d || (n == 2 && (*p == '-' || !interior)) || base_parse_i64(p, e, &v) != e)
        return text_expected(r, XLAC_E_BAD_ATTRIBUTE, what);
      TRY(text_push_int(r, v));
      p = e;
      if (*p != '_') break;
    }
    if (n == 0) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, what);
    if (n == 1) TRY(text_push_int(r, 0));
    if (*p != 'x') break;
  }
  if (text_is(*p, TEXT_NAME)) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, what);
  r->lx.p = p;
  text_skip(&r->lx);
  return 0;
}

/* Where the numbers of each part of a window stand in r->ints. */
enum { W_SIZE, W_STRIDE, W_PAD, W_LHS_DILATE, W_RHS_DILATE, W_REVERSAL, W_PARTS };
/* Keys of a window's parts. */
static const char *const window_parts[W_PARTS] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
/* What was read of each part: where in r->ints it begins, and how many numbers. */
typedef struct window_text {
  uint32_t at[W_PARTS], n[W_PARTS];
  bool given[W_PARTS];
} window_text;

/* One part of a window, "stride=2x2"; its numbers stay on r->ints. */
static int read_window_part(text_reader *r, window_text *w) {
  const char *at;
  base_slice key;
  TRY(text_read_key(r, &at, &key));
  uint32_t part = 0;
  while (part < W_PARTS && !base_slice_is(key, window_parts[part])) part++;
  if (part == W_PARTS) {
    int status =
        text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a window has no '%.*s'", (int)(key.n < 60 ? key.n : 60), key.p);
    return base_hint(r->err, status, "it has size, stride, pad, lhs_dilate, rhs_dilate and rhs_reversal");
  }
  if (w->given[part])
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "'%s' is given twice in a window", window_parts[part]);
  w->given[part] = true;
  w->at[part] = r->ints.n;
  TRY(part == W_PAD ? read_pads(r, false) : read_by(r));
  w->n[part] = (r->ints.n - w->at[part]) / (part == W_PAD ? 3 : 1);
  return 0;
}

/* The number of dimension i in a part, or `otherwise` where the part is not given. */
static int64_t window_number(const text_reader *r, const window_text *w, uint32_t part, uint32_t i, int64_t otherwise) {
  assert(part < W_PARTS && w->at[part] + w->n[part] <= r->ints.n);
  return w->given[part] && i < w->n[part] ? r->ints.items[w->at[part] + i] : otherwise;
}

/* Every part must have as many dimensions as size=, except rhs_reversal, which XLA's parser does not count either. */
int text_read_window(text_reader *r, const ir_window **out) {
  const char *at = r->lx.p;
  uint32_t first = r->ints.n;
  window_text w = {0};
  TRY(text_want(r, '{', "before a window"));
  while (*r->lx.p != '}') TRY(read_window_part(r, &w));
  text_eat(&r->lx, '}');
  for (uint32_t part = W_STRIDE; part < W_REVERSAL; part++)
    if (w.given[part] && w.n[part] != w.n[W_SIZE])
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a window has %u sizes but %u in '%s'", w.n[W_SIZE], w.n[part],
                       window_parts[part]);
  ir_window *window = base_arena_alloc(&r->m->arena, sizeof *window + w.n[W_SIZE] * sizeof window->v[0]);
  if (!window) return text_no_memory(r);
  window->n = w.n[W_SIZE];
  for (uint32_t i = 0; i < window->n; i++) {
    const int64_t *pad = w.given[W_PAD] ? r->ints.items + w.at[W_PAD] + 3 * (size_t)i : (const int64_t[]){0, 0};
    window->v[i] = (ir_window_dim){.size = window_number(r, &w, W_SIZE, i, 1),
                                   .stride = window_number(r, &w, W_STRIDE, i, 1),
                                   .padding_low = pad[0],
                                   .padding_high = pad[1],
                                   .window_dilation = window_number(r, &w, W_RHS_DILATE, i, 1),
                                   .base_dilation = window_number(r, &w, W_LHS_DILATE, i, 1),
                                   .reversal = window_number(r, &w, W_REVERSAL, i, 0) == 1};
  }
  r->ints.n = first;
  *out = window;
  return 0;
}

/* low_high or low_high_interior for each dimension of a pad. */
int text_read_padding(text_reader *r, const ir_padding **out) {
  uint32_t first = r->ints.n;
  TRY(read_pads(r, true));
  assert((r->ints.n - first) % 3 == 0);
  uint32_t n = (r->ints.n - first) / 3;
  ir_padding *p = base_arena_alloc(&r->m->arena, sizeof *p + n * sizeof p->v[0]);
  if (!p) return text_no_memory(r);
  p->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t *v = r->ints.items + first + 3 * (size_t)i;
    p->v[i] = (ir_padding_dim){v[0], v[1], v[2]};
  }
  r->ints.n = first;
  *out = p;
  return 0;
}

/* {[0:4], [1:9:2]} The stride defaults to 1. */
int text_read_slice(text_reader *r, const ir_slice **out) {
  uint32_t first = r->ints.n, from;
  TRY(text_want(r, '{', "before slice ranges"));
  if (*r->lx.p != '}') {
    do {
      const char *at = r->lx.p;
      TRY(text_read_ints(r, '[', ':', ']', &from));
      uint32_t n = r->ints.n - from;
      if (n != 2 && n != 3)
        return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a slice range is [start:limit] or [start:limit:stride]");
      if (n == 2) TRY(text_push_int(r, 1));
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after slice ranges"));
  assert((r->ints.n - first) % 3 == 0);
  uint32_t n = (r->ints.n - first) / 3;
  ir_slice *s = base_arena_alloc(&r->m->arena, sizeof *s + n * sizeof s->v[0]);
  if (!s) return text_no_memory(r);
  s->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t *v = r->ints.items + first + 3 * (size_t)i;
    s->v[i] = (ir_slice_dim){v[0], v[1], v[2]};
  }
  r->ints.n = first;
  *out = s;
  return 0;
}

/* --- convolution dimensions --- */

enum { MAX_LABELS = IR_MAX_RANK };

/* One operand's labels: where the two named dimensions and the spatial ones stand. */
typedef struct labels {
  int64_t named[2];
  int64_t spatial[MAX_LABELS];
  uint32_t n, n_spatial;
} labels;

/* Labels up to the first byte that is none. false unless each is unique and the spatial ones are 0, 1, ... '?' is a
 * dimension that is neither named nor spatial: XLA prints it for dimensions it has no name for. */
static bool read_labels(const char **p, const char *names, labels *l) {
  *l = (labels){.named = {-1, -1}};
  for (uint32_t i = 0; i < MAX_LABELS; i++) l->spatial[i] = -1;
  for (;; (*p)++, l->n++) {
    char c = **p;
    int64_t *slot;
    if (c == '?') continue;
    if (c == names[0] || c == names[1]) {
      slot = &l->named[c == names[1]];
    } else if (text_is(c, TEXT_DIGIT)) {
      slot = &l->spatial[c - '0'];
      l->n_spatial++;
    } else {
      break;
    }
    if (*slot >= 0) return false;
    *slot = l->n;
  }
  for (uint32_t i = 0; i < l->n_spatial; i++)
    if (l->spatial[i] < 0) return false;
  return l->n >= 2;
}

/* NULL for no spatial dimensions. *ok becomes false when out of memory. */
static const int64_t *copy_spatial(text_reader *r, const labels *l, bool *ok) {
  if (l->n_spatial == 0) return NULL;
  const int64_t *copy = base_arena_memdup(&r->m->arena, l->spatial, l->n_spatial * sizeof *copy);
  *ok = *ok && copy;
  return copy;
}

/* b01f_01io->b01f Letters b and f are batch and feature, i and o the kernel's input and output feature; digits are
 * spatial dimensions, each standing at the place of its dimension. */
int text_read_conv_dims(text_reader *r, const ir_conv_dims **out) {
  const char *p = r->lx.p;
  labels in, kernel, to;
  bool good = read_labels(&p, "bf", &in) && *p++ == '_' && read_labels(&p, "io", &kernel) && *p == '-' && p[1] == '>';
  good = good && (p += 2, read_labels(&p, "bf", &to)) && !text_is(*p, TEXT_NAME);
  if (!good) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "dimension labels as in b01f_01io->b01f");
  if (in.n_spatial != kernel.n_spatial || in.n_spatial != to.n_spatial)
    return text_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "input, kernel and output have %u, %u and %u spatial dimensions",
                     in.n_spatial, kernel.n_spatial, to.n_spatial);
  ir_conv_dims *c = BASE_NEW(&r->m->arena, ir_conv_dims);
  bool ok = c != NULL;
  if (!ok) return text_no_memory(r);
  *c = (ir_conv_dims){.n_spatial = in.n_spatial,
                      .input_batch = in.named[0],
                      .input_feature = in.named[1],
                      .kernel_input_feature = kernel.named[0],
                      .kernel_output_feature = kernel.named[1],
                      .output_batch = to.named[0],
                      .output_feature = to.named[1],
                      .input_spatial = copy_spatial(r, &in, &ok),
                      .kernel_spatial = copy_spatial(r, &kernel, &ok),
                      .output_spatial = copy_spatial(r, &to, &ok)};
  r->lx.p = p;
  text_skip(&r->lx);
  *out = c;
  return ok ? 0 : text_no_memory(r);
}
