"""The stubs: _core.pyi says what the extension has, no more and no less; the others what their modules have, in types that the pages' own
lines pass."""
import ast
import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import xlac
from xlac import _core

MORE_LINES = '''
import io
import pathlib
import warnings

import numpy as np
import xlac

warnings.simplefilter("error", xlac.DonationWarning)
text = "HloModule m\\nENTRY e {\\n  ROOT x = f32[2] parameter(0)\\n}\\n"
exe: xlac.Executable = xlac.compile(text, threads=2, lanes={"copy": 1}, async_work=10)
xlac.compile(pathlib.Path("x.hlo"), lanes=2), xlac.parse(io.StringIO(text)), xlac.interpret(text, np.ones(2)), xlac.verify(text)
peak: int = exe.memory["peak_bytes"]
flops: int = exe.cost["flops"]
seconds: float = exe.timings["plan"]
picture: str = exe.memory.svg() + exe.profile(np.ones(2)).svg() + exe.timeline(np.ones(2)).svg()
kernels: list[str] = [str(k) for k in xlac.kernels.of(exe)]
found = xlac.diff(text, np.ones(2))
where: str = found.op if found else ""
mesh = xlac.sharding.Mesh({"a": 2})
one = xlac.sharding.Sharding(mesh, ["a", None])
result = xlac.sharding.propagate(xlac.parse(text))
sent: int = sum(r.bytes for r in result.trace.reshards)
svg: str = result.to_svg()
why: str = str(result.trace.explain("%arg0", 0))
code: int = xlac.Code.BAD_ARGUMENT
try:
    exe(1)
except xlac.ArgumentError as error:
    code = error.code
xlac.parse(text).find("x").users
'''
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


ROOT = STUB.parents[2]
MODULES = sorted(str(path.relative_to(STUB.parent).with_suffix("")).replace("/", ".").removesuffix(".__init__")
                 for path in STUB.parent.rglob("*.pyi") if path.stem != "_core" and path.parent / path.stem != STUB.parent / "__init__")


def described(path):
    """{name: its members} of a stub, without what it imports and the protocols that only type checkers see."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            found[node.name] = {n for n in names_of(node.body) if is_public(n)}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = set()
    return found


@pytest.mark.parametrize("name", MODULES)
def test_what_stubs_describe_is_there(name):
    module = importlib.import_module(f"xlac.{name}")
    code = pathlib.Path(module.__file__).read_text()
    for thing, members in described(pathlib.Path(module.__file__).with_suffix(".pyi")).items():
        real = getattr(module, thing)
        for member in members:
            assert hasattr(real, member) or re.search(rf"\b{member}\b", code), f"{name}.{thing}.{member}"


@pytest.mark.parametrize("name", MODULES)
def test_signatures_are_those_of_the_stub(name):
    module = importlib.import_module(f"xlac.{name}")
    for node in ast.parse(pathlib.Path(module.__file__).with_suffix(".pyi").read_text()).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        real = inspect.signature(getattr(module, node.name)).parameters
        given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)] + [a.arg for a in (node.args.vararg,) if a]
        given += [a.arg for a in node.args.kwonlyargs] + [a.arg for a in (node.args.kwarg,) if a]
        assert list(real) == given, f"{name}.{node.name}"


def test_all_that_the_package_offers_is_in_its_stub():
    text = (STUB.parent / "__init__.pyi").read_text()
    for name in (*xlac.__all__, "kernels", "sharding"):
        assert re.search(rf"\bas {name}$|^(def|class) {name}\(", text, re.M), name


def test_the_types_of_the_pages_own_lines(tmp_path):
    """mypy --strict takes what the pages show, but for what they leave out (names, jax)."""
    pytest.importorskip("mypy")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
        if blocks:
            (tmp_path / f"{page.stem.replace('-', '_')}_page.py").write_text("\n".join(["import numpy as np", "import xlac", "import xlac.sharding", *blocks]))
    (tmp_path / "more_page.py").write_text(MORE_LINES)
    command = [sys.executable, "-m", "mypy", "--strict", "--allow-redefinition", "--cache-dir", str(tmp_path / "cache"),
               "--disable-error-code=name-defined", "--disable-error-code=import-not-found", "--disable-error-code=no-untyped-def",
               "--disable-error-code=no-untyped-call", "--disable-error-code=import-untyped", str(tmp_path)]  # the pages' own functions, others' libraries
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(STUB.parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
