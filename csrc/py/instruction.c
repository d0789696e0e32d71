/* The Python type Instruction. Reading an instruction that was removed raises, but for name, is_live and repr.
 *
 * As with Computation, the object has a reference to its Module and a handle that stays valid with it; attributes
 * of the object ask the library anew each time, so they are never out of date. */
#include "py.h"

#include <string.h>

/* NULL gives None. */
PyObject *py_wrap_op(py_state *st, py_module *module, xlac_op *op) {
  assert(module && Py_IS_TYPE((PyObject *)module, st->module_type));
  if (op == NULL) Py_RETURN_NONE;
  py_instruction *self = PyObject_New(py_instruction, st->instruction_type);
  if (self == NULL) return NULL;
  self->module = (py_module *)Py_NewRef(module);
  self->op = op;
  return (PyObject *)self;
}

/* The op is the module's. */
static void instruction_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(((py_instruction *)self)->module);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* The two handles with which the library is called. */
static xlac_module *owner(PyObject *self) {
  assert(((py_instruction *)self)->module);
  return ((py_instruction *)self)->module->m;
}
static xlac_op *inner(PyObject *self) {
  return ((py_instruction *)self)->op;
}
/* An op of the same module as an object. */
static PyObject *wrap_neighbour(PyObject *self, xlac_op *op) {
  return py_wrap_op(py_state_of(self), ((py_instruction *)self)->module, op);
}

/* NULL, with an exception that has the op's name twice: in the message and as its place. */
static PyObject *raise_removed(PyObject *self, const char *name) {
  assert(name);
  xlac_error err = {.code = 800};
  PyOS_snprintf(err.message, sizeof err.message, "%.200s has been removed from its module", name);
  PyOS_snprintf(err.op, sizeof err.op, "%.90s", name);
  return py_raise(py_state_of(self), &err, PY_ANY);
}

/* The op's facts; false with an exception set once it was removed. */
static bool get_live(PyObject *self, xlac_op_info *info) {
  xlac_op_get(owner(self), inner(self), info);
  if (info->computation) return true;
  raise_removed(self, info->name);
  return false;
}

/* How a method that edits ends: None, or NULL with the library's error. */
static PyObject *finish(PyObject *self, int status, const xlac_error *err) {
  if (status != 0) return py_raise(py_state_of(self), err, PY_ANY);
  Py_RETURN_NONE;
}

/* The same of a setter. */
static int finish_set(PyObject *self, int status, const xlac_error *err) {
  if (status != 0) py_raise(py_state_of(self), err, PY_ANY);
  return status != 0 ? -1 : 0;
}

/* --- facts --- */

/* The same object that it was found through. */
static PyObject *instruction_module(PyObject *self, void *unused) {
  (void)unused;
  return Py_NewRef(((py_instruction *)self)->module);
}

/* Names come from files and may be any bytes. */
static PyObject *instruction_name(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  xlac_op_get(owner(self), inner(self), &info);
  return PyUnicode_DecodeUTF8(info.name, (Py_ssize_t)strlen(info.name), "surrogateescape");
}

/* A setter gets NULL for `del`. */
static int instruction_rename(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  const char *name = value ? PyUnicode_AsUTF8(value) : NULL;
  xlac_error err = {.code = 0};
  if (name == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an instruction's name can't be deleted");
    return -1;
  }
  return finish_set(self, xlac_op_rename(owner(self), inner(self), name, &err), &err);
}

/* What instruction_get_fact is asked for, as a getter's closure. */
typedef enum instruction_fact {
  FACT_OPCODE,
  FACT_ID,
  FACT_LINE,
  FACT_COL,
  FACT_PARAMETER,
  FACT_COMPUTATION
} instruction_fact;

