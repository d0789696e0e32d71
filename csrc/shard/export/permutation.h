/* What sdy-resolve-permutation-factors does with ops one by one. */
#ifndef XLAC_SHARD_EXPORT_PERMUTATION_H
#define XLAC_SHARD_EXPORT_PERMUTATION_H

#include "../common/common.h"
#include "../reshard/explicit.h"

typedef struct perm_mesh {
  const sdy_mesh *mesh;
  const base_istr *name;
} perm_mesh;
BASE_VEC(perm_meshes, perm_mesh);
typedef struct perm_pass {
  explicit_pass e;
  shc_names names;    /* of symbols, for new meshes */
  perm_meshes meshes; /* of the module, those made here too */
} perm_pass;

/* --- export_reverse.c --- */
/* A reverse along dimensions that are sharded: what is on the last device goes to the first. false: it is left to the
 * general way; else done, or nothing to do. */
bool perm_reverse(perm_pass *p, ir_op *op);

#endif
