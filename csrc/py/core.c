/* The module xlac._core: its state, types and functions. */
#include "py.h"

/* The library's own number. */
static PyObject *core_version(PyObject *core, PyObject *unused) {
  (void)core, (void)unused;
  return PyUnicode_FromString(xlac_version());
}

static PyMethodDef core_functions[] = {
    {"parse", PY_KEYWORDS(py_parse),
     "parse(text, format='hlo', allow_unregistered=False, strict=False, max_depth=0) -> Module"},
    {"new_module", py_new_module, METH_O, "new_module(name) -> Module: an empty one, to build in"},
    {"interpret", PY_KEYWORDS(py_interpret),
     "interpret(module, *arrays, seed=0, replica=0, partition=0, progress=None, async_order='eager') -> array or "
     "tuple"},
    {"compile", PY_KEYWORDS(py_compile),
     "compile(module, *, threads=0, blas=None, use_blas=True, fuse=True, passes=True, donate=(), "
     "lanes=(), async_work=0, numerics='strict', require=False, device=None) -> Executable"},
    {"compile_dump", PY_KEYWORDS(py_compile_dump),
     "compile_dump(module, *, stage, ...) -> str: what a stage of compile leaves, or its \"cache-key\""},
    {"_rehearse", py_rehearse, METH_VARARGS,
     "_rehearse(module, devices, passes, donate) -> (the program of one device, JSON): what xlac.sharding.simulate "
     "asks"},
    {"devices", py_devices, METH_NOARGS,
     "devices() -> [(name, kind, ordinal, units, memory, memory_bytes, live_bytes, peak_bytes, host_visible)]"},
    {"load", PY_KEYWORDS(py_load),
     "load(bytes, *, threads=0, blas=None, use_blas=True, lanes=(), async_work=0, device=None) -> Executable"},
    {"trim", PY_KEYWORDS(py_trim), "trim(keep=0) -> bytes given back to the system"},
    {"memory_stats", py_memory_stats, METH_NOARGS, "What is in use and kept of the memory of results and calls"},
    {"memory_limit", py_memory_limit, METH_O, "memory_limit(bytes): the most that is kept for the next calls"},
    {"run_parallel", PY_KEYWORDS(py_run_parallel),
     "run_parallel(module, args, programs, infeed, replicas, partitions, seed=0) -> (results, outfeeds)"},
    {"run_pipeline", PY_KEYWORDS(py_run_pipeline),
     "run_pipeline(module, pipeline, after=None, verify_each=False, in_place=False) -> Module"},
    {"asarray", PY_KEYWORDS(py_asarray),
     "asarray($module, x, /, dtype=None, device=None)\n--\n\nA Buffer of an array.\n\nParameters\n----------\nx : "
     "Buffer, array (NumPy's, or any that speaks DLPack), list or number\n    Used without a copy where it can "
     "be.\ndtype : NumPy's, or the name of an element type such as \"bf16\"\n    By default that of x.\ndevice : "
     "\"cpu\", \"cuda:0\", ...\n    Where it is to lie, by default where it "
     "does.\n\nReturns\n-------\nBuffer\n\nRaises\n------\nTypeError\n    x is no array.\nBufferError\n    Its memory "
     "can't be used; the message says why."},
    {"from_dlpack", (PyCFunction)(void (*)(void))py_from_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\nA Buffer of an object with "
     "__dlpack__.\n\nParameters\n----------\nx : object with __dlpack__ and __dlpack_device__\n    A PyTorch tensor, a "
     "JAX array, ...\ndevice : \"cpu\"\n    Asks the producer of an array elsewhere for a copy.\ncopy : bool, "
     "optional\n    None copies only where it must, False never, True "
     "always.\n\nReturns\n-------\nBuffer\n\nRaises\n------\nBufferError\n    The array can't be taken so; the message "
     "says why."},
    {"_move_donation", py_move_donation, METH_VARARGS,
     "A mark around a new Buffer with the memory; the old one is gone"},
    {"donate", py_donate, METH_O,
     "donate($module, x, /)\n--\n\nMarks an argument as donated: its memory may become a "
     "result's.\n\nParameters\n----------\nx : Buffer, ndarray, or what from_dlpack "
     "takes\n\nReturns\n-------\nDonation\n    To be given in place of x."},
    {"stats", py_stats, METH_NOARGS,
     "stats($module)\n--\n\nArrays and bytes that came in and went out since reset_stats(), copied or not, and what is "
     "alive.\n\nReturns\n-------\ndict"},
    {"reset_stats", py_reset_stats, METH_NOARGS,
     "reset_stats($module)\n--\n\nSets the counts of stats() to 0, but those of what is alive."},
    {"pass_table", py_pass_table, METH_NOARGS, "The passes: {name: {'doc': ..., 'options': {name: doc}}}"},
    {"register_custom_call", py_register_custom_call, METH_VARARGS, "register_custom_call(target, function or None)"},
    {"opcode_table", py_opcode_table, METH_NOARGS, "The rows of the op table, as dicts"},
    {"op_elsewhere", py_op_elsewhere, METH_O,
     "op_elsewhere(name) -> the op that NumPy, PyTorch or JAX call so, or None"},
    {"dtype_table", py_dtype_table, METH_NOARGS, "The element types, as dicts"},
    {"error_table", py_error_table, METH_NOARGS, "The error codes: {number: (name, title)}"},
    {"kernel_text", py_kernel_text, METH_O, "kernel_text(text) -> str: the kernel, verified, as the library writes it"},
    {"kernel_run", py_kernel_run, METH_VARARGS,
     "kernel_run(text, inputs, outputs, threads, reference): runs a kernel on buffers of bytes"},
    {"attr_kind", py_attr_kind, METH_O, "The kind of the attribute of that name, or None"},
    {"numpy_dtype", py_numpy_dtype, METH_O, "The NumPy dtype of an element type's name"},
    {"cluster", PY_KEYWORDS(py_cluster), "cluster(graph, *, format='auto', **flags) -> ClusteredGraph"},
    {"graph_convert", py_graph_convert, METH_VARARGS,
     "graph_convert(graph, from, to): a GraphDef's text as bytes or the other way"},
    {"lower_graph", py_lower_graph, METH_VARARGS,
     "lower_graph(graph, format, inputs, fetches) -> (Module, report): inputs are (tensor, dtype, dims, data, "
     "variable)"},
    {"has_lowering", py_has_lowering, METH_O, "has_lowering(op): whether the TensorFlow op can be lowered"},
    {"cluster_op_list", py_cluster_op_list, METH_NOARGS, "The ops XLA compiles, one a line, with tabs"},
    {"cluster_devices", py_cluster_devices, METH_NOARGS, "{type: registration} of TensorFlow's devices"},
    {"_network", py_network, METH_VARARGS, "_network(rank, [(descriptor, name)]) -> network"},
    {"_network_deadline", py_network_deadline, METH_VARARGS, "_network_deadline(seconds, text) -> what ends it"},
    {"_network_gather", py_network_gather, METH_VARARGS, "_network_gather(network, ranks, bytes) -> [bytes]"},
    {"_network_close", py_network_close, METH_VARARGS, "_network_close(network, why)"},
    {"_join", py_network_join, METH_VARARGS, "_join(executable, network, label)"},
    {"version", core_version, METH_NOARGS, "The version of the library"},
    {NULL, NULL, 0, NULL},
};

