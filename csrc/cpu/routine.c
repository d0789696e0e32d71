/* Which file's algorithm runs an op, by opcode. NULL in the table, or a file that finds a form it doesn't know,
 * means the interpreter's evaluator (eval.c): every op has some way to run. */
#include "routine.h"

cpu_prepare_fn *const cpu_routine_table[IR_OP_COUNT] = {
    [IR_OP_CONVOLUTION] = cpu_prepare_convolution,
    [IR_OP_FFT] = cpu_prepare_fft,
    [IR_OP_RNG] = cpu_prepare_rng,
    [IR_OP_RNG_BIT_GENERATOR] = cpu_prepare_rng_bit_generator,
    [IR_OP_CHOLESKY] = cpu_prepare_cholesky,
    [IR_OP_TRIANGULAR_SOLVE] = cpu_prepare_triangular_solve,
    [IR_OP_CUSTOM_CALL] = cpu_prepare_custom_call,
    [IR_OP_DOT] = cpu_prepare_dot,
    [IR_OP_RAGGED_DOT] = cpu_prepare_ragged_dot,
    [IR_OP_REDUCE_WINDOW] = cpu_prepare_reduce_window,
    [IR_OP_SELECT_AND_SCATTER] = cpu_prepare_select_and_scatter,
    [IR_OP_TRANSPOSE] = cpu_prepare_rearrange,
    [IR_OP_REVERSE] = cpu_prepare_rearrange,
    [IR_OP_SLICE] = cpu_prepare_rearrange,
    [IR_OP_BROADCAST] = cpu_prepare_rearrange,
    [IR_OP_COPY] = cpu_prepare_copy,
    [IR_OP_BITCAST] = cpu_prepare_bitcast,
    [IR_OP_NEXT_AFTER] = cpu_prepare_next_after,
    [IR_OP_REPLICA_ID] = cpu_prepare_number,
    [IR_OP_PARTITION_ID] = cpu_prepare_number,
    [IR_OP_GET_DIMENSION_SIZE] = cpu_prepare_number,
    [IR_OP_BITCAST_CONVERT] = cpu_prepare_bitcast_convert,
    [IR_OP_CONCATENATE] = cpu_prepare_concatenate,
    [IR_OP_PAD] = cpu_prepare_pad,
    [IR_OP_GATHER] = cpu_prepare_gather,
    [IR_OP_SCATTER] = cpu_prepare_scatter,
    [IR_OP_SORT] = cpu_prepare_sort,
    [IR_OP_MAP] = cpu_prepare_map,
    [IR_OP_TOPK] = cpu_prepare_topk,
    [IR_OP_REDUCE] = cpu_prepare_reduce,
    [IR_OP_ALL_REDUCE] = cpu_prepare_collective,
    [IR_OP_REDUCE_SCATTER] = cpu_prepare_collective,
    [IR_OP_ALL_GATHER] = cpu_prepare_collective,
    [IR_OP_ALL_TO_ALL] = cpu_prepare_collective,
    [IR_OP_COLLECTIVE_BROADCAST] = cpu_prepare_collective,
    [IR_OP_COLLECTIVE_PERMUTE] = cpu_prepare_collective,
    [IR_OP_DYNAMIC_SLICE] = cpu_prepare_dynamic_slice,
    [IR_OP_DYNAMIC_UPDATE_SLICE] = cpu_prepare_dynamic_update_slice,
};

/* Whatever is left undone, the routine does nothing with it but move it or compute with it: no index, size or address
 * comes from what an earlier rt_parallel_for of the same step has made, except inside a later one. */
static bool routine_is_stoppable(const ir_op *op) {
  return op->opcode != IR_OP_CUSTOM_CALL; /* whose file says */
}

