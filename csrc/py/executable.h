/* xlac.Executable, inside: what a call needs to know, prepared when the executable is wrapped. */
#ifndef XLAC_PY_EXECUTABLE_H
#define XLAC_PY_EXECUTABLE_H

#include "numpy.h"
#include "run.h"

/* An array, or a token, of the parameters or of the result. Borrows the type and the dimensions from the
 * executable; the dtype is a reference of its own. */
typedef struct py_leaf {
  const xlac_type *type;
  PyArray_Descr *descr; /* NULL: a token */
  int rank;
  npy_intp *dims;
  size_t bytes;
} py_leaf;

/* Kinds of values in preorder: a tuple of so many, or one of these. */
enum { PY_NODE_ARRAY = -1, PY_NODE_TOKEN = -2 };

/* Immutable but for what recording and `kept` are about, so that calls need no lock. Everything is derived from
 * exe and freed with it. */
typedef struct py_executable {
  PyObject_HEAD vectorcallfunc call;
  xlac_executable *exe;
  uint32_t n_params, n_arguments, n_results;
  py_leaf *leaves; /* of the arguments, then of the results */
  int32_t *nodes;  /* of the parameters, one after another, then of the result */
  uint32_t result_node;
  uint32_t *over; /* by result leaf: the argument leaf whose memory it may be given, or UINT32_MAX */
  npy_intp *dims;
  PyObject *names;   /* of the parameters */
  PyObject *numbers; /* {name: number}, also without the ".1" that tells equal names apart; None: several have it */
  PyObject *kept;    /* a dict of xlac.report's, or NULL: what the executable said of itself once */
  bool planned;      /* calls go by leaves; else by values */
  bool recording, was_planned; /* calls leave timelines; whether they went by leaves before */
  PyObject *recorded;          /* the last one's, or NULL */
  bool quick;                  /* over so soon that the GIL is kept */
  bool required;               /* donations that can't be used are errors in every call */
  bool as_buffers;             /* results are Buffers, not arrays */
  bool as_shards;              /* results are ShardedBuffers */
} py_executable;

/* One call as Python asked for it. The defaults are in options; nothing here owns anything. */
typedef struct py_call {
  PyObject *const *args; /* borrowed */
  uint32_t n;
  PyObject *out, *progress; /* or NULL */
  bool required;            /* donate="require" */
  xlac_interpret_options options;
} py_call;

/* --- call.c --- */
PyObject *py_executable_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
/* Sorts positional and keyword arguments into `call`; named parameters go to `room`, of n_params places. */
int py_call_parse(const py_executable *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **room,
                  py_call *call);

/* --- call_out.c: the arrays that are given as out= --- */
/* Why the leaf's values can't be written where the array lies; NULL where they can. */
const char *py_array_obstacle(const py_leaf *leaf, PyArrayObject *a);
/* Checks that `out` has the structure of the result and takes its arrays apart: *arrays, new references, NULL where
 * there is None. */
int py_out_take(const py_executable *self, PyObject *out, PyObject **arrays);
/* Where result i overlaps memory that the call still reads, or another result: a block to write instead, which
 * py_out_finish copies. results: pointers as they were, changed to the blocks; blocks: NULLs at first. */
int py_out_separate(const py_executable *self, py_state *st, PyObject *const *arrays, void *const *arguments,
                    void **results, void **blocks);
void py_out_finish(const py_executable *self, PyObject *const *arrays, void **blocks, bool ran);
/* The result of a call that wrote into `out`, with the caller's own objects for the arrays. Steals result, which may be
 * NULL with an exception; a new reference, or NULL with an exception. */
PyObject *py_out_given(const py_executable *self, PyObject *out, PyObject *result);
/* Fills them from a result that was made without them, and puts them in its place. Steals `result`. */
PyObject *py_out_copy(const py_executable *self, PyObject *out, PyObject *result);

/* --- call_give.c: no memory twice --- */
/* Raises where memory that is donated is donated or lent once more in the same call. */
int py_gifts_check(const py_executable *self, py_state *st, const py_call *call);
/* What py_gift_row says of each argument that is marked. */
PyObject *py_gifts_list(const py_executable *self, py_state *st, const py_call *call);

/* --- call_give.c: arguments marked with xlac.donate --- */
/* An argument whose memory was taken for this call. */
typedef struct py_given {
  uint32_t result; /* the leaf that gets the memory; UINT32_MAX: temporaries */
  void *data;
  PyObject *base;     /* who owns the memory from now on */
  xlac_buffer *taken; /* or NULL: it was an ndarray's */
  uint32_t param;
} py_given;
/* All of them; v is allocated by PyMem as they come. */
typedef struct py_gifts {
  py_given *v;
  uint32_t n;
  bool checked, required; /* required: what can't be donated is an error */
} py_gifts;
/* Takes the memory of `value`, an ndarray or a Buffer; *spare: for temporaries, as no result takes it. 1 where it is
 * lent instead (a warning has been given), -1 with an exception. */
