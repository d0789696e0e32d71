/* NumPy arrays in and out, through NumPy's C API. In: arrays that are dense, aligned and in native byte order are
 * lent, others copied by NumPy. Out: arrays own the value's memory through a capsule.
 *
 * Everything here runs with the GIL, and nothing keeps a pointer into an array without a reference to it: what is
 * lent to a run goes on the caller's list `keep`, which outlives the run. */
#include "buffer.h"
#include "dlpack.h"

#include <assert.h>
#include <string.h>

/* NumPy's function table, out of the capsule that its C extension has for that; NULL with an exception. The module
 * is imported by its private name, as NumPy's own header does it, since the public one gives no capsule. Both
 * checks are of the binary interface: a table of a later major version, or of version 2 for code built against
 * version 1, has other functions in the same places. */
static void **load_numpy(void) {
  PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
  if (module == NULL) {
    PyErr_Clear();
    module = PyImport_ImportModule("numpy.core._multiarray_umath"); /* before 2.0 */
  }
  PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
  void **numpy = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(capsule); /* NumPy keeps the table for as long as it is loaded */
  if (numpy && PyArray_GetNDArrayCVersion() > 0x02ffffff)
    return PyErr_Format(PyExc_ImportError, "xlac does not know this NumPy's C API (%x)", PyArray_GetNDArrayCVersion()),
           NULL;
  if (numpy && NPY_ABI_VERSION < 0x02000000 && PyArray_GetNDArrayCVersion() >= 0x02000000)
    return PyErr_SetString(PyExc_ImportError, "xlac was built with NumPy 1 and can't use NumPy 2: install it again"),
           NULL;
  return numpy;
}

/* Threads that race store the same pointer. The release store pairs with the acquire load: who sees the pointer
 * sees the table as NumPy filled it. */
void **py_numpy(py_state *st) {
  void **numpy = __atomic_load_n(&st->numpy, __ATOMIC_ACQUIRE);
  if (numpy) return numpy;
  numpy = load_numpy();
  if (numpy) __atomic_store_n(&st->numpy, numpy, __ATOMIC_RELEASE);
  return numpy;
}

/* --- element types --- */

/* Types that NumPy itself lacks have numbers of their own in each process, but the names that ml_dtypes gives
 * them. 0 where no type of ours has that name; an exception on the way (a name that is not UTF-8) is dropped, since
 * "none of ours" says as much. */
static uint32_t dtype_by_name(PyArray_Descr *descr) {
  assert(descr);
  PyObject *name = PyObject_GetAttrString((PyObject *)descr, "name");
  const char *s = name ? PyUnicode_AsUTF8(name) : NULL;
  uint32_t dtype = 0;
  for (uint32_t t = 1; s && t < xlac_dtype_count(); t++) {
    bool of_ml_dtypes;
    const char *numpy = xlac_dtype_numpy(t, &of_ml_dtypes);
    if (of_ml_dtypes && strcmp(numpy, s) == 0) dtype = t;
  }
  Py_XDECREF(name);
  PyErr_Clear();
  return dtype;
}

