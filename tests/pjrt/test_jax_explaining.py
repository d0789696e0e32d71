"""xlac.jax: what is said of JAX functions by their Python lines, and why they were compiled again."""
import pytest
from jax_script import run

pytest.importorskip("jax")

STEP = """import jax
import jax.numpy as jnp


def step(x, w, n, key):
    h = jnp.tanh(x @ w)
    kept = jnp.where(jax.random.bernoulli(key, 0.5, h.shape), h, 0)
    _, z = jax.lax.while_loop(lambda c: c[0] < 500,
                              lambda c: (c[0] + 1, jnp.sin(c[1])), (0, kept))
    return z.sum(0), n + 1, x * (z[0, 0] + 2)


jitted = jax.jit(step, donate_argnums=(0, 2))
args = jnp.ones((64, 32)), jnp.ones((32, 128)), jnp.ones(2001), jax.random.key(0)
"""
IMPORT = """import re, sys; sys.path.insert(0, {!r})
from step import *
import numpy as np, xlac.jax
# Those that JAX's own program names: jax 0.9.0 has what is in a loop at the line of the loop.
known = sorted(set(map(int, re.findall(r'step[.]py":(\\d+):', jitted.lower(*args).as_text(debug_info=True)))))
assert known in ([6, 7, 8, 9, 10], [6, 7, 8, 10])
"""


@pytest.fixture
def head(tmp_path):
    (tmp_path / "step.py").write_text(STEP)
    return IMPORT.format(str(tmp_path))


def test_lines_have_what_they_became_and_cost(head):
    out = run(head + """
lines = xlac.jax.explain(jitted)(*args)
by = {row["line"]: row for row in lines.rows}
print(sorted(by) == known, by[6]["code"], dict(by[6]["ops"]), by[6]["flops"])
print(any("while" in row["ops"] for row in lines.rows), {row["file"].endswith("step.py") for row in lines.rows})
print(str(lines).splitlines()[0].split(",")[0], "step.py:7" in str(lines), "is a loop" in lines.footer[-1])
shaped = xlac.jax.explain(jitted)(jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((4, 2), "float32"), args[2], args[3])
print(len(shaped.rows) - len(known))
print("(step.py:6)" in xlac.jax.explain(jitted, topic="fusion")(*args))
try:
    xlac.jax.explain(jitted, topic="taste")(*args)
except xlac.Error as e:
    print(e)
""")
    lines, seven, title, shaped, fusion, wrong, _ = out
    assert lines.startswith("True h = jnp.tanh(x @ w) {'gemm': 1, 'kernel': 1} 5324")  # 2 * 64 * 32 * 128, and 64 * 128 tanh
    assert (seven, shaped, fusion) == ("True {True}", "0", "True")
    assert title.startswith("step: ") and title.endswith("True True")
    assert wrong.startswith("explain knows no 'taste'")


def test_profiles_spread_the_time_over_lines(head):
    out = run(head + """
found = xlac.jax.profile(jitted, repeat=3)(*args)
print(sorted({row["line"] for row in found.rows}) == known or [row["line"] for row in found.rows])
print(all(row["seconds"] > 0 for row in found.rows), len(found.profile.all_seconds), sum(row["seconds"] for row in found.rows) <= found.profile.seconds * 1.5)
print([bool(np.array_equal(a, b)) for a, b in zip(found.profile.result, step(*args))][1:], not args[0].is_deleted())
print(xlac.jax.profile(lambda i, k: i + k["n"], repeat=1)(np.arange(3), k={"n": np.int64(4)}).profile.result)  # i32, as JAX makes of them
""")
    assert out == ["True", "True 3 True", "[True, True] True", "[4 5 6]"]


def test_memory_and_donation_by_names_and_lines(head):
    out = run(head + """
print(xlac.jax.memory(step)(*args))
print("---")
print(xlac.jax.donation(jitted)(*args))
print(xlac.jax.donation(step)(*args))
print(xlac.jax.donation(lambda a: a.sum())(args[0]))
""")
    cut = out.index("---")
    assert out[0].startswith("step: frame") and "(step.py:" in out[1] and any("step.py:7" in line for line in out[3:cut])
    assert out[cut + 1:] == ["step:", "  x, f32[64,32]: donated; result 2 (result[2]) is computed over it", "  n, f32[2001]: donated; result 1 (result[1]) is computed over it",
                             "step:", "  x, f32[64,32]: not donated, though a result has its type: donate_argnums would do it",
                             "  n, f32[2001]: not donated, though a result has its type: donate_argnums would do it",
                             "<lambda>: no argument is donated, and no result has an argument's type"]


