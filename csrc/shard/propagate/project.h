/* The shardings of one op's tensors as shardings of its rule's factors, and back. All of it lives in a pool that is
 * emptied before each op. With the rule ([ij])->([i, j]) {i=8, j=4} and a mesh of x=4, y=4, an operand [{"x", "y"}]
 * gives i the axes "x" and the major half of "y", "y":(1)2, which together are its size 8; j gets the rest, "y":(2)2.
 */
#ifndef XLAC_SHARD_PROPAGATE_PROJECT_H
#define XLAC_SHARD_PROPAGATE_PROJECT_H

#include "../rules/rule.h"
#include "../common/pool.h"

/* An axis by its place in the mesh: from `pre` on, of `size`. The whole axis has pre 1 and its full size.
 * Sub-axes are as in the text: "x":(pre)size, with `pre` the product of the sizes major to it. [pre, pre * size) as
 * powers is the range of the axis that it covers. */
typedef struct shard_axis {
  uint32_t axis;
  int64_t pre, size;
} shard_axis;
typedef struct shard_axes {
  uint32_t n;
  const shard_axis *v;
} shard_axes;

static inline bool shard_axis_same(shard_axis a, shard_axis b) {
  return a.axis == b.axis && a.pre == b.pre && a.size == b.size;
}
static inline int64_t shard_axis_end(shard_axis a) {
  return a.pre * a.size;
}
static inline bool shard_axis_overlaps(shard_axis a, shard_axis b) {
  if (a.axis != b.axis) return false;
  return shard_axis_same(a, b) || (a.pre < shard_axis_end(b) && b.pre < shard_axis_end(a));
}
static inline bool shard_axis_contains(shard_axis a, shard_axis b) {
  return a.axis == b.axis && a.pre <= b.pre && shard_axis_end(a) >= shard_axis_end(b);
}
/* a is b, or the major part of it. */
static inline bool shard_axis_prefix(shard_axis a, shard_axis b) {
  return shard_axis_contains(b, a) && a.pre == b.pre;
}
/* Whether both can be sub-axes of one axis in the same program: their bounds divide each other. */
bool shard_axis_coexists(shard_axis a, shard_axis b);
/* The part of *a before b, or before all of them; false: nothing is left. */
bool shard_axis_before(shard_axis *a, shard_axis b);
bool shard_axis_before_all(shard_axis *a, shard_axes others);
bool shard_axes_same(shard_axes a, shard_axes b);
int64_t shard_axes_size(shard_axes a); /* the product; saturates */
/* How a stands to b: the same list; its beginning (the last axis may be the major part of b's); or neither. */
typedef enum shard_prefix { SHARD_NOT_PREFIX, SHARD_STRICT_PREFIX, SHARD_EQUAL } shard_prefix;
shard_prefix shard_axes_prefix(shard_axes a, shard_axes b);

/* One factor of one tensor. */
#define SHARD_ABSENT UINT32_MAX
/* A factor that is not minor-most in its dimension takes axes up to its size, the minor-most one all that are left.
 * Where the axes can't be split to fit, the rest is `overflow`: it stays where it is, and nothing can be added. */
typedef struct shard_part {
  uint32_t factor; /* SHARD_ABSENT: a dimension's axes overflowed before it, and it does not count */
  bool closed;     /* takes no more axes */
  bool minor_most; /* in its dimension */
  bool grown;      /* it had `was` before */
  shard_axes axes, was;
  shard_axes overflow; /* axes that no factor of the dimension can take, after `axes` */
} shard_part;
typedef struct shard_tensor {
  uint32_t n_parts;
  shard_part *parts; /* by dimension, major to minor */
  shard_axes replicated, unreduced;
} shard_tensor;
/* An axis that could not go on along a factor, and why: what stands against it in a tensor. */
typedef struct shard_clash {
  uint32_t factor, tensor;
  uint8_t reason; /* shard_reason, trace.h */
  shard_axis axis, against;
} shard_clash;
/* Of all tensors of an op. `grown` parts have been changed by the strategy and remember what they had, for the trace.
 */
typedef struct shard_projection {
  shard_pool *pool;
  const sdy_mesh *mesh;
  const sdy_rule *rule;
  uint32_t n_tensors, n_operands;
  shard_tensor *tensors; /* operands, then results */
  bool *updated;         /* tensors that the strategy has changed */
  bool watch;            /* take note of clashes */
  uint32_t n_clashes, clash_cap;
  shard_clash *clashes;
} shard_projection;

/* The shardings may be NULL; they are on `mesh`. closed_if_missing: a tensor without one can't be sharded. false when
 * out of memory. */
XLAC_MUST_USE bool shard_project(shard_projection *p, shard_pool *pool, const sdy_rule *rule, const sdy_mesh *mesh,
                                 const sdy_sharding *const *shardings, bool closed_if_missing);
/* The sharding that a tensor's parts make, on the mesh of `like`. It lies in the pool. NULL when out of memory. */
const sdy_sharding *shard_unproject(const shard_projection *p, uint32_t tensor, const sdy_sharding *like);
/* Lists of the one form as the other; in the pool. */
shard_axes shard_axes_from(shard_pool *pool, sdy_axes from, const sdy_mesh *mesh);
sdy_axes shard_axes_to(shard_pool *pool, shard_axes from, const sdy_mesh *mesh);
static inline const sdy_tensor_map *shard_map_of(const sdy_rule *rule, uint32_t tensor) {
  return tensor < rule->n_operands ? &rule->operands[tensor] : &rule->results[tensor - rule->n_operands];
}
static inline shard_axes shard_part_before(const shard_part *part) {
  return part->grown ? part->was : part->axes;
}
/* The tensor's part of that factor, or NULL. */
static inline shard_part *shard_part_of(const shard_tensor *t, uint32_t factor) {
  for (uint32_t i = 0; i < t->n_parts; i++)
    if (t->parts[i].factor == factor) return &t->parts[i];
  return NULL;
}
/* A list with room for n, in the pool, and a list's last axis merged with or followed by another. */
shard_axis *shard_axes_room(shard_pool *pool, uint32_t n);

/* Takes note of a clash; when memory has run out, of none. */
void shard_clash_note(shard_projection *p, shard_clash clash);

/* --- strategies: change parts, set `updated` --- */
typedef enum shard_direction { SHARD_NONE, SHARD_FORWARD, SHARD_BACKWARD, SHARD_BOTH } shard_direction;
/* Axes that all tensors which have the factor can agree on, major first, whatever else stands against them. */
shard_axes shard_agree(shard_projection *p, uint32_t factor, shard_direction direction);
/* Spreads only what conflicts with nothing. directions: one a factor. */
void shard_spread_basic(shard_projection *p, const uint8_t *directions, bool conservative);
/* Settles conflicts: the larger tensor's axes win. */
void shard_spread_aggressive(shard_projection *p, const uint8_t *directions, bool conservative, bool elementwise);
/* What one tensor's other factors leave of an axis; what its own part of the factor does. false: nothing. */
bool shard_fits_across(const shard_tensor *t, uint32_t factor, shard_axis *a);
bool shard_fits_within(const shard_tensor *t, const shard_part *part, int64_t before, int64_t factor_size,
                       shard_axis *a);
/* Gives the part longer axes that begin with those it has; false: they don't. */
bool shard_expand(shard_part *part, shard_axes axes);

#endif
