/* The Python type Module: making, printing, checking, reading and editing it, and pipelines of passes on it.
 *
 * A module has one handle of the library's, which the object owns. Whatever takes long goes without the GIL and
 * heeds Ctrl-C (PY_WORK); the library locks the module for that time, so that two threads may use it. */
#include <string.h>

#include "py.h"

/* --- pipelines of passes --- */

/* What the callback after each pass needs. */
typedef struct py_after {
  py_work *work;
  bool own;           /* nobody else has the module: a pass may be stopped in its midst */
  PyObject *callback; /* or NULL */
  py_state *st;
} py_after;

/* False with an exception. The callback gets a copy, as it may keep it and the next pass changes the module. */
static bool call_hook(py_after *after, const char *pass, xlac_module *m) {
  assert(after->callback);
  xlac_error err = {.code = 0};
  xlac_module *copy = NULL;
  if (xlac_module_clone(&copy, m, &err) != 0) return py_raise(after->st, &err, PY_ANY) != NULL;
  PyObject *wrapped = py_wrap_module(after->st, copy);
  PyObject *result = wrapped ? PyObject_CallFunction(after->callback, "sO", pass, wrapped) : NULL;
  Py_XDECREF(wrapped);
  Py_XDECREF(result);
  return result != NULL;
}

/* Also the place where Ctrl-C stops a long pipeline. 0 goes on, 1 stops the pipeline with the exception that is
 * set. On the thread that runs the pipeline. */
static int after_pass(void *ctx, const char *pass, xlac_module *m) {
  assert(ctx);
  py_after *after = ctx;
  py_work_pause(after->work);
  bool ok = PyErr_CheckSignals() == 0 && (after->callback == NULL || call_hook(after, pass, m));
  py_work_resume(after->work);
  return ok ? 0 : 1;
}

/* 0, or not with err, or with an exception of the callback's. */
static int run_unlocked(xlac_module *m, const char *text, py_after *after, bool verify_each, xlac_error *err) {
  assert(m && text);
  xlac_pipeline_options options = {XLAC_OPTIONS(xlac_pipeline_options), .after = after_pass, .ctx = after,
                                   .verify_each = verify_each};
  py_work work;
  py_work_begin(&work, after->own);
  after->work = &work;
  int status = xlac_module_run(m, text, &options, err);
  py_work_end(&work);
  return status;
}

static PyObject *wrap_like(PyObject *from, xlac_module *m);

/* On a copy unless told otherwise. A pass on the user's own module is not stopped in its midst, as that would
 * leave it half done: only between passes. */
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
    return in_place ? Py_NewRef(module) : wrap_like(module, copy);
  xlac_module_destroy(copy);
  if (PyErr_Occurred()) return NULL;
  py_raise(st, &err, PY_ANY);
  return err.code == PY_BAD_PIPELINE
             ? NULL
             : py_show_source(((py_module *)module)->source); /* that one's place is in `text` */
}

/* {name: what it means} of a pass's options. */
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

/* What xlac.passes lists; the library numbers its passes from 0. */
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

/* --- the type --- */

/* Steals m, also on failure. */
PyObject *py_wrap_module(py_state *st, xlac_module *m) {
  assert(m);
  py_module *self = PyObject_New(py_module, st->module_type);
  if (self == NULL) {
    xlac_module_destroy(m);
    return NULL;
  }
  self->m = m;
  self->source = NULL;
  return (PyObject *)self;
}

/* Of one that was made of another, so that its ops' lines are those of the same text. Steals m. */
static PyObject *wrap_like(PyObject *from, xlac_module *m) {
  PyObject *module = py_wrap_module(py_state_of(from), m);
  if (module) ((py_module *)module)->source = Py_XNewRef(((py_module *)from)->source);
  return module;
}

/* Computations and Instructions have references to this object, so none is left. */
static void module_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(((py_module *)self)->source);
  xlac_module_destroy(((py_module *)self)->m);
  PyObject_Free(self);
  Py_DECREF(type);
}

static xlac_module *handle(PyObject *self) {
  assert(((py_module *)self)->m);
  return ((py_module *)self)->m;
}

/* --- making --- */

enum { MOST_SOURCE = 1 << 18 /* bytes of a text that a module keeps for its errors */ };

