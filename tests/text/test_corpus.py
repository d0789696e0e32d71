"""StableHLO's own programs through every reader, printer and translation: a share of them, or all with XLAC_CORPUS=all."""
import json
import lzma
import os
import pathlib

import pytest

from . import corpus

FOLDER = pathlib.Path(os.environ.get("XLAC_CONFORMANCE", "/nowhere")) / "stablehlo"
SHARE = 1 if os.environ.get("XLAC_CORPUS") == "all" else 25
PARTS = 4

# XLA reads (nan, 0) as (nan, nan), and so does xlac: the text of these says less than their constants do.
NAN_PARTS = {f"testdata/{name}_{dtype}_3_3_{dtype}_3_3" for name in ("max", "min") for dtype in ("complex64", "complex128")}


def programs(file, part):
    with lzma.open(FOLDER / f"{file}.jsonl.xz", "rt") as lines:
        for i, line in enumerate(lines):
            if i % SHARE == 0 and i // SHARE % PARTS == part:
                yield json.loads(line)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs XLAC_CONFORMANCE")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("file", ["exec", "verify"])
def test_every_form_of_a_program_reads_back(file, part):
    wrong, n = [], 0
    for row in programs(file, part):
        found = corpus.check(row["text"])
        if found is None:
            continue
        n += 1
        wrong += [f"{row['id']}: {line}" for line in found if row["id"] not in NAN_PARTS or not line.startswith("hlo text")]
    assert n > 3 and not wrong, "\n".join(wrong[:20])