/* One getter for the facts that xlac_op_get gives. */
static PyObject *instruction_get_fact(PyObject *self, void *which) {
  xlac_op_info info;
  if (!get_live(self, &info)) return NULL;
  switch ((instruction_fact)(uintptr_t)which) {
    case FACT_OPCODE:
      return PyUnicode_FromString(info.opcode);
    case FACT_ID:
      return PyLong_FromUnsignedLong(info.id);
    case FACT_LINE:
      return PyLong_FromUnsignedLong(info.line);
    case FACT_COL:
      return PyLong_FromUnsignedLong(info.col);
    case FACT_PARAMETER:
      if (info.parameter < 0) Py_RETURN_NONE;
      return PyLong_FromLongLong(info.parameter);
    case FACT_COMPUTATION:
      return py_wrap_computation(py_state_of(self), ((py_instruction *)self)->module, info.computation);
  }
  Py_UNREACHABLE();
}

static PyObject *instruction_is_live(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(xlac_op_is_live(owner(self), inner(self)));
}

/* --- types --- */

/* Sizes; None for a dimension without a bound, which only MLIR has. */
static PyObject *dims_tuple(const xlac_type_info *t) {
  assert(t->kind == XLAC_TYPE_TENSOR);
  PyObject *tuple = PyTuple_New(t->rank);
  for (uint32_t d = 0; tuple && d < t->rank; d++) {
    bool unbounded = t->dims[d] == INT64_MIN;
    PyObject *dim = unbounded ? Py_NewRef(Py_None) : PyLong_FromLongLong(t->dims[d]);
    if (dim == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, d, dim);
  }
  return tuple;
}

/* Tensors give a tuple of sizes, tuples a list of their elements' shapes, others None. Nesting is the type's. */
static PyObject *shape_of(const xlac_type *t) {
  assert(t);
  xlac_type_info info;
  xlac_type_get(t, &info);
  if (info.kind == XLAC_TYPE_TENSOR) return dims_tuple(&info);
  if (info.kind != XLAC_TYPE_TUPLE) Py_RETURN_NONE;
  PyObject *list = PyList_New(info.n_elements);
  for (uint32_t i = 0; list && i < info.n_elements; i++) {
    PyObject *element = shape_of(xlac_type_element(t, i));
    if (element == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, element);
  }
  return list;
}

/* Types that have no elements give a word for their kind, or their own text. A tuple gives a list of its
 * elements'. Nesting is the type's. */
static PyObject *dtype_name_of(const xlac_type *t) {
  assert(t);
  static const char *const words[] = {
      [XLAC_TYPE_TOKEN] = "token",   [XLAC_TYPE_OPAQUE] = "opaque",     [XLAC_TYPE_BUFFER] = "buffer",
      [XLAC_TYPE_FUTURE] = "future", [XLAC_TYPE_FUNCTION] = "function", [XLAC_TYPE_OTHER] = NULL};
  xlac_type_info info;
  xlac_type_get(t, &info);
  if (info.dtype) return PyUnicode_FromString(xlac_dtype_text(info.dtype));
  if (info.kind != XLAC_TYPE_TUPLE) {
    assert(info.kind >= 0 && info.kind <= XLAC_TYPE_OTHER);
    return words[info.kind] ? PyUnicode_FromString(words[info.kind]) : py_text(xlac_type_print(t, false), -1);
  }
  PyObject *list = PyList_New(info.n_elements);
  for (uint32_t i = 0; list && i < info.n_elements; i++) {
    PyObject *element = dtype_name_of(xlac_type_element(t, i));
    if (element == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, element);
  }
  return list;
}

/* `layouts`: with them, or without (bare_type). */
static PyObject *instruction_type(PyObject *self, void *layouts) {
  xlac_op_info info;
  return get_live(self, &info) ? py_text(xlac_type_print(info.type, layouts != NULL), -1) : NULL;
}

/* None, or `del`, has the library infer the type from the operands. */
static int instruction_set_type(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  const char *text = value && value != Py_None ? PyUnicode_AsUTF8(value) : NULL;
  if (text == NULL && PyErr_Occurred()) return -1;
  return finish_set(self, xlac_op_set_type(owner(self), inner(self), text, &err), &err);
}

/* As Python data; `type` is the same as text. */
static PyObject *instruction_shape(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  return get_live(self, &info) ? shape_of(info.type) : NULL;
}

static PyObject *instruction_dtype(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  return get_live(self, &info) ? dtype_name_of(info.type) : NULL;
}

/* --- neighbours --- */

