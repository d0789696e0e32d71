/* Op sharding rules, ([i, kj], [])->([i]) {i=2, j=4, k=2} reduction={k} blocked_propagation={j}, custom, and edges:
 * how axes came where they are.
 *
 * Factors are numbers that are written as letters from i on: 0 is i, 17 is z, 18 is z_1. Sizes must list all of them
 * in order; what they mean for each op is in docs/design and ir/sdy/sdy.h. */
#include <stdio.h>

#include "read.h"

enum { SDY_FACTOR_Z = 'z' - 'i' };

/* The next factor of a word such as "jkz_1": i to z, z_1 and on. */
static int sdy_read_factor(mlir_reader *r, base_slice *w, int64_t *out) {
  assert(w->n > 0);
  const char *p = w->p, *end = p + w->n;
  if (w->n >= 2 && p[0] == 'z' && p[1] == '_') {
    const char *digits = p + 2, *e = digits;
    while (e < end && text_is(*e, TEXT_DIGIT)) e++;
    if (e == digits)
      return mlir_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "expecting integer after 'z_'. Received: '%.*s'", (int)w->n, p);
    if (*digits == '0')
      return mlir_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "expecting positive integer without leading zeros. Received: '%.*s'",
                       (int)(e - digits), digits);
    if (!base_parse_i64(digits, e, out) || *out > INT64_MAX - SDY_FACTOR_Z)
      return mlir_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "expecting symbol index <=2^63-1. Received: '%.*s'",
                       (int)(e - digits), digits);
    *out += SDY_FACTOR_Z;
    *w = (base_slice){e, (size_t)(end - e)};
    return 0;
  }
  if (*p < 'i' || *p > 'z')
    return mlir_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "expecting symbol from 'i' to 'z'. Received: '%c'", *p);
  *out = *p - 'i';
  *w = (base_slice){p + 1, w->n - 1};
  return 0;
}

/* The word at the cursor; the caller takes it. */
static int sdy_read_factor_word(mlir_reader *r, base_slice *w) {
  *w = mlir_word(r);
  if (w->n == 0 || text_is(*w->p, TEXT_DIGIT)) return mlir_expected(r, "a factor: a letter from i to z, or z_1 and on");
  return 0;
}

/* "kj": the factors of a dimension; nothing: none. */
static int sdy_read_dim_factors(mlir_reader *r, sdy_ints *out) {
  int64_t *v = NULL;
  uint32_t n = 0;
  base_slice w = mlir_word(r), rest = w;
  while (rest.n) {
    TRY(SDY_MORE(r, v, n));
    TRY(sdy_read_factor(r, &rest, &v[n++]));
  }
  mlir_skip_word(r, w);
  *out = (sdy_ints){n, v};
  return 0;
}

/* "[i, kj]" */
static int sdy_read_tensor_map(mlir_reader *r, sdy_tensor_map *out) {
  sdy_ints *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_dim_factors(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_tensor_map){n, v};
  return 0;
}

/* "([i], [j])" */
static int sdy_read_maps(mlir_reader *r, uint32_t *n_out, const sdy_tensor_map **out) {
  sdy_tensor_map *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_tensor_map(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  *n_out = n;
  *out = v;
  return 0;
}

/* A word that is one factor and no more. */
static int sdy_read_one_factor(mlir_reader *r, int64_t *out) {
  base_slice w, rest;
  TRY(sdy_read_factor_word(r, &w));
  rest = w;
  TRY(sdy_read_factor(r, &rest, out));
  if (rest.n)
    return mlir_fail(r, w.p, XLAC_E_BAD_ATTRIBUTE, "expecting single factor symbol: %.*s", (int)rest.n, rest.p);
  mlir_skip_word(r, w);
  return 0;
}

/* The inverse of sdy_read_factor, for messages. */
static void sdy_factor_text(char out[32], int64_t factor) {
  assert(factor >= 0);
  if (factor <= SDY_FACTOR_Z)
    snprintf(out, 32, "%c", (char)('i' + factor));
  else
    snprintf(out, 32, "z_%lld", (long long)(factor - SDY_FACTOR_Z));
}

/* " {i=2, j=4}": the symbols in order. Absent sizes are none. */
static int sdy_read_sizes(mlir_reader *r, sdy_ints *out) {
  int64_t *v = NULL;
  uint32_t n = 0;
  *out = (sdy_ints){0};
  if (!mlir_eat(r, "{")) return 0;
  if (mlir_eat(r, "}")) return 0;
  do {
    const char *at = r->lx.p;
    int64_t factor;
    TRY(sdy_read_one_factor(r, &factor));
    if (factor != n) {
      char want[32], have[32];
      sdy_factor_text(want, n);
      sdy_factor_text(have, factor);
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE,
                       "expecting factor indices to be ordered like an iota ([0,1,2,...], e.g. {i=#, j=#, ...}). "
                       "Expecting factor index symbol '%s', received: '%s'",
                       want, have);
    }
    TRY(mlir_want(r, "="));
    TRY(SDY_MORE(r, v, n));
    TRY(mlir_read_int(r, &v[n++]));
  } while (mlir_eat(r, ","));
  *out = (sdy_ints){n, v};
  return mlir_want(r, "}");
}

