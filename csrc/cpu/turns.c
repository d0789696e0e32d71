/* Calls in turns: rounds, in each of which every call goes on up to and including its next meeting, on any thread of
 * the pool. One that waits there for calls which are not yet at that meeting leaves rounds out. Of loops whose bodies
 * meet each call has its own, in which it is left.
 *
 * What several calls get from a collective they get in one place, which is theirs together until none of them reads it
 * any more. Products of what several calls read in the same place (a weight, or the part of it that all along an axis
 * have) are done by all together: the operand is packed once for them, on all threads, then each call makes its rows of
 * it; by strips of columns where the caches could not keep all of what is packed from one call to the next. */
#include "turns.h"
#include "../interp/device.h"
#include "../interp/interp.h"
#include "../runtime/communicator.h"
#include "gemm/dot_gemm.h"
#include "move/move.h"
#include "routine.h"
#include "threaded/list.h"
#include "tile/group.h"

enum {
  TURN_PACKED = 1 << 16, /* bytes, for which threads are waited for */
  TURN_RESULT = 1 << 14  /* bytes of a collective's result, which is not copied */
};

/* --- one call --- */

/* A loop in which a call was left. */
struct turn_loop {
  cpu_left_loop *loop;
  cpu_event event;
  void **next, *now[]; /* by leaf of the state */
};

/* A result that several calls have in one place. */
typedef struct turns_result {
  const plan_step *step;
  uint32_t buffer, member; /* member: the first of the participants whose it is */
  void *block;
} turns_result;
BASE_VEC(turns_results, turns_result);

typedef struct turns_round {
  cpu_turn *turns;
  uint32_t n;
  rt_pool *pool;
  const list_part *part; /* that all do together, or some for all */
  /* Together: what is packed for those of its steps that are `given`, one after another, so many times. */
  uint64_t given;
  char *packed;
  int64_t packed_bytes; /* once */
  uint32_t packs;
  turns_results results;
  cpu_alike alike;            /* of NULL: nothing is */
  uint8_t of[CPU_MOST_ALIKE]; /* by call: who runs the part for it */
} turns_round;

static void **turn_pointers(const cpu_turn *t) {
  return (void **)(void *)t->frame;
}

static const cpu_list *turn_list(const cpu_turn *t) {
  return cpu_code_of(t->run->exe, cpu_plan_of(t->run->exe))->list;
}

/* Whether the step is a loop to be left at its meetings. */
static bool turn_is_loop(const cpu_executable *exe, const plan_step *s) {
  return s->kind == PLAN_WHILE && cpu_turns_loop(exe, s) > 0;
}

static int turn_enter(cpu_turn *t, const plan_step *s) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  char *frames[2];
  struct turn_loop *in = base_malloc(t->run->exe->alloc, sizeof *in + 2 * (size_t)s->n_in * sizeof *in->now);
  if (!in) return base_oom(t->run->ctx.err, "a loop");
  in->next = in->now + s->n_in;
  in->loop = NULL;
  t->in = in;
  TRY(cpu_enter_while(t->run, p, s, turn_pointers(t), frames, in->now, in->next));
  if (t->run->profile)
    in->event = (cpu_event){.start = cpu_profile_now(t->run->profile), .depth = t->run->depth++, .lane = t->run->lane};
  in->loop = cpu_loop_open(t->run, s, frames, in->now, in->next);
  return in->loop ? 0 : base_oom(t->run->ctx.err, "a loop");
}

static int turn_leave(cpu_turn *t, const plan_step *s) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  struct turn_loop *in = t->in;
  bool swapped = cpu_loop_close(in->loop);
  in->loop = NULL;
  if (swapped) TRY(cpu_leave_while(t->run, p, s, in->now, in->next));
  if (t->run->profile) {
    t->run->depth--;
    cpu_profile_add(t->run->profile, p, s, in->event);
  }
  cpu_turn_end(t);
  return 0;
}

void cpu_turn_end(cpu_turn *t) {
  if (t->in && t->in->loop) (void)cpu_loop_close(t->in->loop);
  if (t->in) base_free(t->run->exe->alloc, t->in);
  t->in = NULL;
}

