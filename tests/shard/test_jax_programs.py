"""Programs that JAX lowers for 8 devices: the whole pipeline gives what Shardy gives, byte for byte. jax_programs.py makes the data."""
import json
import lzma
import pathlib

import pytest

import xlac

with lzma.open(pathlib.Path(__file__).with_name("jax_programs.jsonl.xz"), "rt") as f:
    ROWS = [json.loads(line) for line in f]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_the_same_as_shardy(row):
    for pipeline, want in row["outputs"].items():
        assert xlac.parse(row["input"]).run(f"builtin.module({pipeline})").to_text().strip() == want.strip()
