"""The conformance data lives outside the project: XLAC_CONFORMANCE, by default ../shared/conformance. Without it these tests skip."""
import functools
import json
import lzma
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def data_dir():
    return pathlib.Path(os.environ.get("XLAC_CONFORMANCE", ROOT.parent / "shared" / "conformance"))


@functools.lru_cache(maxsize=None)
def rows(name):
    """The rows of one file of the data, or an empty list where the data is not there."""
    path = data_dir() / name
    if not path.exists():
        return []
    with lzma.open(path, "rt") as f:
        return [json.loads(line) for line in f]


def cases(name, keep, suite):
    """pytest params of the rows that `keep` wants; one skipped param that says so where the data is absent."""
    found = [r for r in rows(name) if keep(r)]
    if not found:
        return [pytest.param(None, id=suite, marks=pytest.mark.skip(reason=f"no conformance data: {name}"))]
    return [pytest.param(r, id=r["name"]) for r in found]