/* --- what all do together --- */

/* The first call that has what the given steps read packed in the same place as call i. */
static uint32_t turns_first(const turns_round *r, const plan_step *steps, uint64_t given, uint32_t i) {
  for (uint32_t j = 0; j < i; j++) {
    bool same = true;
    for (uint32_t k = 0; same && k < CPU_GROUP_GIVEN && given >> k; k++)
      same = !cpu_group_is_given(given, k) ||
             turn_pointers(&r->turns[j])[steps[k].in[1]] == turn_pointers(&r->turns[i])[steps[k].in[1]];
    if (same) return j;
  }
  return i;
}

/* In how many places calls have that, where nobody writes to it: if they share any, it is in no frame. More than half
 * of them counts as all. */
static uint32_t turns_places(const turns_round *r, const plan_step *steps, uint64_t given) {
  uint32_t places = 0;
  for (uint32_t i = 0; i < r->n && 2 * places <= r->n; i++) places += turns_first(r, steps, given, i) == i;
  return 2 * places <= r->n ? places : r->n;
}

static int64_t turns_packed(const plan_step *s) {
  return (s->routine->lines.packed + RT_BLOCK_ALIGN - 1) & -(int64_t)RT_BLOCK_ALIGN;
}

/* Whether the step reads an operand packed, which nobody writes to. */
static bool turns_may_share(const cpu_executable *exe, const plan_step *s, bool in_group) {
  if (s->kind != PLAN_ROUTINE || (!in_group && !exe->routines.items[s->routine->number].as_lines)) return false;
  const plan_buffer *b = &cpu_plan_of(exe)->buffers[s->in[1]];
  return b->place != PLAN_ARGUMENT || b->first == UINT32_MAX;
}

/* Bytes of the part's packed operands that several calls would have the same; *given: which of its steps', *places: of
 * how many different arrays. The part is a group, or one product that has the same bits by rows. */
static int64_t turns_shared(const turns_round *r, const list_part *part, uint64_t *given, uint32_t *places) {
  const cpu_executable *exe = r->turns->run->exe;
  const plan_program *p = cpu_plan_of(exe);
  int64_t bytes = 0;
  uint32_t first = 0, n = cpu_part_steps(p, part, &first);
  *given = 0;
  *places = 1;
  if (r->n < 2) return 0;
  for (uint32_t i = 0; i < n && i < CPU_GROUP_GIVEN; i++) {
    if (!turns_may_share(exe, &p->steps[first + i], part->group != NULL)) continue;
    uint32_t found = turns_places(r, &p->steps[first], *given | 1ull << i);
    if (found == r->n) continue;
    *given |= 1ull << i;
    *places = found;
    bytes += turns_packed(&p->steps[first + i]);
  }
  return (r->pool || !part->group) && bytes < TURN_PACKED ? 0 : bytes;
}

static char *turn_packed(const turns_round *r, const cpu_turn *t) {
  assert(r->packed && t->pack < r->packs);
  return r->packed + t->pack * r->packed_bytes;
}

/* One call's product, of what is packed. */
static int turn_make_lines(const turns_round *r, cpu_turn *t) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  const plan_step *s = r->part->step;
  void **pointers = turn_pointers(t);
  const plan_lines *l = &s->routine->lines;
  cpu_event e;
  if (t->run->profile)
    e = (cpu_event){.start = cpu_profile_now(t->run->profile), .depth = t->run->depth, .lane = t->run->lane};
  cpu_gemm_run_lines(t->run->exe->routines.items[s->routine->number].lines, NULL, pointers[s->in[0]],
                     (cpu_gemm_packed){turn_packed(r, t), 0, l->batches}, pointers[s->out[0]], 0, l->n);
  if (t->run->profile) cpu_profile_add(t->run->profile, p, s, e);
  return interp_tick(&t->run->ctx, cpu_step_work(s) + 1);
}

static int turn_run_part(cpu_turn *t, const list_part *part) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  return part->group ? cpu_list_run_group(t->run, p, part->group, turn_pointers(t), 0)
                     : cpu_run_step(t->run, p, part->step, turn_pointers(t));
}

