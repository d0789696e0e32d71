"""`xlac demo`: a transformer block that JAX lowered, compiled, run, and compared with what XLA computed for it."""
import base64
import importlib.resources
import json
import time

import numpy as np

from . import compile, parse

NAME = "transformer_block"
RELATIVE, ABSOLUTE = 1e-5, 1e-5


def read(suffix):
    return (importlib.resources.files("xlac.demos") / f"{NAME}.{suffix}").read_text()


def inputs(facts):
    """The seeded inputs, by name. RandomState's numbers are the same in every version of NumPy."""
    rng = np.random.RandomState(facts["seed"])
    return {row["name"]: (row["scale"] * rng.standard_normal(row["shape"])).astype(np.float32) for row in facts["inputs"]}


def expected(facts):
    row = facts["result"]
    return np.frombuffer(base64.b64decode(row["data"]), row["dtype"]).reshape(row["shape"])


def excerpt(text, want=9):
    """The first lines of the entry computation that are worth reading: neither parameters nor constants."""
    body = text[text.index("ENTRY"):].split("\n")
    busy = [line for line in body[1:] if line and " parameter(" not in line and " constant(" not in line]
    return [body[0]] + busy[:want] + [f"  ... {len(body) - want - 3} more lines"]


def timed(executable, arrays):
    started = time.perf_counter()
    executable(*arrays)
    return time.perf_counter() - started


def main(out=print):
    """Shows the demo; True when the numbers are XLA's."""
    text, facts = read("hlo"), json.loads(read("json"))
    arrays, wanted = inputs(facts), expected(facts)
    out("xlac demo: one transformer block (layer norm, causal attention, MLP), as JAX lowered it\n")
    out("Inputs: seeded normal numbers")
    for name, array in arrays.items():
        out(f"  {name:<10} {array.dtype}{list(array.shape)}")
    started = time.perf_counter()
    module = parse(text)
    module.verify()
    parsed = time.perf_counter()
    executable = compile(module)
    compiled = time.perf_counter()
    result = executable(*arrays.values())
    done = time.perf_counter()
    again = min(timed(executable, arrays.values()) for _ in range(5))
    steps, stats = executable.steps, module.stats()
    out(f"\nProgram: {module.name}, {stats['ops']} ops in {stats['computations']} computations, {len(text)} bytes of HLO")
    out("\n".join("  " + line[:110] for line in excerpt(text)))
    out(f"\nParsed and verified in {1e3 * (parsed - started):.1f} ms, compiled in {1e3 * (compiled - parsed):.1f} ms to {steps['kernels']} "
        f"kernels and {steps['routines']} routines, run in {1e3 * (done - compiled):.1f} ms, "
        f"later in {1e6 * again:.0f} us")
    out(f"\nResult: {result.dtype}{list(result.shape)}, its first numbers beside XLA's")
    for mine, theirs in zip(result.reshape(-1)[:4], wanted.reshape(-1)[:4]):
        out(f"  {mine: .7f}   {theirs: .7f}")
    difference = float(np.abs(result - wanted).max())
    same = result.shape == wanted.shape and np.allclose(result, wanted, rtol=RELATIVE, atol=ABSOLUTE)
    verdict = "agrees with" if same else "DIFFERS from"
    out(f"\nThe result {verdict} {facts['result']['made_by']}: largest difference {difference:.1e} of {wanted.size} numbers")
    if same:
        out("\nNext: xlac run FILE, xlac explain schedule FILE, xlac opt FILE --passes=cse,dce, xlac --help; in a notebook, a module draws itself.")
    return same
