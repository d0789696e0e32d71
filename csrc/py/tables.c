/* The library's tables as Python data: ops, element types, error codes. Python's enums and documentation are made
 * of them, so that nothing is written down twice. */
#include "py.h"

/* (name, kind, whether it is required) of each attribute. */
static PyObject *attr_list(uint32_t opcode, uint32_t n) {
  PyObject *list = PyList_New(0);
  xlac_attr_info a;
  for (uint32_t i = 0; list && i < n && xlac_opcode_attr(opcode, i, &a); i++) {
    PyObject *item = Py_BuildValue("(ssO)", a.text, a.kind, a.required ? Py_True : Py_False);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* The traits that an op has, as a frozenset of words. */
static PyObject *opcode_traits(const xlac_opcode_info *info) {
  assert(info);
  const struct {
    const char *name;
    bool has;
  } traits[] = {
      {"elementwise", info->elementwise},
      {"commutative", info->commutative},
      {"collective", info->collective},
      {"side-effect", info->side_effect},
      {"data-movement", info->data_movement},
      {"nondeterministic", info->nondeterministic},
      {"newer", info->newer},
      {"async-start", info->async_start},
      {"async-update", info->async_update},
      {"async-done", info->async_done},
  };
  PyObject *set = PyFrozenSet_New(NULL);
  for (size_t i = 0; set && i < sizeof traits / sizeof *traits; i++) {
    PyObject *name = traits[i].has ? PyUnicode_FromString(traits[i].name) : NULL;
    if (traits[i].has && (name == NULL || PySet_Add(set, name) < 0)) Py_CLEAR(set);
    Py_XDECREF(name);
  }
  return set;
}

/* Numbers begin at 1, as 0 is not an op. */
PyObject *py_opcode_table(PyObject *core, PyObject *unused) {
  (void)core, (void)unused;
  PyObject *list = PyList_New(0);
  xlac_opcode_info info;
  for (uint32_t op = 1; list && xlac_opcode_get(op, &info); op++) {
    PyObject *row = Py_BuildValue("{sssssisOsNsN}", "name", info.text, "doc", info.doc, "arity", (int)info.arity,
                                  "infers", info.infers ? Py_True : Py_False, "attrs", attr_list(op, info.n_attrs),
                                  "traits", opcode_traits(&info));
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

PyObject *py_op_elsewhere(PyObject *core, PyObject *name) {
  (void)core;
  const char *word = PyUnicode_AsUTF8(name);
  xlac_opcode_info info;
  if (word == NULL) return NULL;
  return xlac_opcode_get(xlac_opcode_elsewhere(word), &info) ? PyUnicode_FromString(info.text) : Py_NewRef(Py_None);
}

/* By number, from 1. */
PyObject *py_dtype_table(PyObject *core, PyObject *unused) {
  (void)core, (void)unused;
  PyObject *list = PyList_New(0);
  for (uint32_t t = 1; list && t < xlac_dtype_count(); t++) {
    PyObject *row = Py_BuildValue("{sssssIsI}", "name", xlac_dtype_text(t), "kind", xlac_dtype_kind(t), "bits",
                                  (unsigned)xlac_dtype_bits(t), "bytes", (unsigned)xlac_dtype_bytes(t));
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* Every code that the library has, whatever stage it is of. */
PyObject *py_error_table(PyObject *core, PyObject *unused) {
  (void)core, (void)unused;
  PyObject *dict = PyDict_New();
  int32_t code;
  for (uint32_t i = 0; dict && (code = xlac_error_code_at(i)) != 0; i++) {
    PyObject *key = PyLong_FromLong(code);
    PyObject *value = Py_BuildValue("(ss)", xlac_error_name(code), xlac_error_title(code));
    if (key == NULL || value == NULL || PyDict_SetItem(dict, key, value) < 0) Py_CLEAR(dict);
    Py_XDECREF(key);
    Py_XDECREF(value);
  }
  return dict;
}

/* What a value of the attribute looks like ("ints", "window"); None for a name that no op has. */
PyObject *py_attr_kind(PyObject *core, PyObject *name) {
  (void)core;
  const char *s = PyUnicode_AsUTF8(name);
  if (s == NULL) return NULL;
  const char *kind = xlac_attr_kind(s);
  if (kind == NULL) Py_RETURN_NONE;
  return PyUnicode_FromString(kind);
}

/* By the name that xlac has for the type. */
PyObject *py_numpy_dtype(PyObject *core, PyObject *name) {
  py_state *st = PyModule_GetState(core);
  const char *s = PyUnicode_AsUTF8(name);
  if (s == NULL) return NULL;
  uint32_t dtype = xlac_dtype_from_text(s);
  return dtype ? py_descr(st, dtype) : py_raise_argument(st, "there is no element type '%.40s'", s);
}
