/* The body of a native kernel: what is done with one vector of iterations that follow each other along the innermost
 * dimension, as instructions on values, in order. Values are numbered; a value is a vector of `lanes` lanes, 1, 2, 4
 * or 8 bytes each, so that the widest ones of the body fill a register of the target. A truth value is a mask: all bits
 * of a lane set or none, as wide as what it was compared from; or where the target has registers for masks a bit for
 * each lane, which is a value of width 0.
 *
 * A steady value is the same for all iterations of a row: it is computed before the loop. */
#ifndef XLAC_CPU_NATIVE_BODY_H
#define XLAC_CPU_NATIVE_BODY_H

#include "native.h"
#include "x86.h"

enum {
  NAT_VECTOR = 64, /* bytes of the longest register */
  NAT_MAX_VALUES = 4096,
  NAT_MAX_STREAMS = 48,
  NAT_MAX_FOLDS = 3 * KERNEL_MAX_STORES,
  NAT_MAX_TURNS = 8, /* vectors of a trip */
  NAT_MAX_PATTERNS = 32,
  NAT_MAX_STRIDE = 16, /* elements from one lane to the next, of loads */
  NAT_NONE = UINT32_MAX
};

typedef enum nat_lane {
#define LANE(name, ...) NAT_##name,
#define SAME LANE
#include "lanes.def"
#undef SAME
#undef LANE
  NAT_LANES
} nat_lane;

/* What kernels are lowered and emitted for. ops: by lane operation and width (1, 2, 4, 8), or X86_NONE. */
typedef struct nat_target nat_target;
struct nat_target {
  uint32_t vector, registers; /* bytes of a register; how many there are */
  bool masks;                 /* truth values are bits in registers of their own */
  const uint8_t (*ops)[4];
};
extern const nat_target nat_avx2, nat_avx512;
/* The one to use, by base_isa_best; NULL: none. */
const nat_target *nat_target_of(void);

typedef enum nat_kind {
  NAT_CONSTANT, /* `bits` in every lane */
  NAT_LOAD, /* lanes from stream number `bits`, whose run begins in[0] elements later, if that is there (steady, s32) */
  NAT_COUNT,   /* the number of the iteration in the run, as s32; steady: of the lane in its vector */
  NAT_TABLE,   /* a function's numbers from half table `bits` on, as many as the longest register holds; steady */
  NAT_ACC,     /* what fold number `bits` has combined before this vector */
  NAT_RESULT,  /* of loops (loop.h): what carry number `bits` came to */
  NAT_PAIR,    /* no value: the parts of complex numbers of two f64, which are values */
  NAT_OP,      /* an instruction */
  NAT_LOAD_AT, /* of loops: the lane at place `bits`, whose upper half tells apart what is read at several times */
  NAT_GATHER,  /* lanes of stream number `bits`, each at its own place: elements from the run's pointer on, s32 in[0];
                  where the mask in[1] is set, if there is one */
  NAT_PART,    /* as NAT_LOAD, where the mask in[0] is set; elsewhere 0, and nothing is read */
  NAT_NEIGHBOURS, /* neighbours of stream number `bits`, from the element on that the first lane of in[0] says, an s32
                   */
  NAT_CALL,   /* the op's loop (scalar/loops), whose address `bits` is, on the lanes of in[0] and perhaps in[1]; where
                 `number` is 1 it has a second result */
  NAT_SECOND, /* that of in[0], the value before it */
  NAT_HALF,   /* half `number` of what lanes of 16 bytes from stream number `bits` are, as lanes of 8 */
  NAT_WEAVE,  /* lanes of in[0] and in[1] in turn, the first half (`number` 0) or the second (1) of them; or the even
                 (2) or the odd ones (3) of both, one after the other */
  NAT_FAR,    /* in[0], but where a lane of the mask in[2] is set: function `number` of in[1], by a call; or the op's
                 loop, whose address `bits` is, on complex numbers of a lane, or (`number`) two: in[1] and perhaps in[3] */
  NAT_SPREAD, /* of cycles: lanes of stream number `bits`, of whose upper half the pattern is */
  NAT_NUMBERS /* of cycles: the numbers of pattern number `bits` */
} nat_kind;

/* What the lanes of a loop's value have: the same in all, each its own, or the first what the value is and the others
 * anything, as functions that are called leave them, and instructions that narrow. */
typedef enum nat_lanes { NAT_LANES_SAME, NAT_LANES_DIFFER, NAT_LANES_FIRST } nat_lanes;

typedef struct nat_value {
  uint8_t kind, width; /* nat_kind; bytes of a lane */
  uint8_t op, number;  /* NAT_OP: x86_op and the number in it */
  uint8_t n_in;
  bool steady;
  uint8_t lanes; /* of loops: nat_lanes */
  uint8_t turn;  /* the vector of a trip that it is of */
  uint32_t in[4];
  uint32_t from; /* value of the kernel that it is for */
  uint64_t bits;
} nat_value;

