"""The documentation as a site: every page is in its tree, and Sphinx, where there is one, builds it without a warning."""
import pathlib
import re
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"


def test_every_page_is_in_the_tree_of_the_site():
    named = set(re.findall(r"^([\w-]+)$", (DOCS / "index.md").read_text(), re.M))
    pages = {path.stem for path in DOCS.glob("*.md")} - {"README", "index"}
    assert pages <= named, pages - named
    assert named <= pages, named - pages


def test_the_site_builds(tmp_path):
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module)
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", DOCS, tmp_path], check=True)
    assert (tmp_path / "explorer.html").exists()
