/* How a value goes from one sharding to another by collectives: what the files of sdy-reshard-to-collectives share.
 * The state is the difference of the two shardings: by dimension, the axes that the value has and the result has not
 * at that place, and the other way round, with what both begin with left out. It shrinks to nothing. From [{"a",
 * "b"}, {}] to [{"a"}, {"b"}] the state is in = [["b"], []], out = [[], ["b"]]: one all_to_all moves "b". Axes are
 * split beforehand so that any two of them are equal or apart (rtc_align). Errors stick in x->failed, and mean that
 * memory has run out. */
#ifndef XLAC_SHARD_COLLECTIVES_COLLECTIVES_H
#define XLAC_SHARD_COLLECTIVES_COLLECTIVES_H

#include "../common/common.h"

/* A growable list in the reshard's arena. */
typedef struct rtc_list {
  sdy_axis *v;
  uint32_t n, cap;
} rtc_list;

/* Where an axis is in the result: its dimension, and its place there when the table was made. */
typedef struct rtc_place {
  sdy_axis axis;
  uint32_t dim, index;
} rtc_place;

/* One reshard. v is the value as far as it has come; in, out and now are lists by dimension. capacity: into how many
 * more parts a dimension may be cut, while a step deals axes out. */
typedef struct rtc {
  opt_rewriter *rw;
  base_arena *arena; /* of one reshard */
  bool failed;
  const sdy_mesh *mesh;
  const sdy_sharding *from, *to; /* what the meshes' names are taken from */
  bool other_order;              /* the meshes differ in the order of their devices, and the value is on the first */
  const ir_type *type;
  ir_value v;
  uint32_t rank;
  rtc_list *in, *out, *now; /* by dimension; now: all axes that the value has */
  int64_t *capacity;
  rtc_list in_set; /* all axes of `in`, and some that have been moved */
  rtc_place *places;
  uint32_t n_places;
} rtc;

/* --- lists: list.c --- */
void rtc_insert(rtc *x, rtc_list *list, uint32_t at, sdy_axis a);
void rtc_erase(rtc_list *list, uint32_t at);
static inline void rtc_push(rtc *x, rtc_list *list, sdy_axis a) {
  rtc_insert(x, list, list->n, a);
}
/* At the end, merged with the last where it goes on there. */
void rtc_append(rtc *x, rtc_list *list, sdy_axis a);
bool rtc_has(const rtc_list *list, sdy_axis a);
void rtc_remove(rtc_list *list, sdy_axis a);
int64_t rtc_size(const rtc *x, const rtc_list *list);
/* Splits axes of lists so that each overlaps one of the others only where it is that. */
void rtc_align(rtc *x, rtc_list *lists, rtc_list *others);
/* Takes axes from `from` on off the end of current ones, which may be wholes that they are parts of. */
void rtc_pop(rtc *x, rtc_list *current, const rtc_list *axes, uint32_t from);
/* What of an axis fits in a capacity, which it then is divided by; false: nothing. *rest has no name where all fits. */
bool rtc_within(const rtc *x, sdy_axis a, int64_t *capacity, sdy_axis *within, sdy_axis *rest);
void rtc_find_places(rtc *x);
const rtc_place *rtc_place_of(const rtc *x, sdy_axis a);
/* Either size divides the other. */
static inline bool rtc_divides(int64_t a, int64_t b) {
  return a % b == 0 || b % a == 0;
}
/* Gives available axes to dimensions that have capacity: one list for all, or (each) one a dimension. taken: where each
 * went, appended to by dimension; may be NULL. */
typedef struct rtc_taken {
  rtc_list *by_dim, *also;
  bool any;
} rtc_taken;
void rtc_distribute(rtc *x, rtc_list *available, bool each, bool front, rtc_taken *taken);

/* --- the steps: steps.c --- */
void rtc_all_slice(rtc *x);
void rtc_collective_permute(rtc *x);
void rtc_all_to_alls(rtc *x, bool out_of_order);
void rtc_all_gather(rtc *x);
/* The value's sharding now. NULL when out of memory. */
const sdy_sharding *rtc_sharding(rtc *x);
/* An op that makes the value what `now` says. own may be NULL. */
void rtc_make(rtc *x, ir_opcode opcode, const char *key, const ir_mattr *own);
const ir_mattr *rtc_axis_lists(rtc *x, const rtc_list *by_dim);

#endif
