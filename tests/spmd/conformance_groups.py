"""The programs of conformance's Shardy set on as many devices as their meshes have, beside the same programs without shardings.

  XLAC_CONFORMANCE=... python tests/spmd/conformance_groups.py [FIRST [LAST]]

A program counts where it runs on one device once what only says shardings is its operand. What can't be compared says why: meshes of more than 16
devices, several functions and no main, what the set has to be refused."""
# ruff: noqa: E501
import collections
import functools
import json
import lzma
import os
import pathlib
import re
import sys

import ml_dtypes
import numpy as np

import xlac

MOST, LARGE = 16, 1 << 22
DTYPES = {"pred": np.bool_, **{f"{kind}{bits}": np.dtype(f"{name}{bits}") for kind, name in (("s", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
          **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)}, "bf16": ml_dtypes.bfloat16, "c64": np.complex64, "c128": np.complex128}
# In the whole program's view each is the identity. What adds up, or makes parts of a sum, is left alone: it may be on what is whole.
SAYS = re.compile(r"^(\s*%\S+ = )sdy\.(?:reshard|sharding_constraint|all_gather|all_slice|all_to_all|collective_permute)\b.*?(%[\w#]+)[^%\n]* : (tensor<[^\n]*>)$", re.M)


@functools.cache
def cases():
    """[(name, program)]: each program once."""
    found = {}
    with lzma.open(pathlib.Path(os.environ["XLAC_CONFORMANCE"]) / "shardy/cases.jsonl.xz", "rt") as file:
        for row in map(json.loads, file):
            text = row["input"]
            if "sdy.mesh" in text and not row["expected_errors"] and not row["real_error"]:
                found.setdefault(text, row["id"])
    return [(name, text) for text, name in found.items()]


def plain(text):
    """Without shardings."""
    return SAYS.sub(r"\1stablehlo.reshape \2 : (\3) -> \3", text)


def arguments(executable):
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(0)
    made = []
    for port in executable.inputs:
        values = rng.integers(0 if port.dtype == "pred" else 1, 2 if port.dtype == "pred" else 4, port.shape)
        made.append(values.astype(DTYPES[port.dtype]) if port.dtype in DTYPES else values)
    return made


def sizes(text):
    return {int(np.prod([int(n) for n in re.findall(r"=\s*(\d+)", axes)])) for axes in re.findall(r"sdy\.mesh @\S+ = <\[(.*?)\]", text)}


def check(text):
    """("right", ""), or what is the matter, in a word and in more."""
    if min(sizes(text) or {1}) > MOST or max(sizes(text) or {1}) < 2:
        return "its meshes are too large, or of one device", ""
    try:
        one = xlac.compile(xlac.parse(plain(text), format="mlir"), device="interp")
        if any(port.dtype is None or port.shape is None or None in port.shape for port in one.inputs) or sum(int(np.prod(port.shape)) for port in one.inputs) > LARGE:
            return "its arguments are large, or no arrays", ""
        values = arguments(one)
        wanted = one(*values)
    except xlac.Error as error:
        return "it does not run on one device", error.message
    tried, left = [], sorted(size for size in sizes(text) if 1 < size <= MOST)
    for devices in left:
        try:
            many = xlac.compile(xlac.parse(text, format="mlir"), devices=devices, threads=1)
            found = many(*values)
            break
        except xlac.Error as error:
            tried.append(error.message)
            wanted_size = re.search(r"on a mesh of (\d+) devices: expected (\d+)", error.message)  # one that is written in place
            if wanted_size and not 1 < int(wanted_size[1]) <= MOST:
                return "its meshes are too large, or of one device", ""
            if wanted_size and int(wanted_size[2]) not in left:
                left.append(int(wanted_size[2]))
    else:
        return ("its meshes differ in size" if "expected meshes of one size" in tried[-1] else "refused"), tried[-1]
    if whole := many.explain("sharding").data["whole"]:
        return "whole", whole
    wanted, found = (v if isinstance(v, tuple) else [v] for v in (wanted, found))
    same = all(np.allclose(np.asarray(a, np.complex128), np.asarray(b, np.complex128), rtol=1e-3, atol=1e-5, equal_nan=True) for a, b in zip(wanted, found, strict=True))
    return ("right", "") if same else ("wrong", "")


def main(first=0, last=None):
    count = collections.Counter()
    for name, text in cases()[first:last]:
        what, more = check(text)
        count[what] += 1
        if what in ("wrong", "whole", "refused") or "-v" in sys.argv:
            print(f"{what}: {name}: {more[:200]!r}", flush=True)
    for what, n in count.most_common():
        print(f"{n:5} {what}")
    return count["wrong"] + count["whole"]


if __name__ == "__main__":
    sys.exit(min(1, main(*[int(word) for word in sys.argv[1:] if word != "-v"])))
