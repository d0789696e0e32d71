"""jax.profiler.trace with the plugin: its runs and compilations are in JAX's profiles."""
import pytest
from jax_script import run

pytest.importorskip("jax")

HEAD = """
    import glob, sys, tempfile
    import jax, jax.numpy as jnp
    def planes(work):
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                work()
            found, = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
            data = jax.profiler.ProfileData.from_file(found)
            return {p.name: [(line.name, e.name, e.start_ns, e.duration_ns) for line in p.lines for e in line.events] for p in data.planes}
    def step(x):
        return jnp.sin(x @ x).sum()
"""


def test_programs_and_compilations_are_in_the_profile():
    out = run(HEAD + """
    step, x = jax.jit(step), jnp.ones((400, 400))
    step(x).block_until_ready()
    def work():
        for _ in range(3):
            step(x).block_until_ready()
        jax.jit(lambda x: x - 2)(jnp.ones(3)).block_until_ready()
    for _ in range(2):  # the second profile has nothing of the first
        found = planes(work)
        runs = [e for e in found["/device:CUSTOM:xlac:0"] if e[1] == "jit_step"]
        print(len(runs), all(a[2] + a[3] <= b[2] and 0 <= a[2] < 1e11 and 1e3 < a[3] < 1e10 for a, b in zip(runs, runs[1:])), {e[0] for e in runs})
    print([e[1] for e in found["/device:CUSTOM:xlac compiler"] if "lambda" in e[1]], "compile jit_step" in str(found))
    """)
    assert out == ["3 True {'Programs'}"] * 2 + ["['compile jit__lambda'] False"]


def test_ops_are_in_the_profile_within_their_program():
    out = run(HEAD + """
    @jax.jit
    def f(x, y):
        y = jax.lax.fori_loop(0, 4, lambda i, y: jnp.cos(y @ x), y)
        return jnp.sort(y, 1), (y @ x).sum()
    x = jnp.ones((300, 300))
    f(x, x)[1].block_until_ready()
    found = planes(lambda: [f(x, x)[1].block_until_ready() for _ in range(2)])["/device:CUSTOM:xlac:0"]
    runs, ops = ([e[1:] for e in found if e[0] == line] for line in ("Programs", "Ops"))
    print([name for name, *_ in runs], [sum(s <= e[1] and e[1] + e[2] <= s + n for e in ops) == len(ops) / 2 for _, s, n in runs])
    names = [name for name, *_ in ops]
    print(sum("dot" in name for name in names), sum("sort" in name for name in names), set(names) <= set(f.lower(x, x).compile().as_text().replace("%", "").split()))
    print(all(sum(d for n, s, d in ops if n.startswith(kind)) > 1e4 for kind in ("dot", "sort")))
    """)
    assert out == ["['jit_f', 'jit_f'] [True, True]", "10 2 True", "True"]


def test_names_of_jax_are_in_the_profile():
    out = run(HEAD + """
    x = jnp.ones((300, 300))
    @jax.jit
    def named(x):
        with jax.named_scope("a_scope_of_mine"):
            return x @ x
    named(x).block_until_ready()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            named(x).block_until_ready()
        found, = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
        data = open(found, "rb").read()
    print(b"jit(named)/a_scope_of_mine/dot_general" in data and b"tf_op" in data)
    """)
    assert out == ["True"]


def test_each_device_has_a_plane():
    out = run(HEAD + """
    from jax.sharding import PartitionSpec as P, NamedSharding
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("d")))
    f = jax.jit(step)
    f(x).block_until_ready()
    found = planes(lambda: f(x).block_until_ready())
    print([len([e for e in found[f"/device:CUSTOM:xlac:{i}"] if e[1] == "jit_step"]) for i in range(2)])
    print([len([e for e in found[f"/device:CUSTOM:xlac:{i}"] if e[0] == "Ops"]) > 0 for i in range(2)])
    """, XLAC_JAX_DEVICES="2")
    assert out == ["[1, 1]", "[True, False]"]