/* bytes: the size of a C integer type, which differs between platforms for the same NumPy type number. */
static uint32_t integer_dtype(bool is_signed, size_t bytes) {
  assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  static const char *const names[2][9] = {{[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"},
                                          {[1] = "s8", [2] = "s16", [4] = "s32", [8] = "s64"}};
  return xlac_dtype_from_text(names[is_signed][bytes]);
}

/* Type numbers and not names decide for NumPy's own types: a switch costs a call next to nothing. The byte order
 * is not looked at; callers ask PyArray_ISNBO. */
uint32_t py_dtype_of(PyArray_Descr *descr) {
  assert(descr);
  switch (descr->type_num) {
    case NPY_BOOL:
      return xlac_dtype_from_text("pred");
    case NPY_BYTE:
      return integer_dtype(true, 1);
    case NPY_UBYTE:
      return integer_dtype(false, 1);
    case NPY_SHORT:
      return integer_dtype(true, sizeof(short));
    case NPY_USHORT:
      return integer_dtype(false, sizeof(short));
    case NPY_INT:
      return integer_dtype(true, sizeof(int));
    case NPY_UINT:
      return integer_dtype(false, sizeof(int));
    case NPY_LONG:
      return integer_dtype(true, sizeof(long));
    case NPY_ULONG:
      return integer_dtype(false, sizeof(long));
    case NPY_LONGLONG:
      return integer_dtype(true, sizeof(long long));
    case NPY_ULONGLONG:
      return integer_dtype(false, sizeof(long long));
    case NPY_HALF:
      return xlac_dtype_from_text("f16");
    case NPY_FLOAT:
      return xlac_dtype_from_text("f32");
    case NPY_DOUBLE:
      return xlac_dtype_from_text("f64");
    case NPY_CFLOAT:
      return xlac_dtype_from_text("c64");
    case NPY_CDOUBLE:
      return xlac_dtype_from_text("c128");
    default:
      return dtype_by_name(descr);
  }
}

/* NumPy's type number for an element type that it has itself; -1 for those of ml_dtypes. */
static int builtin_type_num(const char *text) {
  assert(text);
  static const struct {
    const char *text;
    int type_num;
  } table[] = {{"pred", NPY_BOOL}, {"s8", NPY_INT8},    {"s16", NPY_INT16},  {"s32", NPY_INT32},   {"s64", NPY_INT64},
               {"u8", NPY_UINT8},  {"u16", NPY_UINT16}, {"u32", NPY_UINT32}, {"u64", NPY_UINT64},  {"f16", NPY_HALF},
               {"f32", NPY_FLOAT}, {"f64", NPY_DOUBLE}, {"c64", NPY_CFLOAT}, {"c128", NPY_CDOUBLE}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].text, text) == 0) return table[i].type_num;
  return -1;
}

/* The dtype that ml_dtypes registers for an element type; a new reference, or NULL with an exception. Its module
 * is imported here, and only when somebody wants such an array: xlac does not depend on it. */
static PyObject *ml_dtypes_descr(py_state *st, void **numpy, uint32_t dtype) {
  bool of_ml_dtypes;
  const char *text = xlac_dtype_text(dtype), *name = xlac_dtype_numpy(dtype, &of_ml_dtypes);
  assert(name && of_ml_dtypes); /* the others are NumPy's own */
  PyObject *module = PyImport_ImportModule("ml_dtypes");
  PyObject *scalar_type = module ? PyObject_GetAttrString(module, name) : NULL;
  Py_XDECREF(module);
  if (scalar_type == NULL && module &&
      strstr(name, "int")) { /* an older ml_dtypes: bytes stand in for narrower integers */
    PyErr_Clear();
    return (PyObject *)PyArray_DescrFromType(*name == 'u' ? NPY_UINT8 : NPY_INT8);
  }
  if (scalar_type == NULL) {
    xlac_error err = {.code = 503};
    PyOS_snprintf(err.message, sizeof err.message, "NumPy arrays of %s need ml_dtypes.%s", text, name);
    PyOS_snprintf(err.hint, sizeof err.hint, "%s", module ? "install a newer ml_dtypes" : "pip install ml_dtypes");
    PyErr_Clear();
    return py_raise(st, &err, PY_ANY);
  }
  PyArray_Descr *descr = NULL;
  int ok = PyArray_DescrConverter(scalar_type, &descr);
  Py_DECREF(scalar_type);
  return ok ? (PyObject *)descr : NULL;
}

/* Those of ml_dtypes are kept in the state. Threads that race make the same object, and the one that comes second
 * drops its reference instead of storing it. */
