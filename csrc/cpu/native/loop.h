/* Loops as machine code: a nest of while loops as one function, whose numbers are in registers from trip to trip. A
 * loop is made of regions, one for what is done once and one for each while, inside of the region that runs it; values
 * are those of a body (body.h) of one lane.
 *
 * A value belongs to the innermost region that one of its operands belongs to, so what does not change in a loop is
 * computed before it. A branch is a region that is run once or not at all; what it computes is computed in it, unless
 * it does not change in the loop around it. Memory that something in the nest writes is read where the program reads
 * it. */
#ifndef XLAC_CPU_NATIVE_LOOP_H
#define XLAC_CPU_NATIVE_LOOP_H

#include "lower_inside.h"

enum {
  NAT_LOOP_COPY = 4096,                  /* bytes, at most, that are copied by instructions one after the other */
  NAT_LOOP_ARRAYS = NAT_MAX_STREAMS - 1, /* pointers; behind them is what the function that polls is given */
  NAT_LOOP_POLL = 1 << 15                /* work between two looks at interruptions */
};

typedef enum nat_item_kind {
  NAT_ITEM_VALUE, /* computes it */
  NAT_ITEM_PUT,   /* stores it at a place */
  NAT_ITEM_COPY,  /* `bytes` bytes from one place to another, which have none in common; `value` is the index of the
                     first */
  NAT_ITEM_EXIT,  /* ends the region's loop where the mask is not set */
  NAT_ITEM_LOOP   /* runs region `value` until it exits */
} nat_item_kind;

typedef struct nat_item {
  uint8_t kind;
  uint32_t value, place, at; /* PUT, COPY: into that place, at the index `at` unless it is NAT_NONE */
  uint32_t from, bytes;      /* COPY: from that place, at the index `value` unless it is NAT_NONE */
  uint32_t line;             /* of the program: number of l->lines, from 1 on */
} nat_item;
BASE_VEC(nat_items, nat_item);

/* An element of an array: `width` bytes at offset + index * stride; or 16 bytes of neighbours, a lane each. */
typedef struct nat_place {
  uint32_t array;
  uint8_t width;
  int64_t offset, stride; /* bytes */
} nat_place;
BASE_VEC(nat_places, nat_place);

/* What a loop carries: `first` before it, `value` after each trip. acc is what it has in a trip. */
typedef struct nat_carry {
  uint32_t first, value, acc, region;
  bool differs;
} nat_carry;
BASE_VEC(nat_carries, nat_carry);

typedef struct nat_region {
  uint32_t parent, depth, first_carry, n_carries, first_value;
  bool has_loops; /* regions in it */
  bool once;      /* a branch */
  nat_items items;
} nat_region;
BASE_VEC(nat_regions, nat_region);
BASE_VEC(nat_owners, uint32_t);
BASE_VEC(nat_lines, const char *);

/* Made by one thread; the arena is that of its body. */
typedef struct nat_loop nat_loop;
struct nat_loop {
  nat_body body;
  nat_target target; /* with short registers: values have one lane */
  base_alloc alloc;
  uint32_t now; /* the region that is being written */
  nat_regions regions;
  nat_carries carries;
  nat_places places;
  nat_owners owners; /* by value: its region */
  nat_lines lines;   /* names of the ops, which `from` of a value counts from 1 on */
};

/* --- loop.c: false when out of memory or too large; then the body has failed, and nothing more is done --- */
bool nat_loop_begin(nat_loop *l, const nat_target *target, base_arena *arena);
void nat_loop_free(nat_loop *l);
/* What follows is for the op of that name, which is borrowed. */
void nat_loop_line(nat_loop *l, const char *op);
/* A new region inside of the present one, which becomes it; and back, after which the outer one runs it. */
uint32_t nat_loop_enter(nat_loop *l, bool once);
void nat_loop_leave(nat_loop *l);
/* A carry of the present region: what it has in a trip. It has width, and is not a mask. differs: in its lanes. */
uint32_t nat_loop_carry(nat_loop *l, uint32_t first, bool differs);
void nat_loop_carry_to(nat_loop *l, uint32_t acc, uint32_t value);
/* What a carry of a region that was left has come to. */
uint32_t nat_loop_result(nat_loop *l, uint32_t acc);
/* The element at the index, or at NAT_NONE the first; lanes of `width` bytes. still: nothing in the nest writes that
 * array. */
uint32_t nat_loop_load(nat_loop *l, nat_place p, uint32_t width, uint32_t at, bool still);
void nat_loop_put(nat_loop *l, nat_place p, uint32_t at, uint32_t value);
/* At least 4 bytes, at the indices or NAT_NONE. */
void nat_loop_copy(nat_loop *l, nat_place from, uint32_t from_at, nat_place to, uint32_t to_at, uint32_t bytes);
void nat_loop_exit_unless(nat_loop *l, uint32_t mask);
/* --- lanes.c: values whose lanes differ, of 4 or 8 bytes --- */
/* n values, whose lanes are the same, as lanes of one; those behind have any of them. */
uint32_t nat_loop_pack(nat_loop *l, const uint32_t *values, unsigned n);
/* Whether the value is that of a lane of another in all lanes. */
bool nat_loop_is_lane(const nat_value *v, uint32_t *of, unsigned *lane);
/* How many instructions that takes in each trip. */
unsigned nat_loop_pack_cost(nat_loop *l, const uint32_t *values, unsigned n);
/* A value of 4 or 8 bytes in all lanes, where it may be in the first alone. */
uint32_t nat_loop_spread(nat_loop *l, uint32_t value);
/* A lane of the value in all lanes. */
uint32_t nat_loop_lane(nat_loop *l, uint32_t value, unsigned lane);

/* Gives values that were made since the last call their regions. */
bool nat_loop_settle(nat_loop *l);

/* --- loop_emit.c --- */
/* What a trip of the loops without others in them takes. */
typedef struct nat_loop_weight {
  bool fits; /* in registers, with all that is carried */
  uint32_t steps;
} nat_loop_weight;
/* The function, a cpu_native_loop_fn: see native.h. weight: or NULL. */
bool nat_loop_emit(const nat_loop *l, x86_code *c, base_arena *scratch, nat_loop_weight *weight);

#endif
