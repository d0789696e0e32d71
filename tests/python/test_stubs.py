"""python/xlac/_core.pyi says what the extension has, no more and no less."""
import ast
import pathlib

import pytest

from xlac import _core

STUB = pathlib.Path(__file__).resolve().parents[2] / "python/xlac/_core.pyi"


def names_of(body):
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def is_public(name):
    return not (name.startswith("__") and name.endswith("__"))


def test_functions_and_types():
    tree = ast.parse(STUB.read_text())
    typed_dicts = {n.name for n in tree.body if isinstance(n, ast.ClassDef) and n.bases}
    stub = set(names_of(tree.body)) - typed_dicts
    assert stub == {name for name in dir(_core) if is_public(name)}


@pytest.mark.parametrize("cls", [_core.Module, _core.Computation, _core.Instruction, _core.Buffer, _core.Donation])
def test_members(cls):
    node = next(n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef) and n.name == cls.__name__)
    assert {n for n in names_of(node.body) if is_public(n)} == {n for n in vars(cls) if is_public(n)}