PyObject *py_descr(py_state *st, uint32_t dtype) {
  void **numpy = py_numpy(st);
  const char *text = xlac_dtype_text(dtype);
  if (numpy == NULL) return NULL;
  if (text == NULL || dtype >= PY_MAX_DTYPES) return py_raise_argument(st, "element type number %u is unknown", dtype);
  int type_num = builtin_type_num(text);
  if (type_num >= 0) return (PyObject *)PyArray_DescrFromType(type_num);
  PyObject *descr = __atomic_load_n(&st->descrs[dtype], __ATOMIC_ACQUIRE);
  if (descr) return Py_NewRef(descr);
  descr = ml_dtypes_descr(st, numpy, dtype);
  PyObject *none_yet = NULL;
  if (descr &&
      __atomic_compare_exchange_n(&st->descrs[dtype], &none_yet, descr, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    Py_INCREF(descr);
  return descr;
}

/* --- out --- */

/* The last array on the value's memory is gone. */
static void release_capsule(PyObject *capsule) {
  xlac_value_release(PyCapsule_GetPointer(capsule, "xlac_value"));
}

/* A new array on the value's memory, which a capsule holds by a reference of its own; NULL with an exception.
 * Steals nothing. The array may be written to, since nobody else looks at a value that came out of a run. */
static PyObject *array_from_value(py_state *st, xlac_value *v, const xlac_value_info *info) {
  assert(info->kind == XLAC_VALUE_ARRAY);
  npy_intp dims[NPY_MAXDIMS];
  void **numpy = py_numpy(st);
  PyObject *descr = numpy ? py_descr(st, info->dtype) : NULL;
  if (descr == NULL) return NULL;
  if (info->rank > NPY_MAXDIMS) {
    Py_DECREF(descr);
    return py_raise_argument(st, "NumPy arrays have at most %d dimensions, the result has %u", NPY_MAXDIMS, info->rank);
  }
  for (uint32_t d = 0; d < info->rank; d++) dims[d] = (npy_intp)info->dims[d];
  void *data = (void *)(uintptr_t)info->data; /* the array is the value's only holder */
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)descr, (int)info->rank, dims, NULL, data,
                                         NPY_ARRAY_CARRAY, NULL);
  if (array == NULL) return NULL;
  PyObject *capsule = PyCapsule_New(v, "xlac_value", release_capsule);
  if (capsule == NULL) {
    Py_DECREF(array);
    return NULL;
  }
  xlac_value_retain(v);
  if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) < 0) Py_CLEAR(array);
  return array;
}

/* Nesting is that of a type, which is bounded; elements are borrowed from v, and arrays take references of their
 * own. */
static PyObject *object_from_value(py_state *st, xlac_value *v) {
  assert(v);
  xlac_value_info info;
  xlac_value_get(v, &info);
  if (info.kind == XLAC_VALUE_TOKEN) Py_RETURN_NONE;
  if (info.kind == XLAC_VALUE_ARRAY) return array_from_value(st, v, &info);
  PyObject *tuple = PyTuple_New(info.n_elements);
  for (uint32_t i = 0; tuple && i < info.n_elements; i++) {
    PyObject *element = object_from_value(st, xlac_value_element(v, i));
    if (element == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, element);
  }
  return tuple;
}

/* Arrays have references of their own to the memory, so v goes in any case. */
PyObject *py_from_value(py_state *st, xlac_value *v) {
  PyObject *object = object_from_value(st, v);
  xlac_value_release(v);
  return object;
}

/* --- in --- */

bool py_is_masked(PyObject *array) {
  PyObject *mask = PyObject_GetAttrString(array, "mask"), *any = mask ? PyObject_CallMethod(mask, "any", NULL) : NULL;
  bool masked = any && PyObject_IsTrue(any) == 1;
  Py_XDECREF(mask);
  Py_XDECREF(any);
  PyErr_Clear();
  return masked;
}

