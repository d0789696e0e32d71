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


def measured():
    """The demo's program, what it gave, how long that took, and whether the numbers are XLA's."""
    text, facts = read("hlo"), json.loads(read("json"))
    arrays, wanted = inputs(facts), expected(facts)
    started = time.perf_counter()
    module = parse(text)
    module.verify()
    parsed = time.perf_counter()
    executable = compile(module)
    compiled = time.perf_counter()
    result = executable(*arrays.values())
    done = time.perf_counter()
    again = min(timed(executable, arrays.values()) for _ in range(5))
    same = result.shape == wanted.shape and np.allclose(result, wanted, rtol=RELATIVE, atol=ABSOLUTE)
    return {"program": module.name, **{key: module.stats()[key] for key in ("ops", "computations")},
            **{key: executable.steps[key] for key in ("kernels", "routines")}, "inputs": {name: typed(array) for name, array in arrays.items()},
            "result": typed(result), "seconds": {"parse": parsed - started, "compile": compiled - parsed, "first_run": done - compiled, "run": again},
            "agrees": bool(same), "beside": facts["result"]["made_by"], "largest_difference": float(np.abs(result - wanted).max()),
            "text": text, "arrays": arrays, "numbers": result, "wanted": wanted}


def typed(array):
    return f"{array.dtype}{list(array.shape)}"


def show(found):
    """The same in words."""
    seconds = found["seconds"]
    print("xlac demo: one transformer block (layer norm, causal attention, MLP), as JAX lowered it\n")
    print("Inputs: seeded normal numbers")
    for name, kind in found["inputs"].items():
        print(f"  {name:<10} {kind}")
    print(f"\nProgram: {found['program']}, {found['ops']} ops in {found['computations']} computations, {len(found['text'])} bytes of HLO")
    print("\n".join("  " + line[:110] for line in excerpt(found["text"])))
    print(f"\nParsed and verified in {1e3 * seconds['parse']:.1f} ms, compiled in {1e3 * seconds['compile']:.1f} ms to {found['kernels']} "
        f"kernels and {found['routines']} routines, run in {1e3 * seconds['first_run']:.1f} ms, "
        f"later in {1e6 * seconds['run']:.0f} us")
    print(f"\nResult: {found['result']}, its first numbers beside XLA's")
    for mine, theirs in zip(found["numbers"].reshape(-1)[:4], found["wanted"].reshape(-1)[:4]):
        print(f"  {mine: .7f}   {theirs: .7f}")
    verdict = "agrees with" if found["agrees"] else "DIFFERS from"
    print(f"\nThe result {verdict} {found['beside']}: largest difference {found['largest_difference']:.1e} of {found['wanted'].size} numbers")
    if found["agrees"]:
        print("\nNext: xlac run FILE, xlac explain schedule FILE, xlac opt FILE --passes=cse,dce, xlac --help; in a notebook, a module draws itself.")
