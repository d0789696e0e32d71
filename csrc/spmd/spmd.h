/* Programs on many devices: one program with shardings becomes one local program, which runs on every device of a
 * group, on its shards.
 *
 *   partition     import, propagation, explicit reshards, and the program of one device with its collectives
 *   split, join   arguments as stored in whole arrays, results as they go there: views where shards are contiguous
 *   group         one executable in front of all: each call runs the local one on a thread a device
 *
 * The local program is one plan for all devices; what differs between them is partition_id. A call's collectives meet
 * in a communicator (runtime/communicator.h). What the partitioner has no better way for, it gathers: no program is
 * refused because of its shardings.
 * Ownership: as said at each function. Threads: a module, one; a group, any number of calls at the same time. */
#ifndef XLAC_SPMD_SPMD_H
#define XLAC_SPMD_SPMD_H

#include "../runtime/device.h"

enum { SPMD_MOST_DEVICES = 1024, SPMD_MOST_REHEARSED = 1 << 20 };

/* How one argument or result, a whole array, is cut into shards. */
typedef struct spmd_leaf {
  uint32_t rank;
  uint32_t bytes;                                /* of an element; 0: a token, or something without elements */
  int64_t dims[IR_MAX_RANK], shard[IR_MAX_RANK]; /* of the whole; of each device's */
  bool split, contiguous;                        /* shards are parts; each is one block of the whole */
  /* The rest is not there in a rehearsal, but for sharding. */
  int64_t *offsets;        /* by device: elements before its shard's first one */
  int64_t *starts;         /* by device, by dimension: the index of that one in the whole */
  const char *sharding;    /* as text, with its mesh; NULL: none */
  bool *first;             /* by device: nobody before it has the same shard */
  uint32_t n_parts, *part; /* by device: which of so many parts, to be added up, its shard is; 1, NULL: it has all */
  uint8_t reduction;       /* sdy_reduction: how they are added up */
} spmd_leaf;

/* Why an op has no form on shards. In words: report.c. */
typedef enum spmd_cause {
  SPMD_NO_RULE,     /* nothing says how its dimensions go together */
  SPMD_DRAWS,       /* each device would draw other numbers */
  SPMD_MOVES,       /* it moves elements along a sharded dimension */
  SPMD_NEEDS_WHOLE, /* it needs all of a sharded dimension at once */
  SPMD_DISAGREES,   /* its tensors are cut differently along one dimension */
  SPMD_UNEVEN,      /* a dimension is not a multiple of its shards */
  SPMD_DYNAMIC,     /* a size is known only when it runs */
  SPMD_MESHES,      /* its tensors are on meshes that differ */
  SPMD_UNCOMBINED,  /* no all-reduce makes its result of partial ones */
  SPMD_RESHAPES,    /* elements would go to other devices */
  SPMD_WRITES_PART, /* a part of a sharded dimension is written */
  SPMD_CAUSES
} spmd_cause;

/* An op of the program, for explanations. In the program's arena. */
typedef struct spmd_place {
  const char *op, *source; /* "stablehlo.sort"; JSON: "\"model.py:12\"" or null */
  uint32_t line, col;
} spmd_place;

/* An op that every device computes whole, since it has no better form, and the bytes of what is gathered for it. */
typedef struct spmd_gather {
  spmd_place at;
  int64_t bytes;
  spmd_cause cause;
  uint32_t tensor, dim; /* operands, then results, and the dimension that stands in the way; UINT32_MAX: no one does */
} spmd_gather;
BASE_VEC(spmd_gathers, spmd_gather);

/* An op that moves or adds up data between devices: its kind, the axes of the mesh as text ("" where the program says
 * groups of devices itself), and the bytes that a device sends at least. */
typedef struct spmd_move {
  spmd_place at, reader; /* what it moves the result of, and what first reads it; reader.op NULL: the function's end */
  const char *kind, *axes;
  int64_t bytes;
} spmd_move;
BASE_VEC(spmd_moves, spmd_move);

/* What partitioning has made of a program. */
typedef struct spmd_program {
  base_arena arena;
  ir_module *local; /* what each device runs; MLIR form, later HLO form */
  uint32_t n_devices;
  int64_t replicas, partitions; /* n_devices in all: device = replica * partitions + partition */
  uint32_t n_arguments, n_results;
  spmd_leaf *arguments, *results;
  spmd_gathers gathers; /* in the order of the text, those within regions first */
  spmd_moves moves;     /* in the order of the text */
  const char *whole;    /* why the program runs whole on every device; NULL: it does not. In the arena */
  const char *summed;   /* why parts of sums are added up sooner than it says; the same */
  bool rehearsal;       /* to be planned and never run: nothing here is as long as there are devices */
} spmd_program;