/* np.asarray(object, dtype), or np.from_dlpack(object) of what speaks nothing else; dtype may be NULL. */
static PyObject *as_array(void **numpy, PyObject *object, PyObject *descr) {
  bool dlpack = !PyObject_CheckBuffer(object) && !PyObject_HasAttrString(object, "__array__") &&
                PyObject_HasAttrString(object, "__dlpack__");
  if (!dlpack && descr == NULL) return PyArray_FROM_O(object);
  PyObject *module = PyImport_ImportModule("numpy");
  PyObject *array = NULL;
  if (module && dlpack)
    array = PyObject_CallMethod(module, "from_dlpack", "(O)", object);
  else if (module)
    array = PyObject_CallMethod(module, "asarray", descr ? "(OO)" : "(O)", object, descr);
  Py_XDECREF(module);
  return array;
}

/* Whether the object brings an element type of its own. */
static bool has_own_dtype(PyObject *object) {
  return PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__array__") ||
         PyObject_HasAttrString(object, "__dlpack__") || PyObject_HasAttrString(object, "__array_interface__");
}

/* Bare numbers take the type asked for, but 2.5 is not an integer: NumPy would cut it. */
static PyObject *array_of_numbers(py_state *st, void **numpy, PyObject *object, uint32_t dtype) {
  PyObject *plain = as_array(numpy, object, NULL);
  if (plain == NULL || !PyArray_Check(plain)) return plain;
  const char *kind = xlac_dtype_kind(dtype);
  bool to_integer = strcmp(kind, "sint") == 0 || strcmp(kind, "uint") == 0 || strcmp(kind, "pred") == 0;
  bool of_floats = PyArray_ISFLOAT((PyArrayObject *)plain) || PyArray_ISCOMPLEX((PyArrayObject *)plain);
  if (to_integer && of_floats && PyArray_SIZE((PyArrayObject *)plain) > 0) {
    Py_DECREF(plain);
    return PyErr_Format(PyExc_ValueError, "these numbers are not integers");
  }
  Py_DECREF(plain);
  PyObject *descr = py_descr(st, dtype);
  PyObject *array = descr ? as_array(numpy, object, descr) : NULL;
  Py_XDECREF(descr);
  return array;
}

/* Whether a tensor has the elements that are wanted (0: any will do). If not, the exception says how PyTorch converts
 * them, by NumPy's name of the type, which is PyTorch's, too. Integers of less than a byte may be held by wider ones.
 */
static bool tensor_has(py_state *st, xlac_buffer *b, uint32_t dtype) {
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  bool narrow = xlac_dtype_bits(dtype) < 8 && strcmp(xlac_dtype_kind(dtype), "pred") != 0;
  if (dtype == 0 || info.dtype == dtype || narrow) return true;
  PyObject *name = py_descr(st, dtype);
  if (name)
    PyErr_Format(PyExc_BufferError, "its elements are %s, and never converted silently; pass x.to(torch.%S)",
                 xlac_dtype_text(info.dtype), name);
  Py_XDECREF(name);
  return false;
}

/* By DLPack: PyTorch's tensors of types that NumPy lacks come in no other way. */
static PyObject *array_of_tensor(py_state *st, void **numpy, PyObject *object, uint32_t dtype) {
  xlac_buffer *b = py_buffer_from_dlpack(st, object, PY_COPY_IF_NEEDED, true);
  if (b && !tensor_has(st, b, dtype)) {
    xlac_buffer_release(b);
    return NULL;
  }
  PyObject *wrapped = b ? py_wrap_buffer(st, b) : NULL;
  PyObject *array = wrapped ? PyArray_FROM_O(wrapped) : NULL;
  Py_XDECREF(wrapped);
  return array;
}

