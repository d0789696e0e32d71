/* Long calls without the GIL that Ctrl-C stops: parsing, compiling, passes, clustering. The library asks now and
 * then whether it should go on (xlac_set_interrupt); runs of programs have a hook of their own (run.h). */
#include <signal.h>

#include "run.h"

/* As often as runs are polled. */
#define WORK_POLL_SECONDS 0.05

/* Whether Ctrl-C would raise KeyboardInterrupt. Another handler of the program's may do anything, also use the
 * very handle that is locked now: it runs when the call is over. With the GIL, and no exception afterwards. Only a
 * comparison: the handler itself is not run here. */
static bool work_has_usual_handler(void) {
  PyObject *module = PyImport_ImportModule("_signal");
  PyObject *now = module ? PyObject_CallMethod(module, "getsignal", "i", SIGINT) : NULL;
  PyObject *usual = module ? PyObject_GetAttrString(module, "default_int_handler") : NULL;
  bool is = now && now == usual;
  Py_XDECREF(module);
  Py_XDECREF(now);
  Py_XDECREF(usual);
  PyErr_Clear();
  return is;
}

/* For xlac_set_interrupt. Only the main thread of the main interpreter sees signals. Once stopped, always stopped:
 * the library may ask again on its way out. */
static bool work_interrupted(void *ctx) {
  assert(ctx);
  py_work *work = ctx;
  double now = py_run_now();
  if (work->stopped || now - work->polled < WORK_POLL_SECONDS) return work->stopped;
  PyEval_RestoreThread(work->thread);
  if (work_has_usual_handler()) work->stopped = PyOS_InterruptOccurred() != 0;
  work->thread = PyEval_SaveThread();
  work->polled = py_run_now();
  return work->stopped;
}

/* The hook is the thread's, so calls on several threads do not meet. One inside another's callback puts the outer
 * one back. */
static void work_heed(py_work *work) {
  xlac_interrupt hook = {work->stoppable ? work_interrupted : NULL, work};
  work->outer = xlac_set_interrupt(hook);
}

/* With the GIL; gives it away. */
void py_work_begin(py_work *work, bool stoppable) {
  *work = (py_work){.polled = py_run_now(), .stoppable = stoppable};
  work->thread = PyEval_SaveThread();
  work_heed(work);
}

/* What was asked for may be there all the same: the signal is raised anew, for the interpreter to handle as soon as it
 * can, or for py_raise. */
void py_work_end(py_work *work) {
  assert(work->thread);
  py_work_pause(work);
  if (work->stopped) (void)PyErr_SetInterruptEx(SIGINT);
}

/* The outer hook is put back first, as what runs now is not part of this call. */
void py_work_pause(py_work *work) {
  assert(work->thread);
  (void)xlac_set_interrupt(work->outer);
  PyEval_RestoreThread(work->thread);
}

/* Gives the GIL away again. */
void py_work_resume(py_work *work) {
  work->thread = PyEval_SaveThread();
  work_heed(work);
}