/* Called in the order of the routines' numbers, so that routines.items[number] is what belongs to a step. */
int cpu_prepare(void *ctx, const ir_op *op, plan_routine *out, xlac_error *err) {
  cpu_prepare_options *options = ctx;
  cpu_prepare_run x = {.options = options, .op = op, .arena = options->arena, .out = out, .err = err};
  assert(out->number == options->routines.n);
  out->stoppable = routine_is_stoppable(op);
  if (cpu_routine_table[op->opcode]) TRY(cpu_routine_table[op->opcode](&x));
  if (!x.code) TRY(cpu_prepare_eval(&x));
  if (!BASE_VEC_PUSH(options->alloc, &options->routines,
                     ((cpu_routine){x.code, x.data, x.lines, x.lines && x.as_lines})))
    return base_oom(err, "a routine");
  return 0;
}

/* Whether what is prepared now can take the place of what the plan has. */
static bool routine_fits(const plan_routine *now, const plan_routine *planned) {
  return now->interpreted == planned->interpreted && now->scratch_bytes <= planned->scratch_bytes &&
         (planned->in_place & ~now->in_place) == 0 && now->stoppable >= planned->stoppable &&
         now->divisible >= planned->divisible && now->calls <= planned->calls &&
         (!planned->lines.n || (now->lines.n == planned->lines.n && (planned->lines.own & ~now->lines.own) == 0));
}

/* A plan that was made for another executable may be used again: what its routines need may differ by now. */
static int routine_prepare_again(const plan_step *s, cpu_prepare_options *options, xlac_error *err) {
  plan_routine now = {.number = s->routine->number};
  TRY(cpu_prepare(options, s->op, &now, err));
  if (routine_fits(&now, s->routine)) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "the plan's routine %s for %s is not the one there is now (%s)",
                   s->routine->name, s->op->name->s, now.name);
}

/* By number: its step, or NULL where none is left. */
static const plan_step **routine_steps(const plan_program *p, base_arena *scratch) {
  plan_list programs;
  const plan_step **steps = base_arena_zalloc(scratch, (p->n_routines + 1u) * sizeof *steps);
  if (!plan_list_programs(scratch->alloc, p, &programs)) steps = NULL;
  for (uint32_t i = 0; steps && i < programs.n; i++)
    for (uint32_t k = 0; k < programs.items[i]->n_steps; k++) {
      const plan_step *s = &programs.items[i]->steps[k];
      if (s->kind == PLAN_ROUTINE) steps[s->routine->number] = s;
    }
  BASE_VEC_FREE(scratch->alloc, &programs);
  return steps;
}

int cpu_prepare_plan(const plan_program *p, cpu_prepare_options *options, xlac_error *err) {
  base_arena scratch;
  base_arena_init(&scratch, options->alloc);
  const plan_step **steps = routine_steps(p, &scratch);
  int status = steps ? 0 : base_oom(err, "the routines of a plan");
  for (uint32_t i = 0; i < p->n_routines && status == 0; i++) {
    if (steps[i])
      status = routine_prepare_again(steps[i], options, err);
    else if (!BASE_VEC_PUSH(options->alloc, &options->routines, ((cpu_routine){NULL, NULL, NULL, false})))
      status = base_oom(err, "the routines of a plan");
  }
  base_arena_free(&scratch);
  return status;
}

/* Gathers the step's pointers, on the stack where they are few, and calls the routine. */
int cpu_run_routine(cpu_run *run, const plan_step *s, void *const *pointers) {
  const cpu_routine *code = &run->exe->routines.items[s->routine->number];
  size_t n = (size_t)s->n_in + s->n_out;
  void *few[32], **all = few;
  if (n > 32 && !(all = base_malloc(run->exe->alloc, n * sizeof *all))) return base_oom(run->ctx.err, "a step");
  assert(s->routine->number < run->exe->routines.n && code->run);
  for (uint32_t i = 0; i < s->n_in; i++) all[i] = pointers[s->in[i]];
  for (uint32_t i = 0; i < s->n_out; i++) all[s->n_in + i] = pointers[s->out[i]];
  cpu_routine_run r = {.run = run,
                       .step = s,
                       .data = code->data,
                       .in = (const void *const *)all,
                       .out = all + s->n_in,
                       .scratch = s->frame == UINT32_MAX ? NULL : pointers[s->frame],
                       .pointers = pointers};
  int status = code->run(&r);
  if (all != few) base_free(run->exe->alloc, all);
  return status ? interp_place_error(&run->ctx, s->op, status) : 0;
}