/* In order; an op that is an operand twice is there twice. */
static PyObject *instruction_operands(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  if (!get_live(self, &info)) return NULL;
  PyObject *list = PyList_New(info.n_operands);
  for (uint32_t i = 0; list && i < info.n_operands; i++) {
    PyObject *item = wrap_neighbour(self, xlac_op_operand(owner(self), inner(self), i));
    if (item == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, item);
  }
  return list;
}

/* Objects for n ops. */
static PyObject *list_of_ops(PyObject *self, xlac_op **ops, uint32_t n) {
  assert(ops);
  PyObject *list = PyList_New(n);
  for (uint32_t i = 0; list && i < n; i++) {
    PyObject *item = wrap_neighbour(self, ops[i]);
    if (item == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, item);
  }
  return list;
}

/* The at most `most` ops that `get` writes. Another thread may have edited the module since they were counted. */
static PyObject *listed_ops(PyObject *self, uint32_t (*get)(xlac_module *, xlac_op *, xlac_op **, uint32_t),
                            uint32_t most) {
  xlac_op **ops = PyMem_Calloc((size_t)most + 1, sizeof *ops);
  if (ops == NULL) return PyErr_NoMemory();
  uint32_t n = get(owner(self), inner(self), ops, most);
  PyObject *list = list_of_ops(self, ops, n < most ? n : most);
  PyMem_Free(ops);
  return list;
}

/* Each user once. The count is that of a moment ago: another thread that edits the module is the caller's mistake,
 * but must not overrun the array. */
static PyObject *instruction_users(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  if (!get_live(self, &info)) return NULL;
  return listed_ops(self, xlac_op_users, xlac_op_users(owner(self), inner(self), NULL, 0));
}

