"""Bits as they are: rng-bit-generator, the interpreter's bits and states, and elements of other types of the same bytes."""
import numpy as np
import pytest

from simulator import xlac_driver

import xlac


@pytest.mark.parametrize("words", [2, 3])
def test_bits(words):
    driver = xlac_driver()
    driver.clear()
    rows = [(algorithm, t) for algorithm in ("rng_philox", "rng_three_fry", "rng_default")
            for t in ("u32[4,6]", "u64[7]", "f32[3,5]", "u8[9]", "s4[5]", "u2[3,2]", "bf16[6]", "s32[]", "f64[2,3,3]")
            if algorithm != "rng_three_fry" or words == 2]
    state = f"u64[{words}]"
    lines = "".join(f"  r{i} = ({state}, {t}) rng-bit-generator(s), algorithm={a}\n  a{i} = {state} get-tuple-element(r{i}), index=0\n"
                    f"  b{i} = {t} get-tuple-element(r{i}), index=1\n" for i, (a, t) in enumerate(rows))
    types = ", ".join(f"{state}, {t}" for _, t in rows)
    names = ", ".join(f"a{i}, b{i}" for i in range(len(rows)))
    text = f"HloModule m\nENTRY e {{\n  s = {state} parameter(0)\n{lines}  ROOT t = ({types}) tuple({names})\n}}\n"
    exe = xlac.compile(text, device="cuda", passes=False)
    assert "on the host" not in str(exe.explain("fusion"))
    for given in ([1, 2, 3], [2**64 - 1, 2**64 - 2, 2**64 - 1]):
        s = np.array(given[:words], np.uint64)
        for i, (got, want) in enumerate(zip(exe(s), xlac.interpret(text, s))):
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), rows[i // 2]
    assert driver.reports() == []


def test_bytes_as_other_types():
    driver = xlac_driver()
    driver.clear()
    rows = [("u32[3,4]", "u8[3,4,4]"), ("u8[5,8]", "f64[5]"), ("u16[3,2]", "f32[3]"), ("f64[2]", "u16[2,4]")]
    lines = "".join(f"  p{i} = {a} parameter({i})\n  r{i} = {b} bitcast-convert(p{i})\n" for i, (a, b) in enumerate(rows))
    text = (f"HloModule m\nENTRY e {{\n{lines}  ROOT t = ({', '.join(b for _, b in rows)}) tuple({', '.join(f'r{i}' for i in range(len(rows)))})\n}}\n")
    exe = xlac.compile(text, device="cuda", passes=False)
    assert "on the host" not in str(exe.explain("fusion"))
    rng = np.random.default_rng(3)
    kinds = {"f64": np.float64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
    args = [rng.integers(0, 255, [int(d) for d in a.split("[")[1][:-1].split(",")]).astype(kinds[a.split("[")[0]]) for a, _ in rows]
    for got, want in zip(exe(*args), xlac.interpret(text, *args)):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    assert driver.reports() == []
