"""batch-norm-expander: no batch-norm op is left, inference keeps its bits, the others differ by the order of f64 sums alone."""
import numpy as np
import pytest

import xlac

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def source(t, kind, shape, feature):
    wide, thin = f"{t}[{','.join(map(str, shape))}]", f"{t}[{shape[feature]}]"
    params = {"inference": [wide, thin, thin, thin, thin], "training": [wide, thin, thin], "grad": [wide, thin, thin, thin, wide]}[kind]
    lines = [f"p{i} = {p} parameter({i})" for i, p in enumerate(params)]
    result = wide if kind == "inference" else f"({wide}, {thin}, {thin})"
    names = ", ".join(f"p{i}" for i in range(len(params)))
    return ("HloModule m\nENTRY e {\n" + "\n".join(lines) +
            f"\nROOT r = {result} batch-norm-{kind}({names}), epsilon=0.001, feature_index={feature}\n}}"), params


def arrays(t, shape, feature, params):
    rng = np.random.default_rng(3)
    sizes = [shape if p.count(",") == len(shape) - 1 and len(shape) > 1 and p != params[1] else (shape[feature],) for p in params]
    return [(np.abs(rng.normal(size=s)) + 0.1).astype(TYPES[t]) for s in sizes]


def leaves(value):
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("kind", ["inference", "training", "grad"])
@pytest.mark.parametrize("shape, feature", [((4, 3), 1), ((5, 2, 3, 4), 1), ((2, 3, 4), 2), ((3, 2), 0)])
def test_values(t, kind, shape, feature):
    text, params = source(t, kind, shape, feature)
    before = xlac.parse(text)
    before.verify()
    after = before.run("batch-norm-expander")
    after.verify()
    assert "batch-norm" not in after.to_text(metadata=False).split("ENTRY", 1)[1].replace("batch-norm-expander", "")
    args = arrays(t, shape, feature, params)
    want, got, compiled = leaves(xlac.interpret(before, *args)), leaves(xlac.interpret(after, *args)), leaves(xlac.compile(before)(*args))
    for w, g, c in zip(want, got, compiled):
        if kind == "inference":
            assert w.tobytes() == g.tobytes() == c.tobytes()
        unit = float(ml_dtypes.finfo(TYPES[t]).eps)
        for v in (g, c):
            np.testing.assert_allclose(v.astype(np.float64), w.astype(np.float64), rtol=2 * unit, atol=8 * unit)


def test_compiled_programs_interpret_no_step_for_it():
    text, _ = source("f32", "training", (4, 8, 8, 3), 3)
    assert xlac.compile(xlac.parse(text)).steps["interpreted"] == 0
