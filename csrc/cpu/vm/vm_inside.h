/* The vector VM, inside: what an instruction is, what a kernel becomes, and what its files give each other. vm.c
 * decides, vm_block.c computes one block, vm_reduce.c and vm_scan.c go through kernels whose iterations depend on
 * each other. */
#ifndef XLAC_CPU_VM_VM_INSIDE_H
#define XLAC_CPU_VM_VM_INSIDE_H

#include "vm.h"

enum {
  VM_MAX_SCRATCH = 192 * 1024, /* bytes of registers, on the stack */
  VM_MAX_LANES = 1024
};

/* Where a value's lanes are. Chosen for the whole kernel, not block by block. */
typedef enum vm_place {
  VM_MEMORY,   /* where it is loaded from: dense over all iterations */
  VM_ROW,      /* the same, dense along the innermost dimension: blocks end where rows end */
  VM_ONE,      /* the same along the innermost dimension: one number a block, or in a register */
  VM_SPLAT,    /* in a register that is filled once, or one number */
  VM_CYCLE,    /* in a register that is filled once with the same row again and again */
  VM_REGISTER, /* in a register */
  VM_INSIDE    /* nowhere: the op that uses it computes it */
} vm_place;

/* A faster loop: inst->in, of which some are one number for all lanes (inst->numbers), to n lanes of out. */
typedef void vm_fast_fn(int64_t n, const void *const *in, void *out);

/* One value as an instruction. What doesn't apply to its kind is zero. */
typedef struct vm_inst {
  uint8_t place;     /* vm_place */
  uint8_t to_output; /* number of the store, plus one, to whose output it is written straight; 0: to a register */
  bool number;       /* a splat of which one lane is enough */
  uint8_t n_in;
  uint8_t numbers;     /* bit j: one lane of operand j is enough */
  uint8_t lane;        /* type of the lanes: the value's, or F32 for narrow floats that are kept wide (vm_wide.c) */
  bool edged;          /* not defined in all iterations */
  bool gathers;        /* a load from places of each iteration's own */
  bool widens;         /* loaded or computed in the value's type, and widened then */
  uint32_t in[3];      /* the values that are read when it is computed: the kernel's, or those of two ops at once */
  uint32_t reg, carry; /* carry: of scans, offset in what a unit carries */
  vm_fast_fn *fast;    /* of ops, or NULL */
  const struct vm_chain *chain; /* of ops that end one; or NULL */
  scalar_loop loop;             /* of ops */
  const scalar_loop *wide;      /* of ops on wide lanes; or NULL */
} vm_inst;

/* From vm_fold.h. */
struct vm_fold;
/* From vm_places.c. */
typedef struct vm_place_loops vm_place_loops;

/* How a store that reduces combines. */
typedef struct vm_sum {
  scalar_loop combine; /* in type `type` */
  uint8_t type;
  const struct vm_fold *fold; /* of many lanes to few; NULL: by `combine` */
  void (*products)(int64_t n, const void *x, const void *y, void *acc, int64_t *valid);
  uint32_t in[2]; /* products: of these values, instead of what is stored; else NULL */
} vm_sum;

/* How a reduction's work is cut: into units of one piece of some results, of which `grain` make a range. */
typedef struct vm_cut {
  int64_t pieces, piece; /* reduced indexes in a piece */
  int64_t runs;          /* of results side by side that are lanes of a block; 1: each block is of one */
  int64_t blocks;        /* of inner lanes */
  int64_t units, grain;
  bool loads; /* nothing but loads is combined: only initial values need lanes that are filled */
} vm_cut;

typedef struct vm_move vm_move;

/* A kernel made ready: immutable, and in the arena of the executable. insts has an instruction for each value. */
struct cpu_vm {
  const kernel *k;
  const vm_move *move; /* by which all of it is done; or NULL */
  uint32_t n_regs, lanes;
  const cpu_native_kernel *native;           /* or NULL */
  const cpu_native_kernel *cycles;           /* where that is NULL: code for most iterations, perhaps; or NULL */
  bool fast;                                 /* numerics */
  bool scalar;                               /* one iteration, without counting: no blocks are needed */
  bool scanning;                             /* there are scans */
  uint32_t n_work;                           /* values that are computed block by block */
  uint32_t n_dense, dense[CPU_VM_MAX_AHEAD]; /* loads of so much that it pays to look ahead */
  bool streams;                              /* so much is stored that none of it should take a place in the cache */
  kernel_scans scans;
  size_t carry_bytes;
  const vm_place_loops *places; /* by which loads find their places, in kernels that gather */
  bool edges;                   /* some value is edged, or a pick */
  bool rows;                    /* no block crosses the end of a row (of the innermost dimension) */
  int64_t cycle;                /* length of the rows of VM_CYCLE; 0: there are none */
  size_t reg_bytes;             /* of one register */
  uint32_t n_visits;            /* values that each block has to look at */
  uint32_t *visits;
  vm_sum *sums; /* by store, of kernels with reductions */
  vm_cut cut;   /* of those */
  bool plain;   /* the only store sums up rows of an array as they lie, so that folds may read on from block to block */
  vm_inst insts[];
};

/* A run over some range of iterations: on the stack of the thread that runs it, and used for one block after
 * another. */
