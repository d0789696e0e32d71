/* Programs on many devices: one program with shardings becomes one local program, which runs on every device of a
 * group, on its shards.
 *
 *   partition     import, propagation, explicit reshards, and the program of one device with its collectives
 *   split, join   arguments as they lie in whole arrays, results as they go there: views where shards are contiguous
 *   group         one executable in front of all: each call runs the local one on a thread a device
 *
 * The local program is one plan for all devices; what differs between them is partition_id. A call's collectives meet
 * in a communicator (runtime/communicator.h). What the partitioner has no better way for, it gathers: no program is
 * refused because of its shardings.
 * Ownership: as said at each function. Threads: a module, one; a group, any number of calls at the same time. */
#ifndef XLAC_SPMD_SPMD_H
#define XLAC_SPMD_SPMD_H

#include "../runtime/device.h"

enum { SPMD_MOST_DEVICES = 1024 };

/* How one argument or result, a whole array, is cut into shards. */
typedef struct spmd_leaf {
  uint32_t rank;
  uint32_t bytes;                                /* of an element; 0: a token, or something without elements */
  int64_t dims[IR_MAX_RANK], shard[IR_MAX_RANK]; /* of the whole; of each device's */
  bool split, contiguous;                        /* shards are parts; each is one block of the whole */
  int64_t *offsets;                              /* by device: elements before its shard's first one */
  bool *first;                                   /* by device: nobody before it has the same shard */
} spmd_leaf;

/* An op that every device computes whole, since it has no better form: its place in the text, and the bytes of what is
 * gathered for it. */
typedef struct spmd_gather {
  const char *op;
  uint32_t line, col;
  int64_t bytes;
} spmd_gather;
BASE_VEC(spmd_gathers, spmd_gather);

/* What partitioning has made of a program. */
typedef struct spmd_program {
  base_arena arena;
  ir_module *local; /* what each device runs; MLIR form, later HLO form */
  uint32_t n_devices;
  int64_t replicas, partitions; /* n_devices in all: device = replica * partitions + partition */
  uint32_t n_arguments, n_results;
  spmd_leaf *arguments, *results;
  spmd_gathers gathers; /* in the order of the text */
  const char *whole;    /* why the program runs whole on every device; NULL: it does not. In the arena */
} spmd_program;

/* Partitions m, in either form, which stays as it is. SHARDING where the program's meshes are of other sizes, ... */
XLAC_MUST_USE int spmd_partition(ir_module *m, uint32_t n_devices, spmd_program **out, xlac_error *err);
void spmd_program_destroy(spmd_program *p); /* NULL is fine */

/* layout.c: the cut of a value of type t. s may be NULL: whole on each device. */
struct sdy_sharding;
XLAC_MUST_USE int spmd_leaf_make(spmd_leaf *leaf, spmd_program *p, const ir_module *m, const ir_type *t,
                                 const struct sdy_sharding *s, xlac_error *err);
int64_t spmd_shard_bytes(const spmd_leaf *leaf);
/* Between the whole and one device's shard, which is dense: to the shard (split), or from it (join). */
void spmd_split(const spmd_leaf *leaf, uint32_t device, void *shard, const void *whole);
void spmd_join(const spmd_leaf *leaf, uint32_t device, void *whole, const void *shard);

/* face.c: a module with the whole program's signature, in HLO form, which stands for the group where modules are
 * asked for arguments and results. `local` is the local program in HLO form. */
XLAC_MUST_USE int spmd_face(const spmd_program *p, const ir_module *local, ir_module **out, xlac_error *err);

/* group.c: takes p and one, the local program's executable, also on failure. */
XLAC_MUST_USE int spmd_group(spmd_program *p, rt_executable *one, base_alloc alloc, rt_executable **out,
                             xlac_error *err);

#endif
