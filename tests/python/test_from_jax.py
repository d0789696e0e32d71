"""Programs as JAX hands them over, called with the function's own trees."""
import collections
import pickle
import subprocess
import sys

import numpy as np
import pytest

import xlac

jax = pytest.importorskip("jax")
jnp = jax.numpy
Pair = collections.namedtuple("Pair", "first second")
PARAMS = {"w": np.arange(16, dtype=np.float32).reshape(4, 4) / 9, "b": np.ones(4, np.float32)}
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def step(params, x, unused, *, scale):
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return {"w": params["w"] * scale, "b": params["b"]}, [jnp.where(hidden > 0, hidden, 0).sum(), None], Pair(x, (scale,))


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.fixture(scope="module")
def lowered():
    return jax.jit(step, donate_argnums=0).lower(PARAMS, X, np.zeros(7), scale=np.float32(2))


@pytest.fixture(scope="module")
def wanted():
    return jax.jit(step)(PARAMS, X, np.zeros(7), scale=np.float32(2))


KINDS = {"lowered": lambda low: low, "compiled": lambda low: low.compile(),
         "traced": lambda low: jax.jit(step).trace(PARAMS, X, np.zeros(7), scale=np.float32(2)),
         "exported": lambda low: jax.export.export(jax.jit(step))(PARAMS, X, np.zeros(7), scale=np.float32(2))}


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_is_called_as_before(lowered, wanted, kind):
    staged = KINDS[kind](lowered)
    same(xlac.compile(staged)(PARAMS, X, np.zeros(7), scale=np.float32(2)), wanted)
    same(xlac.interpret(staged, PARAMS, X, np.zeros(7), scale=np.float32(2)), wanted)
    assert xlac.verify(staged).name == "jit_step"


def test_bare_programs_are_modules(lowered):
    for program in (lowered.compiler_ir(), lowered.compiler_ir("hlo")):
        executable = xlac.compile(program)
        assert isinstance(executable, xlac.Executable) and len(executable.inputs) == 4


def test_reports_on_donation_name_what_the_function_has(lowered):
    text = str(xlac.compile(lowered).explain("donation"))
    assert "argument 0, params[" in text and "(result[" in text and "arg0" not in text


def test_names_are_the_functions(lowered):
    executable = xlac.compile(lowered)
    assert [port.name for port in executable.inputs] == ["params['b']", "params['w']", "x", "scale"]
    assert [port.name for port in executable.outputs] == ["result[0]['b']", "result[0]['w']", "result[1][0]", "result[2].first",
                                                          "result[2].second[0]"]
    assert list(executable.__signature__.parameters)[:4] == ["params", "x", "x2", "scale"]
    assert "params['w']: f32[4,4]" in repr(executable) and "params['w']" in executable._repr_html_()


def test_what_has_another_structure_is_refused_with_the_place(lowered):
    executable = xlac.compile(lowered)
    for args, text in (((PARAMS, X), "3 arguments by position; found 2"), (({"w": 1}, X, 0), "argument 0 has other keys.*lacks the keys 'b'"),
                       (({**PARAMS, "z": 1}, X, 0), "besides the keys 'z'"), (([1, 2], X, 0), "argument 0 must be a dict.*found a list of 2")):
        with pytest.raises(TypeError, match=text):
            executable(*args, scale=np.float32(2))
    with pytest.raises(xlac.ArgumentError, match="by name"):
        executable(PARAMS, X, 0, scale=1.0, more=2)
    with pytest.raises(xlac.ArgumentError, match=r"argument params\['b'\] must be f32\[4\]"):
        executable({"w": X, "b": X}, X, 0, scale=np.float32(2))


def test_saved_and_loaded_without_jax(lowered, wanted, tmp_path):
    (tmp_path / "step.xlac").write_bytes(xlac.compile(lowered).serialize())
    code = """
import pickle, sys
import numpy as np
import xlac
exe = xlac.load("step.xlac")
result = exe(*pickle.load(open("arguments.pickle", "rb")), scale=np.float32(2))
assert "jax" not in sys.modules and result[2]._fields == ("first", "second") and result[1][1] is None
np.save("loss.npy", result[1][0])
"""
    (tmp_path / "arguments.pickle").write_bytes(pickle.dumps((PARAMS, X, np.zeros(7))))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "loss.npy"), wanted[1][0], rtol=1e-5)