/* Makes the type of this interpreter's module, keeps it in the state and gives it to Python; -1 with an exception.
 * *slot is set in either case, so that core_clear finds it. */
static int add_type(PyObject *core, PyType_Spec *spec, PyTypeObject **slot) {
  assert(slot && *slot == NULL);
  *slot = (PyTypeObject *)PyType_FromModuleAndSpec(core, spec, NULL);
  return *slot ? PyModule_AddType(core, *slot) : -1;
}

/* Once for each interpreter that imports the module. What was made before a failure is released by core_free.
 * Types that Python should not see are made without PyModule_AddType. */
static int core_exec(PyObject *core) {
  assert(PyModule_GetState(core));
  py_state *st = PyModule_GetState(core);
  st->errors = PyImport_ImportModule("xlac.errors");
  st->custom_calls = PyDict_New();
  if (st->errors == NULL || st->custom_calls == NULL) return -1;
  if (add_type(core, &py_module_spec, &st->module_type) < 0) return -1;
  if (add_type(core, &py_computation_spec, &st->computation_type) < 0) return -1;
  if (add_type(core, &py_executable_spec, &st->executable_type) < 0) return -1;
  st->block_type = (PyTypeObject *)PyType_FromModuleAndSpec(core, &py_block_spec, NULL);
  if (st->block_type == NULL) return -1;
  if (add_type(core, &py_clusters_spec, &st->clusters_type) < 0) return -1;
  if (add_type(core, &py_session_spec, &st->session_type) < 0) return -1;
  if (add_type(core, &py_step_spec, &st->step_type) < 0) return -1;
  xlac_error err = {.code = 0};
  if (xlac_runtime_create(&st->runtime, &err) != 0) return py_raise(st, &err, PY_ANY), -1;
  if (py_buffers_start(core) < 0) return -1;
  return add_type(core, &py_instruction_spec, &st->instruction_type);
}

