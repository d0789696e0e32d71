/* The Python type Computation. Reading one that was removed raises, but for name, is_live and repr.
 *
 * The object has a reference to its Module and a handle, which stays valid as long as the module: the library
 * keeps what was removed, so an old object can be asked and says that it is gone. Two objects for one computation
 * are equal and hash alike. */
#include "py.h"

#include <string.h>

/* A new object each time; nothing depends on there being one. */
PyObject *py_wrap_computation(py_state *st, py_module *module, xlac_computation *c) {
  assert(module && Py_IS_TYPE((PyObject *)module, st->module_type));
  if (c == NULL) Py_RETURN_NONE;
  py_computation *self = PyObject_New(py_computation, st->computation_type);
  if (self == NULL) return NULL;
  self->module = (py_module *)Py_NewRef(module);
  self->c = c;
  return (PyObject *)self;
}

/* The handle is the module's and needs no freeing. */
static void computation_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(((py_computation *)self)->module);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* The two handles with which the library is called, and an op of the same module as an object. */
static xlac_module *module_of(PyObject *self) {
  assert(((py_computation *)self)->module);
  return ((py_computation *)self)->module->m;
}
static xlac_computation *part(PyObject *self) {
  return ((py_computation *)self)->c;
}
static PyObject *wrap(PyObject *self, xlac_op *op) {
  return py_wrap_op(py_state_of(self), ((py_computation *)self)->module, op);
}

/* None for success, else the exception. */
static PyObject *done(PyObject *self, int status, const xlac_error *err) {
  if (status != 0) return py_raise(py_state_of(self), err, PY_ANY);
  Py_RETURN_NONE;
}

/* False with an exception set once the computation was removed. What was removed has no ops, parameters or root
 * any more; the library would answer as if it were empty. */
static bool check_live(PyObject *self) {
  if (xlac_computation_is_live(module_of(self), part(self))) return true;
  xlac_error err = {.code = 800};
  PyOS_snprintf(err.message, sizeof err.message, "computation %.200s has been removed from its module",
                xlac_computation_name(module_of(self), part(self)));
  py_raise(py_state_of(self), &err, PY_ANY);
  return false;
}

/* --- reading --- */

/* The same object that it was found through. */
static PyObject *computation_module(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((py_computation *)self)->module);
}

/* Names come from files and may be any bytes. */
static PyObject *computation_name(PyObject *self, void *unused) {
  (void)unused;
  const char *name = xlac_computation_name(module_of(self), part(self));
  return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
}

/* A setter gets NULL for `del`. */
static int computation_rename(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  const char *name = value ? PyUnicode_AsUTF8(value) : NULL;
  xlac_error err = {.code = 0};
  if (name == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a computation's name can't be deleted");
    return -1;
  }
  if (xlac_computation_rename(module_of(self), part(self), name, &err) == 0) return 0;
  py_raise(py_state_of(self), &err, PY_ANY);
  return -1;
}

