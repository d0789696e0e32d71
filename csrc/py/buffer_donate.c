/* xlac.donate(x): the mark of an argument whose memory a call may use for its results.
 *
 * The mark itself does nothing and takes nothing: only a call that meets it does (call_give.c), and where it
 * can't, it lends the memory as if there were no mark. So marks may be made freely, and a mark that no call meets
 * is harmless. */
#include "buffer.h"

#include <structmember.h>

/* The collector has to know of the value, since an ndarray of objects or another library's may refer back to the
 * mark. */
static int donation_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(((py_donation *)self)->value);
  return 0;
}

/* Leaves NULL behind, which `value` then raises for; calls see marks only while somebody has a reference, so never
 * such a one. */
static int donation_clear(PyObject *self) {
  Py_CLEAR(((py_donation *)self)->value);
  return 0;
}

/* The object goes, then the reference that every object of a heap type has to its type. */
static void donation_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  (void)donation_clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

/* As it would be written: donate(array([1., 2.])). */
static PyObject *donation_repr(PyObject *self) {
  return PyUnicode_FromFormat("donate(%R)", ((py_donation *)self)->value);
}

/* T_OBJECT_EX: an AttributeError, not a crash, for a mark that the collector has cleared. */
static PyMemberDef donation_members[] = {
    {"value", T_OBJECT_EX, offsetof(py_donation, value), READONLY, "The Buffer or ndarray to donate."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot donation_slots[] = {
    {Py_tp_dealloc, (void *)donation_dealloc},
    {Py_tp_traverse, (void *)donation_traverse},
    {Py_tp_clear, (void *)donation_clear},
    {Py_tp_repr, (void *)donation_repr},
    {Py_tp_members, donation_members},
    {Py_tp_doc, "An argument to be donated. Made by xlac.donate."},
    {0, NULL},
};

PyType_Spec py_donation_spec = {
    .name = "xlac.Donation",
    .basicsize = sizeof(py_donation),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = donation_slots,
};

/* A Buffer or an array as it is, anything else as a Buffer. A new reference. What is neither is imported by
 * DLPack, as xlac.from_dlpack would: the new Buffer is then what is donated, and its producer is not asked. */
static PyObject *donation_value(py_state *st, PyObject *object) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (py_is_buffer(st, object) || PyArray_Check(object)) return Py_NewRef(object);
  xlac_buffer *b = py_buffer_from_dlpack(st, object, PY_COPY_IF_NEEDED, false);
  return b ? py_wrap_buffer(st, b) : NULL;
}

/* The same memory as a Buffer of its own, while the given one is gone: for runs that begin later. What can't be
 * taken comes back as it is, for the run to say so. `where` is what the old Buffer says from then on when it is
 * asked why it is deleted. The order matters: the memory is taken first, so that nobody else can have it, and
 * given back where no new buffer can be made. */
PyObject *py_move_donation(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  PyObject *mark = NULL;
  const char *where = NULL;
  xlac_memory memory;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "O!s:move_donation", st->donation_type, &mark, &where)) return NULL;
  PyObject *value = ((py_donation *)mark)->value;
  if (!py_is_buffer(st, value)) return Py_NewRef(mark);
  xlac_buffer *b = ((py_buffer *)value)->b, *moved = NULL;
  if (xlac_buffer_take(b, &memory, &err) != 0)
    return err.code == PY_BUFFER_DELETED ? py_raise(st, &err, PY_ANY) : Py_NewRef(mark);
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  xlac_layout layout = {
      .dtype = info.dtype, .rank = info.rank, .dims = info.dims, .strides = info.strides, .device = info.device};
  if (xlac_buffer_wrap(&moved, st->counters, &layout, &memory, &err) != 0) {
    xlac_buffer_give_back(b);
    return py_raise(st, &err, PY_ANY);
  }
  xlac_buffer_taken_by(b, where);
  PyObject *object = py_wrap_buffer(st, moved), *again = object ? py_donate(core, object) : NULL;
  Py_XDECREF(object);
  return again;
}

/* A mark of a mark is the mark itself, so that code which marks its arguments may be called by code that has. */
PyObject *py_donate(PyObject *core, PyObject *object) {
  assert(object);
  py_state *st = PyModule_GetState(core);
  if (Py_IS_TYPE(object, st->donation_type)) return Py_NewRef(object);
  if (!py_is_buffer(st, object) && PyObject_HasAttrString(object, "_xlac_donated"))
    return PyObject_CallMethod(object, "_xlac_donated", NULL); /* ShardedBuffer */
  PyObject *value = donation_value(st, object);
  py_donation *self = value ? PyObject_GC_New(py_donation, st->donation_type) : NULL;
  if (self == NULL) {
    Py_XDECREF(value);
    return NULL;
  }
  self->value = value;
  PyObject_GC_Track((PyObject *)self);
  return (PyObject *)self;
}
