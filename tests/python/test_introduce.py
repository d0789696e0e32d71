"""What executables say of themselves, copies and pickles, results as Buffers, and what is read from the environment."""
import copy
import inspect
import logging
import pathlib
import pickle
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import xlac
from xlac import kernels, sharding

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = """
HloModule two, input_output_alias={ {1}: (0, {}, may-alias) }
ENTRY main {
  x.1 = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  y = (s8[2], bf16[]) parameter(1)
  a = s8[2] get-tuple-element(y), index=0
  b = f32[4] add(x.1, x.1)
  ROOT r = (s8[2], f32[4]) tuple(a, b)
}
"""
NESTED = "HloModule n\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT t = (f32[3], ((f32[3]), ())) tuple(x, u)\n}"


@pytest.mark.parametrize("device", ["cpu", "interp"])
@pytest.mark.parametrize("saved", [False, True])
def test_ports(device, saved):
    executable = xlac.compile(TEXT, device=device)
    executable = xlac.load(executable.serialize(), device=device) if saved else executable
    x, y = executable.inputs
    assert (x.name, x.type, x.shape, x.dtype) == ("x.1", "f32[4]", (4,), "f32") and "devices=[2]" in x.sharding
    assert (y.type, y.shape, y.sharding) == ("(s8[2], bf16[])", [(2,), ()], None)
    a, b = executable.outputs
    assert [str(p) for p in (a, b)] == ["a: s8[2]", "b: f32[4]"] and a.alias is None
    if device == "cpu":
        assert x.donated and x.alias == 1 and b.donated and b.alias == 0 and not y.donated
    assert executable.module.entry.root.name == "r" and executable.module is executable.module
    executable.module.entry["b"].name = "changed"  # a copy: the executable goes on
    assert executable(np.ones(4, np.float32), (np.ones(2, np.int8), 1))[1].tolist() == [2, 2, 2, 2]


def test_signatures():
    executable = xlac.compile(TEXT)
    signature = inspect.signature(executable)
    assert list(signature.parameters) == ["x", "y", "out", "seed", "replica", "partition", "progress"]
    assert signature.parameters["x"].annotation == "f32[4]" and signature.bind(1, 2, seed=3)
    assert "x.1" in executable._repr_html_() and "may be donated (output 1)" in executable._repr_html_()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))], ids=["copy", "deepcopy", "pickle"])
def test_copies(copied):
    module = xlac.parse(TEXT)
    again = copied(module)
    assert again is not module and again.to_text() == module.to_text()
    mlir = module.to_stablehlo()
    assert copied(mlir).to_text() == mlir.to_text()
    executable = xlac.compile(module, results="buffer")
    results = copied(executable)(np.ones(4, np.float32), (np.ones(2, np.int8), 1))
    assert isinstance(results[1], xlac.Buffer) and results[1].numpy().tolist() == [2, 2, 2, 2]
    buffer = xlac.asarray(np.arange(3, dtype=np.int16))
    other = copied(buffer)
    assert other.numpy().tolist() == [0, 1, 2] and other.unsafe_pointer() != buffer.unsafe_pointer() and not other.readonly
    fixed = np.ones(2)
    fixed.flags.writeable = False
    assert copied(xlac.asarray(fixed)).readonly
    error = copied(pytest.raises(xlac.ParseError, xlac.parse, "HloModule m\nx").value)
    assert error.line == 2 and isinstance(error, xlac.ParseError)


CALLS = """
HloModule calls
half {
  h = f32[] parameter(0)
  ROOT n = f32[] negate(h)
}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  r = f32[] reduce(x, z), dimensions={0}, to_apply=add
  ROOT c = f32[] call(r), to_apply=half
}
"""


@pytest.mark.parametrize("form", ["hlo", "mlir"])
def test_ops_pickle_and_copy_with_their_module(form):
    module = xlac.parse(CALLS) if form == "hlo" else xlac.parse(CALLS).to_stablehlo()
    ops = list(module.walk())
    again = pickle.loads(pickle.dumps([*ops, *module.computations]))
    assert [op.to_text() for op in ops] == [op.to_text() for op in again[:len(ops)]]
    assert [(c.name, len(c)) for c in module.computations] == [(c.name, len(c)) for c in again[len(ops):]]
    assert all(thing.module is again[0].module is not module for thing in again)
    assert copy.copy(ops[0]) == ops[0] and copy.copy(module.entry) == module.entry
    held = copy.deepcopy({"op": ops[0], "module": module})
    assert held["op"].module is held["module"] is not module and held["op"] != ops[0]


def test_simulations_and_plans_pickle():
    module = xlac.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
""")
    for told in (sharding.simulate(module), sharding.plan(module, 4, evaluations=2), sharding.propagate(module).trace):
        again = pickle.loads(pickle.dumps(told))
        assert str(again) == str(told) and type(again) is type(told)


def test_stages_and_explanations_look_well_in_a_notebook():
    text = xlac.compile_stage(TEXT, "kernels")
    assert repr(text) == str(text) and "<pre" in text._repr_html_()
    trace = sharding.propagate("""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}""").trace
    assert "was written down on" in trace.explain("%0", 0)._repr_html_()


def test_a_builder_says_what_it_has():
    builder = xlac.Builder("step")
    builder.parameter(0, "f32[2]")
    assert repr(builder) == "<xlac.Builder step: 1 ops in main>"


def test_kernels_are_of_executables():
    assert all(text.startswith("// ") for text in kernels.of(xlac.compile(CALLS)))
    with pytest.raises(xlac.ArgumentError, match="(?s)this is a Module.*xlac.compile"):
        kernels.of(xlac.parse(CALLS))


def test_ops_that_do_not_pickle_say_why():
    module = xlac.parse(CALLS)
    gone = module.entry.add("negate", module.entry["x"])
    gone.remove()
    with pytest.raises(xlac.Error, match="has been removed"):
        pickle.dumps(gone)
    module = xlac.parse("""HloModule m