/* Bytes are looked at by the library ("auto"): text and serialized protos need no word of the user's. The text is
 * borrowed for the call. */
PyObject *py_parse(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"text", "format", "allow_unregistered", "strict", "max_depth", NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *object, *holder;
  const char *format = "auto", *text;
  int allow_unregistered = 0, strict = 0;
  unsigned max_depth = 0;
  Py_ssize_t n;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$sppI:parse", names, &object, &format, &allow_unregistered, &strict,
                                   &max_depth))
    return NULL;
  int32_t number = strcmp(format, "hlo") == 0             ? XLAC_FORMAT_HLO
                   : strcmp(format, "hlo-proto") == 0     ? XLAC_FORMAT_HLO_PROTO
                   : strcmp(format, "mlir") == 0          ? XLAC_FORMAT_MLIR
                   : strcmp(format, "mlir-bytecode") == 0 ? XLAC_FORMAT_MLIR_BYTECODE
                   : strcmp(format, "auto") == 0          ? XLAC_FORMAT_AUTO
                                                          : -1;
  if (number < 0)
    return py_raise_argument(st, "format '%.40s' is unknown: there are auto, hlo, hlo-proto, mlir and mlir-bytecode",
                             format);
  if (py_source(object, &holder, &text, &n) < 0) return NULL;
  xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .format = number, .max_depth = max_depth,
                                .allow_unregistered = allow_unregistered != 0, .strict = strict != 0};
  xlac_error err = {.code = 0};
  xlac_module *m = NULL;
  int status;
  PY_WORK(status = xlac_module_parse(&m, text, (size_t)n, &options, &err));
  if (status != 0) {
    py_raise(st, &err, PY_PARSING);
    py_show_source(holder);
    Py_DECREF(holder);
    return NULL;
  }
  PyObject *module = py_wrap_module(st, m);
  if (module && n <= MOST_SOURCE)
    ((py_module *)module)->source = holder;
  else
    Py_DECREF(holder);
  return module;
}

/* Without an entry; xlac.Builder adds to it. */
PyObject *py_new_module(PyObject *core, PyObject *name) {
  py_state *st = PyModule_GetState(core);
  const char *s = PyUnicode_AsUTF8(name);
  xlac_error err = {.code = 0};
  xlac_module *m = NULL;
  if (s == NULL) return NULL;
  return xlac_module_create(&m, s, &err) == 0 ? py_wrap_module(st, m) : py_raise(st, &err, PY_ANY);
}

/* A deep copy: nothing is shared, ids and names are kept. */
static PyObject *module_clone(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  xlac_module *m = NULL;
  int status;
  PY_WORK(status = xlac_module_clone(&m, handle(self), &err));
  return status == 0 ? wrap_like(self, m) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* --- printing and verifying --- */

/* 0, or -1 with an exception. The names are in the order of the library's numbers. */
static int print_mode(py_state *st, const char *mode, int32_t *out) {
  assert(mode && out);
  static const char *const names[] = {"default", "short", "canonical", "fingerprint"};
  for (int32_t i = 0; i < 4; i++) {
    if (strcmp(mode, names[i]) == 0) {
      *out = i;
      return 0;
    }
  }
  py_raise_argument(st, "mode '%.40s' is unknown: there are default, short, canonical and fingerprint", mode);
  return -1;
}

/* 0, or -1 with an exception. Also what Computation.to_text and Instruction.to_text take, so that all three have
 * the same options. */
int py_print_options(py_state *st, PyObject *args, PyObject *kwargs, xlac_print_options *out) {
  assert(out);
  static char *names[] = {
      "format",    "mode", "elide_large_constants", "operand_shapes", "metadata", "ids", "indent", "generic",
      "locations", NULL};
  const char *format = "auto", *mode = "default";
  int elide = 0, shapes = 0, metadata = 1, ids = 1, generic = 0, locations = 0;
  unsigned indent = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s$sppppIpp:to_text", names, &format, &mode, &elide, &shapes,
                                   &metadata, &ids, &indent, &generic, &locations))
    return -1;
  if (strcmp(format, "hlo") != 0 && strcmp(format, "mlir") != 0 && strcmp(format, "auto") != 0) {
    py_raise_argument(st, "format '%.40s' is unknown: there are auto, hlo and mlir", format);
    return -1;
  }
  *out = (xlac_print_options){XLAC_OPTIONS(xlac_print_options),
                              .elide_large_constants = elide,
                              .operand_shapes = shapes,
                              .no_metadata = !metadata,
                              .no_ids = !ids,
                              .indent = indent,
                              .generic = generic,
                              .locations = locations,
                              .format = strcmp(format, "hlo") == 0    ? XLAC_FORMAT_HLO
                                        : strcmp(format, "mlir") == 0 ? XLAC_FORMAT_MLIR
                                                                      : XLAC_FORMAT_AUTO};
  return print_mode(st, mode, &out->mode);
}

