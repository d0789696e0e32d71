/* Native kernels, inside. */
#ifndef XLAC_CPU_NATIVE_NATIVE_INSIDE_H
#define XLAC_CPU_NATIVE_NATIVE_INSIDE_H

#include "../../base/file.h"
#include "emit.h"
#include "native.h"

/* What was made of a body, so that an equal one shares it. */
typedef struct cpu_native_known {
  base_sum key;           /* of all that decides about the code */
  uint32_t entry, n_code; /* its code; none where it can't be emitted */
  uint32_t first, n_addresses;
} cpu_native_known;
BASE_VEC(cpu_native_knowns, cpu_native_known);

/* Code that has a name. */
typedef struct cpu_native_named {
  uint32_t entry, n_code, at; /* at: its text in `texts`, ended by 0 */
} cpu_native_named;
BASE_VEC(cpu_native_names, cpu_native_named);

enum { NATIVE_ALIGN = 64 }; /* of entries */

struct cpu_native_store {
  const nat_target *target;
  base_alloc alloc;
  x86_bytes code, key;        /* key: of the body at hand */
  x86_words addresses;        /* where the code has addresses: places from an entry on */
  const rt_saved_code *saved; /* or NULL */
  cpu_native_knowns known;
  bool maps; /* names are wanted */
  cpu_native_names names;
  x86_bytes texts;
  void *pages; /* NULL: it isn't sealed */
  size_t n_pages;
};

/* How a run of memory moves: what nat_stream says, without the body. */
typedef struct cpu_native_stream {
  uint32_t buffer;
  bool output, sum; /* sum: where the store of that number is combined */
  uint8_t width;
  bool number;
  int64_t stride; /* of loads 0, 1 or, where lanes are apart, another one */
  int64_t step;   /* what its pointer, or its number, moves by an iteration ... */
  int64_t cycle;  /* ... or by a cycle; ... */
  int64_t room;   /* ... of which none begins behind that element */
  const kernel_index *index;
} cpu_native_stream;

struct cpu_native_kernel {
  const cpu_native_store *store;
  const kernel *k;
  uint32_t entry, lanes, n_streams; /* entry NAT_NONE: there are parts alone */
  /* Boxes of iterations that have code of their own, by the order of their iterations in a row. */
  uint32_t n_parts;
  const kernel_box *boxes;
  const cpu_native_kernel **parts;
  uint32_t sums; /* lanes that values are combined to */
  uint8_t way;   /* cpu_native_way */
  bool tail;     /* the code does any number of iterations */
  /* Code for whole cycles, which lie within rows of its own kernel; or NULL. */
  const cpu_native_kernel *cycle;
  uint32_t trip; /* iterations of a cycle */
  cpu_native_stream streams[];
};

struct cpu_native_loop {
  const cpu_native_store *store;
  uint32_t entry;
};

/* --- flatten.c --- */
/* k with its last dimensions, which are short, as one: the same iterations in the same order. NULL where there is no
 * way, memory is short, or (unless `any`) the VM has a better one. */
const kernel *nat_flatten(const kernel *k, const nat_target *target, bool any, base_arena *arena);
/* k with indexes of 32 bits where they had 64 for nothing; k itself where there are none, or memory is short. */
const kernel *nat_narrow(const kernel *k, base_arena *arena);

/* --- cut.c --- */
enum { NAT_CUT_PARTS = 12 };
/* Boxes of k's iterations between the edges of its own boxes, and k within each of them: as many as it returns, of room
 * for NAT_CUT_PARTS. 0 where there are no edges or too many, or memory is short. lanes: of the code that does what is
 * in none of them; 0: there is none, and the parts are all. */
uint32_t nat_cut(const kernel *k, int64_t lanes, base_arena *arena, const kernel_box **boxes, const kernel **parts);

/* --- saved.c: code of an earlier build of the program --- */
/* Where this library is in memory. */
uintptr_t nat_base(void);
/* Puts what an earlier build made of the body of that key at the end of the code, whose place is a multiple of
 * NATIVE_ALIGN; false where there is none. */
bool nat_saved_take(cpu_native_store *s, base_sum key);
/* Adds all code to what the next build will find. */
void nat_saved_put(const cpu_native_store *s);

/* --- perf_map.c --- */
bool nat_map_wanted(void);
/* The names of code whose first byte is at `pages`. What can't be written is left out. */
void nat_map_write(const cpu_native_store *s, const void *pages);

#endif
