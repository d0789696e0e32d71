/* Emission, inside. emit.c plans sections and writes loops; emit_place.c knows where values are and gives registers;
 * emit_op.c writes what a step is.
 *
 * Registers are numbered: vectors from 0 on, masks from EMIT_MASKS on. Slots of the frame have a vector each. */
#ifndef XLAC_CPU_NATIVE_EMIT_INSIDE_H
#define XLAC_CPU_NATIVE_EMIT_INSIDE_H

#include "emit.h"

enum {
  EMIT_MASKS = 32,       /* the first mask register, which instructions take for none */
  EMIT_FIRST_MASK = 33,  /* that values may have */
  EMIT_LANES_MASK = 39,  /* that of the last vector's lanes */
  EMIT_GATHER_MASK = 38, /* that a gather clears, where there are some */
  EMIT_REGISTERS = 40,   /* of all kinds; no register */
  EMIT_FRAME_SLOTS = 128,
  EMIT_LOOP_SLOTS = 1024, /* of a loop, whose slots are of 16 bytes */
  EMIT_MASK_4 = 1,        /* slot 0 has the caller's stack pointer; masks of the last vector where masks are vectors */
  EMIT_MASK_8 = 2,
  EMIT_COUNT = 3, /* the numbers of the present iterations, by vector of a trip */
  EMIT_TURN =
      EMIT_COUNT + NAT_MAX_TURNS, /* of which vector of a trip the accumulators are, in bytes from the first's */
  EMIT_SAVED,                     /* all registers, around a call; then the masks */
  EMIT_SAVED_MASKS = EMIT_SAVED + 32,
  EMIT_SECOND = EMIT_SAVED_MASKS + 4, /* of 16 bytes, where slots are that short: eight masks; second results */
  EMIT_FIRST_SLOT = EMIT_SECOND + NAT_MAX_TURNS,
  EMIT_CALLS = 64, /* of far functions */
  EMIT_POINTERS = 11,
  EMIT_MASK_REGISTER = 15 /* the mask of the last vector where masks are vectors */
};

/* A step of a section: a value that is computed, a store of one, or what a fold becomes. */
typedef enum emit_kind { EMIT_VALUE, EMIT_STORE, EMIT_FOLD, EMIT_EXIT, EMIT_COPY /* of loops */ } emit_kind;
typedef struct emit_step {
  uint8_t kind, turn;     /* turn: the vector of a trip */
  uint32_t value, number; /* number: of the store, of the fold */
  uint32_t next[4];       /* by operand: the step that uses it next, or NAT_NONE */
} emit_step;

/* Where a value is while a section is emitted. */
typedef struct emit_place {
  uint8_t reg;   /* or EMIT_REGISTERS */
  bool resident; /* reg is its own */
  uint16_t slot; /* of the frame; 0: none */
  uint32_t next; /* step of its next use, or NAT_NONE */
} emit_place;

/* A call of a C function, behind the code: of one that is hardly ever needed, or (fn) of an op's loop. */
typedef struct emit_call {
  uint32_t jump, back; /* where it is jumped to, and goes on */
  uint8_t x, y, to, which, lanes;
  uint64_t live; /* registers that have something */
  uint64_t fn;
} emit_call;

/* Where a fold is between vectors: by vector of a trip, in registers of its own while there are some in the loop; in
 * the frame, in slots that follow each other, before and after. */
typedef struct emit_home {
  uint8_t reg[NAT_MAX_TURNS]; /* or EMIT_REGISTERS */
  uint16_t slot;
  uint32_t acc; /* of loops: the value that is there */
} emit_home;

typedef struct emit_run {
  const nat_body *b;
  const nat_target *target;
  uint32_t n_calls;
  emit_call calls[EMIT_CALLS];
  x86_code *c;
  emit_place *places; /* by value */
  emit_step *steps;
  uint32_t n_steps, now;
  uint32_t held[EMIT_REGISTERS]; /* the value in it, or NAT_NONE */
  uint64_t pinned;               /* registers that the present instruction reads */
  uint16_t n_slots, n_steady_slots, most_slots;
  emit_home *homes;     /* by fold */
  const uint32_t *into; /* of loops, by value: the fold that becomes it, or NAT_NONE; NULL: b->folds says it */
  uint32_t exit;        /* of loops: the step up to which folds stay what they were */
  uint32_t n_kept, kept[EMIT_REGISTERS]; /* values in registers of their own, in the loop or longer ... */
  uint8_t kept_in[EMIT_REGISTERS];       /* ... which these are */
  uint32_t together;                     /* vectors of a trip whose steps alternate: so many keep the processor busy */
  uint32_t n_short;                      /* nat_short_row */
  bool in_loop;                          /* registers may be values' own */
  bool adrift;                           /* which vector of a trip it is, is known when the code runs */
  uint8_t n_registers;                   /* vectors that values may take */
  uint8_t n_residents;                   /* that some have for good: the last ones */
  bool masked, steady, stored, failed;
  bool gathers;       /* some value is one */
  uint8_t mask_width; /* of the mask in its register, where masks are vectors */
  uint32_t said;      /* the kernel's value that the text is at */
} emit_run;

