/* xlac.Buffer, inside: arrays in memory, in and out of Python. Three files for what a Buffer is (buffer.c), how
 * arrays become one (buffer_in.c) and how others see it (buffer_views.c), one for marks (buffer_donate.c), and
 * dlpack*.c for other libraries. */
#ifndef XLAC_PY_BUFFER_H
#define XLAC_PY_BUFFER_H

#include "numpy.h"

/* b is never NULL; its memory may be gone, which the library knows. */
typedef struct py_buffer {
  PyObject_HEAD xlac_buffer *b;
  PyObject *weakrefs;
} py_buffer;

/* A mark around the Buffer or ndarray `value`. */
typedef struct py_donation {
  PyObject_HEAD PyObject *value;
} py_donation;

/* What `copy=` says. None, False and True; WRONG comes with an exception. */
typedef enum py_copy { PY_COPY_IF_NEEDED, PY_COPY_NEVER, PY_COPY_ALWAYS, PY_COPY_WRONG } py_copy;

/* The type can't be derived from, so this is exact. */
static inline bool py_is_buffer(const py_state *st, PyObject *object) {
  return Py_IS_TYPE(object, st->buffer_type);
}

/* --- buffer.c --- */
/* Steals b; NULL with an exception. */
PyObject *py_wrap_buffer(py_state *st, xlac_buffer *b);
/* PY_COPY_WRONG with an exception for what is neither None nor a bool. */
py_copy py_copy_of(PyObject *object);
/* Sets a BufferError with the record's message and hint; NULL. */
PyObject *py_raise_buffer_error(const xlac_error *err);
/* A dense copy where b is, without the GIL where it takes long. NULL with an exception. */
xlac_buffer *py_buffer_copied(py_state *st, xlac_buffer *b);
/* A dense copy on the device; NULL: on the host. NULL with an exception. */
xlac_buffer *py_buffer_moved(py_state *st, xlac_buffer *b, const xlac_device *to);
/* "cpu", or the device's name: what Python calls where b lies. NULL with an exception. */
PyObject *py_buffer_place(xlac_buffer *b);
/* Counts an array that crosses the border one way: copied, or where it is. */
void py_count_in(py_state *st, size_t bytes, bool copied);
void py_count_out(py_state *st, size_t bytes, bool copied);

/* --- buffer_views.c --- */
PyObject *py_buffer_numpy(PyObject *self, PyObject *unused);
PyObject *py_buffer_array(PyObject *self, PyObject *args, PyObject *kwargs);
int py_buffer_getbuffer(PyObject *self, Py_buffer *view, int flags);
void py_buffer_releasebuffer(PyObject *self, Py_buffer *view);

/* --- buffer_in.c --- */
/* A buffer on the array's memory; a copy where xlac can't read it as stored, but not with PY_COPY_NEVER. NULL with an
 * exception. */
xlac_buffer *py_buffer_of_array(py_state *st, PyObject *array, py_copy copy);

/* --- dlpack_out.c, dlpack_in.c, dlpack_exchange.c --- */
PyObject *py_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *py_buffer_dlpack_device(PyObject *self, PyObject *unused);
/* A buffer of what has __dlpack__ or the like; NULL with an exception. */
xlac_buffer *py_buffer_from_dlpack(py_state *st, PyObject *object, py_copy copy, bool to_cpu);
/* Whether an array of another library says that its memory is a CUDA device's. An exception that is set stays, and no
 * other is. */
bool py_lies_on_gpu(py_state *st, PyObject *object);
/* Gives the type its table of C functions. */
int py_add_dlpack_exchange(PyTypeObject *type);

#endif