/* A new reference to an ndarray of what the object holds. */
static PyObject *array_of(py_state *st, void **numpy, PyObject *object, uint32_t dtype) {
  if (PyArray_Check(object) && !PyArray_CheckExact(object) && py_is_masked(object))
    return PyErr_Format(PyExc_ValueError, PY_MASKED_WORDS);
  if (PyArray_Check(object)) return Py_NewRef(object);
  if (!py_is_buffer(st, object) && dl_exchange_of(st, Py_TYPE(object)))
    return array_of_tensor(st, numpy, object, dtype);
  if (dtype && !has_own_dtype(object)) return array_of_numbers(st, numpy, object, dtype);
  PyObject *array = as_array(numpy, object, NULL);
  if (array || !PyErr_ExceptionMatches(PyExc_Exception) || !py_lies_on_gpu(st, object)) return array;
  PyErr_Clear(); /* CuPy's arrays become NumPy's by no conversion that goes unsaid */
  return array_of_tensor(st, numpy, object, dtype);
}

/* The exception that is set, which no longer is. */
static PyObject *take_exception(void) {
#if PY_VERSION_HEX >= 0x030c0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
#endif
}

/* Whether the exception that is set is one of ours: an ArgumentError is a TypeError and a ValueError, too. */
static bool raised_by_xlac(py_state *st) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *own = PyObject_GetAttrString(st->errors, "Error");
  bool ours = own && PyErr_GivenExceptionMatches(type, own);
  Py_XDECREF(own);
  PyErr_Restore(type, value, traceback);
  return ours;
}

/* What to do about an object that is no array: several arguments given as one, or a value that JAX traces. */
static const char *hint_for(PyObject *object) {
  if (PyObject_HasAttrString(object, "aval") && PyObject_HasAttrString(object, "_trace"))
    return "an executable has no gradient and no batches: call it outside of jax.jit, grad and vmap";
  if (PyDict_Check(object)) return "give arrays one by one, or by name: executable(**arguments)";
  if (PyTuple_Check(object) || PyList_Check(object))
    return "if these are several arguments, give them one by one: executable(*arguments)";
  return "";
}

/* Says for which argument NumPy refused an object; what xlac itself raised, and what is not about the object, stays. */
static void raise_not_array(py_state *st, PyObject *object, const char *what, uint32_t dtype) {
  assert(PyErr_Occurred());
  if (raised_by_xlac(st)) return;
  if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_OverflowError) && !PyErr_ExceptionMatches(PyExc_BufferError))
    return;
  PyObject *exception = take_exception();
  PyObject *cause = exception ? PyObject_Str(exception) : NULL;
  const char *text = cause ? PyUnicode_AsUTF8(cause) : NULL;
  PyErr_Clear();
  xlac_error err = {.code = 501};
  PyOS_snprintf(err.message, sizeof err.message, "%s can't be made an array%s%s: %.300s", what, dtype ? " of " : "",
                dtype ? xlac_dtype_text(dtype) : "", text ? text : "NumPy gave no reason");
  PyOS_snprintf(err.hint, sizeof err.hint, "%s", hint_for(object));
  PyErr_Clear();
  py_raise(st, &err, PY_ANY);
  Py_XDECREF(cause);
  Py_XDECREF(exception);
}

/* The same array if xlac can read it where it is, else a copy. Steals. The copy counts in xlac.stats(), as what an
 * argument in another layout costs. */
static PyArrayObject *make_plain(py_state *st, void **numpy, PyArrayObject *array) {
  PyArray_Descr *descr = PyArray_DESCR(array);
  if (PyArray_ISCARRAY_RO(array) && PyArray_ISNBO(descr->byteorder)) return array;
  PyArray_Descr *native = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
  PyObject *copy = native ? PyArray_FromArray(array, native, NPY_ARRAY_CARRAY_RO) : NULL;
  if (copy) {
    xlac_counters_add(st->counters, XLAC_COUNT_COPIES_IN, 1);
    xlac_counters_add(st->counters, XLAC_COUNT_BYTES_COPIED_IN,
                      PyArray_SIZE(array) * (npy_intp)xlac_dtype_bytes(py_dtype_of(descr)));
  }
  Py_DECREF(array);
  return (PyArrayObject *)copy;
}

