/* Module.run: a pipeline of passes on a copy, and the table of passes. */
#include "py.h"

/* What the callback after each pass needs. */
typedef struct py_after {
  py_work *work;
  bool own;           /* nobody else has the module: a pass may be stopped in its midst */
  PyObject *callback; /* or NULL */
  py_state *st;
} py_after;

static bool call_hook(py_after *after, const char *pass, xlac_module *m) {
  xlac_error err = {.code = 0};
  xlac_module *copy = NULL;
  if (xlac_module_clone(&copy, m, &err) != 0) return py_raise(after->st, &err, PY_ANY) != NULL;
  PyObject *wrapped = py_wrap_module(after->st, copy);
  PyObject *result = wrapped ? PyObject_CallFunction(after->callback, "sO", pass, wrapped) : NULL;
  Py_XDECREF(wrapped);
  Py_XDECREF(result);
  return result != NULL;
}

/* Also the place where Ctrl-C stops a long pipeline. */
static int after_pass(void *ctx, const char *pass, xlac_module *m) {
  py_after *after = ctx;
  py_work_pause(after->work);
  bool ok = PyErr_CheckSignals() == 0 && (after->callback == NULL || call_hook(after, pass, m));
  py_work_resume(after->work);
  return ok ? 0 : 1;
}

static int run_unlocked(xlac_module *m, const char *text, py_after *after, bool verify_each, xlac_error *err) {
  xlac_pipeline_options options = {XLAC_OPTIONS(xlac_pipeline_options), .after = after_pass, .ctx = after,
                                   .verify_each = verify_each};
  py_work work;
  py_work_begin(&work, after->own);
  after->work = &work;
  int status = xlac_module_run(m, text, &options, err);
  py_work_end(&work);
  return status;
}

PyObject *py_run_pipeline(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"module", "pipeline", "after", "verify_each", "in_place", NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *module, *after = Py_None;
  const char *text;
  int verify_each = 0, in_place = 0;
  xlac_error err = {.code = 0};
  xlac_module *copy = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!s|Opp:run", names, st->module_type, &module, &text, &after,
                                   &verify_each, &in_place))
    return NULL;
  xlac_module *m = ((py_module *)module)->m;
  int status = 0;
  if (!in_place) PY_WORK(status = xlac_module_clone(&copy, m, &err));
  if (status != 0) return py_raise(st, &err, PY_ANY);
  py_after ctx = {.callback = after == Py_None ? NULL : after, .st = st, .own = !in_place};
  if (run_unlocked(in_place ? m : copy, text, &ctx, verify_each != 0, &err) == 0)
    return in_place ? Py_NewRef(module) : py_wrap_module(st, copy);
  xlac_module_destroy(copy);
  return PyErr_Occurred() ? NULL : py_raise(st, &err, PY_ANY);
}

static PyObject *option_dict(uint32_t index, uint32_t n) {
  PyObject *dict = PyDict_New();
  const char *name, *doc;
  for (uint32_t i = 0; dict && i < n && xlac_pass_option(index, i, &name, &doc); i++) {
    PyObject *text = PyUnicode_FromString(doc);
    if (text == NULL || PyDict_SetItemString(dict, name, text) < 0) Py_CLEAR(dict);
    Py_XDECREF(text);
  }
  return dict;
}

PyObject *py_pass_table(PyObject *core, PyObject *unused) {
  (void)core, (void)unused;
  PyObject *dict = PyDict_New();
  xlac_pass_info info;
  for (uint32_t i = 0; dict && xlac_pass_get(i, &info); i++) {
    PyObject *row = Py_BuildValue("{sssN}", "doc", info.doc, "options", option_dict(i, info.n_options));
    if (row == NULL || PyDict_SetItemString(dict, info.name, row) < 0) Py_CLEAR(dict);
    Py_XDECREF(row);
  }
  return dict;
}