/* Bytes that are not UTF-8 come as surrogates, and xlac.parse takes them back. */
static PyObject *module_to_text(PyObject *self, PyObject *args, PyObject *kwargs) {
  xlac_print_options options;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  int status;
  if (py_print_options(py_state_of(self), args, kwargs, &options) < 0) return NULL;
  PY_WORK(status = xlac_module_print(handle(self), &options, &text, &n, &err));
  return status == 0 ? py_text(text, (Py_ssize_t)n) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* From one form to the other: a new module. */
typedef int module_translation(xlac_module **out, xlac_module *m, xlac_error *err);

/* A module that can't be translated is a VerifyError, with the op that is in the way. */
static PyObject *module_translated(PyObject *self, module_translation *translate) {
  assert(translate);
  xlac_error err = {.code = 0};
  xlac_module *m = NULL;
  int status;
  PY_WORK(status = translate(&m, handle(self), &err));
  return status == 0 ? wrap_like(self, m) : py_raise(py_state_of(self), &err, PY_VERIFYING);
}

/* The ops of StableHLO and CHLO as HLO's; a module of HLO form is refused by the library. */
static PyObject *module_to_hlo(PyObject *self, PyObject *unused) {
  (void)unused;
  return module_translated(self, xlac_module_to_hlo);
}

/* The other way round. */
static PyObject *module_to_stablehlo(PyObject *self, PyObject *unused) {
  (void)unused;
  return module_translated(self, xlac_module_to_stablehlo);
}

/* 'hlo' or 'mlir'. */
static PyObject *module_form(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(xlac_module_is_mlir(handle(self)) ? "mlir" : "hlo");
}

static PyObject *module_is_verified(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(xlac_module_is_verified(handle(self)));
}

/* A proto of XLA's, or StableHLO's bytecode of a version that others can read. */
static PyObject *module_to_bytes(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"format", "version", NULL};
  const char *format = "hlo-proto", *version = NULL;
  xlac_error err = {.code = 0};
  char *bytes = NULL;
  size_t n = 0;
  int status;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s$z:to_bytes", names, &format, &version)) return NULL;
  bool artifact = strcmp(format, "mlir-bytecode") == 0;
  if (!artifact && strcmp(format, "hlo-proto") != 0)
    return py_raise_argument(py_state_of(self), "format '%.40s' is unknown: there are hlo-proto and mlir-bytecode",
                             format);
  PY_WORK(status = artifact ? xlac_module_write_artifact(handle(self), version, &bytes, &n, &err)
                            : xlac_module_serialize(handle(self), XLAC_FORMAT_HLO_PROTO, &bytes, &n, &err));
  if (status != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
  xlac_free(bytes);
  return result;
}

/* None, or VerifyError for the first rule that is broken. */
static PyObject *module_verify(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"xla_compat", "mixed_floats", NULL};
  int xla_compat = 0, mixed_floats = 0, status;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pp:verify", names, &xla_compat, &mixed_floats)) return NULL;
  xlac_verify_options options = {XLAC_OPTIONS(xlac_verify_options), .xla_compat = xla_compat != 0,
                                 .mixed_floats = mixed_floats != 0};
  xlac_error err = {.code = 0};
  PY_WORK(status = xlac_module_verify(handle(self), &options, &err));
  if (status != 0) {
    py_raise(py_state_of(self), &err, PY_VERIFYING);
    return py_show_source(((py_module *)self)->source);
  }
  Py_RETURN_NONE;
}