LIBRARY = """import jax.numpy as jnp


def dense(x, w):
    y = x @ w
    return jnp.tanh(y)


def twice(x, w):
    return dense(dense(x, w), w)
"""
MODEL = """import functools
import jax
import jax.numpy as jnp
from layers import dense, twice


def model(w, x):
    h = dense(x, w)
    h = twice(h, w)
    return h * 2


args = jnp.ones((8, 8)), jnp.ones((4, 8))
"""


def test_what_libraries_make_counts_for_the_users_lines(tmp_path):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "layers.py").write_text(LIBRARY)
    (tmp_path / "model.py").write_text(MODEL)
    out = run(f"""
import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(packages)!r}]
from model import *
import xlac.jax
def lines(f, *args, **options):
    found = xlac.jax.explain(f, **options)(*args)
    print(sorted({{(row["file"].rsplit("/", 1)[-1], row["line"]) for row in found.rows}}))
lines(model, *args)
lines(jax.jit(jax.grad(lambda w, x: model(w, x).sum())), *args)
lines(functools.partial(model, args[0]), args[1])
lines(model, *args, libraries=True)
lines(jax.jit(twice), args[1], args[0])  # a library's own function
lines(lambda: 3)
print({{row["line"] for row in xlac.jax.profile(model, repeat=2)(*args).rows}}, "model.py:9" in str(xlac.jax.memory(model)(*args)))
""")
    mine = "[('model.py', 8), ('model.py', 9), ('model.py', 10)]"
    assert out[0] == mine
    for line in out[1:3]:  # the script's own lines are the lambda's, and that of the constant which the partial function holds
        assert "('model.py', 8), ('model.py', 9)" in line and "layers" not in line
    assert out[3] == "[('layers.py', 5), ('layers.py', 6), ('model.py', 10)]"
    assert out[4] == "[('layers.py', 5), ('layers.py', 6)]"
    assert "explaining.py" not in out[5]
    assert out[6] == "{8, 9, 10} True"


def test_many_arrays_of_one_argument_are_told_of_together():
    out = run("""
        import jax, jax.numpy as jnp, xlac.jax
        def step(p, m, x):
            return jax.tree.map(lambda a, b: a - b * x.sum(), p, m), jax.tree.map(lambda a: a * 2, m)
        p = {"layer": [jnp.ones((3, i + 2)) for i in range(5)]}
        print(xlac.jax.donation(jax.jit(step, donate_argnums=0))(p, p, jnp.ones(7)))
    """)
    assert out == ["step:", "  p, 5 arrays: donated; results are computed over them",
                   "  m, 5 arrays: not donated, though results have their types: donate_argnums would do it"]


def test_why_it_was_compiled_again():
    out = run("""
        import jax, jax.numpy as jnp, numpy as np, xlac.jax
        def fill(x, n, k=None):
            return jnp.ones(n) + x.sum()
        with xlac.jax.compile_times() as times:
            f = xlac.jax.why_recompiled(jax.jit(fill, static_argnums=1))
            a = np.ones((4, 2), np.float32)
            for args in ((a, 3), (a, 3), (a, 4), (a[:3], 4), (a.astype(np.int32), 4), ([a, a], 4)):
                try:
                    f(*args)
                except AttributeError:
                    pass
            f(a, 4, k=2.0), f(a, 4, k=3)
        print(f.calls, len(f.compilations))
        print(f.report())
        row = times.rows[0]
        print(row["name"], row["times"], row["compile"] > 0 and row["trace"] > 0, str(times).splitlines()[0].split())
        known = len(times.rows)  # jax 0.9 compiles more for the same function
        jax.jit(lambda x: x)(1.)
        print(len(times.rows) - known)
    """)
    assert out[:2] == ["8 6", "fill: 8 calls, compiled 6 times"]
    reasons = [line.split("): ", 1)[1] for line in out[2:8]]
    assert reasons == ["the first call", "argument 1: 3 before, 4 now, and the argument is static", "argument 0: float32[4, 2] before, float32[3, 2] now",
                       "argument 0: float32[3, 2] before, int32[4, 2] now", "argument ['k']: was not there before, float now",
                       "argument ['k']: float before, int now"]
    assert out[-2:] == ["fill 6 True ['function', 'compiled', 'trace', 'lower', 'compile']", "0"]