/* `expected` may be NULL: any type would have done. */
static void raise_dtype(py_state *st, PyArrayObject *array, const char *what, const char *expected) {
  assert(array && what);
  xlac_error err = {.code = 501};
  PyObject *name = PyObject_Str((PyObject *)PyArray_DESCR(array));
  const char *s = name ? PyUnicode_AsUTF8(name) : NULL;
  PyErr_Clear();
  PyOS_snprintf(err.message, sizeof err.message, "%s has dtype %s, which is not an element type of xlac%s%s", what,
                s ? s : "unknown", expected ? "; expected " : "", expected ? expected : "");
  if (expected && PyArray_DESCR(array)->type_num == NPY_OBJECT)
    PyOS_snprintf(err.hint, sizeof err.hint, "convert it first, as xlac.asarray(x, \"%s\") does", expected);
  Py_XDECREF(name);
  py_raise(st, &err, PY_ANY);
}

/* Whether an array of that NumPy type stands in for an element type that this ml_dtypes lacks. Narrow integers lie
 * in a byte each, as int8 and uint8, where ml_dtypes is too old to have them. */
static bool stands_in(py_state *st, PyArrayObject *array, uint32_t expected) {
  if (expected == 0 || xlac_dtype_bits(expected) >= 8) return false;
  PyObject *descr = py_descr(st, expected);
  PyErr_Clear();
  bool same = descr && ((PyArray_Descr *)descr)->type_num == PyArray_DESCR(array)->type_num;
  Py_XDECREF(descr);
  return same;
}

/* A value on the array's memory, without a copy; the list `keep` gets a reference to the array, and must outlive
 * the value. 0, or -1 with an exception. */
static int lend_array(py_state *st, PyArrayObject *array, uint32_t expected, const char *what, PyObject *keep,
                      xlac_value **out) {
  assert(PyList_Check(keep));
  uint32_t dtype = py_dtype_of(PyArray_DESCR(array));
  if (dtype != expected && stands_in(st, array, expected)) dtype = expected;
  if (dtype == 0) {
    raise_dtype(st, array, what, expected ? xlac_dtype_text(expected) : NULL);
    return -1;
  }
  int64_t dims[NPY_MAXDIMS];
  int rank = PyArray_NDIM(array);
  for (int d = 0; d < rank; d++) dims[d] = PyArray_DIMS(array)[d];
  if (PyList_Append(keep, (PyObject *)array) < 0) return -1;
  xlac_error err = {.code = 0};
  if (xlac_value_lend(out, dtype, (uint32_t)rank, dims, PyArray_DATA(array), NULL, NULL, &err) == 0) return 0;
  py_raise(st, &err, PY_ANY);
  return -1;
}

/* dtype 0: whatever NumPy makes of the object. The array is borrowed, so its own reference can go at once. */
static int array_to_value(py_state *st, PyObject *object, uint32_t dtype, const char *what, PyObject *keep,
                          xlac_value **out) {
  assert(PyList_Check(keep));
  if (object == Py_None) { /* which NumPy takes for a NaN */
    py_raise_argument(st, "%s is None; expected an array%s%s", what, dtype ? " of " : "",
                      dtype ? xlac_dtype_text(dtype) : "");
    return -1;
  }
  void **numpy = py_numpy(st);
  PyArrayObject *array = numpy ? (PyArrayObject *)array_of(st, numpy, object, dtype) : NULL;
  if (numpy && array == NULL) raise_not_array(st, object, what, dtype);
  if (array) array = make_plain(st, numpy, array);
  if (array == NULL) return -1;
  int status = lend_array(st, array, dtype, what, keep, out);
  Py_DECREF(array);
  return status;
}

/* Those that a tuple was made of: it has references of its own. */
static void release_values(xlac_value **values, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
}