/* --- emit.c --- */
/* The frame, the first row's length and its pointers; gives the place where the next ones are taken. And back to the
 * caller. */
uint32_t emit_enter(emit_run *e);
void emit_leave(emit_run *e);

/* --- emit_place.c --- */
extern const uint8_t emit_pointers[EMIT_POINTERS];
/* Whether it is a load whose lanes are not neighbours. */
bool emit_is_apart(const emit_run *e, const nat_value *v);
uint32_t emit_bytes(const emit_run *e, uint32_t value);
x86_rm emit_slot(const emit_run *e, unsigned slot);
/* In memory: numbers from `first` on, an s32 a lane. */
x86_rm emit_lane_numbers(emit_run *e, uint32_t first);
uint16_t emit_new_slot(emit_run *e);
/* Where the stream's pointer is among the arguments, and element 0 of the present vector in its run. */
x86_rm emit_pointer(uint32_t stream);
x86_rm emit_stream(emit_run *e, uint32_t stream, uint32_t turn);
/* Where the fold is: in the frame. */
x86_rm emit_fold_slot(emit_run *e, uint32_t fold, uint32_t turn);
/* The value to the register, from where it is. */
void emit_load(emit_run *e, uint32_t value, unsigned reg);
/* A whole vector between a register and a slot or a constant. */
void emit_move(emit_run *e, uint32_t bytes, unsigned reg, x86_rm m, bool store);
/* The first n lanes of the last vector. */
void emit_masked(emit_run *e, uint32_t width, unsigned reg, x86_rm m, bool store);
/* Those of one register to another, whose other lanes stay; where masks have registers. */
void emit_merge(emit_run *e, uint32_t width, unsigned to, unsigned from);
/* Those of the mask in register `mask`: on the way to reg the others become 0. */
void emit_under(emit_run *e, uint32_t width, unsigned mask, unsigned reg, x86_rm m, bool store);
/* A register for the value, or for none (NAT_NONE: a vector). The one whose value is used last is emptied where none is
 * free. */
unsigned emit_take(emit_run *e, uint32_t value);
/* The value in a register that the present instruction reads. */
unsigned emit_pin(emit_run *e, uint32_t value);
/* The same as an operand that may be memory. last: it is not used again. */
x86_rm emit_operand(emit_run *e, const x86_row *row, unsigned bytes, uint32_t value, bool last);
/* The step's uses are over: operands that have no other give up their registers. */
void emit_release(emit_run *e, const emit_step *s, const uint32_t *in, uint32_t n);
/* A steady value to its slot. */
void emit_keep(emit_run *e, uint32_t value);

/* --- emit_spread.c --- */
void emit_spread(emit_run *e, const emit_step *s);
void emit_numbers(emit_run *e, const emit_step *s);
void emit_cycle_on(emit_run *e); /* after a cycle */

/* --- emit_op.c --- */
void emit_op(emit_run *e, const emit_step *s);
void emit_far(emit_run *e, const emit_step *s);
void emit_loop_call(emit_run *e, const emit_step *s);
void emit_second(emit_run *e, const emit_step *s);
void emit_call_out(emit_run *e, const emit_call *call);
void emit_gather(emit_run *e, const emit_step *s);
void emit_part(emit_run *e, const emit_step *s);
void emit_near(emit_run *e, const emit_step *s);
void emit_half(emit_run *e, const emit_step *s);
void emit_weave(emit_run *e, const emit_step *s);
void emit_save(emit_run *e, uint64_t live, bool store); /* registers that are live, to or from the frame */
void emit_store(emit_run *e, const emit_step *s);
void emit_fold(emit_run *e, const emit_step *s);

/* --- emit_keep.c: registers for good --- */
/* What the present steps need of registers beside what is the same in all trips. lives: of all values, zeros, and left
 * like that. */
uint32_t emit_pressure(const emit_run *e, uint8_t *lives);
/* Gives `free` registers to what is the same in all trips. false when out of memory. */
bool emit_choose_kept(emit_run *e, uint32_t free, base_arena *scratch);
/* Gives registers that are left by so many to folds, then to what is the same in all trips. false when out of memory.
 */
bool emit_choose_residents(emit_run *e, uint32_t pressure, base_arena *scratch);
/* Whether number i of e->kept is in its register in the present section. */
bool emit_is_there(const emit_run *e, uint32_t i);
/* Loads those that stay from row to row, before the first, or the others. */
void emit_load_kept(emit_run *e, bool once);
/* Before and after the loop. */
void emit_load_residents(emit_run *e);
void emit_save_folds(emit_run *e);

#endif
