/* No include guard: after ops_columns.h, the columns that make a row an op on scalars become SCALAR_COLUMN, which the
 * includer defines. */
#undef ON_FLOAT
#undef ON_INT
#undef ON_SINT
#undef ON_UINT
#undef ON_PRED
#undef ON_COMPLEX
#undef SCALAR
#define ON_FLOAT(...) SCALAR_COLUMN
#define ON_INT(...) SCALAR_COLUMN
#define ON_SINT(...) SCALAR_COLUMN
#define ON_UINT(...) SCALAR_COLUMN
#define ON_PRED(...) SCALAR_COLUMN
#define ON_COMPLEX(...) SCALAR_COLUMN
#define SCALAR(...) SCALAR_COLUMN
