"""Every opcode on every element type: the verifier allows what XLA's does, and every allowed one is evaluated and compared."""
import numpy as np
import pytest

pytest.importorskip("jaxlib")
matrix = pytest.importorskip("matrix")
from matrix_programs import TYPES, programs  # noqa: E402


@pytest.fixture(scope="module")
def values():
    """A future of matrix.evaluate's answer for every type, two being worked on at a time."""
    runner = matrix.Runner()
    futures = matrix.run(TYPES, runner)
    yield futures
    for future in futures.values():
        future.cancel()
    runner.close()


def test_every_element_type_has_a_column():
    assert {row["name"] for row in matrix.xlac._core.dtype_table()} == set(TYPES)


def test_every_opcode_has_programs():
    missing = [(opcode, t) for opcode in matrix.OPCODES for t in TYPES if not programs(opcode, t)]
    assert not missing


@pytest.mark.parametrize("t", TYPES)
def test_every_allowed_combination_gives_the_right_values(t, values):
    marks, wrong = values[t].result()
    assert not wrong, "\n".join(wrong)
    assert all(marks.values()), [opcode for opcode, mark in marks.items() if not mark]


@pytest.mark.parametrize("t", TYPES)
def test_verifier_allows_what_xla_allows(t, xla):
    wrong = matrix.disagreements(t, xla)
    assert not wrong, "\n".join(wrong)


def test_page_is_current(values):
    marks = {t: future.result()[0] for t, future in values.items()}
    assert matrix.PAGE.read_text() == matrix.page(marks), "run python tests/oracle/matrix.py"


@pytest.mark.parametrize("t,opcode", [("f32", "tanh"), ("s8", "add"), ("c64", "multiply"), ("bf16", "exponential"), ("pred", "transpose"),
                                      ("f8e5m2", "dot")])
def test_a_wrong_value_is_noticed(t, opcode):
    """The comparison itself: one element changed a little."""
    p = programs(opcode, t)[0]
    cell = matrix.Cell(p, matrix.interpret(p))
    cell.xla = matrix.leaves(cell.got)
    assert cell.judge() == "X" and not cell.wrong
    spoilt = cell.xla[0].copy().reshape(-1)
    wide = spoilt.astype(np.complex128)
    at = int(np.flatnonzero(np.isfinite(wide) & (0.1 < abs(wide)) & (abs(wide) < 10))[0])
    if t == "pred":
        spoilt[at] = not spoilt[at]
    else:
        spoilt.view(np.uint8)[at * spoilt.itemsize] ^= 16
    cell.got = spoilt.reshape(cell.xla[0].shape)
    cell.judge()
    assert cell.wrong.startswith("1 of")
