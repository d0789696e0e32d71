/* One run of the interpreter, as Python code called from it sees it. The GIL is released for the run; what needs Python
 * takes it with py_run_enter and lets go with py_run_leave. */
#ifndef XLAC_PY_RUN_H
#define XLAC_PY_RUN_H

#include "py.h"

/* The custom calls registered in Python, as a registry for one run. Where they are all native code, runs share one. */
typedef struct py_custom_call py_custom_call;
/* Ended by py_custom_calls_end, also where the run has failed. */
typedef struct py_custom_calls {
  xlac_registry *registry; /* NULL: there are none */
  py_custom_call *calls;   /* of this run */
  PyObject *shared;        /* who owns the registry, or NULL */
} py_custom_calls;

/* It lies on the stack of the function that began the run, which waits for it. */
typedef struct py_run {
  py_state *st;
  xlac_module *m;        /* that runs, borrowed */
  PyThreadState *thread; /* of the caller, while the GIL is released */
  unsigned long caller;  /* the caller's thread */
  PyInterpreterState *interpreter;
  PyObject *progress; /* called with the seconds run so far, or NULL */
  double started, polled;
  PyObject *errors; /* what custom calls raised: pairs of an op's name and an exception; or NULL */
  py_custom_calls calls;
} py_run;

/* On the thread that began the run only: takes the GIL with its own thread state. */
static inline void py_run_enter(py_run *run) {
  PyEval_RestoreThread(run->thread);
}
static inline void py_run_leave(py_run *run) {
  run->thread = PyEval_SaveThread();
}
/* The same from any thread that works for the run. false, having done nothing, when out of memory. */
bool py_run_visit(py_run *run);
void py_run_unvisit(py_run *run);

/* Seconds on a clock that only goes forward. */
double py_run_now(void);
/* For xlac_interpret_options.interrupted with a py_run: runs signal handlers and the progress callback. */
bool py_run_poll(void *run);
/* Whatever runs programs: xlac_interpret on a module, xlac_executable_run on an executable. */
typedef int py_start_fn(void *what, const xlac_interpret_options *options, uint32_t n, xlac_value *const *values,
                        xlac_value **out, xlac_error *err);
/* What is between the two runs without the GIL, with the custom calls registered in Python. -1 with an exception; the
 * second follows on every success of the first. Two functions, so that no frame of ours is between a call and its run.
 */
int py_run_begin(py_run *run, xlac_interpret_options *options);
int py_run_end(py_run *run, int status, const xlac_error *err);
/* Both, and the result as NumPy arrays. */
PyObject *py_run_values(py_run *run, xlac_interpret_options *options, py_start_fn *start, void *what, uint32_t n,
                        xlac_value **values);
/* Keeps the exception that the custom call `op` has raised for py_run_raise, and says it in err. */
void py_run_keep_error(py_run *run, const char *op, xlac_error *err);
/* Raises the run's error; what the custom call that it names raised becomes its cause. Gives NULL. */
PyObject *py_run_raise(py_run *run, const xlac_error *err);

/* -1 with an exception. */
int py_custom_calls_begin(py_run *run, py_custom_calls *out);
void py_custom_calls_end(py_custom_calls *calls);

#endif
