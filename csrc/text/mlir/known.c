/* The table of known forms. */
#include "known.h"

static const mlir_known_op mlir_known_ops[] = {
    {"check.expect_eq", "%0 , %1 {} :0"},
    {"check.expect_eq_const", "%0 , &value {}"},
    {"check.expect_almost_eq", "%0 , %1 [tolerance , tolerance = $tolerance ] {} :0"},
    {"check.expect_almost_eq_const", "%0 , &value [tolerance , tolerance = $tolerance ] {}"},
    {"check.expect_close",
     "%0 , %1 , max_ulp_difference = $max_ulp_difference [min_ulp_difference , "
     "min_ulp_difference = $min_ulp_difference ] :01"},
    {"check.expect_serialized_eq", "%0 , probe_id = $probe_id [iteration , iter = $iteration ] {} :0"},
    {"interpreter.probe", "%0 , probe_id = $probe_id {} :same"},
    {"interpreter.print", "%0 {} :0"},
};

const char *mlir_known_form(const base_istr *name) {
  for (size_t i = 0; i < sizeof mlir_known_ops / sizeof *mlir_known_ops; i++)
    if (strcmp(mlir_known_ops[i].name, name->s) == 0) return mlir_known_ops[i].form;
  return NULL;
}

const char *mlir_known_attr(base_slice attr, base_dtype *number) {
  static const struct {
    const char *name;
    base_dtype dtype;
  } attrs[] = {{"tolerance", XLAC_F64},
               {"iteration", XLAC_U32},
               {"max_ulp_difference", XLAC_U64},
               {"min_ulp_difference", XLAC_U64},
               {"probe_id", BASE_DTYPE_INVALID}};
  for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
    *number = attrs[i].dtype;
    if (base_slice_is(attr, attrs[i].name)) return attrs[i].name;
  }
  return NULL;
}
