/* Categories of ops that tf_xla_ops_to_cluster may name (GetAllowlistTable). Constant tables. */
#ifndef XLAC_TF_CLUSTER_ALLOW_LIST_H
#define XLAC_TF_CLUSTER_ALLOW_LIST_H

#include "../../base/str.h"

/* One category of GetAllowlistTable, under its name in the flag; an op may be in several. */
typedef struct tf_category {
  const char *name, *ops; /* with blanks between */
} tf_category;
/* Ended by a NULL name. */
extern const tf_category tf_categories[];
/* Whether the category's list has the op, by its whole name. */
bool tf_category_has_op(const tf_category *category, const char *op);

/* Whether `op` is in a list such as "MatMul,PW" or "FUSIBLE"; an empty list has every op. */
bool tf_allow_list_has(const char *list, const char *op);
/* Fails for a name that is neither a category nor an op that XLA compiles. Names are separated by commas; the hint
 * lists the categories. */
XLAC_MUST_USE int tf_allow_list_check(const char *list, xlac_error *err);
/* cluster_exclude_ops: fails for names but Where. *exclude_where is set where the list has it. */
XLAC_MUST_USE int tf_exclude_list_check(const char *list, bool *exclude_where, xlac_error *err);

#endif