wrapped {
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
}
ENTRY e {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) async-start(x), calls=wrapped
  ROOT d = f32[4] async-done(s)
}
""")
    with pytest.raises(xlac.Error, match="(?s)an async op wraps.*pickle the module"):
        pickle.dumps(module.computation("wrapped").root)
    assert pickle.loads(pickle.dumps(module.entry["s"])).called[0].root.opcode == "negate"


def test_results_as_buffers():
    executable = xlac.compile(TEXT, results="buffer")
    x, pair = np.ones(4, np.float32), (np.ones(2, np.int8), np.ones((), ml_dtypes.bfloat16))
    for result in (executable(x, pair), executable(x, pair, seed=3)):
        assert all(isinstance(part, xlac.Buffer) for part in result)
    again = executable(xlac.donate(result[1]), pair)
    assert result[1].is_deleted and again[1].numpy().tolist() == [4, 4, 4, 4]
    out = (None, np.empty(4, np.float32))
    assert executable(x, pair, out=out)[1] is out[1]
    bare = xlac.compile("HloModule m\nENTRY e {\n  x = bf16[] parameter(0)\n  ROOT y = bf16[] negate(x)\n}", results="buffer")
    assert isinstance(bare(2), xlac.Buffer) and float(bare(2).numpy()) == -2
    assert isinstance(xlac.compile(TEXT, device="interp", results="buffer")(x, pair)[0], xlac.Buffer)
    with pytest.raises(ValueError, match='"numpy" or "buffer"'):
        xlac.compile(TEXT, results="torch")


def test_messages_go_to_logging(caplog):
    caplog.set_level(logging.DEBUG, "xlac")
    xlac.compile(TEXT)
    assert re.search(r"compiled two for cpu:0 in .* ms: \d+ steps", caplog.text)


def test_every_variable_of_the_environment_is_on_its_page():
    page = (ROOT / "docs/environment.md").read_text()
    sources = [*(ROOT / "csrc").rglob("*.[ch]"), *(ROOT / "python").rglob("*.py")]
    read = {name for path in sources for name in re.findall(r'(?:getenv\(|environ\.get\(|environ\[|\bon\()\s*"(\w+)"', path.read_text())}
    assert {"XLAC_MAX_ISA", "XLAC_JAX_OPTIONS"} <= read
    assert read <= set(re.findall(r"`([A-Z_]+)`", page)), read - set(re.findall(r"`([A-Z_]+)`", page))
    for name in re.findall(r"^\| `(XLAC_[A-Z_]+)`", page, re.M):
        assert name in read, f"{name} is on the page, and nobody reads it"


def test_public_names_and_signatures():
    assert repr(xlac.Buffer) == "<class 'xlac.Buffer'>" and repr(xlac.Donation) == "<class 'xlac.Donation'>"
    assert list(inspect.signature(xlac.Module.run).parameters) == ["self", "pipeline", "after", "verify_each", "in_place"]
    assert "metadata" in inspect.signature(xlac.Module.to_text).parameters and "xla_compat" in inspect.signature(xlac.Module.verify).parameters


def test_pictures_follow_the_readers_colours():
    from xlac.draw import page

    executable = xlac.compile(TEXT)
    for picture in (page(xlac.parse(TEXT)), executable.memory.svg()):
        assert "prefers-color-scheme:dark" in picture
    from xlac.memory_svg import fitted

    assert (fitted("dot_general", 100), fitted("dot_general", 50), fitted("dot_general", 20)) == ("dot_general", "dot_g\u2026", "")


def test_a_device_that_is_not_there_is_a_device_error(monkeypatch):
    monkeypatch.setenv("XLAC_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    done = subprocess.run([sys.executable, "-c", "import xlac\ntry:\n    xlac.compile('HloModule m\\nENTRY e { ROOT x = f32[] parameter(0) }', device='cuda')\n"
                           "except xlac.DeviceError as error:\n    print(error.code == xlac.Code.DEVICE, bool(error.hint))"], capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stderr


def test_arrays_are_made_for_what_an_executable_takes():
    executable = xlac.compile("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = bf16[3] parameter(1)\n  z = pred[] parameter(2)\n"
                              "  ROOT r = (bf16[3], f32[2]) tuple(y, x)\n}")
    arrays = [np.zeros(port.shape, port.numpy_dtype) for port in executable.inputs]
    assert [a.dtype for a in arrays] == [np.float32, ml_dtypes.bfloat16, np.bool_]
    for port, array in zip(executable.outputs, executable(*arrays), strict=True):
        assert (port.shape, port.numpy_dtype) == (array.shape, array.dtype)
    nested = xlac.compile("HloModule n\nENTRY e {\n  p = (f32[2], (s32[], s8[3])) parameter(0)\n  t = token[] after-all()\n"
                          "  g = f32[2] get-tuple-element(p), index=0\n  ROOT r = (token[], f32[2]) tuple(t, g)\n}")
    assert nested.inputs[0].numpy_dtype == [np.float32, [np.int32, np.int8]] and nested.outputs[0].numpy_dtype is None