int py_give(const py_executable *self, py_state *st, py_gifts *g, uint32_t leaf, uint32_t param, PyObject *value,
            void **data, bool *spare);
/* Whether the value, an ndarray or a Buffer, can't be donated as that leaf, also for the caller's own reason `why`
 * where there is one: 1, and a warning says so, or -1 with an exception where that is an error. 0: it can. */
int py_give_refused(const py_executable *self, py_state *st, bool required, uint32_t leaf, uint32_t param,
                    PyObject *value, const char *why);
/* For programs that the interpreter runs whole: nothing can be given to them. */
int py_give_nothing(const py_executable *self, py_state *st, const py_call *call);
/* (leaf, parameter, why it can't be donated, or None). rival: the leaf in the same memory, or UINT32_MAX. */
PyObject *py_gift_row(const py_executable *self, py_state *st, uint32_t leaf, uint32_t param, PyObject *value,
                      uint32_t rival);
/* Arrays on that memory, for results that have none yet. -1 with an exception. */
int py_gifts_results(const py_executable *self, py_state *st, const py_gifts *g, PyObject **arrays);
/* started: the run may have written to the memory. Where it has not, Buffers get theirs back. The arrays made above
 * must be gone then. */
void py_gifts_end(const py_executable *self, py_gifts *g, bool started);

/* --- lanes.c --- */
/* Fills options->lanes from a tuple of (name, threads), which must live as long; -1 with an exception. */
int py_lanes_take(PyObject *pairs, xlac_compile_options *options);
void py_lanes_forget(xlac_compile_options *options);

/* --- call.c: by values --- */
/* By values: whatever the arguments are, and with the interpreter's errors. */
PyObject *py_call_values(py_executable *self, const py_call *call);
/* What is told of a call: times of its steps, the same with lanes, or without a clock what ran. */
typedef enum py_clock { PY_CLOCK_STEPS, PY_CLOCK_LANES, PY_CLOCK_NONE } py_clock;
/* The same; *json is freed with xlac_free. */
PyObject *py_call_profiled(py_executable *self, const py_call *call, py_clock clock, char **json, size_t *n);

/* --- inspect.c: timelines --- */
PyObject *py_executable_lanes(PyObject *object, void *unused);
PyObject *py_executable_run_timeline(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *py_executable_record(PyObject *object, PyObject *arg);
PyObject *py_executable_recorded(PyObject *object, void *unused);
/* A call whose timeline is kept. */
PyObject *py_call_recorded(py_executable *self, const py_call *call);

/* --- introduce.c --- */
PyObject *py_executable_module(PyObject *self, void *unused);
PyObject *py_executable_inputs(PyObject *self, void *unused);
PyObject *py_executable_outputs(PyObject *self, void *unused);
PyObject *py_executable_signature(PyObject *self, void *unused);
PyObject *py_executable_html(PyObject *self, PyObject *unused);
PyObject *py_executable_copy_module(PyObject *object, PyObject *unused);
PyObject *py_executable_copy_local(PyObject *object, PyObject *unused);
PyObject *py_executable_as_buffers(PyObject *self, void *unused);
PyObject *py_executable_as_shards(PyObject *self, void *unused);
int py_executable_set_as_shards(PyObject *self, PyObject *value, void *unused);
int py_executable_set_as_buffers(PyObject *self, PyObject *value, void *unused);
/* The result's arrays as Buffers on their memory. Steals `result`; NULL for NULL, and with an exception. */
PyObject *py_results_as_buffers(py_state *st, PyObject *result);

/* --- call_device.c --- */
/* For programs of a device whose memory the host doesn't see: results are Buffers there. */
PyObject *py_call_on_device(py_executable *self, const py_call *call);

/* --- call_shards.c --- */
PyObject *py_executable_call_shards(PyObject *object, PyObject *args);
PyObject *py_executable_shards(PyObject *object, PyObject *unused);
/* As a vectorcall, by xlac.sharded. */
PyObject *py_call_sharded(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* --- executable.c --- */
PyObject *py_executable_device(PyObject *self, void *unused);

/* --- inspect.c --- */
extern PyMethodDef py_executable_methods[];
extern PyGetSetDef py_executable_getset[];
PyObject *py_executable_repr(PyObject *self);

/* --- call_out.c: arrays that a call makes --- */
/* An array for a result, on memory of the runtime's where it is large. */
PyObject *py_result_array(py_state *st, const py_leaf *leaf);
/* The leaves as the structure of the result; steals them. */
PyObject *py_result_of(const py_executable *self, PyObject **leaves);
extern PyType_Spec py_block_spec;

#endif
