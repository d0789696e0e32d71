"""Every op that MLIR form has is verified: it has a column SHLO in its row of ir/ops.def (a row without does not compile)."""
import pathlib
import re

IR = pathlib.Path(__file__).resolve().parents[2] / "csrc/ir"
# mhlo.copy, which only xlac's own translation of HLO's copy writes, has no definition in StableHLO to check it by; sdy.mesh has
# neither operands nor results.
WITHOUT = {"COPY", "SDY_MESH"}


def test_every_op_of_mlir_form_has_a_rule():
    rows = re.findall(r"^OP\((\w+),(.*?)(?=^OP\(|\Z)", (IR / "ops.def").read_text() + (IR / "ops_mlir.def").read_text(), re.M | re.S)
    in_mlir = {code for code, columns in rows if re.search(r'\bMLIR\("', columns)}
    rules = {code for code, columns in rows if re.search(r"\bSHLO\(\w", columns)}
    assert len(in_mlir) > 150
    assert in_mlir - rules == WITHOUT
