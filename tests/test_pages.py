"""The hand-written pages: links lead somewhere, and every page is in the index. That what they show runs is in test_tutorials.py."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def anchors(page):
    """Of the headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not anchor or there.suffix != ".md" or anchor in anchors(there), f"{target}#{anchor}"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.name == "README.md" or str(page.relative_to(ROOT / "docs")) in index, page


# What pages name that isn't ours: QBE's table of ops.
OTHERS = {"ops.h"}


def files():
    return ["/" + str(path.relative_to(ROOT)) for folder in ("csrc", "python", "tests", "docs", "benchmarks") for path in (ROOT / folder).rglob("*")]


def names(text):
    """C and Python files and folders of csrc, with `*` for any letters."""
    for name in re.findall(r"`([\w*./-]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        if re.search(r"\.(c|h|py|def|cuh)$", name) or name.startswith(("csrc/", "tests/", "python/", "docs/", "benchmarks/")):
            yield name.rstrip("/")


def test_files_that_design_pages_name_are_there():
    there = files()
    gone = {(page.name, name) for page in (ROOT / "docs/design").glob("*.md") for name in names(page.read_text()) if name not in OTHERS
            and not any(re.search(f"/{re.escape(name)}$".replace(r"\*", "[^/]*"), path) for path in there)}
    assert not gone


def test_a_file_that_is_gone_is_found():
    assert list(names("`csrc/no/such.py`, `x`, `cpu/vm/vm_*`, `run.h`\n```\n`b.c`\n```\n")) == ["csrc/no/such.py", "run.h"]


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