def test_damaged_trees_are_an_error(lowered):
    data = bytearray(xlac.compile(lowered).serialize())
    data[20] ^= 0xFF
    with pytest.raises(xlac.Error):
        xlac.load(data)
    with pytest.raises(xlac.Error):
        xlac.load(b"XLACTREE")


def test_classes_of_jax_are_called_but_not_saved():
    @jax.tree_util.register_pytree_node_class
    class Box:
        def __init__(self, value):
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    executable = xlac.compile(jax.jit(lambda box: Box(box.value + 1)).lower(Box(X)))
    np.testing.assert_array_equal(executable(Box(X)).value, X + 1)
    with pytest.raises(xlac.ArgumentError, match="another structure"):
        executable((X,))
    with pytest.raises(xlac.Error, match="can't be saved"):
        executable.serialize()


def test_random_keys_go_in():
    key = jax.random.key(3)
    draw = lambda k: jax.random.uniform(k, (5,))  # noqa: E731
    np.testing.assert_array_equal(xlac.compile(jax.jit(draw).lower(key))(key), draw(key))


def test_options_of_a_call_and_out(lowered, wanted):
    executable = xlac.compile(jax.jit(lambda p: {"y": p["x"] + 1}).lower({"x": X}))
    out = {"y": np.empty_like(X)}
    assert executable({"x": X}, out=out)["y"] is out["y"]
    np.testing.assert_array_equal(out["y"], X + 1)
    named = xlac.compile(jax.jit(lambda *, seed: seed + 1).lower(seed=np.int32(3)))
    assert named(seed=np.int32(4)) == 5


def test_profiles_and_runs_on_the_side(lowered, wanted):
    executable = xlac.compile(lowered)
    same(executable.profile(PARAMS, X, 0, scale=np.float32(2), repeat=2).result, wanted)
    assert len(executable.run_async(PARAMS, X, 0, scale=np.float32(2)).result()) == 5
    assert executable.cost["flops"] > 0 and "memory" in dir(executable)


def test_an_unknown_object_is_still_a_type_error():
    with pytest.raises(TypeError, match="what JAX has lowered"):
        xlac.compile(object())
    with pytest.raises(xlac.ArgumentError, match="no option 'lr'"):
        xlac.interpret("HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}", 1.0, lr=1)


def test_arguments_by_position_may_be_named(lowered, wanted):
    exe = xlac.compile(lowered)
    for call in (lambda: exe(params=PARAMS, x=X, unused=np.zeros(7), scale=np.float32(2)), lambda: exe(PARAMS, X, np.zeros(7), scale=np.float32(2))):
        same(call(), wanted)


def test_too_many_arguments_may_be_static_ones():
    lowered = jax.jit(lambda n, x: x * n, static_argnums=0).lower(3, X)
    with pytest.raises(xlac.ArgumentError, match="static arguments are part of the program"):
        xlac.compile(lowered)(3, X)


def test_hints_name_the_functions_argument():
    exe = xlac.compile(jax.jit(lambda p: p["w"] * 2).lower({"w": X}))
    with pytest.raises(xlac.ArgumentError, match=r"pass p\['w'\]\.astype\(np\.float32\)"):
        exe({"w": X.astype(np.float64)})


def test_modules_from_jax_show_themselves(lowered):
    module = xlac.parse(lowered)
    assert module.form == "mlir" and "<svg" in module._repr_html_()


def test_an_executable_is_loaded_from_an_open_file(lowered, wanted, tmp_path):
    (tmp_path / "a.xlac").write_bytes(xlac.compile(lowered).serialize())
    with open(tmp_path / "a.xlac", "rb") as file:
        found = xlac.load(file)(PARAMS, X, np.zeros(7), scale=np.float32(2))
    np.testing.assert_allclose(found[0]["w"], wanted[0]["w"])