/* The group for one call, whose products find what is packed where they would have packed it. */
static int turn_run_given(const turns_round *r, cpu_turn *t) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  uint32_t first = cpu_group_first(r->part->group), n = cpu_group_steps(r->part->group);
  void **pointers = turn_pointers(t);
  char *packed = turn_packed(r, t);
  for (uint32_t k = 0; k < n; k++) {
    if (!cpu_group_is_given(r->given, k)) continue;
    pointers[p->steps[first + k].frame] = packed;
    packed += turns_packed(&p->steps[first + k]);
  }
  int status = cpu_list_run_group(t->run, p, r->part->group, pointers, r->given);
  for (uint32_t k = 0; k < n; k++)
    if (cpu_group_is_given(r->given, k))
      pointers[p->steps[first + k].frame] = t->frame + p->buffers[p->steps[first + k].frame].offset;
  return status;
}

/* For rt_parallel_for: the part for some calls. */
static void turns_together(void *ctx, size_t begin, size_t end) {
  const turns_round *r = ctx;
  for (size_t i = begin; i < end; i++) {
    cpu_turn *t = &r->turns[i];
    t->status = !r->packed ? turn_run_part(t, r->part) : r->part->group ? turn_run_given(r, t) : turn_make_lines(r, t);
    t->shares = false;
    t->part++;
  }
}

/* For rt_parallel_for: strips of all products by what is packed first, then those by what is packed next. */
static void turns_strips(void *ctx, size_t begin, size_t end) {
  const turns_round *r = ctx;
  const plan_step *s = r->part->step;
  const cpu_gemm *g = r->turns->run->exe->routines.items[s->routine->number].lines;
  size_t strips = (size_t)cpu_gemm_strips(g);
  for (size_t i = begin; i < end; i++)
    for (uint32_t k = 0; k < r->n; k++) {
      const cpu_turn *t = &r->turns[k];
      if (t->pack != i / strips) continue;
      cpu_gemm_run_strip(g, turn_pointers(t)[s->in[0]], (cpu_gemm_packed){turn_packed(r, t), 0, g->batch.count},
                         turn_pointers(t)[s->out[0]], (int64_t)(i % strips));
    }
}

/* n pieces of the part for all calls, on all threads; the profile has one call's share of it. */
static void turns_in_pieces(turns_round *r, size_t n, void (*fn)(void *ctx, size_t begin, size_t end)) {
  const cpu_turn *one = r->turns;
  const plan_program *p = cpu_plan_of(one->run->exe);
  cpu_profile *profile = one->run->profile;
  double begun = profile ? cpu_profile_now(profile) : 0;
  uint64_t work = 1;
  uint32_t first = 0, steps = cpu_part_steps(p, r->part, &first);
  rt_parallel_for(r->pool, n, r->pool ? 1 : n, fn, r);
  for (uint32_t k = first; k < first + steps; k++) work += cpu_step_work(&p->steps[k]);
  if (profile) {
    double now = cpu_profile_now(profile);
    cpu_event e = {.start = now - (now - begun) / r->n, .depth = one->run->depth, .lane = one->run->lane};
    cpu_profile_add(profile, p, &p->steps[first], e);
  }
  for (uint32_t i = 0; i < r->n; i++) {
    cpu_turn *t = &r->turns[i];
    t->run->ran.groups += r->part->group != NULL;
    t->status = interp_tick(&t->run->ctx, work);
    t->shares = false;
    t->part++;
  }
}

/* One product of all calls, strip by strip; false: it is not to be done so. */
static bool turns_by_strips(turns_round *r) {
  if (!r->packed || r->part->group) return false;
  const cpu_executable *exe = r->turns->run->exe;
  int64_t strips = cpu_gemm_strips(exe->routines.items[r->part->step->routine->number].lines);
  if (strips < 2) return false;
  turns_in_pieces(r, (size_t)strips * r->packs, turns_strips);
  return true;
}