typedef struct vm_block {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
  char *regs;
  const void **values; /* where each value's lanes are */
  char *carry;         /* of scans: results so far */
  bool streams;        /* stores go past the cache */
  cpu_vm_ahead *ahead; /* or NULL */
  char **sums;         /* by store, where native code leaves the values that it combines; NULL: it doesn't run */
  uint8_t way;         /* cpu_native_sums: what it makes of them */
} vm_block;

/* A block on the caller's stack: `name`, its registers splat-filled for blocks of n lanes. Small kernels find room
 * in fixed arrays, others by alloca, of at most VM_MAX_SCRATCH (vm_choose_lanes sees to it). VM_ROOM: not filled. */
#define VM_BLOCK(name, vm_, in_, out_, n_) \
  VM_ROOM(name, vm_, in_, out_);           \
  vm_fill_splats(&name, (n_))
#define VM_ROOM(name, vm_, in_, out_)                                                               \
  const void *name##_few[64];                                                                       \
  char name##_small[2048] __attribute__((aligned(64)));                                             \
  size_t name##_need = (vm_)->n_regs * (vm_)->reg_bytes;                                            \
  vm_block name = {(vm_), (in_), (out_), name##_small, name##_few, NULL, false, NULL, NULL, 0};     \
  if ((vm_)->k->n_values > 64) name.values = __builtin_alloca((vm_)->k->n_values * sizeof(void *)); \
  if (name##_need > sizeof name##_small) name.regs = __builtin_alloca_with_align(name##_need, 512)

/* --- vm_fast.c: after places are chosen, before registers. uses: by value, how often it is needed --- */
void vm_choose_fast(cpu_vm *vm);

/* --- vm_chain.c: before vm_choose_fast; false when out of memory --- */
typedef struct vm_chain vm_chain;
bool vm_choose_chains(cpu_vm *vm, const uint32_t *uses, base_arena *arena);
/* All values that it reads: at most VM_MAX_CHAIN + 1 (vm_chain.h). */
uint32_t vm_chain_operands(const vm_chain *c, uint32_t *out);
/* Whether one lane of the value, which it reads, is enough. */
bool vm_chain_takes_number(const vm_chain *c, uint32_t value);
void vm_run_chain(const vm_block *b, const vm_chain *c, int64_t n, void *to);

/* --- vm_wide.c: before places are chosen. false when out of memory. --- */
bool vm_choose_wide(cpu_vm *vm, base_arena *arena);

/* --- vm_block.c --- */
void vm_fill_splats(const vm_block *b, int64_t n);
/* The initial values of reductions alone, where native code has all the others. */
void vm_fill_inits(const vm_block *b, int64_t n);
/* Computes all values for iterations at..at+n, n at most vm->lanes, within a row where vm->rows. */
void vm_compute(const vm_block *b, int64_t at, int64_t n);
/* What store number i of the kernel has of a block that is computed. */
void vm_store(const vm_block *b, uint32_t i, int64_t at, int64_t n);
/* How many iterations from `at` on make the next block: at most `end`. */
int64_t vm_next_block(const cpu_vm *vm, int64_t at, int64_t end);

/* Where the load begins in its input, which is at `from`, given the values that its place depends on. Such places
 * are clamped to what is in the array, as dynamic-slice has it. */
static inline const char *vm_input(const kernel *k, const kernel_value *v, const char *from,
                                   const void *const *places) {
  for (uint32_t j = 0; j < v->n_in; j++)
    from += kernel_base_at(&v->bases[j], (base_dtype)k->values[v->in[j]].dtype, places[j]) *
            (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  return from;
}

/* The lanes at..at+n of a load, whose input begins at `from`; where it has edges only those within; of an index, of a
 * value that is the same everywhere. */
void vm_gather(const kernel *k, const kernel_value *v, const char *from, int64_t at, int64_t n, char *to);
void vm_count_up(const kernel *k, const kernel_value *v, int64_t at, int64_t n, char *to);
void vm_fill(size_t bytes, const void *from, int64_t n, char *to);

/* --- vm_places.c --- */
/* The loops of this machine. */
const vm_place_loops *vm_find_place_loops(void);
/* The lanes at..at+n of a load whose places are the iterations' own. lanes: those of each place, or one for all where
 * ones has its bit; n is at most VM_MAX_LANES. */
void vm_load_places(const vm_place_loops *loops, const kernel *k, const kernel_value *v, const char *from,
                    const void *const *lanes, uint8_t ones, int64_t at, int64_t n, char *to);
/* Value i of a block, such a load. */
void vm_load_each(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *to);

/* --- vm_scan.c --- */
/* The type that scans of t combine in. */
base_dtype vm_scan_type(base_dtype t);
void vm_choose_scans(cpu_vm *vm);
/* Value i, a scan, for iterations at..at+n, which follow (or precede, from the end) those computed before. */
void vm_scan(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *to);
void vm_scan_run(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out);
bool vm_scan_is_divisible(const cpu_vm *vm);

/* --- vm_reduce.c --- */
vm_cut vm_reduce_cut(const cpu_vm *vm);
/* Whether vm->plain is so, once places and sums are chosen. */
bool vm_reduce_is_plain(const cpu_vm *vm);
void vm_reduce(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out, void *scratch);
bool vm_reduce_is_divisible(const cpu_vm *vm);
void vm_reduce_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in, void *const *out,
                    cpu_vm_ahead *ahead);

/* --- vm_move.c --- */
/* false when out of memory. */
bool vm_choose_move(cpu_vm *vm, base_arena *arena);
/* false: the arrays overlap, and nothing was done. */
bool vm_all_moved(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out);

#endif
