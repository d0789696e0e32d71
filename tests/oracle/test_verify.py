"""The verifier against real XLA: on the cases of tests/ir/cases, on the snippets, and on seeded mutations of both.

XLA verifies what is put into the middle of its CPU pipeline with mixed precision allowed and without looking at layouts, so it
is compared with verify(xla_compat=True, mixed_floats=True). Deliberate differences are in docs/xla-differences.md.
"""
import pathlib
import random
import re
import sys

import pytest

import snippets

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ir"))
from verify_cases import all_cases  # noqa: E402

xlac = pytest.importorskip("xlac")

# What XLA accepts and xlac refuses even leniently: docs/xla-differences.md says why. Replica counts are lost on the way to XLA.
DELIBERATE = re.compile(
    r"map's dimensions|(send|recv) takes a token|takes scalar s32 sizes|calls \(\w+\) must take|convolution takes a tensor as operand 1, but got \(|"
    r"but the module runs|another number of devices in the iota|(maximum|minimum|mulhi|remainder|clamp|shift-[a-z-]+) takes .* elements|"
    r"dimensions must name one dimension|one element for each feature|"
    r"(arrays|updates) of scatter must have the same dimensions|batching dimension \d+ of|_batching_dims names dimension|FFT needs size")
# XLA adds the stride to the size and overflows.
OVERFLOWS = "9223372036854775807"


def ours(text):
    try:
        xlac.parse(text).verify(xla_compat=True, mixed_floats=True)
        return "ok", ""
    except xlac.ParseError as e:
        return "parse", str(e)
    except xlac.Error as e:
        return "error", str(e)


def disagreement(text, xla):
    """None when both say the same, or XLA can't be asked."""
    mine, why = ours(text)
    if mine == "parse" or OVERFLOWS in text:
        return None
    status, theirs = xla.verify(text)
    if status == "crash" or "not injected" in theirs or "Syntax error" in theirs or "hlo_module.cc" in theirs:
        return None
    if (status == "ok") == (mine == "ok") or (mine == "error" and DELIBERATE.search(why)):
        return None
    return f"{text}\n  XLA  {status} {theirs[:300]}\n  xlac {mine} {why}"


CASES = [c for c in all_cases() if c.xla in ("refuses", "accepts")]


@pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])
def test_cases_say_what_xla_does(case, xla):
    status, message = xla.verify(case.text)
    assert status == ("ok" if case.xla == "accepts" else "error"), message


@pytest.mark.parametrize("opcode", sorted({s.opcode for s in snippets.SNIPPETS if s.result}))
def test_snippets(opcode, xla):
    wrong = [disagreement(s.text(), xla) for s in snippets.SNIPPETS if s.opcode == opcode and s.result]
    assert not any(wrong), "\n".join(w for w in wrong if w)


# --- mutations ---

TYPES = "pred s4 s8 s32 s64 u8 u32 u64 bf16 f16 f32 f64 c64 f8e4m3fn".split()
INTS = re.compile(r"\b(\w+)=(\{[\d,{}]*\d[\d,{}]*\}|\d+)")
OPERANDS = re.compile(r"^ .* = .* ([a-z][\w-]*)\(([\w.-]+(?:, [\w.-]+)*)\)", re.M)


def splice(text, match, group, new):
    return text[:match.start(group)] + new + text[match.end(group):]


def change_dimension(text, r):
    m = r.choice(list(re.finditer(r"\w\[(\d+(?:,\d+)*)\]", text)))
    dims = m[1].split(",")
    i = r.randrange(len(dims))
    how = r.randrange(3)
    if how == 0:
        dims[i] = str(r.choice([0, 1, 2, int(dims[i]) + 1]))
    elif how == 1 and len(dims) > 1:
        dims.pop(i)
    else:
        r.shuffle(dims)
    return splice(text, m, 1, ",".join(dims))


def change_type(text, r):
    return splice(text, r.choice(list(re.finditer(r"\b(pred|bf16|[sufc]\d+\w*)\[", text))), 1, r.choice(TYPES))


def change_operands(text, r):
    m = r.choice([m for m in OPERANDS.finditer(text) if m[1] not in ("parameter", "constant")])
    operands = m[2].split(", ")
    names = re.findall(r"^ +(?:ROOT )?([\w.-]+) = ", text[text.rindex("{\n", 0, m.start()):m.start()], re.M)
    i = r.randrange(len(operands))
    if names and r.random() < 0.6:
        operands[i] = r.choice(names)
    else:
        r.shuffle(operands)
    return splice(text, m, 2, ", ".join(operands))


def change_attribute(text, r):
    m = r.choice(list(INTS.finditer(text)))
    numbers = list(re.finditer(r"\d+", m[2]))
    n = r.choice(numbers)
    return splice(text, m, 2, m[2][:n.start()] + str(r.choice([0, 1, 2, 3, int(n[0]) + 1])) + m[2][n.end():])


def mutate(text, r):
    for _ in range(r.choice([1, 1, 2])):
        try:
            text = r.choice([change_dimension, change_type, change_operands, change_attribute])(text, r)
        except (IndexError, ValueError):  # there is nothing of that kind to change
            pass
    return text


SOURCES = [c.text for c in CASES] + [s.text() for s in snippets.SNIPPETS if s.result]


@pytest.mark.parametrize("seed", range(8))
def test_mutations(seed, xla):
    r = random.Random(seed)
    wrong = [disagreement(mutate(r.choice(SOURCES), r), xla) for _ in range(60)]
    assert not any(wrong), "\n".join(w for w in wrong if w)