/* Text of the library's in JSON; names that are not UTF-8 are replaced, since JSON has to be. */
static PyObject *module_json(PyObject *self, int (*fn)(xlac_module *, char **, size_t *, xlac_error *)) {
  assert(fn);
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  int status;
  PY_WORK(status = fn(handle(self), &text, &n, &err));
  if (status != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
  xlac_free(text);
  return result;
}

/* What python/xlac/sharding.py reads and makes objects of. */
static PyObject *module_explain_sharding(PyObject *self, PyObject *unused) {
  (void)unused;
  return module_json(self, xlac_module_explain_sharding);
}

/* As JSON, for the same module. */
static PyObject *module_reshards(PyObject *self, PyObject *unused) {
  (void)unused;
  return module_json(self, xlac_module_reshards);
}

/* Writes into the module itself, as Python's xlac.sharding says. */
static PyObject *module_annotate(PyObject *self, PyObject *args) {
  const char *value = NULL, *sharding = NULL;
  xlac_error err = {.code = 0};
  int status;
  if (!PyArg_ParseTuple(args, "ss", &value, &sharding)) return NULL;
  PY_WORK(status = xlac_module_annotate(handle(self), value, sharding, &err));
  if (status != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  Py_RETURN_NONE;
}

/* 64 bits as hex digits: equal for programs that differ in names, metadata and order of text only. */
static PyObject *module_fingerprint(PyObject *self, PyObject *unused) {
  (void)unused;
  uint64_t value = 0;
  xlac_error err = {.code = 0};
  int status;
  PY_WORK(status = xlac_module_fingerprint(handle(self), &value, &err));
  if (status != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  char text[17];
  PyOS_snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
  return PyUnicode_FromString(text);
}

/* --- reading --- */

/* As a str, surrogates for bytes that are not UTF-8. */
static PyObject *module_name(PyObject *self, void *unused) {
  (void)unused;
  const char *name = xlac_module_name(handle(self));
  return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
}

/* A setter gets NULL for `del`. */
static int module_set_name(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  const char *name = value ? PyUnicode_AsUTF8(value) : NULL;
  xlac_error err = {.code = 0};
  if (name == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a module's name can't be deleted");
    return -1;
  }
  if (xlac_module_set_name(handle(self), name, &err) == 0) return 0;
  py_raise(py_state_of(self), &err, PY_ANY);
  return -1;
}

/* None while a module is being built. */
static PyObject *module_entry(PyObject *self, void *unused) {
  (void)unused;
  return py_wrap_computation(py_state_of(self), (py_module *)self, xlac_module_entry(handle(self)));
}

/* A computation of another module has a handle that means nothing here. */
static int module_set_entry(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  py_state *st = py_state_of(self);
  xlac_error err = {.code = 0};
  if (value == NULL || !Py_IS_TYPE(value, st->computation_type) ||
      ((py_computation *)value)->module != (py_module *)self) {
    PyErr_SetString(PyExc_TypeError, "entry must be a computation of this module");
    return -1;
  }
  if (xlac_module_set_entry(handle(self), ((py_computation *)value)->c, &err) == 0) return 0;
  py_raise(st, &err, PY_ANY);
  return -1;
}

/* A list of the moment, without those that were removed. */
static PyObject *module_computations(PyObject *self, void *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  for (xlac_computation *c = NULL; list && (c = xlac_computation_next(handle(self), c)) != NULL;) {
    PyObject *item = py_wrap_computation(py_state_of(self), (py_module *)self, c);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* In all computations, one after another: linear. */
static PyObject *module_find(PyObject *self, PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  return s ? py_wrap_op(py_state_of(self), (py_module *)self, xlac_op_find(handle(self), NULL, s)) : NULL;
}

/* None where there is none of that name. */
static PyObject *module_computation(PyObject *self, PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  if (s == NULL) return NULL;
  return py_wrap_computation(py_state_of(self), (py_module *)self, xlac_computation_find(handle(self), s));
}

/* Counts and bytes, of the module as it is now. */
static PyObject *module_stats(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_stats s;
  xlac_module_stats(handle(self), &s);
  return Py_BuildValue("{sKsKsK}", "computations", (unsigned long long)s.n_computations, "ops",
                       (unsigned long long)s.n_ops, "bytes", (unsigned long long)s.n_bytes);
}

/* --- the header --- */

/* The path to an element of a nested tuple. */
static PyObject *index_tuple(const int64_t *path, uint32_t n) {
  PyObject *tuple = PyTuple_New(n);
  for (uint32_t i = 0; tuple && i < n; i++) {
    PyObject *item = PyLong_FromLongLong(path[i]);
    if (item == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, item);
  }
  return tuple;
}

/* What a line of input_output_alias says. */
static PyObject *alias_dict(const xlac_alias *a) {
  assert(a);
  return Py_BuildValue("{sNsLsNsO}", "output", index_tuple(a->output, a->n_output), "parameter",
                       (long long)a->parameter, "index", index_tuple(a->index, a->n_index), "must",
                       a->must ? Py_True : Py_False);
}

/* What a line of buffer_donor says. */
static PyObject *donor_dict(const xlac_alias *a) {
  assert(a);
  return Py_BuildValue("{sLsN}", "parameter", (long long)a->parameter, "index", index_tuple(a->index, a->n_index));
}

/* A dict for each, of either kind. */
static PyObject *alias_list(xlac_module *m, bool (*get)(xlac_module *, uint32_t, xlac_alias *),
                            PyObject *(*make)(const xlac_alias *)) {
  assert(get && make);
  PyObject *list = PyList_New(0);
  xlac_alias a;
  for (uint32_t i = 0; list && get(m, i, &a); i++) {
    PyObject *item = make(&a);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* Attributes of the frontend that made the program: text to text. */
static PyObject *frontend_dict(xlac_module *m) {
  PyObject *dict = PyDict_New();
  const char *key, *value;
  for (uint32_t i = 0; dict && xlac_module_frontend_attribute(m, i, &key, &value); i++) {
    PyObject *item = PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "surrogateescape");
    if (item == NULL || PyDict_SetItemString(dict, key, item) < 0) Py_CLEAR(dict);
    Py_XDECREF(item);
  }
  return dict;
}

/* "N" steals each part, and the whole is NULL where one of them is. */
static PyObject *module_config(PyObject *self, void *unused) {
  (void)unused;
  xlac_module *m = handle(self);
  xlac_config c;
  xlac_module_config(m, &c);
  return Py_BuildValue("{sOsOsLsLsNsNsN}", "is_scheduled", c.is_scheduled ? Py_True : Py_False, "has_entry_layout",
                       c.has_entry_layout ? Py_True : Py_False, "replica_count", (long long)c.replica_count,
                       "num_partitions", (long long)c.num_partitions, "input_output_alias",
                       alias_list(m, xlac_module_alias, alias_dict), "buffer_donor",
                       alias_list(m, xlac_module_donor, donor_dict), "frontend_attributes", frontend_dict(m));
}

/* A tuple of integers as an index path; false with an exception set. `path` has 32 places, more than tuples are
 * ever nested. */
static bool read_path(py_state *st, PyObject *tuple, int64_t *path, uint32_t *n) {
  assert(path && n);
  Py_ssize_t size = tuple ? PyTuple_GET_SIZE(tuple) : 0;
  if (size > 32) return py_raise_argument(st, "an index path has at most 32 steps, found %zd", size) != NULL;
  for (Py_ssize_t i = 0; i < size; i++) {
    path[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (path[i] == -1 && PyErr_Occurred()) return false;
  }
  *n = (uint32_t)size;
  return true;
}

/* Replaces an entry of the same output. */
static PyObject *module_set_alias(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"output", "parameter", "index", "must", NULL};
  PyObject *output, *index = NULL;
  long long parameter;
  int must = 0;
  int64_t output_path[32], index_path[32];
  xlac_alias a = {.output = output_path, .index = index_path};
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!L|O!p:set_alias", names, &PyTuple_Type, &output, &parameter,
                                   &PyTuple_Type, &index, &must))
    return NULL;
  if (!read_path(py_state_of(self), output, output_path, &a.n_output)) return NULL;
  if (!read_path(py_state_of(self), index, index_path, &a.n_index)) return NULL;
  a.parameter = parameter;
  a.must = must != 0;
  if (xlac_module_set_alias(handle(self), &a, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  Py_RETURN_NONE;
}

/* Memory that may be used for any result. */
static PyObject *module_add_donor(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"parameter", "index", NULL};
  PyObject *index = NULL;
  long long parameter;
  int64_t path[32];
  xlac_alias a = {.index = path};
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|O!:add_donor", names, &parameter, &PyTuple_Type, &index))
    return NULL;
  if (!read_path(py_state_of(self), index, path, &a.n_index)) return NULL;
  a.parameter = parameter;
  if (xlac_module_add_donor(handle(self), &a, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  Py_RETURN_NONE;
}

/* Both kinds. */
static PyObject *module_clear_aliases(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  if (xlac_module_clear_aliases(handle(self), &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  Py_RETURN_NONE;
}

/* --- building --- */

/* Empty and without a root; verify would refuse it as it is. */
static PyObject *module_add_computation(PyObject *self, PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  xlac_error err = {.code = 0};
  xlac_computation *c = NULL;
  if (s == NULL) return NULL;
  if (xlac_computation_create(&c, handle(self), s, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  return py_wrap_computation(py_state_of(self), (py_module *)self, c);
}

/* With all that it calls, also from this module itself. */
static PyObject *module_import_computation(PyObject *self, PyObject *object) {
  py_state *st = py_state_of(self);
  xlac_error err = {.code = 0};
  xlac_computation *c = NULL;
  if (!Py_IS_TYPE(object, st->computation_type))
    return PyErr_Format(PyExc_TypeError, "expected a Computation, found %.100s", Py_TYPE(object)->tp_name);
  py_computation *from = (py_computation *)object;
  if (xlac_computation_import(&c, handle(self), from->module->m, from->c, &err) != 0) return py_raise(st, &err, PY_ANY);
  return py_wrap_computation(st, (py_module *)self, c);
}

/* One line, whatever the size. */
static PyObject *module_repr(PyObject *self) {
  xlac_stats s;
  xlac_module_stats(handle(self), &s);
  return PyUnicode_FromFormat("<xlac.Module %s: %llu computation%s, %llu op%s>", xlac_module_name(handle(self)),
                              (unsigned long long)s.n_computations, py_plural(s.n_computations),
                              (unsigned long long)s.n_ops, py_plural(s.n_ops));
}

/* The machine that the times are estimated for comes from Python. */
static PyObject *module_async_report(PyObject *self, PyObject *args) {
  xlac_async_model model = {0};
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  int status;
  if (!PyArg_ParseTuple(args, "ddd:_async_report", &model.gigaflops, &model.memory_gigabytes, &model.link_gigabytes))
    return NULL;
  PY_WORK(status = xlac_module_explain_async(handle(self), &model, &text, &n, &err));
  return status == 0 ? py_text(text, (Py_ssize_t)n) : py_raise(py_state_of(self), &err, PY_ANY);
}

PY_DELEGATE(module_explain, "xlac.module", "explain")
PY_DELEGATE(module_walk, "xlac.module", "walk")
PY_DELEGATE(module_run, "xlac.module", "run")
PY_DELEGATE(module_to_dot, "xlac.draw", "dot")
PY_DELEGATE(module_repr_html, "xlac.draw", "html")

static PyMethodDef module_methods[] = {
    {"to_text", PY_KEYWORDS(module_to_text),
     "to_text($self, format='auto', *, mode='default', elide_large_constants=False, operand_shapes=False, "
     "metadata=True, "
     "ids=True, indent=0, generic=False, locations=False)\n--\n\nThe program as text: byte for byte as XLA or MLIR "
     "print it."},
    {"verify", PY_KEYWORDS(module_verify),
     "verify($self, *, xla_compat=False, mixed_floats=False)\n--\n\nRaises VerifyError for the first broken rule."},
    {"to_bytes", PY_KEYWORDS(module_to_bytes),
     "to_bytes($self, format='hlo-proto', *, version=None)\n--\n\nXLA's HloModuleProto, serialized; 'mlir-bytecode': a "
     "StableHLO portable artifact of that version."},
    {"to_hlo", module_to_hlo, METH_NOARGS,
     "to_hlo($self)\n--\n\nThe same program as a module in HLO form (of one in MLIR form)."},
    {"to_stablehlo", module_to_stablehlo, METH_NOARGS,
     "to_stablehlo($self)\n--\n\nThe same program as a module in MLIR form (of one in HLO form)."},
    {"clone", module_clone, METH_NOARGS, "clone($self)\n--\n\nA deep copy."},
    {"walk", PY_KEYWORDS(module_walk),
     "walk($self)\n--\n\nEvery instruction, computation by computation, callees first."},
    {"run", PY_KEYWORDS(module_run),
     "run($self, pipeline, *, after=None, verify_each=False, in_place=False)\n--\n\n"
     "Runs passes such as \"dce,cse\" on a copy, or in place, and returns it. after(name, module) is called after each "
     "pass."},
    {"explain", PY_KEYWORDS(module_explain),
     "explain($self, topic='async', **model)\n--\n\nWhat can be said of a program before it runs."},
    {"_async_report", module_async_report, METH_VARARGS, "Async chains as JSON"},
    {"_explain_sharding", module_explain_sharding, METH_NOARGS,
     "_explain_sharding() -> str\n\nPropagates shardings in place and says how, as JSON: what xlac.sharding.propagate "
     "reads."},
    {"_reshards", module_reshards, METH_NOARGS,
     "_reshards() -> str\n\nWhat moves data between devices, as JSON: what xlac.sharding.propagate reads."},
    {"_annotate", module_annotate, METH_VARARGS,
     "_annotate(value, sharding)\n\nWrites a sharding down in place: what xlac.sharding.annotate calls."},
    {"fingerprint", module_fingerprint, METH_NOARGS,
     "fingerprint($self)\n--\n\nHex digits that depend on the program, not on names and metadata."},
    {"find", module_find, METH_O, "find($self, name, /)\n--\n\nThe instruction of that name, or None."},
    {"computation", module_computation, METH_O,
     "computation($self, name, /)\n--\n\nThe computation of that name, or None."},
    {"stats", module_stats, METH_NOARGS, "stats($self)\n--\n\nCounts: computations, ops, bytes of memory."},
    {"set_alias", PY_KEYWORDS(module_set_alias),
     "set_alias($self, output, parameter, index=(), must=False)\n--\n\nThe result at `output` (a path) may take the "
     "memory of the argument at `index` of a parameter; `must`: it is an error if it can't."},
    {"add_donor", PY_KEYWORDS(module_add_donor),
     "add_donor($self, parameter, index=())\n--\n\nThe argument at `index` of a parameter may be given to any result."},
    {"clear_aliases", module_clear_aliases, METH_NOARGS,
     "clear_aliases($self)\n--\n\nRemoves input_output_alias and buffer_donor."},
    {"add_computation", module_add_computation, METH_O,
     "add_computation($self, name, /)\n--\n\nA new computation of that name, without ops."},
    {"import_computation", module_import_computation, METH_O,
     "import_computation($self, computation, /)\n--\n\nA copy of a computation, with all it calls."},
    {"to_dot", PY_KEYWORDS(module_to_dot), "to_dot($self)\n--\n\nThe graph in Graphviz's language."},
    {"_repr_html_", PY_KEYWORDS(module_repr_html), "The graph as HTML with SVG, for notebooks"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef module_getset[] = {
    {"form", module_form, NULL, "'hlo' or 'mlir': whose ops and syntax the module has", NULL},
    {"is_verified", module_is_verified, NULL, "Whether it was found to be valid and not edited since", NULL},
    {"name", module_name, module_set_name, "The module's name", NULL},
    {"entry", module_entry, module_set_entry, "The entry computation", NULL},
    {"computations", module_computations, NULL, "All computations, in the order of the text", NULL},
    {"config", module_config, NULL, "The facts of the module's header, as a dict", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot module_slots[] = {
    {Py_tp_dealloc, (void *)module_dealloc},
    {Py_tp_repr, (void *)module_repr},
    {Py_tp_getattro, (void *)py_attribute},
    {Py_tp_methods, module_methods},
    {Py_tp_getset, module_getset},
    {Py_tp_doc, "A program. Made by xlac.parse and by Builder.build."},
    {0, NULL},
};

PyType_Spec py_module_spec = {
    .name = "xlac.Module",
    .basicsize = sizeof(py_module),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = module_slots,
};