/* For rt_parallel_for: ranges of the group's rows, each for all calls. */
static void turns_ranges(void *ctx, size_t begin, size_t end) {
  const turns_round *r = ctx;
  void *const **pointers = __builtin_alloca(r->n * sizeof *pointers);
  for (uint32_t i = 0; i < r->n; i++) pointers[i] = turn_pointers(&r->turns[i]);
  for (size_t i = begin; i < end; i++)
    cpu_group_run_range(r->turns->run, r->part->group, cpu_plan_of(r->turns->run->exe), pointers, r->n, (int64_t)i);
}

/* A group whose rows go in ranges (the heads of attention), where all calls read the same: what a range reads is packed
 * once, and stays in the caches for all of them. false: it is not that. */
static bool turns_by_ranges(turns_round *r) {
  const plan_program *p = cpu_plan_of(r->turns->run->exe);
  uint32_t first = 0, n = cpu_part_steps(p, r->part, &first);
  int64_t ranges = r->part->group ? cpu_group_ranges(r->part->group) : 0;
  bool all = ranges > 0 && r->packs == 1 && n <= CPU_GROUP_GIVEN;
  for (uint32_t k = 0; k < n && all; k++)
    all = p->steps[first + k].kind != PLAN_ROUTINE || cpu_group_is_given(r->given, k);
  if (all) turns_in_pieces(r, (size_t)ranges, turns_ranges);
  return all;
}

/* What is packed for each call: the given steps' operands, one after another. */
static void turns_pack(turns_round *r) {
  const cpu_executable *exe = r->turns->run->exe;
  const plan_program *p = cpu_plan_of(exe);
  uint32_t first = 0, n = cpu_part_steps(p, r->part, &first), made = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    cpu_turn *t = &r->turns[i];
    uint32_t like = turns_first(r, &p->steps[first], r->given, i);
    t->pack = like < i ? r->turns[like].pack : made++;
    char *to = turn_packed(r, t);
    for (uint32_t k = 0; k < n && like == i; k++) {
      const plan_step *s = &p->steps[first + k];
      if (!cpu_group_is_given(r->given, k)) continue;
      cpu_gemm_pack_lines(exe->routines.items[s->routine->number].lines, r->pool, turn_pointers(t)[s->in[1]],
                          (cpu_gemm_packed){to, 0, s->routine->lines.batches});
      to += turns_packed(s);
    }
  }
  assert(made == r->packs);
}

/* The next part of all calls, whose instructions have been run. Without memory for what is packed each packs for
 * itself. */
static void turns_share(turns_round *r) {
  const cpu_turn *one = r->turns;
  r->part = &turn_list(one)->parts[one->part];
  r->packed_bytes = turns_shared(r, r->part, &r->given, &r->packs);
  assert(r->packed_bytes > 0 && r->packs > 0);
  if (turns_by_ranges(r)) return;
  r->packed = rt_recycler_take(rt_host_memory(one->run->exe->host), (size_t)r->packed_bytes * r->packs);
  if (r->packed) turns_pack(r);
  if (!turns_by_strips(r)) rt_parallel_for(r->pool, r->n, r->pool ? 1 : r->n, turns_together, r);
  rt_recycler_give(r->packed);
}

/* --- rounds --- */

/* The first part from `part` on that ends a turn, or is more than a step: a meeting, a loop to be left, what is run
 * once for several, a group for all together. */
static uint32_t turns_next(const turns_round *r, const cpu_list *l, uint32_t part) {
  const cpu_executable *exe = r->turns->run->exe;
  uint64_t given = 0;
  uint32_t places = 0;
  for (; part < l->n_parts; part++) {
    const plan_step *s = l->parts[part].step;
    if (r->alike.of && r->alike.once[part]) break;
    if ((s && (cpu_is_meeting(exe, s) || turn_is_loop(exe, s))) ||
        turns_shared(r, &l->parts[part], &given, &places) > 0)
      break;
  }
  return part;
}

/* --- results that several calls have in one place --- */

static uint32_t turn_number(const cpu_turn *t) {
  const interp_options *o = &t->run->ctx.options;
  return rt_participant_number(o->communicator, o->replica, o->partition);
}

