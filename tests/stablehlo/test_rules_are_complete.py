"""Every op that MLIR form has is verified: it has a row in ir/stablehlo/rules.def."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# mhlo.copy, which only xlac's own translation of HLO's copy writes, has no definition in StableHLO to check it by.
WITHOUT = {"COPY"}


def definitions(name):
    return (ROOT / "csrc" / name).read_text()


def test_every_op_of_mlir_form_has_a_rule():
    rows = re.findall(r"^OP\((\w+),(.*?)(?=^OP\(|\Z)", definitions("ir/ops.def") + definitions("ir/ops_mlir.def"), re.M | re.S)
    in_mlir = {code for code, columns in rows if re.search(r'\bMLIR\("', columns)}
    rules = re.findall(r"^RULE\((\w+),", definitions("ir/stablehlo/rules.def"), re.M)
    assert len(in_mlir) > 150
    assert in_mlir - set(rules) == WITHOUT
    assert len(rules) == len(set(rules)) and set(rules) <= {code for code, _ in rows}
