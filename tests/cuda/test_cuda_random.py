"""Random modules on device="cuda" have the interpreter's bits: a few here; python tests/cuda/test_cuda_random.py FIRST LAST runs as many as wanted."""
import pathlib
import sys

import numpy as np
import pytest

import gpu
import xlac

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from cpu import random_modules  # noqa: E402


def leaves(result):
    return [x for part in result for x in leaves(part)] if isinstance(result, (tuple, list)) else [np.asarray(result)]


def differs(seed):
    """What is wrong with that module on the GPU; None where nothing is, or the module is an error."""
    module = random_modules.Module(seed)
    try:
        want = leaves(xlac.interpret(module.text, *module.args))
    except xlac.Error:
        return None
    got = leaves(xlac.compile(module.text, device="cuda")(*module.args))
    wrong = [i for i, (a, b) in enumerate(zip(got, want)) if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes()]
    return f"results {wrong} of module {seed}" if wrong or len(got) != len(want) else None


@pytest.mark.parametrize("seed", [3, 17, 29, 41, 58])
def test_random_modules_have_the_bits_of_the_interpreter(seed):
    gpu.use()
    assert differs(seed) is None


if __name__ == "__main__":
    gpu.use()
    found = [text for text in map(differs, range(int(sys.argv[1]), int(sys.argv[2]))) if text]
    print("\n".join(found) or "all have the interpreter's bits")
    sys.exit(bool(found))