/* Partitions m, in either form, which stays as it is. SHARDING where the program's meshes are of other sizes, ... A
 * rehearsal takes time and memory by the program alone, for up to SPMD_MOST_REHEARSED devices. */
XLAC_MUST_USE int spmd_partition(ir_module *m, uint32_t n_devices, bool rehearsal, spmd_program **out, xlac_error *err);
void spmd_program_destroy(spmd_program *p); /* NULL is fine */

/* layout.c: the cut of a value of type t. s may be NULL: whole on each device. */
struct sdy_sharding;
XLAC_MUST_USE int spmd_leaf_make(spmd_leaf *leaf, spmd_program *p, const ir_module *m, const ir_type *t,
                                 const struct sdy_sharding *s, xlac_error *err);
int64_t spmd_shard_bytes(const spmd_leaf *leaf);
/* Between the whole and one device's shard, which is dense: to the shard (split), or from it (join). */
void spmd_split(const spmd_leaf *leaf, uint32_t device, void *shard, const void *whole);
void spmd_join(const spmd_leaf *leaf, uint32_t device, void *whole, const void *shard);
/* Whether the device has nothing of a whole array: another one has it, for those that would be added to it. */
static inline bool spmd_has_none(const spmd_leaf *leaf, uint32_t device) {
  return leaf->part && leaf->part[device] && leaf->reduction == 0;
}
/* Adds a device's part to what is in the whole already. t: of its elements. */
void spmd_add(const spmd_leaf *leaf, const ir_type *t, uint32_t device, void *whole, const void *shard);

/* face.c: a module with the whole program's signature, in HLO form, which stands for the group where modules are
 * asked for arguments and results. `local` is the local program in HLO form. */
XLAC_MUST_USE int spmd_face(const spmd_program *p, const ir_module *local, ir_module **out, xlac_error *err);

/* group.c: takes p and the executables of the local program, also on failure, but not their list. The devices of this
 * program have them in turn; the same one may come several times, and all but the first have the first one's module and
 * plan. NULL are those of other processes, whose network it joins before it is called. What it gives is a group: an
 * executable whose n_devices is not 0. little: elements; devices with less between their collectives are run by the
 * caller's thread; 0: some thousands. */
XLAC_MUST_USE int spmd_group(spmd_program *p, rt_executable *const *seats, uint32_t n_seats, uint64_t little,
                             base_alloc alloc, rt_executable **out, xlac_error *err);
/* What spmd_group would take; entries may be NULL. */
void spmd_group_abandon(spmd_program *p, rt_executable *const *seats, uint32_t n_seats);
/* How its devices run, and why: static words that follow "devices run". */
const char *spmd_group_way(const rt_executable *group);
/* Borrowed from a group: what it is the program of, and one device's executable. */
const spmd_program *spmd_group_program(const rt_executable *group);
const rt_executable *spmd_group_local(const rt_executable *group);
/* One call with shards: pointers as rt_call takes them for the local program, whose donations they follow; those of
 * device 0, then those of device 1, and so on. Devices that have the same part of a result may share its memory; else
 * no shard of a result overlaps another, nor one of an argument but that of a donation. Errors as rt_call's;
 * PARTICIPANTS. */
XLAC_MUST_USE int spmd_group_call_shards(const rt_executable *group, const rt_call_options *options,
                                         void *const *arguments, void *const *results, xlac_error *err);

/* group_network.c: the group spans the processes of a network: rank r runs the r-th part of its devices, all in the
 * same calls. Calls with shards then have those of this process's devices alone. label: what the other ranks must run,
 * too. Before the first call. processes: by device; NULL: they are shared evenly. PARTICIPANTS: they can't be, or we
 * have none. */
struct rt_network;
XLAC_MUST_USE int spmd_group_join(rt_executable *group, struct rt_network *net, const uint32_t *processes,
                                  const char *label, xlac_error *err);
struct rt_network *spmd_group_network(const rt_executable *group); /* NULL: it has joined none */
void spmd_group_here(const rt_executable *group, uint32_t *from, uint32_t *here);
/* What the device of that number, of those of this process, runs on. Borrowed. */
rt_device *spmd_group_device(const rt_executable *group, uint32_t number);

/* report.c: what partitioning came to, as JSON (docs/executor.md). way: spmd_group_way's; NULL: it is not to be run. */
void spmd_put_report(base_text *out, const spmd_program *p, const char *way);

#endif