/* Where the group of that member has it; NULL: there is no memory, and each call has its own. */
static void *turns_place(turns_round *r, const plan_step *s, uint32_t buffer, uint32_t member) {
  const cpu_executable *exe = r->turns->run->exe;
  for (uint32_t i = 0; i < r->results.n; i++) {
    const turns_result *x = &r->results.items[i];
    if (x->step == s && x->buffer == buffer && x->member == member) return x->block;
  }
  turns_result made = {s, buffer, member, NULL};
  made.block = rt_recycler_take(rt_host_memory(exe->host), (size_t)cpu_plan_of(exe)->buffers[buffer].bytes);
  if (made.block && BASE_VEC_PUSH(exe->alloc, &r->results, made)) return made.block;
  rt_recycler_give(made.block);
  return NULL;
}

/* Whether the call need not have the result in memory of its own, since nobody reads it there. */
static bool turn_leaves(const cpu_turn *t, uint32_t buffer) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  const plan_buffer *b = &p->buffers[buffer];
  return b->place == PLAN_RESULT && t->unread && t->unread[b->number] && b->final;
}

/* Before the meeting: what the call gets there, if it is large, and to be in its frame or in another call's result. */
static void turns_place_results(turns_round *r, cpu_turn *t, const plan_step *s) {
  const plan_program *p = cpu_plan_of(t->run->exe);
  uint32_t member = cpu_meeting_shares(t->run->exe, s, turn_number(t));
  for (uint32_t i = 0; i < s->n_out && member != UINT32_MAX; i++) {
    const plan_buffer *b = &p->buffers[s->out[i]];
    void *block = NULL;
    if (b->bytes < TURN_RESULT) continue;
    if (b->place == PLAN_FRAME || (b->place == PLAN_RESULT && b->borrowed))
      block = turns_place(r, s, s->out[i], member);
    if (member < r->n && turn_leaves(t, s->out[i])) block = turn_pointers(&r->turns[member])[s->out[i]];
    if (block) turn_pointers(t)[s->out[i]] = block;
  }
}

/* Whether some call has yet to come past the step. */
static bool turns_await(const turns_round *r, uint32_t step) {
  const cpu_list *l = turn_list(r->turns);
  for (uint32_t i = 0; i < r->n; i++)
    if (r->turns[i].part < l->n_parts && l->parts[r->turns[i].part].at <= step) return true;
  return false;
}

/* Gives back what nobody reads any more; at the end all. */
static void turns_give(turns_round *r, bool all) {
  const plan_program *p = cpu_plan_of(r->turns->run->exe);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < r->results.n; i++) {
    turns_result *x = &r->results.items[i];
    if (!all && turns_await(r, p->buffers[x->buffer].last))
      r->results.items[kept++] = *x;
    else
      rt_recycler_give(x->block);
  }
  r->results.n = kept;
  if (all) BASE_VEC_FREE(r->turns->run->exe->alloc, &r->results);
}

/* --- what is run once for several calls --- */

/* For rt_parallel_for. */
static void turns_once_range(void *ctx, size_t begin, size_t end) {
  const turns_round *r = ctx;
  for (size_t i = begin; i < end; i++) {
    cpu_turn *t = &r->turns[i];
    if (r->of[i] == i) t->status = turn_run_part(t, r->part);
    t->shares = false;
    t->part++;
  }
}

/* What turns_each_once tells: one of the buffers that the part gives call i, which others get, too. */
typedef bool turns_once_fn(turns_round *r, const plan_step *s, uint32_t buffer, uint32_t i);

static bool turns_each_once(turns_round *r, turns_once_fn *fn) {
  const plan_program *p = cpu_plan_of(r->turns->run->exe);
  uint32_t first = 0, n = cpu_part_steps(p, r->part, &first);
  for (uint32_t i = 0; i < r->n; i++) {
    bool alone = true;
    for (uint32_t other = 0; other < r->n; other++) alone = alone && (other == i || r->of[other] != r->of[i]);
    for (uint32_t k = first; k < first + n && !alone; k++)
      for (uint32_t j = 0; j < p->steps[k].n_out; j++)
        if (!fn(r, &p->steps[k], p->steps[k].out[j], i)) return false;
  }
  return true;
}

