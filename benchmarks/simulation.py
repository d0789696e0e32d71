"""Simulated steps beside real ones: programs on 2, 4 and 8 devices of this process.

  python benchmarks/simulation.py            # the table of docs/simulation.md

CPU seconds of all devices together, the least of many calls, beside what xlac.sharding.simulate says with measure_hardware()."""
import json
import lzma
import math
import pathlib
import sys
import time

import numpy as np

import xlac
import xlac.sharding

ROOT = pathlib.Path(__file__).resolve().parents[1]


def programs():
    """(name, devices, text): the training step of tests/spmd/gpt.py, and a layer of a network larger than caches, cut three ways."""
    rows = map(json.loads, lzma.open(ROOT / "tests/spmd/gpt.jsonl.xz"))
    yield "GPT step, 32 wide", 8, next(row["text"] for row in rows if row["devices"] == 8)
    for devices in (2, 4, 8):
        for name, x, w in (("data", '{"a"}, {}', "{}, {}"), ("columns", "{}, {}", '{}, {"a"}'), ("rows", '{}, {"a"}', '{"a"}, {}')):
            yield f"layer of 1024, {name}", devices, f"""sdy.mesh @mesh = <["a"={devices}]>
func.func @main(%x: tensor<512x1024xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{x}]>}}, %w: tensor<1024x1024xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{w}]>}},
                %v: tensor<1024x1024xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{'{"a"}, {}' if name == "columns" else "{}, {}"}]>}}) -> tensor<512x1024xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
  %1 = stablehlo.tanh %0 : tensor<512x1024xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
  %3 = stablehlo.add %2, %x : tensor<512x1024xf32>
  return %3 : tensor<512x1024xf32>
}}"""


def arguments(exe):
    rng = np.random.default_rng(0)
    for port in exe.inputs:
        kind = np.dtype({"f32": "float32", "s32": "int32"}[port.dtype])
        yield rng.standard_normal(port.shape).astype(kind) / 8 if kind.kind == "f" else rng.integers(0, 32, port.shape).astype(kind)


def measured(text, devices):
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=devices, threads=devices, results="sharded")
    given = []
    for array, leaf in zip(arguments(exe), xlac.sharding.simulate(text, hardware="cpu-ethernet").arguments):
        given.append(xlac.ShardedBuffer.of(array, xlac.sharding.Sharding.parse(leaf["sharding"])) if leaf["sharding"] else array)
    best = math.inf
    for _ in range(25):
        begun = time.process_time()
        exe(*given)
        best = min(best, time.process_time() - begun)
    return best


def main():
    machines = {devices: xlac.sharding.measure_hardware(devices) for devices in (2, 4, 8)}
    print(machines[8])
    errors = []
    print(f"{'program':<24}{'devices':>8}{'measured':>12}{'simulated':>12}{'ratio':>8}")
    for name, devices, text in programs():
        found = xlac.sharding.simulate(text, hardware={**vars(machines[devices]), "at_once": None})
        real, said = measured(text, devices), found.seconds * devices
        errors.append(said / real)
        print(f"{name:<24}{devices:>8}{real * 1e3:>9.2f} ms{said * 1e3:>9.2f} ms{said / real:>8.2f}", flush=True)
    print(f"geometric mean of ratios {math.exp(sum(map(math.log, errors)) / len(errors)):.2f}, from {min(errors):.2f} to {max(errors):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
