/* No include guard: sets every column of ops.def to nothing. A consumer includes this, then redefines the columns it
 * reads (each must expand to a designated initialiser with its own trailing comma), then OP, then includes ops.def. */
#undef TRAITS
#undef TYPES
#undef ATTRS
#undef PAIR
#undef INFER
#undef VERIFY
#undef EVAL
#undef ON_FLOAT
#undef ON_INT
#undef ON_SINT
#undef ON_UINT
#undef ON_PRED
#undef ON_COMPLEX
#undef SCALAR
#undef COST
#undef DOC
#undef MLIR
#undef MLIR_ATTRS
#undef SHLO
#undef VHLO
#define TRAITS(set)
#define TYPES(set)
#define ATTRS(...)
#define PAIR(start, done)
#define INFER(fn)
#define VERIFY(fn)
#define EVAL(fn)
#define ON_FLOAT(...)
#define ON_INT(...)
#define ON_SINT(...)
#define ON_UINT(...)
#define ON_PRED(...)
#define ON_COMPLEX(...)
#define SCALAR(...)
#define COST(kind)
#define DOC(text)
#define MLIR(...)
#define MLIR_ATTRS(...)
#define SHLO(...)
#define VHLO(name, first, last, attrs)
