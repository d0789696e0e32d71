"""xlac.testing: what tests of others use."""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xlac
from xlac import testing

ADD = "HloModule a\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] {}(x, x)\n}}"


def test_same_programs_and_others():
    twice = "HloModule b\nENTRY e {\n  x = f32[4] parameter(0)\n  c = f32[] constant(2)\n  d = f32[4] broadcast(c), dimensions={}\n  ROOT y = f32[4] multiply(x, d)\n}"
    testing.assert_same(ADD.format("add"), twice)
    testing.assert_same(ADD.format("add"), xlac.parse(twice).to_stablehlo())
    testing.assert_same(twice, twice, np.ones(4, np.float32), ways=("interpreter", "compiled"), rtol=0, atol=0)
    with pytest.raises(AssertionError, match=r"seed 0: result\[\d\] is .*, expected"):
        testing.assert_same(ADD.format("add"), ADD.format("multiply"))
    with pytest.raises(AssertionError, match="other parameters"):
        testing.assert_same(ADD.format("add"), ADD.format("add").replace("[4]", "[5]"))


def test_structures_types_and_tolerances():
    testing.assert_close({"a": [np.float32(1), None]}, {"a": [np.float32(1 + 1e-6), None]})
    for a, b, text in ((np.ones(2), np.ones(2, np.float32), "element type"), (np.ones(2), np.ones(3), "dimensions"), ((1, 2), (1,), "structures"),
                       (np.float32(1), np.float32(1.1), "expected 1.1")):
        with pytest.raises(AssertionError, match=text):
            testing.assert_close(a, b)
    testing.assert_close(ml_dtypes.bfloat16(1), ml_dtypes.bfloat16(1.0078))
    assert testing.tolerance(np.int32) == (0, 0) and testing.tolerance("f64")[0] < testing.tolerance("f32")[0] < testing.tolerance("f16")[0]
    assert testing.tolerance(ml_dtypes.float8_e4m3fn) == testing.NARROW


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_drawn_programs_agree_in_both_engines(data):
    module = data.draw(testing.modules())
    module.verify()
    testing.assert_same(module, module, *data.draw(testing.arguments(module)), ways=("interpreter", "compiled"), rtol=1e-4, atol=1e-4)


@settings(max_examples=10, deadline=None, derandomize=True, database=None)
@given(testing.arrays("bf16", (2, 3)), testing.arrays("s8"), testing.arrays("pred"))
def test_drawn_arrays(a, b, c):
    assert a.shape == (2, 3) and a.dtype == ml_dtypes.bfloat16 and b.dtype == np.int8 and c.dtype == bool


def test_golden_programs(tmp_path):
    golden = lambda update: testing.Golden(tmp_path / "golden", "test_one", update)  # noqa: E731
    with pytest.raises(AssertionError, match="pytest --update writes it"):
        golden(False)(ADD.format("add"))
    write = golden(True)
    write(ADD.format("add"))
    write("a report", "said")
    assert sorted(path.name for path in (tmp_path / "golden").iterdir()) == ["test_one-said.txt", "test_one.hlo"]
    kept = golden(False)
    kept(xlac.parse(ADD.format("add")))
    kept("a report", "said")
    with pytest.raises(AssertionError, match="compared twice"):
        kept("a report", "said")
    with pytest.raises(AssertionError, match=r"\+  ROOT %y = f32\[4\]\{0\} multiply"):
        golden(False)(ADD.format("multiply"))


def test_the_fixture_of_the_plugin(tmp_path):
    """With the plugin given by name; in an installation pytest finds it by itself."""
    (tmp_path / "test_it.py").write_text(f"def test_one(golden):\n    golden({ADD.format('add')!r})\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xlac.testing", "-p", "no:cacheprovider", "--update", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert (tmp_path / "golden/test_one.hlo").exists()