/* A result is made in the first call's memory, where it stays; all else in memory that is theirs together. */
static bool turns_is_placed(const turns_round *r, uint32_t buffer) {
  const plan_program *p = cpu_plan_of(r->turns->run->exe);
  return p->buffers[buffer].place == PLAN_TILE || p->buffers[buffer].final;
}

/* Memory for it; false: there is not enough. */
static bool turns_room_once(turns_round *r, const plan_step *s, uint32_t buffer, uint32_t i) {
  return turns_is_placed(r, buffer) || turns_place(r, s, buffer, r->of[i]);
}

/* Where it will be; asked when there is room for all. */
static bool turns_place_once(turns_round *r, const plan_step *s, uint32_t buffer, uint32_t i) {
  if (!turns_is_placed(r, buffer)) turn_pointers(&r->turns[i])[buffer] = turns_place(r, s, buffer, r->of[i]);
  return true;
}

/* A result, when it is there: where the first call has it, or a copy of that. */
static bool turns_hand_on(turns_round *r, const plan_step *s, uint32_t buffer, uint32_t i) {
  const plan_program *p = cpu_plan_of(r->turns->run->exe);
  cpu_turn *t = &r->turns[i];
  void *from = turn_pointers(&r->turns[r->of[i]])[buffer], **own = &turn_pointers(t)[buffer];
  (void)s;
  if (!p->buffers[buffer].final || from == *own) return true;
  if (turn_leaves(t, buffer))
    *own = from;
  else
    cpu_move_bytes(r->pool, *own, from, p->buffers[buffer].bytes);
  return true;
}

/* The next part of all calls, by those who do it for others, at the same time; one alone has all threads. */
static void turns_run_once(turns_round *r) {
  uint32_t leaders = 0;
  r->part = &turn_list(r->turns)->parts[r->turns->part];
  cpu_alike_part(&r->alike, cpu_plan_of(r->turns->run->exe), r->part, r->of);
  bool placed = turns_each_once(r, turns_room_once) && turns_each_once(r, turns_place_once);
  for (uint32_t i = 0; i < r->n; i++) {
    if (!placed) r->of[i] = (uint8_t)i;
    leaders += r->of[i] == i;
  }
  rt_parallel_for(leaders > 1 ? r->pool : NULL, r->n, r->pool && leaders > 1 ? 1 : r->n, turns_once_range, r);
  for (uint32_t i = 0; i < r->n; i++)
    if (r->turns[i].status) return;
  (void)turns_each_once(r, turns_hand_on);
}

/* --- rounds, one by one --- */

/* The loop it is in, up to its next meeting; *left: it has ended. */
static int turn_go_round(cpu_turn *t, const plan_step *s, bool *left) {
  TRY(cpu_loop_go_on(t->in->loop, left));
  if (!*left) return 0;
  t->part++;
  return turn_leave(t, s);
}

/* One call, up to and including its next meeting, or to what all do together, or to its end. Where the others have not
 * come to what it was to do with them, it does that alone. */
static int turn_go(const turns_round *r, cpu_turn *t) {
  const cpu_executable *exe = t->run->exe;
  const plan_program *p = cpu_plan_of(exe);
  const cpu_list *l = turn_list(t);
  if (t->shares) TRY(turn_run_part(t, &l->parts[t->part++]));
  t->shares = false;
  while (t->part < l->n_parts) {
    uint32_t next = turns_next(r, l, t->part);
    bool ends = next == l->n_parts, meets = !ends && l->parts[next].step && cpu_is_meeting(exe, l->parts[next].step);
    if (!t->in) TRY(cpu_list_run_parts(t->run, l, p, turn_pointers(t), t->part, next + meets));
    t->part = next + meets;
    if (meets || ends) return 0;
    bool left = false;
    if (!t->in) cpu_list_run_insts(t->run, l, p, turn_pointers(t), next);
    t->shares = !l->parts[next].step || !turn_is_loop(exe, l->parts[next].step) || (r->alike.of && r->alike.once[next]);
    if (t->shares) return 0;
    if (!t->in) TRY(turn_enter(t, l->parts[next].step));
    TRY(turn_go_round(t, l->parts[next].step, &left));
    if (!left) return 0;
  }
  return 0;
}

