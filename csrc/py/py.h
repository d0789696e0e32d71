/* The CPython extension xlac._core. It uses xlac.h and nothing else of the library, so that what Python can do, C can
 * do. Per-module state, heap types, no mutable globals: several interpreters and free threading are fine. */
#ifndef XLAC_PY_PY_H
#define XLAC_PY_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../include/xlac.h"

#define PY_MAX_DTYPES 64

/* Python objects that are made once: names to look up, and what __dlpack__ is called with. */
typedef enum py_name {
  PY_NAME_DLPACK,
  PY_NAME_EXCHANGE,
  PY_NAME_ARRAY,
  PY_NAME_MAX_VERSION, /* the keywords of __dlpack__, in the order of py_buffer_dlpack */
  PY_NAME_COPY,
  PY_NAME_DL_DEVICE,
  PY_NAME_STREAM,
  PY_KEYWORDS_VERSION, /* tuples of keywords */
  PY_KEYWORDS_COPY,
  PY_KEYWORDS_DEVICE,
  PY_KEYWORDS_STREAM,
  PY_DL_VERSION, /* (1, 3) */
  PY_DL_CPU,     /* (1, 0) */
  PY_NAMES
} py_name;

/* One for each interpreter that imports the module; what several threads may write (descrs, numpy) is written
 * atomically, the rest once or with the GIL. */
typedef struct py_state {
  PyTypeObject *module_type, *computation_type, *instruction_type, *executable_type, *block_type, *clusters_type,
      *session_type, *step_type;
  PyObject *errors;                /* the module xlac.errors */
  PyObject *descrs[PY_MAX_DTYPES]; /* NumPy dtypes by element type, made when first needed */
  PyObject *custom_calls;          /* {target: function, or capsule with native code} */
  PyObject *native_calls;          /* capsule: a registry of custom_calls while all of them are native; or NULL */
  void **numpy;                    /* NumPy's C API table, fetched when first needed */
  xlac_runtime *runtime;           /* of all executables */
  /* buffers */
  PyTypeObject *buffer_type, *view_type, *donation_type;
  xlac_counters *counters;
  PyObject *names[PY_NAMES];                               /* and other constants, by py_name */
  uint8_t dl_codes[PY_MAX_DTYPES], dl_bits[PY_MAX_DTYPES]; /* DLPack's type of an element type; 0 bits: none */
} py_state;

/* The objects of Module, Computation and Instruction. The handles are never NULL; the latter two keep the module
 * alive. */
typedef struct py_module {
  PyObject_HEAD xlac_module *m;
  PyObject *source; /* the text that it was read from, for errors, if that is short; else NULL */
} py_module;

/* Several objects may stand for one computation or instruction. */
typedef struct py_computation {
  PyObject_HEAD py_module *module;
  xlac_computation *c;
} py_computation;

typedef struct py_instruction {
  PyObject_HEAD py_module *module;
  xlac_op *op;
} py_instruction;

/* Defined in core.c. */
extern struct PyModuleDef py_core_def;
/* Of any object of our (final, hence exactly ours) types. Cheaper than a search through the type's bases, which
 * subclasses would need. */
static inline py_state *py_state_of(PyObject *self) {
  return (py_state *)PyType_GetModuleState(Py_TYPE(self));
}

/* --- errors.c --- */
/* Numbers of the library's errors (xlac.codes). */
enum { PY_BUFFER_DELETED = 504, PY_DONATION_UNUSABLE = 507, PY_DONATION_TWICE = 508, PY_BAD_PIPELINE = 700 };
/* Which class an error has when its code does not say. */
typedef enum py_stage { PY_ANY, PY_PARSING, PY_VERIFYING } py_stage;
/* Sets the Python exception for err; returns NULL. */
PyObject *py_raise(py_state *st, const xlac_error *err, py_stage stage);
/* The same with a message of ours and code BAD_ARGUMENT. */
PyObject *py_raise_argument(py_state *st, const char *format, ...);
/* Has the error of xlac's that is set note the line of the program that it is about. source: NULL is fine. Gives NULL.
 */
PyObject *py_show_source(PyObject *source);

/* --- arrays.c --- */
/* A NumPy array of a value; tuples give tuples, tokens None. Steals the reference to v, also on failure. */
PyObject *py_from_value(py_state *st, xlac_value *v);
/* A value of a Python object of type t; arrays are lent and kept alive by *keep, a list. `what` names it in errors. */
int py_to_value(py_state *st, PyObject *object, const xlac_type *t, const char *what, PyObject *keep, xlac_value **out);
/* The same without an expected type: arrays, numbers, tuples. */
int py_to_any_value(py_state *st, PyObject *object, PyObject *keep, xlac_value **out);
/* Whether an ndarray hides elements of its own behind a mask, as numpy.ma's do. Programs have no masks: what asks this
 * refuses such an array with PY_MASKED_WORDS, where it would go on with the elements that are hidden. */
bool py_is_masked(PyObject *array);
#define PY_MASKED_WORDS \
  "its mask hides elements, and programs have no masks: pass x.filled(0), or x.data for all of them"
/* A new reference to the NumPy dtype of an element type. */
PyObject *py_descr(py_state *st, uint32_t dtype);