/* A list of the moment: editing the computation while one goes through it is fine. */
static PyObject *computation_instructions(PyObject *self, void *unused) {
  (void)unused;
  PyObject *list = check_live(self) ? PyList_New(0) : NULL;
  for (xlac_op *op = NULL; list && (op = xlac_op_next(module_of(self), part(self), op)) != NULL;) {
    PyObject *item = wrap(self, op);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* By number. While a computation is being built, numbers may be missing, which gives None. */
static PyObject *computation_parameters(PyObject *self, void *unused) {
  (void)unused;
  PyObject *list = check_live(self) ? PyList_New(0) : NULL;
  uint32_t n = xlac_computation_param_count(module_of(self), part(self));
  for (uint32_t i = 0; list && i < n; i++) {
    PyObject *item = wrap(self, xlac_computation_param(module_of(self), part(self), i));
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* None while it is being built. */
static PyObject *computation_root(PyObject *self, void *unused) {
  (void)unused;
  return check_live(self) ? wrap(self, xlac_computation_root(module_of(self), part(self))) : NULL;
}

/* The op handle of a Python Instruction of the same module, or NULL with an exception set. `what` begins the
 * message. An op of another module is refused by the same words: its handle would mean nothing here. */
static xlac_op *op_of(PyObject *self, PyObject *value, const char *what) {
  assert(what);
  if (Py_IS_TYPE(value, py_state_of(self)->instruction_type) &&
      ((py_instruction *)value)->module == ((py_computation *)self)->module)
    return ((py_instruction *)value)->op;
  PyErr_Format(PyExc_TypeError, "%s must be an Instruction of the same module", what);
  return NULL;
}

/* The library checks that it is an op of this computation. */
static int computation_set_root(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  xlac_op *op = op_of(self, value ? value : Py_None, "root");
  if (op == NULL) return -1;
  if (xlac_computation_set_root(module_of(self), part(self), op, &err) == 0) return 0;
  py_raise(py_state_of(self), &err, PY_ANY);
  return -1;
}

/* 'main' where the text says nothing. */
static PyObject *computation_thread(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(xlac_computation_thread(module_of(self), part(self)));
}

/* One getter for line and column: the closure tells which. */
static PyObject *computation_position(PyObject *self, void *want_col) {
  uint32_t line, col;
  xlac_computation_position(module_of(self), part(self), &line, &col);
  return PyLong_FromUnsignedLong(want_col ? col : line);
}

static PyObject *computation_is_live(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(xlac_computation_is_live(module_of(self), part(self)));
}

/* None where it has no op of that name. */
static PyObject *computation_find(PyObject *self, PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  return s && check_live(self) ? wrap(self, xlac_op_find(module_of(self), part(self), s)) : NULL;
}

/* -1 with an exception, as all lengths in Python. */
static Py_ssize_t computation_length(PyObject *self) {
  if (!check_live(self)) return -1;
  return (Py_ssize_t)xlac_computation_op_count(module_of(self), part(self));
}

/* By name, by number (negative ones too), or a slice: whatever a list takes. KeyError for a name that no op has. */
static PyObject *computation_subscript(PyObject *self, PyObject *key) {
  if (PyUnicode_Check(key)) {
    PyObject *op = computation_find(self, key);
    if (op != Py_None) return op; /* NULL too */
    Py_DECREF(op);
    PyErr_SetObject(PyExc_KeyError, key);
    return NULL;
  }
  PyObject *list = computation_instructions(self, NULL);
  PyObject *item = list ? PyObject_GetItem(list, key) : NULL;
  Py_XDECREF(list);
  return item;
}

/* Over a list of the moment: ops that are added meanwhile are not met. */
static PyObject *computation_iter(PyObject *self) {
  PyObject *list = computation_instructions(self, NULL);
  PyObject *iterator = list ? PyObject_GetIter(list) : NULL;
  Py_XDECREF(list);
  return iterator;
}

/* Options as Module.to_text; the computation alone, so without a header. */
static PyObject *computation_to_text(PyObject *self, PyObject *args, PyObject *kwargs) {
  xlac_print_options options;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (!check_live(self) || py_print_options(py_state_of(self), args, kwargs, &options) < 0) return NULL;
  int status = xlac_computation_print(module_of(self), part(self), &options, &text, &n, &err);
  return status == 0 ? py_text(text, (Py_ssize_t)n) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* --- making ops --- */

/* Instructions as handles; 0, or -1 with an exception. `ops` has room for all of them. */
static int fill_operands(PyObject *self, PyObject *operands, xlac_op **ops) {
  assert(PyList_Check(operands) && ops);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(operands); i++) {
    ops[i] = op_of(self, PyList_GET_ITEM(operands, i), "an operand");
    if (ops[i] == NULL) return -1;
  }
  return 0;
}

/* (key, text) pairs; the strings are borrowed from them, and they from the list. */
static int fill_attrs(PyObject *attrs, xlac_attr *out) {
  assert(PyList_Check(attrs) && out);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(attrs); i++)
    if (!PyArg_ParseTuple(PyList_GET_ITEM(attrs, i), "ss", &out[i].key, &out[i].text)) return -1;
  return 0;
}

/* Makes the op and wraps it; NULL with an exception. The lists need only live for the call: the library copies
 * what it keeps. */
static PyObject *create_from(PyObject *self, xlac_op_spec *spec, PyObject *operands, PyObject *attrs) {
  assert(spec->opcode);
  xlac_op **ops = PyMem_Calloc((size_t)spec->n_operands + 1, sizeof *ops), *op = NULL;
  xlac_attr *list = PyMem_Calloc((size_t)spec->n_attrs + 1, sizeof *list);
  xlac_error err = {.code = 0};
  PyObject *result = NULL;
  spec->operands = ops;
  spec->attrs = list;
  if (ops == NULL || list == NULL) {
    PyErr_NoMemory();
  } else if (fill_operands(self, operands, ops) == 0 && fill_attrs(attrs, list) == 0) {
    int status = xlac_op_create(&op, module_of(self), part(self), spec, &err);
    result = status == 0 ? wrap(self, op) : py_raise(py_state_of(self), &err, PY_ANY);
  }
  PyMem_Free(ops);
  PyMem_Free(list);
  return result;
}

/* What xlac.module.add calls once it has turned Python's values into the text of attributes. */
static PyObject *computation_create(PyObject *self, PyObject *args) {
  PyObject *operands, *attrs;
  xlac_op_spec spec = {.opcode = NULL};
  if (!PyArg_ParseTuple(args, "sO!O!zz:_create", &spec.opcode, &PyList_Type, &operands, &PyList_Type, &attrs,
                        &spec.type, &spec.name))
    return NULL;
  spec.n_operands = (uint32_t)PyList_GET_SIZE(operands);
  spec.n_attrs = (uint32_t)PyList_GET_SIZE(attrs);
  return create_from(self, &spec, operands, attrs);
}

PY_DELEGATE(computation_add, "xlac.module", "add")
PY_DELEGATE(computation_repr_html, "xlac.draw", "computation_html")

/* The library refuses a number that is taken. */
static PyObject *computation_add_parameter(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"number", "type", "name", NULL};
  const char *type, *name = NULL;
  long long number;
  xlac_op *op = NULL;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ls|z:add_parameter", names, &number, &type, &name)) return NULL;
  int status = xlac_op_create_parameter(&op, module_of(self), part(self), number, type, name, &err);
  return status == 0 ? wrap(self, op) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* The array is lent to the library for the call, which copies it into the module. */
static PyObject *computation_add_constant(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"value", "name", NULL};
  PyObject *value, *keep = PyList_New(0), *result = NULL;
  const char *name = NULL;
  xlac_value *v = NULL;
  xlac_op *op = NULL;
  xlac_error err = {.code = 0};
  if (keep && PyArg_ParseTupleAndKeywords(args, kwargs, "O|z:add_constant", names, &value, &name) &&
      py_to_any_value(py_state_of(self), value, keep, &v) == 0) {
    int status = xlac_op_create_constant(&op, module_of(self), part(self), v, name, &err);
    xlac_value_release(v);
    result = status == 0 ? wrap(self, op) : py_raise(py_state_of(self), &err, PY_ANY);
  }
  Py_XDECREF(keep);
  return result;
}

/* Fails where somebody still calls it; the object stays, and is_live is False. */
static PyObject *computation_remove(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  return done(self, xlac_computation_remove(module_of(self), part(self), &err), &err);
}

/* --- the type --- */

/* Also of one that was removed, which has a name still. */
static PyObject *computation_repr(PyObject *self) {
  const char *name = xlac_computation_name(module_of(self), part(self));
  if (!xlac_computation_is_live(module_of(self), part(self)))
    return PyUnicode_FromFormat("<xlac.Computation %s, removed>", name);
  unsigned n_ops = (unsigned)xlac_computation_op_count(module_of(self), part(self));
  return PyUnicode_FromFormat("<xlac.Computation %s: %u op%s>", name, n_ops, py_plural(n_ops));
}

/* By handle; other comparisons and other types are left to the other side. */
static PyObject *computation_compare(PyObject *self, PyObject *other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(self))) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((part(self) == part(other)) == (op == Py_EQ));
}

