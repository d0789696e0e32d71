"""The documentation as a site: pip install ".[docs]" && sphinx-build -W docs build/site"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
project = "xlac"
release = re.search(r'(?m)^version = "(.*)"', (ROOT / "pyproject.toml").read_text())[1]
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"xlac {release}"
source_suffix = {".md": "markdown"}
exclude_patterns = ["README.md"]  # the index of those who read the folder; index.md is that of the site
myst_heading_anchors = 4
# Links to files that are not pages lead into the repository; tests/test_pages.py checks that they are there.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