/* A tuple or list of values; t may be NULL. Nesting is the type's, or Python's own limit. What is converted may
 * run Python code, which may change a list: the elements are those it has at first, held by a tuple. Where there
 * are more elements than the type has, those beyond are converted as they come, and the run says that there are
 * too many. */
static int tuple_to_value(py_state *st, PyObject *object, const xlac_type *t, const char *what, PyObject *keep,
                          xlac_value **out) {
  assert(PyTuple_Check(object) || PyList_Check(object));
  PyObject *items = PyTuple_Check(object) ? Py_NewRef(object) : PyList_AsTuple(object);
  Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0, done = 0;
  xlac_value **elements = items ? PyMem_Calloc((size_t)n + 1, sizeof *elements) : NULL;
  int status = elements ? Py_EnterRecursiveCall(" in a tuple of arrays") : (PyErr_NoMemory(), -1);
  if (status) {
    PyMem_Free(elements);
    Py_XDECREF(items);
    return -1;
  }
  for (; done < n && status == 0; done++) {
    char path[160];
    PyOS_snprintf(path, sizeof path, "%.120s[%zd]", what, done);
    PyObject *element = PyTuple_GET_ITEM(items, done);
    const xlac_type *element_type = t ? xlac_type_element(t, (uint32_t)done) : NULL;
    status = element_type ? py_to_value(st, element, element_type, path, keep, &elements[done])
                          : py_to_any_value(st, element, keep, &elements[done]);
    if (status) break;
  }
  Py_LeaveRecursiveCall();
  xlac_error err = {.code = 0};
  if (status == 0 && xlac_value_tuple(out, (uint32_t)n, elements, &err) != 0) {
    py_raise(st, &err, PY_ANY);
    status = -1;
  }
  release_values(elements, done);
  Py_DECREF(items);
  return status;
}

/* 0, or -1 with an exception. */
static int none_to_token(py_state *st, xlac_value **out) {
  xlac_error err = {.code = 0};
  if (xlac_value_token(out, &err) == 0) return 0;
  py_raise(st, &err, PY_ANY);
  return -1;
}

/* Errors name the argument by `what`, with the path of the element in a tuple behind it. */
int py_to_value(py_state *st, PyObject *object, const xlac_type *t, const char *what, PyObject *keep,
                xlac_value **out) {
  assert(t && what && PyList_Check(keep));
  xlac_type_info info;
  xlac_type_get(t, &info);
  if (Py_IS_TYPE(object, st->donation_type)) object = ((py_donation *)object)->value; /* values are borrowed */
  if (info.kind == XLAC_TYPE_TENSOR) return array_to_value(st, object, info.dtype, what, keep, out);
  if (info.kind == XLAC_TYPE_TOKEN && object == Py_None) return none_to_token(st, out);
  if (info.kind == XLAC_TYPE_TUPLE && (PyTuple_Check(object) || PyList_Check(object)))
    return tuple_to_value(st, object, t, what, keep, out);
  char *text = xlac_type_print(t, false);
  xlac_error err = {.code = 501};
  PyOS_snprintf(err.message, sizeof err.message, "%s is %s, found a Python %.100s", what, text ? text : "?",
                Py_TYPE(object)->tp_name);
  if (info.kind == XLAC_TYPE_TUPLE) PyOS_snprintf(err.hint, sizeof err.hint, "pass a tuple of arrays");
  if (info.kind == XLAC_TYPE_TOKEN) PyOS_snprintf(err.hint, sizeof err.hint, "pass None for a token");
  xlac_free(text);
  py_raise(st, &err, PY_ANY);
  return -1;
}

/* A list is an array here, as NumPy has it; only tuples are tuples. */
int py_to_any_value(py_state *st, PyObject *object, PyObject *keep, xlac_value **out) {
  assert(PyList_Check(keep));
  if (PyTuple_Check(object)) return tuple_to_value(st, object, NULL, "value", keep, out);
  return array_to_value(st, object, 0, "value", keep, out);
}
