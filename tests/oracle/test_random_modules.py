"""Random modules of 50 ops and more: print-parse-print is a fixed point, the verifier agrees with XLA's, and so do the values."""
import os

import numpy as np
import pytest
import real_xla
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_modules import modules

import xlac

# No shrinking: one example costs XLA half a second, and the modules are short enough to read.
SEED = os.environ.get("XLAC_RANDOM_SEED")
COUNT = int(os.environ.get("XLAC_RANDOM_MODULES", "60"))
SETTINGS = dict(deadline=None, derandomize=SEED is None, database=None, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck))


def seeded(test):
    """The same modules at each run, or those of XLAC_RANDOM_SEED."""
    return test if SEED is None else seed(int(SEED))(test)


def check_values(got, want, value):
    assert got.shape == want.shape and got.dtype == want.dtype
    if value.exact:
        np.testing.assert_array_equal(got, want)
        return
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.isfinite(got), finite)
    scale = max(1.0, value.bound if value.bound < 1e6 else np.max(np.abs(want[finite]), initial=1.0))
    epsilon = 1e-4 if got.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(got[finite], want[finite], rtol=epsilon, atol=epsilon * scale)


def blocks(text):
    """The computations of a print. Their order is XLA's, and XLA's own print of its print moves some (docs/xla-differences.md)."""
    return sorted(text.split("\n\n"))


@seeded
@settings(max_examples=COUNT, **SETTINGS)
@given(modules())
def test_text_and_values(drawn):
    text, args, outputs = drawn
    module = xlac.parse(text)
    module.verify()
    printed = module.to_text()
    again = xlac.parse(printed).to_text()
    assert again == real_xla.printed(printed)
    assert blocks(again) == blocks(printed)
    assert printed == real_xla.printed(text)
    want = real_xla.run(text, *args)
    for source in (module, xlac.parse(printed)):
        got = real_xla.leaves(xlac.interpret(source, *args))
        assert len(got) == len(want)
        for g, w, value in zip(got, want, outputs):
            check_values(g, w, value)


@pytest.mark.parametrize("broken", ["type", "operand", "dims"])
def test_verifiers_agree_on_broken_modules(broken, xla):
    """One line of a random module changed: both accept it or both refuse it."""

    @seeded
    @settings(max_examples=max(12, COUNT // 5), **SETTINGS)
    @given(modules(), st.integers(0, 2**32 - 1))
    def check(drawn, seed):
        text = damage(drawn[0], broken, np.random.default_rng(seed))
        ours = accepts(text)
        status, message = xla.verify(text)
        if status != "crash":
            assert ours == (status == "ok"), (broken, message[:300], text)

    check()


def accepts(text):
    try:
        xlac.parse(text).verify(xla_compat=True)
        return True
    except xlac.Error:
        return False


def damage(text, how, rng):
    """Changes one op of the entry: its element type, one operand, or one dimension."""
    head, entry = text.split("ENTRY main {\n")
    lines = entry.split("\n")
    at = [i for i, line in enumerate(lines) if " = " in line and "parameter" not in line and "tuple" not in line
          and "while" not in line and "constant" not in line]
    i = int(rng.choice(at))
    if how == "type":
        lines[i] = lines[i].replace("f32[", "s32[", 1) if " f32[" in lines[i] else lines[i].replace("[", "f32[", 0)
    elif how == "dims":
        lines[i] = lines[i].replace("[", "[7,", 1)
    else:
        name, rest = lines[i].split("(", 1)
        lines[i] = f"{name}({'v0' if rest[:2] != 'v0' else 'v1'},{rest.split(',', 1)[1] if ',' in rest.split(')')[0] else ')' + rest.split(')', 1)[1]}"
    return head + "ENTRY main {\n" + "\n".join(lines)