/* Of code that goes by cycles (cycle.c): the element that each iteration of a cycle reads, from the run's pointer on,
 * or a number. */
typedef struct nat_pattern {
  int64_t *at;  /* by iteration of a cycle */
  int64_t step; /* elements from one cycle to the next */
  int64_t last; /* the last element that is read in any */
  bool same;    /* all vectors of a cycle are */
} nat_pattern;

/* A run of memory that the body reads or writes: lane j of iteration i is `stride` elements after that of i - 1. */
typedef struct nat_stream {
  uint32_t buffer;
  bool output;
  bool gathers; /* each lane has a place of its own, along the innermost dimension too; then `stride` is 0 */
  bool spreads; /* its pointer goes on by `cycle` elements with each cycle; `stride` is 0 */
  bool number;  /* no memory: what stands in place of its pointer is an s32, the index of an iota */
  bool begins;  /* its run begins at a place that is computed */
  bool made;    /* index was made for the body, and goes with it */
  bool sum;     /* where a store's values are combined: `buffer` is the store's number */
  uint8_t width;
  int64_t stride;            /* along the innermost dimension, in elements */
  int64_t cycle, room;       /* room: the furthest element that the pointer may be at where whole vectors are read */
  const kernel_index *index; /* of all dimensions */
} nat_stream;

typedef struct nat_store {
  uint32_t value, stream;
  uint16_t result; /* 1: of folds: stored once, when all iterations are over */
  uint16_t half;   /* 1: of lanes of 16 bytes, what comes after the first vector */
} nat_store;

/* What goes from one vector to the next: it begins as `first`, a constant, and becomes `value`, which is computed from
 * it. There is one for each of the vectors of a trip. */
typedef struct nat_fold {
  uint32_t first, value;
} nat_fold;

/* Made by lower.c, read by emit.c. */
typedef struct nat_body {
  base_arena *arena;
  const kernel *k;
  const nat_target *target;
  uint32_t lanes;
  cpu_native_way way;
  uint32_t n_values, n_streams, n_stores, n_folds;
  uint32_t turns;  /* vectors of a trip: what is combined has an accumulator for each */
  uint32_t n_once; /* values of one vector; see nat_repeat */
  bool failed;     /* out of memory, too large, or something that native code has not; then values are numbers without
                      meaning */
  uint32_t trip, n_patterns; /* iterations of a cycle; 0: it is none */
  const nat_pattern *patterns[NAT_MAX_PATTERNS];
  bool alike; /* of loops: of the lanes of what is lowered the first is all that counts */
  nat_value *values;
  uint32_t *found, n_found; /* a table of values by their contents */
  nat_stream streams[NAT_MAX_STREAMS];
  nat_store stores[2 * KERNEL_MAX_STORES];
  nat_fold folds[NAT_MAX_FOLDS];
} nat_body;

/* --- body.c: each gives the number of a value, an earlier one where that is the same; nothing is done to a body that
 * has failed --- */
/* k: NULL of loops. */
bool nat_begin(nat_body *b, const kernel *k, const nat_target *target, uint32_t widest, base_arena *arena);
uint32_t nat_add(nat_body *b, nat_value v);
/* Values from number `first` on are not found again. */
void nat_forget(nat_body *b, uint32_t first);
uint32_t nat_constant(nat_body *b, uint32_t width, uint64_t bits);
/* Of functions (functions.h): an operand of NAT_PERM, whose places have bits above those that count. */
uint32_t nat_table(nat_body *b, uint32_t half);
uint32_t nat_load(nat_body *b, uint32_t width, uint32_t stream);
/* Any of these: NAT_LOAD, NAT_GATHER, NAT_PART, with up to two operands, or NAT_NONE. */
uint32_t nat_read(nat_body *b, nat_kind kind, uint32_t width, uint32_t stream, uint32_t x, uint32_t mask);
uint32_t nat_count(nat_body *b);
/* 0, 1, 2, ... as s32. */
uint32_t nat_lane_numbers(nat_body *b);
/* A fold that begins as `first`, a constant: what it has before the vector; nat_fold_to gives what it has after. */
uint32_t nat_fold_from(nat_body *b, uint32_t first);
void nat_fold_to(nat_body *b, uint32_t acc, uint32_t value);
/* An instruction by lane op and width. number: of comparisons, rounding, shifts and shuffles. */
uint32_t nat_op(nat_body *b, nat_lane op, uint32_t width, uint32_t x, uint32_t y, uint32_t z, unsigned number);
/* The instruction for lanes of `width` on all the parts of lanes of `whole` bytes, or on several of them. */
uint32_t nat_op_within(nat_body *b, nat_lane op, uint32_t width, uint32_t whole, uint32_t x, uint32_t y);
/* Of bytes, two and two as a number of 16 bits. */
uint32_t nat_shift_pairs(nat_body *b, nat_lane op, uint32_t x, unsigned by);
/* Values for so many vectors of a trip: number i of vector t becomes i + t * n_once. Steady ones stay those of the
 * first. false when out of memory. */
