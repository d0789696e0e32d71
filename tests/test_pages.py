"""The hand-written pages: links lead somewhere, and what they show runs and gives what they say."""
import contextlib
import io
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.name == "README.md" or str(page.relative_to(ROOT / "docs")) in index, page


def run_python(code, namespace):
    """Runs a block, and checks that lines with a comment of their value have that value."""
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "page", "exec"), namespace)  # noqa: S102
        for line in code.split("\n"):
            m = re.fullmatch(r"(\S.*\S)\s+# (['\[(<a].*)", line)
            if m and "print" not in line and " = " not in m[1].split("(")[0]:
                value = eval(m[1], namespace)  # noqa: S307
                assert repr(value).replace("\n", "").replace("       ", " ") == m[2], line


def test_the_readmes_example_runs(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "README.md", "python"):
        run_python(block, {})
    assert (tmp_path / "step.html").stat().st_size > 10_000


@pytest.mark.parametrize("page", ["tour", "explorer", "environment", "from-jax", "memory", "testing"])
def test_the_examples_of_the_page_run(page, tmp_path, monkeypatch):
    if page in ("from-jax", "memory"):
        pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(ROOT / f"docs/{page}.md", "python"):
        if not block.startswith("def test_"):
            run_python(block, namespace)


def test_the_executors_page_runs():
    namespace = {}
    for block in blocks(ROOT / "docs/executor.md", "python"):
        run_python(block, namespace)
    x, w = namespace["x"], namespace["w"]
    assert namespace["step"](x, w=w, out=namespace["out"]) is namespace["out"]


def test_getting_started_runs(tmp_path, monkeypatch):
    page = ROOT / "docs/getting-started.md"
    program = next(b for b in blocks(page, "") if b.startswith("HloModule row_sums"))
    (tmp_path / "row_sums.hlo").write_text(program)
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(page, "python"):
        if "jax" in block:
            pytest.importorskip("jax")
            exec(block, dict(namespace))  # noqa: S102
        else:
            run_python(block, namespace)
    broken = program.replace("sums = f32[2]", "sums = f32[3]")
    (tmp_path / "row_sums.hlo").write_text(broken)
    done = subprocess.run([sys.executable, "-m", "xlac", "verify", "row_sums.hlo"], capture_output=True, text=True)
    assert done.stderr in page.read_text()
    (tmp_path / "row_sums.hlo").write_text(program)
    done = subprocess.run([sys.executable, "-m", "xlac", "run", "row_sums.hlo", "--input=[[1,2,3],[4,5,6]]"], capture_output=True,
                          text=True)
    assert done.stdout in page.read_text()


def test_arrays_page_runs():
    namespace = {}
    for block in blocks(ROOT / "docs/arrays.md", "python"):
        run_python(block, namespace)


def test_the_readmes_first_commands():
    first, second = blocks(ROOT / "README.md", "sh")[:2]
    assert first.strip() == "pip install . && xlac demo" and second.strip() == 'pip install ".[test]" && pytest'


def test_the_commands_of_the_readme_exist():
    commands = {line.split()[1] for block in blocks(ROOT / "README.md", "(?:sh)?") for line in block.split("\n")
                for line in re.findall(r"xlac [a-z]+", line)}
    from xlac.cli import make_parser

    known = make_parser().format_help()
    assert all(command in known for command in commands)


def test_no_machine_in_the_pages():
    for page in [*PAGES, *ROOT.glob(".ci/*"), *ROOT.glob("*.toml"), ROOT / "setup.py"]:
        assert not re.search(r"/(home|root|work|tmp/w)/|https?://(?!www\.apache\.org)\S*(pypi|registry)", page.read_text()), page
