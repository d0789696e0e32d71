"""docs/async.md: its programs read, verify, print back and give what they say, and its Python runs."""
import contextlib
import io
import pathlib
import re

import numpy as np
import pytest

import xlac

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/async.md").read_text()
PROGRAMS = re.findall(r"^```hlo\n(.*?)^```", PAGE, re.M | re.S)
A, B = np.arange(64, dtype=np.float32), -np.arange(64, dtype=np.float32)
WANT = [[A[16:48]], [A[16:48]], [A[:32], B[32:]], [A[16:48]], [A[16:48]]]


@pytest.mark.parametrize("number", range(5))
def test_programs(number):
    module = xlac.parse(PROGRAMS[number])
    module.verify()
    assert xlac.parse(module.to_text()).to_text() == module.to_text()
    args = [A, B][:len(module.entry.parameters)]
    for order in ("eager", "lazy", 5):
        got = xlac.interpret(module, *args, async_order=order)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(WANT[number]) and all(map(np.array_equal, got, WANT[number]))


def test_there_are_as_many_as_tested():
    assert len(PROGRAMS) == len(WANT)


@pytest.mark.parametrize("a,b", [(0, 1), (3, 4)], ids=["flat shape", "sugar"])
def test_two_ways_to_write_one_module(a, b):
    one, other = (xlac.parse(PROGRAMS[i]) for i in (a, b))
    assert one.fingerprint() == other.fingerprint()
    texts = [re.sub(r"(?<=\w)\.\d+", "", m.to_text()) for m in (one, other)]
    assert texts[0] == texts[1]


def test_the_flat_shape_is_xlas_documentation_alone():
    with pytest.raises(xlac.ParseError, match=r"\(\(operands...\), outputs, contexts...\)"):
        xlac.parse(PROGRAMS[1], strict=True)


def test_python_and_what_it_prints():
    namespace, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            exec(compile(block, "async.md", "exec"), namespace)  # noqa: S102
    assert printed.getvalue() == re.search(r"^prints\n\n```\n(.*?)^```", PAGE, re.M | re.S)[1]
