"""The notebooks of docs/notebooks: their cells run in order, in one namespace, and what a cell ends with can be displayed."""
import ast
import contextlib
import io
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
DISPLAYS = ("_repr_mimebundle_", "_repr_html_", "_repr_svg_")  # in the order in which notebooks ask
WITH_JAX = ("02-from-jax", "03-memory-and-explorer", "07-slow-jax")


def cells(path):
    return [("".join(cell["source"]), cell) for cell in json.loads(path.read_text())["cells"]]


def display(value):
    """As a notebook does: the richest form there is, and text."""
    forms = [getattr(value, name)() for name in DISPLAYS if hasattr(value, name)]
    assert all(forms) and repr(value) is not None
    return forms


def run_cell(text, namespace):
    body = ast.parse(text).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), namespace)  # noqa: S102
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307
        if value is not None:
            display(value)


def run(path):
    namespace = {"__name__": "notebook"}
    with contextlib.redirect_stdout(io.StringIO()):
        for text, cell in cells(path):
            if cell["cell_type"] == "code":
                run_cell(text, namespace)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_run(path, tmp_path):
    if path.stem in WITH_JAX:
        pytest.importorskip("jax")
    done = subprocess.run([sys.executable, __file__, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_kept_small_and_without_outputs(path):
    page = json.loads(path.read_text())
    assert page["nbformat"] == 4 and path.stat().st_size < 20_000
    assert len({cell["id"] for cell in page["cells"]}) == len(page["cells"]) and page["cells"][0]["source"][0].startswith("# ")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in page["cells"] if cell["cell_type"] == "code")


def test_there_are_seven():
    assert len(NOTEBOOKS) == 7


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[1]))
