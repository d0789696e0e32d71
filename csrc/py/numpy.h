/* NumPy's headers want a global pointer to its function table; here it comes from the module's state, and functions
 * that use it have it as a local variable of the name `numpy`, so that every interpreter has its own. */
#ifndef XLAC_PY_NUMPY_H
#define XLAC_PY_NUMPY_H

#include "py.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL xlac_numpy_api_unused
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>
#undef PyArray_API
#define PyArray_API numpy

/* --- arrays.c --- */
/* Fetched once; NULL with an exception set where NumPy is none that xlac can use. */
void **py_numpy(py_state *st);
/* The element type of a dtype, whatever its byte order; 0 for types xlac has not. */
uint32_t py_dtype_of(PyArray_Descr *descr);

#endif