/* Computations, in the order of the op's attributes. */
static PyObject *instruction_called(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  PyObject *list = get_live(self, &info) ? PyList_New(0) : NULL;
  for (uint32_t i = 0; list && i < info.n_called; i++) {
    xlac_computation *c = xlac_op_called(owner(self), inner(self), i);
    PyObject *item = py_wrap_computation(py_state_of(self), ((py_instruction *)self)->module, c);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* The ops that must run before it without giving it a value. */
static PyObject *instruction_control(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  if (!get_live(self, &info)) return NULL;
  return listed_ops(self, xlac_op_control_predecessors, info.n_control_predecessors);
}

/* --- attributes: text, by key; xlac.attributes.Attributes makes a mapping of these --- */

/* Those that are set. */
static PyObject *instruction_attr_keys(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_op_info info;
  PyObject *list = get_live(self, &info) ? PyList_New(0) : NULL;
  const char *key;
  for (uint32_t i = 0; list && (key = xlac_op_attr_key(owner(self), inner(self), i)) != NULL; i++) {
    PyObject *item = PyUnicode_FromString(key);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* A str; None where the op has no such attribute, NULL with an exception where it can have none of that name. */
static PyObject *attr_text(PyObject *self, const char *key) {
  assert(key);
  xlac_op_info info;
  xlac_error err = {.code = 0};
  char *text = NULL;
  if (!get_live(self, &info)) return NULL;
  if (xlac_op_attr(owner(self), inner(self), key, &text, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  if (text == NULL) Py_RETURN_NONE;
  return py_text(text, -1);
}

static PyObject *instruction_get_attr(PyObject *self, PyObject *key) {
  const char *s = PyUnicode_AsUTF8(key);
  return s ? attr_text(self, s) : NULL;
}

/* None removes it. */
static PyObject *instruction_set_attr(PyObject *self, PyObject *args) {
  const char *key, *text;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "sz:_set_attr", &key, &text)) return NULL;
  return finish(self, xlac_op_set_attr(owner(self), inner(self), key, text, &err), &err);
}

/* Getters of attributes that are attributes of the object, too; the closure is the key. */
static PyObject *instruction_named_attr(PyObject *self, void *key) {
  return attr_text(self, key);
}

/* None, or `del`, removes the attribute; the text is read as in a program. */
static int instruction_set_named_attr(PyObject *self, PyObject *value, void *key) {
  xlac_error err = {.code = 0};
  const char *text = value && value != Py_None ? PyUnicode_AsUTF8(value) : NULL;
  if (text == NULL && PyErr_Occurred()) return -1;
  return finish_set(self, xlac_op_set_attr(owner(self), inner(self), key, text, &err), &err);
}

/* A mapping that reads and writes through _get_attr and _set_attr. */
static PyObject *instruction_attributes(PyObject *self, void *unused) {
  (void)unused;
  return py_delegate("xlac.attributes", "Attributes", self, NULL, NULL);
}

/* A copy, which may be written to without changing the module. */
static PyObject *instruction_constant(PyObject *self, void *unused) {
  (void)unused;
  xlac_op_info info;
  xlac_value *v = NULL;
  xlac_error err = {.code = 0};
  if (!get_live(self, &info)) return NULL;
  if (strcmp(info.opcode, "constant") != 0) Py_RETURN_NONE;
  if (xlac_op_constant(owner(self), inner(self), &v, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  return py_from_value(py_state_of(self), v);
}

/* --- editing --- */

/* The handle of another instruction of the same module, or NULL with an exception set. */
static xlac_op *other_op(PyObject *self, PyObject *other) {
  if (Py_IS_TYPE(other, Py_TYPE(self)) && ((py_instruction *)other)->module == ((py_instruction *)self)->module)
    return inner(other);
  PyErr_SetString(PyExc_TypeError, "expected an Instruction of the same module");
  return NULL;
}

/* All uses, also as a root; the library refuses an op of another type. */
static PyObject *instruction_replace(PyObject *self, PyObject *other) {
  xlac_error err = {.code = 0};
  xlac_op *with = other_op(self, other);
  return with ? finish(self, xlac_op_replace_uses(owner(self), inner(self), with, &err), &err) : NULL;
}

/* The object stays, and is_live is False from now on. */
static PyObject *instruction_remove(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  return finish(self, xlac_op_remove(owner(self), inner(self), &err), &err);
}

/* The library checks the number, and that types fit. */
static PyObject *instruction_set_operand(PyObject *self, PyObject *args) {
  unsigned index;
  PyObject *object;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "IO:set_operand", &index, &object)) return NULL;
  xlac_op *operand = other_op(self, object);
  return operand ? finish(self, xlac_op_set_operand(owner(self), inner(self), index, operand, &err), &err) : NULL;
}

/* Within one computation. None is not an op: to the end. */
static PyObject *instruction_move_before(PyObject *self, PyObject *other) {
  xlac_error err = {.code = 0};
  xlac_op *before = other == Py_None ? NULL : other_op(self, other);
  if (before == NULL && other != Py_None) return NULL;
  return finish(self, xlac_op_move(owner(self), inner(self), before, &err), &err);
}

/* --- the type --- */

/* Options as Module.to_text. */
static PyObject *instruction_to_text(PyObject *self, PyObject *args, PyObject *kwargs) {
  xlac_print_options options;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (py_print_options(py_state_of(self), args, kwargs, &options) < 0) return NULL;
  int status = xlac_op_print(owner(self), inner(self), &options, &text, &n, &err);
  return status == 0 ? py_text(text, (Py_ssize_t)n) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* Also of one that was removed. */
static PyObject *instruction_repr(PyObject *self) {
  xlac_op_info info;
  xlac_op_get(owner(self), inner(self), &info);
  if (!info.computation) return PyUnicode_FromFormat("<xlac.Instruction %s, removed>", info.name);
  char *type = xlac_type_print(info.type, false);
  PyObject *repr = PyUnicode_FromFormat("<xlac.Instruction %s = %s %s>", info.name, type ? type : "?", info.opcode);
  xlac_free(type);
  return repr;
}

PY_DELEGATE(instruction_repr_html, "xlac.draw", "instruction_html")

/* By handle: two objects of one op are equal. */
static PyObject *instruction_compare(PyObject *self, PyObject *other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(self))) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((inner(self) == inner(other)) == (op == Py_EQ));
}

/* Goes with it: the handle, without the bits that are 0 in all. */
static Py_hash_t instruction_hash(PyObject *self) {
  return (Py_hash_t)((uintptr_t)inner(self) >> 4);
}

static PyMethodDef instruction_methods[] = {
    {"to_text", PY_KEYWORDS(instruction_to_text),
     "to_text($self, **options)\n--\n\nThe instruction as text; options as Module.to_text."},
    {"replace_all_uses_with", instruction_replace, METH_O,
     "replace_all_uses_with($self, other, /)\n--\n\nEvery use becomes a use of another op of the same type."},
    {"remove", instruction_remove, METH_NOARGS, "remove($self)\n--\n\nRemoves an op that nobody uses."},
    {"set_operand", instruction_set_operand, METH_VARARGS,
     "set_operand($self, index, op, /)\n--\n\nThe op reads `op` as operand `index` from now on."},
    {"move_before", instruction_move_before, METH_O,
     "move_before($self, op, /)\n--\n\nMoves it before another op; None: to the end."},
    {"_repr_html_", PY_KEYWORDS(instruction_repr_html), "Its text and what is around it, for notebooks"},
    {"_attr_keys", instruction_attr_keys, METH_NOARGS, "The names of its attributes"},
    {"_get_attr", instruction_get_attr, METH_O, "An attribute as text, or None"},
    {"_set_attr", instruction_set_attr, METH_VARARGS, "_set_attr(key, text or None)"},
    {NULL, NULL, 0, NULL},
};

#define FACT(fact) ((void *)(uintptr_t)(fact))
static PyGetSetDef instruction_getset[] = {
    {"module", instruction_module, NULL, "The module it is of", NULL},
    {"computation", instruction_get_fact, NULL, "The computation it is of", FACT(FACT_COMPUTATION)},
    {"name", instruction_name, instruction_rename, "Its name; assign to rename", NULL},
    {"opcode", instruction_get_fact, NULL, "'add' and so on; equals the members of xlac.Opcode", FACT(FACT_OPCODE)},
    {"id", instruction_get_fact, NULL, "A number unique in the module", FACT(FACT_ID)},
    {"type", instruction_type, instruction_set_type, "Its result type as text, with layout; None infers it anew",
     "layouts"},
    {"bare_type", instruction_type, NULL, "Its result type as text, without layouts", NULL},
    {"shape", instruction_shape, NULL, "Sizes (bounds where dynamic); a list of shapes for tuples", NULL},
    {"dtype", instruction_dtype, NULL, "Element type, 'f32'; a list for tuples", NULL},
    {"operands", instruction_operands, NULL, "Its operands", NULL},
    {"users", instruction_users, NULL, "The ops that use it", NULL},
    {"called", instruction_called, NULL, "The computations it calls", NULL},
    {"control_predecessors", instruction_control, NULL, "The ops that must run before it", NULL},
    {"attributes", instruction_attributes, NULL, "A mapping of its attributes, name to text; assign to edit", NULL},
    {"sharding", instruction_named_attr, instruction_set_named_attr, "Its sharding as text, or None", "sharding"},
    {"metadata", instruction_named_attr, instruction_set_named_attr, "Its metadata as text, or None", "metadata"},
    {"constant", instruction_constant, NULL, "The value of a constant as an array, else None", NULL},
    {"parameter_number", instruction_get_fact, NULL, "The number of a parameter, else None", FACT(FACT_PARAMETER)},
    {"line", instruction_get_fact, NULL, "Line in the text, from 1; 0 where there is none", FACT(FACT_LINE)},
    {"col", instruction_get_fact, NULL, "Column in the text, from 1; 0 where there is none", FACT(FACT_COL)},
    {"is_live", instruction_is_live, NULL, "False once it has been removed", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot instruction_slots[] = {
    {Py_tp_dealloc, (void *)instruction_dealloc},
    {Py_tp_repr, (void *)instruction_repr},
    {Py_tp_richcompare, (void *)instruction_compare},
    {Py_tp_hash, (void *)instruction_hash},
    {Py_tp_methods, instruction_methods},
    {Py_tp_getset, instruction_getset},
    {Py_tp_doc, "An operation of a computation."},
    {0, NULL},
};

PyType_Spec py_instruction_spec = {
    .name = "xlac.Instruction",
    .basicsize = sizeof(py_instruction),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = instruction_slots,
};