/* --- wrappers --- NULL gives None */
PyObject *py_wrap_module(py_state *st, xlac_module *m); /* steals m */
PyObject *py_wrap_computation(py_state *st, py_module *module, xlac_computation *c);
PyObject *py_wrap_op(py_state *st, py_module *module, xlac_op *op);
/* Takes text of the library as a str (bytes that are not UTF-8 as surrogates), and frees it. */
PyObject *py_text(char *text, Py_ssize_t n);
/* Text of a str or bytes; surrogates as the bytes they came from. *holder is a new reference that keeps it. */
int py_source(PyObject *object, PyObject **holder, const char **text, Py_ssize_t *n);
/* Fills print options from keyword arguments of to_text. */
int py_print_options(py_state *st, PyObject *args, PyObject *kwargs, xlac_print_options *out);
/* Calls function `name` of the Python module `file` with self before args. */
PyObject *py_delegate(const char *file, const char *name, PyObject *self, PyObject *args, PyObject *kwargs);
/* tp_getattro: an attribute, or an AttributeError that says what is called so here. */
PyObject *py_attribute(PyObject *self, PyObject *name);
/* A method of that C name which py_delegate does. */
#define PY_DELEGATE(c_name, file, name)                                       \
  static PyObject *c_name(PyObject *self, PyObject *args, PyObject *kwargs) { \
    return py_delegate(file, name, self, args, kwargs);                       \
  }
/* The end of a noun behind a count, as base_plural: this room sees xlac.h alone. */
static inline const char *py_plural(uint64_t n) {
  return n == 1 ? "" : "s";
}
/* The entry of a method table for a function that takes keywords; through a cast that compilers let pass. */
#define PY_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function)), METH_VARARGS | METH_KEYWORDS

/* --- buffer*.c, dlpack*.c --- */
extern PyType_Spec py_buffer_spec, py_view_spec, py_donation_spec;
/* Types, counters and constants of buffers, into the state. */
int py_buffers_start(PyObject *core);
PyObject *py_asarray(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_from_dlpack(PyObject *core, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *py_donate(PyObject *core, PyObject *object);
PyObject *py_move_donation(PyObject *core, PyObject *args);
PyObject *py_stats(PyObject *core, PyObject *unused);
PyObject *py_reset_stats(PyObject *core, PyObject *unused);

extern PyType_Spec py_module_spec, py_computation_spec, py_instruction_spec, py_executable_spec, py_block_spec,
    py_clusters_spec, py_session_spec, py_step_spec;

/* --- long calls: work.c --- */

/* A call without the GIL that Ctrl-C stops: it fails with INTERRUPTED, and py_raise raises what the handler raises. */
typedef struct py_work {
  PyThreadState *thread;
  xlac_interrupt outer; /* of a call whose callback this one is in */
  double polled;
  bool stoppable, stopped;
} py_work;

/* `stoppable`: whether it may be stopped anywhere, with nothing lost. */
void py_work_begin(py_work *work, bool stoppable);
void py_work_end(py_work *work);
/* Between them, around what needs the GIL on the same thread. */
void py_work_pause(py_work *work);
void py_work_resume(py_work *work);
/* Runs a statement that way; it must not touch Python's objects. */
#define PY_WORK(statement)      \
  do {                          \
    py_work work;               \
    py_work_begin(&work, true); \
    statement;                  \
    py_work_end(&work);         \
  } while (0)

/* --- functions of _core --- */
PyObject *py_parse(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_new_module(PyObject *core, PyObject *name);
PyObject *py_interpret(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_compile(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_load(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_trim(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_compile_dump(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_rehearse(PyObject *core, PyObject *args);
PyObject *py_devices(PyObject *core, PyObject *unused);
PyObject *py_network(PyObject *core, PyObject *args);
PyObject *py_network_deadline(PyObject *core, PyObject *args);
PyObject *py_network_gather(PyObject *core, PyObject *args);
PyObject *py_network_close(PyObject *core, PyObject *args);
PyObject *py_network_join(PyObject *core, PyObject *args);
PyObject *py_memory_stats(PyObject *core, PyObject *unused);
PyObject *py_memory_limit(PyObject *core, PyObject *bytes);
PyObject *py_run_parallel(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_run_pipeline(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_pass_table(PyObject *core, PyObject *unused);
PyObject *py_register_custom_call(PyObject *core, PyObject *args);
PyObject *py_opcode_table(PyObject *core, PyObject *unused);
/* The name of the op that NumPy and others call so, or None. */
PyObject *py_op_elsewhere(PyObject *core, PyObject *name);
PyObject *py_dtype_table(PyObject *core, PyObject *unused);
PyObject *py_error_table(PyObject *core, PyObject *unused);
PyObject *py_kernel_text(PyObject *core, PyObject *source);
PyObject *py_kernel_run(PyObject *core, PyObject *args);
PyObject *py_attr_kind(PyObject *core, PyObject *name);
PyObject *py_numpy_dtype(PyObject *core, PyObject *name);
PyObject *py_cluster(PyObject *core, PyObject *args, PyObject *kwargs);
PyObject *py_graph_convert(PyObject *core, PyObject *args);
PyObject *py_lower_graph(PyObject *core, PyObject *args);
PyObject *py_has_lowering(PyObject *core, PyObject *op);
PyObject *py_cluster_op_list(PyObject *core, PyObject *unused);
PyObject *py_cluster_devices(PyObject *core, PyObject *unused);

#endif