/* Every object that the state refers to: types have references to the module, so there are cycles. */
static int core_traverse(PyObject *core, visitproc visit, void *arg) {
  py_state *st = PyModule_GetState(core);
  Py_VISIT(st->module_type);
  Py_VISIT(st->computation_type);
  Py_VISIT(st->instruction_type);
  Py_VISIT(st->executable_type);
  Py_VISIT(st->block_type);
  Py_VISIT(st->clusters_type);
  Py_VISIT(st->session_type);
  Py_VISIT(st->step_type);
  Py_VISIT(st->buffer_type);
  Py_VISIT(st->view_type);
  Py_VISIT(st->donation_type);
  for (int i = 0; i < PY_NAMES; i++) Py_VISIT(st->names[i]);
  Py_VISIT(st->errors);
  Py_VISIT(st->custom_calls);
  Py_VISIT(st->native_calls);
  for (int i = 0; i < PY_MAX_DTYPES; i++) Py_VISIT(st->descrs[i]);
  return 0;
}

/* What the collector calls to break cycles, and core_free for the rest; twice is fine. */
static int core_clear(PyObject *core) {
  py_state *st = PyModule_GetState(core);
  Py_CLEAR(st->module_type);
  Py_CLEAR(st->computation_type);
  Py_CLEAR(st->instruction_type);
  Py_CLEAR(st->executable_type);
  Py_CLEAR(st->block_type);
  Py_CLEAR(st->clusters_type);
  Py_CLEAR(st->session_type);
  Py_CLEAR(st->step_type);
  Py_CLEAR(st->buffer_type);
  Py_CLEAR(st->view_type);
  Py_CLEAR(st->donation_type);
  for (int i = 0; i < PY_NAMES; i++) Py_CLEAR(st->names[i]);
  Py_CLEAR(st->errors);
  Py_CLEAR(st->custom_calls);
  Py_CLEAR(st->native_calls);
  for (int i = 0; i < PY_MAX_DTYPES; i++) Py_CLEAR(st->descrs[i]);
  return 0;
}

/* After core_clear no object of ours is left that could need the runtime; arrays on its blocks have references of
 * their own to what they need. */
static void core_free(void *core) {
  py_state *st = PyModule_GetState(core);
  core_clear(core);
  xlac_runtime_destroy(st->runtime);
  st->runtime = NULL;
  xlac_counters_release(st->counters);
  st->counters = NULL;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, (void *)core_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

/* Multi-phase initialisation (slots): each interpreter gets a module and a state of its own. */
struct PyModuleDef py_core_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "xlac._core",
    .m_doc = "The C core of xlac. Use it through the package xlac.",
    .m_size = sizeof(py_state),
    .m_methods = core_functions,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&py_core_def);
}
