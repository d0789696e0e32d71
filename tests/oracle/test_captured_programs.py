"""Programs that JAX's own tests compiled, chosen for variety (capture_jax.py sample): interpreted and compiled they agree with XLA."""
import collections
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def test_programs_of_jax_tests_agree_with_xla(tmp_path):
    pytest.importorskip("jaxlib")
    report = tmp_path / "report.jsonl"
    done = subprocess.run([sys.executable, HERE / "capture_jax.py", "compare", HERE / "jax_programs.jsonl.xz", "--report", report],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [json.loads(line) for line in report.read_text().splitlines()]
    assert all(v["verdict"] == "agree" for v in verdicts) and len(verdicts) > 60
    of_kind = collections.Counter(v["kind"] for v in verdicts)
    for kind in ("typed keys", "random", "dropout", "recurrent", "nn", "tridiagonal", "sparse", "pallas, interpreted", "pallas, simulated devices",
                 "approximate top-k"):
        assert of_kind[kind], of_kind
