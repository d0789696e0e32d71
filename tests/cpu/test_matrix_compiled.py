"""Every opcode on every element type that the verifier allows: compiled, for 1, 2 and 7 threads and at each level of vector
instructions, the interpreter's values."""
import numpy as np
import pytest

pytest.importorskip("jaxlib")
matrix = pytest.importorskip("matrix")
import matrix_programs  # noqa: E402

import xlac  # noqa: E402

from .conftest import leaves, same_bits, same_numbers  # noqa: E402

OPCODES = [row["name"] for row in xlac._core.opcode_table() if "." not in row["name"]]
# Products and sums in another order than the interpreter's.
SUMS = {"dot", "reduce", "convolution", "batch-norm-training", "batch-norm-grad"}
# Computed in the type's own precision, which the interpreter computes in f64.
OWN_PRECISION = {"fft", "cholesky", "triangular-solve"}
NEAR = {"f32": 1e-5, "c64": 1e-5, "f64": 1e-13, "c128": 1e-13}


def near(got, want, tolerance):
    return len(got) == len(want) and all(
        g.dtype == w.dtype and np.allclose(g, w, rtol=tolerance, atol=tolerance * np.abs(w[np.isfinite(w)]).max(initial=1), equal_nan=True)
        for g, w in zip(got, want))


def interpreted(module, args):
    try:
        return leaves(xlac.interpret(module, *args)), None
    except xlac.Error as error:
        return None, error


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512", "best"])
@pytest.mark.parametrize("t", matrix_programs.TYPES)
def test_every_allowed_combination(t, isa, monkeypatch):
    checked = 0
    for opcode in OPCODES:
        for program in matrix_programs.programs(opcode, t):
            batch = matrix.Batch([program])
            text, args = batch.text(), batch.args
            try:
                module = matrix.read(text)
            except xlac.Error:
                continue
            monkeypatch.delenv("XLAC_MAX_ISA", raising=False)
            want, error = interpreted(module, args)
            monkeypatch.setenv("XLAC_MAX_ISA", isa)
            for passes in (False, True):
                compiled = [xlac.compile(module, threads=n, passes=passes) for n in (1, 2, 7)]
                if error is not None:
                    with pytest.raises(type(error)):
                        compiled[0](*args)
                    continue
                got = [leaves(exe(*args)) for exe in compiled]
                assert all(same_bits(got[0], other) for other in got[1:]), text
                if opcode in SUMS and t in ("f16", "bf16", "f32", "f64", "c64", "c128"):
                    assert all(np.allclose(g.astype(np.complex128), w.astype(np.complex128), rtol=2e-2, atol=1e-2, equal_nan=True)
                               for g, w in zip(got[0], want)), text
                elif opcode in OWN_PRECISION and t in NEAR:
                    assert near(got[0], want, NEAR[t]), text
                else:
                    assert same_numbers(got[0], want), text
                checked += 1
    assert checked > 50