static bool turn_waits(const cpu_turn *t) {
  return rt_communicator_waits(t->run->ctx.options.communicator, turn_number(t));
}

/* For rt_parallel_for. After a failure the rest is left out. */
static void turns_range(void *ctx, size_t begin, size_t end) {
  const turns_round *r = ctx;
  for (size_t i = begin; i < end; i++) {
    if (r->turns[i].goes) r->turns[i].status = turn_go(r, &r->turns[i]);
    if (r->turns[i].status) return;
  }
}

/* Those that have ended will never come to where the others wait. */
static int turns_stuck(const turns_round *r, uint32_t *failed) {
  for (uint32_t i = 0; i < r->n; i++) {
    cpu_turn *t = &r->turns[i];
    if (turn_waits(t))
      *failed = i;
    else
      rt_communicator_leave(t->run->ctx.options.communicator, turn_number(t));
  }
  return base_interrupted(r->turns[*failed].run->ctx.err);
}

/* Who goes on in the next round; *over: nobody ever will. */
static bool turns_choose(const turns_round *r, bool *over) {
  bool any = false;
  *over = true;
  for (uint32_t i = 0; i < r->n; i++) {
    cpu_turn *t = &r->turns[i];
    bool waits = turn_waits(t), left = t->part < turn_list(t)->n_parts;
    t->goes = left && !waits;
    any = any || t->goes;
    *over = *over && !left && !waits;
  }
  return any;
}

/* The meeting that a call comes to next, unless it is in a loop, or something else comes first. NULL: none. */
static const plan_step *turns_meeting(const turns_round *r, const cpu_turn *t) {
  const cpu_list *l = turn_list(t);
  uint32_t next = t->goes && !t->in ? turns_next(r, l, t->part + t->shares) : l->n_parts;
  const plan_step *s = next < l->n_parts ? l->parts[next].step : NULL;
  return s && cpu_is_meeting(t->run->exe, s) ? s : NULL;
}

static int turns_round_once(turns_round *r, uint32_t *failed) {
  bool shares = true;
  for (uint32_t i = 0; i < r->n; i++) {
    const plan_step *s = turns_meeting(r, &r->turns[i]);
    if (s) turns_place_results(r, &r->turns[i], s);
  }
  rt_parallel_for(r->pool, r->n, r->pool ? 1 : r->n, turns_range, r);
  *failed = 0;
  TRY(rt_communicator_settle(r->turns->run->ctx.options.communicator, r->pool, r->turns->run->ctx.err));
  for (uint32_t i = 0; i < r->n; i++)
    shares = shares && r->turns[i].shares && !r->turns[i].status && r->turns[i].part == r->turns->part;
  if (shares && r->alike.of && r->alike.once[r->turns->part])
    turns_run_once(r);
  else if (shares)
    turns_share(r);
  turns_give(r, false);
  for (*failed = 0; *failed < r->n; ++*failed)
    if (r->turns[*failed].status) return r->turns[*failed].status;
  return 0;
}

int cpu_turns_run(cpu_turn *turns, uint32_t n, rt_pool *pool, uint32_t *failed) {
  turns_round r = {.turns = turns, .n = n, .pool = pool};
  bool over = false;
  int status = 0;
  if (!cpu_alike_make(&r.alike, turns, n)) r.alike.of = NULL;
  while (status == 0 && turns_choose(&r, &over)) status = turns_round_once(&r, failed);
  if (status == 0 && !over) status = turns_stuck(&r, failed);
  turns_give(&r, true);
  rt_recycler_give(r.alike.of);
  return status;
}

/* --- what can be left --- */

uint32_t cpu_turns_loop(const cpu_executable *exe, const plan_step *s) {
  uint32_t n = 0;
  assert(s->kind == PLAN_WHILE && s->n_nested == 2);
  for (uint32_t i = 0; i < s->nested[1]->n_steps; i++) n += cpu_is_meeting(exe, &s->nested[1]->steps[i]);
  return n;
}
