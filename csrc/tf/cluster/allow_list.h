/* Categories of ops that tf_xla_ops_to_cluster may name (GetAllowlistTable). Constant tables. */
#ifndef XLAC_TF_CLUSTER_ALLOW_LIST_H
#define XLAC_TF_CLUSTER_ALLOW_LIST_H

#include "../../base/str.h"

typedef struct tf_category {
  const char *name, *ops; /* with blanks between */
} tf_category;
/* Ended by a NULL name. */
extern const tf_category tf_categories[];
bool tf_category_has_op(const tf_category *category, const char *op);

/* Whether `op` is in a list such as "MatMul,PW" or "FUSIBLE"; an empty list has every op. */
bool tf_allow_list_has(const char *list, const char *op);
/* Fails for a name that is neither a category nor an op that XLA compiles. */
XLAC_MUST_USE int tf_allow_list_check(const char *list, xlac_error *err);
/* cluster_exclude_ops: fails for names but Where. */
XLAC_MUST_USE int tf_exclude_list_check(const char *list, bool *exclude_where, xlac_error *err);

#endif
