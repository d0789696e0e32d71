"""The generated pages are up to date, and the op table is complete."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402


def test_generated_pages_are_current():
    done = subprocess.run([sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_row_is_complete():
    """A row says what the op is, how its type follows, and how it is evaluated."""
    text = (ROOT / "csrc/ir/ops.def").read_text()
    for row in generate.rows(text, "OP"):
        code = row.split(",")[0]
        assert generate.column(row, "DOC"), f"{code} has no DOC"
        assert generate.column(row, "INFER"), f"{code} has no INFER"
        assert generate.column(row, "EVAL"), f"{code} has no EVAL"
        if generate.column(row, "INFER") == "none":
            assert generate.column(row, "VERIFY"), f"{code} has neither inference nor a rule of its own"


def test_every_opcode_is_in_the_corpus_of_snippets():
    """Each opcode has at least one conformance snippet of our own (tests/oracle/snippets.py); for an elementwise op its reference is enough."""
    from oracle import elementwise, snippets

    covered = set(snippets.opcodes()) | set(elementwise.FLOAT_EXACT) | set(elementwise.FLOAT_FUNCTIONS)
    missing = {op["name"] for op in generate.op_rows()} - covered
    assert not missing, f"no snippet for {sorted(missing)}"


def test_every_error_code_has_an_example_that_meets_it_or_says_why_not():
    """generate.py, which the page is compared with above, asserts that each example meets its code."""
    import error_examples

    import xlac

    codes = {name for name in vars(xlac.Code) if name.isupper()}
    assert set(error_examples.EXAMPLES) == codes
    assert sum(kind is not None for kind, _, _ in error_examples.EXAMPLES.values()) >= len(codes) - 7
