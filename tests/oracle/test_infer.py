"""Shape inference against real XLA, over the snippets: a type left out is inferred alike, or refused by both."""
import re

import pytest

import snippets

xlac = pytest.importorskip("xlac")

# XLA can't infer these though the type follows.
INFERRED_BY_US_ONLY = {"opt-barrier"}
# XLA infers a type for these, but nothing could run such an op: element types that no backend takes (ops.def, TYPES), two
# dimensions where one is meant, a mean that is not a vector, a transform of another length than the dimension has, arrays of one scatter
# that differ in size.
REFUSED_BY_US_ONLY = re.compile(
    r"^(maximum|minimum|mulhi|remainder|clamp|shift-[a-z-]+)\(c(64|128)|^(mulhi|shift-[a-z-]+)\((f32|pred)|"
    r"^get-dimension-size\(.*dimensions=\{0,1\}|^batch-norm-inference\(.*f32\[3,1\]|^fft\(c64\[4,8\].*fft_type=FFT, fft_length=\{3\}|"
    r"^scatter\(f32\[10\]; s32\[11\]")


def root_type(text):
    """The root's type in a printed module, layouts included."""
    entry = text[text.index("\nENTRY "):]
    line = next(l for l in entry.split("\n") if re.match(r"\s*ROOT %?r(\.\d+)? = ", l))
    rest = line.split(" = ", 1)[1]
    depth = 0
    for i, c in enumerate(rest):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(c, 0)
        if c == " " and depth == 0:
            return rest[:i]
    raise AssertionError(line)


def ours(text):
    try:
        return "ok", xlac.parse(text, strict=True).to_text()
    except xlac.Error as e:
        return "error", str(e)


OMITTED = [s for s in snippets.SNIPPETS if s.result is None]


@pytest.mark.parametrize("opcode", sorted({s.opcode for s in OMITTED}))
def test_inferred_types_are_xlas(opcode, xla):
    wrong = []
    for s in OMITTED:
        if s.opcode != opcode:
            continue
        status, theirs = xla.parse(s.text())
        mine_status, mine = ours(s.text())
        if status == "ok" and mine_status == "ok":
            same = root_type(theirs) == root_type(mine)
        elif status == "ok":
            same = bool(REFUSED_BY_US_ONLY.search(f"{s.opcode}({'; '.join(s.params)}) {s.expr}"))
        else:
            same = mine_status == "error" or opcode in INFERRED_BY_US_ONLY
        if not same:
            wrong.append(f"{s.name}: {s.params} {s.expr}\n  XLA  {status} {theirs[-300:]}\n"
                         f"  xlac {mine_status} {mine[-300:]}")
    assert not wrong, "\n".join(wrong)


def test_every_error_has_a_position_and_names_the_op(xla):
    for s in OMITTED:
        try:
            xlac.parse(s.text())
        except xlac.Error as e:
            assert e.line >= 1 and e.col >= 1, s.name
            assert str(e), s.name
