/* Long calls without the GIL that Ctrl-C stops. */
#include <signal.h>

#include "run.h"

#define WORK_POLL_SECONDS 0.05

/* Whether Ctrl-C would raise KeyboardInterrupt. Another handler of the program's may do anything, also use the very
 * handle that is locked now: it runs when the call is over. */
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

/* For xlac_set_interrupt. Only the main thread of the main interpreter sees signals. */
static bool work_interrupted(void *ctx) {
  py_work *work = ctx;
  double now = py_run_now();
  if (work->stopped || now - work->polled < WORK_POLL_SECONDS) return work->stopped;
  PyEval_RestoreThread(work->thread);
  if (work_has_usual_handler()) work->stopped = PyOS_InterruptOccurred() != 0;
  work->thread = PyEval_SaveThread();
  work->polled = py_run_now();
  return work->stopped;
}

static void work_heed(py_work *work) {
  xlac_interrupt hook = {work->stoppable ? work_interrupted : NULL, work};
  work->outer = xlac_set_interrupt(hook);
}

void py_work_begin(py_work *work, bool stoppable) {
  *work = (py_work){.polled = py_run_now(), .stoppable = stoppable};
  work->thread = PyEval_SaveThread();
  work_heed(work);
}

/* What was asked for may be there all the same: the signal is raised anew, for the interpreter to handle as soon as it
 * can, or for py_raise. */
void py_work_end(py_work *work) {
  py_work_pause(work);
  if (work->stopped) (void)PyErr_SetInterruptEx(SIGINT);
}

void py_work_pause(py_work *work) {
  (void)xlac_set_interrupt(work->outer);
  PyEval_RestoreThread(work->thread);
}

void py_work_resume(py_work *work) {
  work->thread = PyEval_SaveThread();
  work_heed(work);
}