/* " reduction={i, j}" */
static int sdy_read_factors(mlir_reader *r, const char *word, sdy_ints *out) {
  int64_t *v = NULL;
  uint32_t n = 0;
  *out = (sdy_ints){0};
  if (!mlir_eat_word(r, word)) return 0;
  TRY(mlir_want(r, "="));
  if (!mlir_eat(r, "{")) return 0;
  if (!mlir_eat(r, "}")) {
    do {
      base_slice w, rest;
      TRY(sdy_read_factor_word(r, &w));
      rest = w;
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_factor(r, &rest, &v[n++]));
      mlir_skip_word(r, w);
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "}"));
  }
  *out = (sdy_ints){n, v};
  return 0;
}

/* The lists of special factors come in this order, each if there. */
int mlir_sdy_read_rule(mlir_reader *r, sdy_rule *out) {
  *out = (sdy_rule){0};
  TRY(mlir_want(r, "<"));
  TRY(sdy_read_maps(r, &out->n_operands, &out->operands));
  TRY(mlir_want(r, "->"));
  TRY(sdy_read_maps(r, &out->n_results, &out->results));
  TRY(sdy_read_sizes(r, &out->sizes));
  TRY(sdy_read_factors(r, "reduction", &out->reduction));
  TRY(sdy_read_factors(r, "need_replication", &out->need_replication));
  TRY(sdy_read_factors(r, "permutation", &out->permutation));
  TRY(sdy_read_factors(r, "blocked_propagation", &out->blocked));
  if (mlir_eat(r, ",")) {
    if (!mlir_eat_word(r, "custom")) return mlir_expected(r, "'custom'");
    out->custom = true;
  }
  return mlir_want(r, ">");
}

/* ---- How axes came where they are: <[{step-2 = [{"y" = operand-1 -> [operand-0, result-0]}]}]> */

/* "operand-1" */
static int sdy_read_edge_value(mlir_reader *r, sdy_edge_value *out) {
  out->result = mlir_eat_word(r, "result");
  if (!out->result && !mlir_eat_word(r, "operand")) return mlir_expected(r, "'operand' or 'result'");
  TRY(mlir_want(r, "-"));
  return mlir_read_int(r, &out->index);
}

/* "{"y" = operand-1 -> [result-0]}" */
static int sdy_read_edge(mlir_reader *r, sdy_edge *out) {
  sdy_edge_value *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  TRY(mlir_sdy_read_axis(r, &out->axis));
  TRY(mlir_want(r, "="));
  TRY(sdy_read_edge_value(r, &out->from));
  TRY(mlir_want(r, "->"));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_edge_value(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->n = n;
  out->to = v;
  return mlir_want(r, "}");
}

/* "{step-2 = [...]}" */
static int sdy_read_step(mlir_reader *r, sdy_step *out) {
  sdy_edge *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  if (!mlir_eat_word(r, "step")) return mlir_expected(r, "'step'");
  TRY(mlir_want(r, "-"));
  TRY(mlir_read_int(r, &out->index));
  TRY(mlir_want(r, "="));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_edge(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->n = n;
  out->edges = v;
  return mlir_want(r, "}");
}

/*   <[{step-2 = [{"y" = operand-1 -> [result-0]}]}]> */
int mlir_sdy_read_edges(mlir_reader *r, sdy_edges *out) {
  const char *at = r->lx.p;
  char fault[200];
  sdy_step *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "<"));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_step(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_edges){n, v};
  TRY(mlir_want(r, ">"));
  bool broken = sdy_edges_are_broken(out, fault, sizeof fault);
  return broken ? mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%s", fault) : 0;
}