bool nat_repeat(nat_body *b, uint32_t turns, base_arena *arena);
bool nat_has(const nat_body *b, nat_lane op, uint32_t width);
/* Masks in lanes. */
uint32_t nat_narrow_mask(nat_body *b, uint32_t mask, uint32_t width);
uint32_t nat_widen_mask(nat_body *b, uint32_t mask, uint32_t width);
/* What the loop `fn` gives of x and perhaps y. */
uint32_t nat_call(nat_body *b, uintptr_t fn, uint32_t x, uint32_t y);
/* The first or the second result of the loop `fn` on x, which writes that to where a second operand would be. */
uint32_t nat_call_both(nat_body *b, uintptr_t fn, uint32_t x, bool second);
/* near, which is function `which` of x, but in lanes where `far` is set. */
uint32_t nat_far(nat_body *b, unsigned which, uint32_t near, uint32_t x, uint32_t far);
static inline uint32_t nat_op1(nat_body *b, nat_lane op, uint32_t width, uint32_t x) {
  return nat_op(b, op, width, x, NAT_NONE, NAT_NONE, 0);
}
static inline uint32_t nat_op2(nat_body *b, nat_lane op, uint32_t width, uint32_t x, uint32_t y) {
  return nat_op(b, op, width, x, y, NAT_NONE, 0);
}
static inline uint32_t nat_shift(nat_body *b, nat_lane op, uint32_t width, uint32_t x, unsigned by) {
  return nat_op(b, op, width, x, NAT_NONE, NAT_NONE, by);
}
/* --- lanes of 8 bytes that are the halves of 16: complex numbers of two f64 */
uint32_t nat_pair(nat_body *b, uint32_t re, uint32_t im);
uint32_t nat_half(nat_body *b, uint32_t stream, unsigned half);
uint32_t nat_weave(nat_body *b, uint32_t x, uint32_t y, unsigned which);
/* near, but where `far` is set what the loop `fn` gives of x and perhaps y: complex numbers as they are in memory, a
 * lane each (of two f32), or `wide` two of them. */
uint32_t nat_far_loop(nat_body *b, uintptr_t fn, bool wide, uint32_t near, uint32_t x, uint32_t y, uint32_t far);
/* Integers of one width as those of another: to a narrower one the low bits, to a wider one with the sign or zeros. */
uint32_t nat_resize(nat_body *b, uint32_t x, uint32_t width, bool sign);

/* --- masks.c: truth values --- */
uint32_t nat_mask_constant(nat_body *b, bool on);
/* The mask in lanes of another width. */
uint32_t nat_mask(nat_body *b, uint32_t mask, uint32_t width);
/* By bits: op is AND, OR, XOR or ANDN (not x, and y). */
uint32_t nat_mask_op(nat_body *b, nat_lane op, uint32_t x, uint32_t y);
uint32_t nat_mask_not(nat_body *b, uint32_t x);
/* yes where the mask is set, else no; both of one width, or both masks. */
uint32_t nat_select(nat_body *b, uint32_t mask, uint32_t yes, uint32_t no);
/* x where the mask is set, else 0. */
uint32_t nat_keep(nat_body *b, uint32_t mask, uint32_t x);
/* Bytes 0 and 1, as preds are in memory, and back. */
uint32_t nat_mask_of_bytes(nat_body *b, uint32_t x);
uint32_t nat_bytes_of_mask(nat_body *b, uint32_t mask);
/* Integers of `width` bytes, compared. */
uint32_t nat_compare_ints(nat_body *b, uint32_t width, bool is_signed, scalar_direction direction, uint32_t x,
                          uint32_t y);

/* --- lower.c: reads kernels --- */
/* What is to become of values that k's stores combine: those of one result follow each other, or results do. */
cpu_native_way nat_best_way(const kernel *k);
/* k by cycles of `trip` iterations, in vectors of `lanes` lanes. patterns: by value; NULL of a value that has its own
 * meaning. */
typedef struct nat_cycle {
  const kernel *k;
  uint32_t trip, lanes;
  const nat_pattern **patterns;
} nat_cycle;
/* false where there is no way. cycle.c */
bool nat_cycle_of(const kernel *k, const nat_target *target, base_arena *arena, nat_cycle *to);
bool nat_lower_cycle(nat_body *b, const nat_cycle *c, const nat_target *target, base_arena *arena);

/* The body of k; false where it has something that native code has not, or not in that way. */
bool nat_lower(nat_body *b, const kernel *k, const nat_target *target, cpu_native_way way, base_arena *arena);

#endif
