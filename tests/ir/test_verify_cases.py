"""The verifier on small modules with one fault each: the error code and the place are those beside the module."""
import pathlib
import re

import pytest

xlac = pytest.importorskip("xlac")

from verify_cases import all_cases  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = list(all_cases())
NUMBERS = {name: int(number) for name, number in
           re.findall(r"^ERROR\((\w+), (\d+),", (ROOT / "csrc/base/errors.def").read_text(), re.M)}


@pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])
def test_refused_with_code_and_place(case):
    with pytest.raises(xlac.Error) as caught:
        module = xlac.parse(case.text)
        assert case.stage == "verify", "the reader accepted it"
        module.verify()
    error = caught.value
    assert (error.line, error.col) == (case.line, case.col), error
    assert int(re.sub(r"\D", "", str(error.code))) == NUMBERS[case.code], error
    assert isinstance(error, xlac.ParseError if case.stage == "parse" else xlac.VerifyError)
    assert len(error.message) > 10 and error.op


@pytest.mark.parametrize("case", [c for c in CASES if c.stage == "verify"], ids=[c.id for c in CASES if c.stage == "verify"])
def test_lenient_verifier(case):
    module = xlac.parse(case.text)
    if case.lenient == "accepts":
        module.verify(xla_compat=True)
        return
    with pytest.raises(xlac.VerifyError):
        module.verify(xla_compat=True)
    if case.lenient == "mixed":
        module.verify(xla_compat=True, mixed_floats=True)
        with pytest.raises(xlac.VerifyError):
            module.verify(xla_compat=True)


def test_what_leniency_accepts_stays_unverified():
    case = next(c for c in CASES if c.lenient == "accepts")
    module = xlac.parse(case.text)
    module.verify(xla_compat=True)
    with pytest.raises(xlac.VerifyError):
        module.verify()


def test_every_rule_of_the_op_table_has_a_case():
    opcodes = {}  # by rule; opcodes of newer XLA can't be written in the cases
    table = (ROOT / "csrc/ir/ops.def").read_text()
    for name, row in re.findall(r'^OP\(\w+, "([^"]+)",(.*?)(?=^OP\(|\Z)', table, re.S | re.M):
        if "IR_NEWER" not in row:
            for rule in re.findall(r"VERIFY\((\w+)\)", row):
                opcodes.setdefault(rule, set()).add(name)
    texts = "\n".join(c.text for c in CASES)
    missing = sorted(rule for rule, names in opcodes.items() if not any(f" {name}(" in texts for name in names))
    assert len(opcodes) > 30 and not missing, f"no case for the rules of {missing}"
