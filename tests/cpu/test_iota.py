"""Numbers that count up, made by vectors of eight: every length, step and type has the interpreter's bits."""
import pytest

from .test_moves import check


@pytest.mark.parametrize("t", ["f32", "s32", "u32", "s64", "f64", "bf16", "u8", "c64"])
@pytest.mark.parametrize("dims", [(1,), (7,), (8,), (9,), (40001,), (3, 5), (5, 4099), (3, 20000), (2, 3, 1500)])
def test_iota_along_every_dimension(t, dims):
    for d in range(len(dims)):
        text = f"HloModule m\nENTRY e {{ ROOT r = {t}[{','.join(map(str, dims))}] iota(), iota_dimension={d} }}"
        check(text, eval_ok=True)


@pytest.mark.parametrize("t", ["f32", "s32"])
@pytest.mark.parametrize("start,stride", [(0, 3), (5, 2), (999, 7)])
def test_steps_other_than_one(t, start, stride):
    n = len(range(start, 30000, stride))
    check(f"HloModule m\nENTRY e {{\n  i = {t}[4,30000] iota(), iota_dimension=1\n  s = {t}[4,{n}] slice(i), slice={{[0:4], [{start}:30000:{stride}]}}\n"
          f"  ROOT r = {t}[4,{n}] reverse(s), dimensions={{1}}\n}}", eval_ok=True)


def test_numbers_that_f32_must_round():
    check("HloModule m\nENTRY e {\n  i = s32[20000000] iota(), iota_dimension=0\n  f = f32[20000000] iota(), iota_dimension=0\n"
          "  a = f32[30] slice(f), slice={[16777210:16777240]}\n  b = s32[30] slice(i), slice={[16777210:16777240]}\n"
          "  ROOT r = (f32[30], s32[30]) tuple(a, b)\n}", eval_ok=True)