/* Handles are aligned, so that the lowest bits say nothing. Python's -1 for an error is out of reach after the
 * shift. */
static Py_hash_t pointer_hash(const void *p) {
  return (Py_hash_t)((uintptr_t)p >> 4);
}
static Py_hash_t computation_hash(PyObject *self) {
  return pointer_hash(part(self));
}

static PyMethodDef computation_methods[] = {
    {"to_text", PY_KEYWORDS(computation_to_text),
     "to_text($self, **options)\n--\n\nThe computation as text; options as Module.to_text."},
    {"find", computation_find, METH_O, "find($self, name, /)\n--\n\nThe instruction of that name, or None."},
    {"add", PY_KEYWORDS(computation_add),
     "add($self, opcode, *operands, type=None, name=None, **attributes)\n--\n\nA new op, at the end: an Instruction."},
    {"_create", computation_create, METH_VARARGS, "_create(opcode, operands, attrs, type, name)"},
    {"add_parameter", PY_KEYWORDS(computation_add_parameter),
     "add_parameter($self, number, type, name=None)\n--\n\nThe parameter of that number: an Instruction."},
    {"add_constant", PY_KEYWORDS(computation_add_constant),
     "add_constant($self, value, name=None)\n--\n\nA constant of what NumPy makes of `value`: an Instruction."},
    {"remove", computation_remove, METH_NOARGS, "remove($self)\n--\n\nRemoves a computation that nobody calls."},
    {"_repr_html_", PY_KEYWORDS(computation_repr_html), "Its graph as HTML with SVG, for notebooks"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef computation_getset[] = {
    {"module", computation_module, NULL, "The module it is of", NULL},
    {"name", computation_name, computation_rename, "Its name; assign to rename", NULL},
    {"instructions", computation_instructions, NULL, "Its ops, in order", NULL},
    {"parameters", computation_parameters, NULL, "Its parameters, by number", NULL},
    {"root", computation_root, computation_set_root, "The op whose value it returns; assign to change", NULL},
    {"execution_thread", computation_thread, NULL, "'main', or another thread's name", NULL},
    {"line", computation_position, NULL, "Line in the text, from 1; 0 where there is none", NULL},
    {"col", computation_position, NULL, "Column in the text, from 1; 0 where there is none", "col"},
    {"is_live", computation_is_live, NULL, "False once it has been removed", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot computation_slots[] = {
    {Py_tp_dealloc, (void *)computation_dealloc},
    {Py_tp_repr, (void *)computation_repr},
    {Py_tp_richcompare, (void *)computation_compare},
    {Py_tp_hash, (void *)computation_hash},
    {Py_tp_iter, (void *)computation_iter},
    {Py_mp_length, (void *)computation_length},
    {Py_mp_subscript, (void *)computation_subscript},
    {Py_tp_getattro, (void *)py_attribute},
    {Py_tp_methods, computation_methods},
    {Py_tp_getset, computation_getset},
    {Py_tp_doc, "A computation of a module: instructions in order, one of them the root."},
    {0, NULL},
};

PyType_Spec py_computation_spec = {
    .name = "xlac.Computation",
    .basicsize = sizeof(py_computation),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = computation_slots,
};
