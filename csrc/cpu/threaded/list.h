/* Programs as lists of instructions: in small kernels each op on its few lanes is one call of a function, and on a
 * single lane a jump. What is not a small kernel is run as a step. Loops bind addresses before the first trip, other
 * programs as they go. A loop of scalar ops, such as a search or a recurrence, spends nothing on anything but its
 * ops. */
#ifndef XLAC_CPU_THREADED_LIST_H
#define XLAC_CPU_THREADED_LIST_H

#include "../tile/group.h"

/* Codes of instructions; those from LIST_OTHERS on are ops on one lane (list_scalar.c). */
enum {
  LIST_CALL,      /* fn */
  LIST_END,       /* of a list */
  LIST_TEST,      /* the end where the pred in[0] is false, else `data` is next */
  LIST_LOOP_BACK, /* the end of an iteration: jump to `data` */
  LIST_OTHERS
};

/* One instruction, bound: all addresses are there. Instructions lie one after another, and the last one is
 * LIST_END. */
typedef struct list_inst list_inst;
typedef void list_fn(const list_inst *i);
struct list_inst {
  uint32_t code;
  list_fn *fn;
  const void *in[3]; /* where there are fewer, the first again */
  void *out;
  int64_t n;        /* lanes; of copies bytes */
  const void *data; /* scalar_loop, or kernel_value, or the next instruction */
  const kernel *of; /* gathers and indexes */
};

/* What an operand's address is relative to, before it is bound. */
typedef enum list_area {
  LIST_BUFFER,   /* the program's buffer `at` */
  LIST_SCRATCH,  /* ... into what a kernel uses while it runs */
  LIST_POINTERS, /* the program's table of pointers to buffers */
  LIST_FIXED     /* nothing: `fixed` is the address in every run */
} list_area;
typedef struct list_cell {
  uint8_t area; /* list_area */
  uint32_t at;
  union {
    int64_t offset; /* bytes, of LIST_BUFFER */
    const void *fixed;
  };
} list_cell;

/* One instruction before it is bound, as the executable keeps it. */
typedef struct list_code {
  list_inst inst;
  uint8_t n_in;
  /* Of a kernel's machine code, or of what combines the values that it leaves: the code, and where its call is among
   * those of a binding. Else NULL. */
  const cpu_native_kernel *native;
  uint32_t call;
  list_cell in[3], out;
} list_code;

/* Instructions, those of n_steps steps from step `at` on, then a step or a group of steps, if any. first, n: into
 * the list's codes; the last of them is LIST_END. */
typedef struct list_part {
  uint32_t first, n;
  uint32_t at, n_steps;
  const plan_step *step;
  const cpu_group *group;
} list_part;

/* A program as a list: immutable, in the executable's arena. Whoever runs it binds its instructions in memory of
 * his own. */
typedef struct cpu_list {
  uint32_t n_codes;
  const list_code *codes;
  uint32_t n_parts;
  const list_part *parts;
  uint32_t scratch_bytes;
  uint32_t call_bytes; /* of a binding's calls of machine code */
  uint64_t work;       /* of all instructions */
} cpu_list;

/* --- list.c: of p, whose kernels and nested programs are ready, in exe's arena. `body`: of a loop. --- */
XLAC_MUST_USE int cpu_list_make(cpu_executable *exe, const plan_program *p, bool body, const cpu_list **out,
                                xlac_error *err);

/* Of an instruction with `native`, which is bound but for its call: that is at `calls` on. pointers: the program's. */
void cpu_list_bind_call(const list_code *c, list_inst *to, void *const *pointers, char *calls);

/* --- list_run.c --- */
/* Of the parts of l, which is the list of p and no loop's body, those from `first` on and before `last`, once, on the
 * program's buffers. Where one fails, what was started is abandoned. */
XLAC_MUST_USE int cpu_list_run_parts(cpu_run *run, const cpu_list *l, const plan_program *p, void *const *pointers,
                                     uint32_t first, uint32_t last);
static inline int cpu_list_run(cpu_run *run, const cpu_list *l, const plan_program *p, void *const *pointers) {
  return cpu_list_run_parts(run, l, p, pointers, 0, l->n_parts);
}
/* Of that part its instructions alone, without the step that follows them. */
void cpu_list_run_insts(cpu_run *run, const cpu_list *l, const plan_program *p, void *const *pointers, uint32_t part);
/* A group as part of the program's list; given: as cpu_group_run has it. */
XLAC_MUST_USE int cpu_list_run_group(cpu_run *run, const plan_program *p, const cpu_group *g, void *const *pointers,
                                     uint64_t given);
/* The loop s from the state at now[i] on, its next value alternately at next[i]. frames: of condition and body.
 * *swapped: the last value is at next. After a failure the state is undefined, and what was started is abandoned. */
XLAC_MUST_USE int cpu_loop_run(cpu_run *run, const plan_step *s, char *const *frames, void *const *now,
                               void *const *next, bool *swapped);
/* The same in pieces, for loops whose bodies have meetings (cpu_is_meeting): each call goes on up to and including the
 * next one, or to the end (*over). NULL when out of memory. To be closed in any case, which says whether the last value
 * is at next. */
typedef struct cpu_left_loop cpu_left_loop;
cpu_left_loop *cpu_loop_open(cpu_run *run, const plan_step *s, char *const *frames, void *const *now,
                             void *const *next);
XLAC_MUST_USE int cpu_loop_go_on(cpu_left_loop *l, bool *over);
bool cpu_loop_close(cpu_left_loop *l);

/* --- dynamic_slice.c: a dynamic slice or update that is one row of memory, begun at one index --- */
typedef struct cpu_dynamic_row {
  uint32_t operand; /* the index */
  uint8_t dtype;
  int64_t limit, stride, bytes;
} cpu_dynamic_row;
bool cpu_dynamic_row_of(const cpu_executable *exe, const plan_step *s, cpu_dynamic_row *out);
/* Where the row begins, in bytes. */
int64_t cpu_dynamic_row_at(const cpu_dynamic_row *row, const void *index);

/* --- list_scalar.c --- */
/* Runs instructions from *at on, at most `trips` trips (0: there are none). true: *at is what ended it; false: *at is
 * where to go on. */
bool cpu_list_go(const list_inst **at, uint64_t trips);
/* Up to the end. */
static inline void cpu_list_insts(const list_inst *i) {
  (void)cpu_list_go(&i, 0);
}
/* The instruction for op, whose loop is l, on one lane, or LIST_CALL. */
uint32_t cpu_list_scalar(const scalar_op *op, const scalar_loop *l);
/* Copies of so many bytes. */
uint32_t cpu_list_copy(int64_t bytes);
/* LIST_TEST on the comparison's result in one; LIST_CALL where `compare` is none. */
uint32_t cpu_list_test(uint32_t compare);
/* Two ops of two operands in one, the second with the first's result on its left or its right, and the other operand in
 * in[2]; LIST_CALL where there is none. */
uint32_t cpu_list_pair(uint32_t first, uint32_t second, bool right);

#endif
