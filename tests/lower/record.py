"""Records what TensorFlow gives for small graphs, one a case: `python tests/lower/record.py FILE.jsonl.xz`. Needs TensorFlow 2.21; the
tests need only the file. A case is {name, graph (GraphDef), inputs {name: array}, fetches, outputs}; arrays are [dtype, shape, bytes],
bytes in base64."""
import base64
import importlib
import inspect
import json
import lzma
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

v1 = tf.compat.v1
OTHERWISE = {"t": "x", "e": "y"}
NAMES = {"bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}


def dtype_name(dtype):
    name = np.dtype(dtype).name
    return NAMES.get(name) or name.replace("uint", "u").replace("int", "s").replace("float", "f")


def packed(array):
    array = np.asarray(array)
    return [dtype_name(array.dtype), list(array.shape), base64.b64encode(array.tobytes()).decode()]


class Known:
    """An input that is a constant of the graph."""

    def __init__(self, value, dtype=None):
        self.value = np.asarray(value, dtype)


def known(value, dtype=np.int32):
    return Known(value, dtype)


def pruned(graph, keep):
    """The part of a graph that a run of these nodes runs: initialisers are not part of it."""
    return v1.graph_util.extract_sub_graph(graph, sorted(keep)).SerializeToString()


class Recorder:
    def __init__(self):
        self.cases, self.skipped = {}, []

    def put(self, name, graph, inputs, fetches, outputs, **more):
        assert name not in self.cases, name
        self.cases[name] = {"name": name, "graph": base64.b64encode(graph).decode(), "inputs": {k: packed(v) for k, v in inputs.items()},
                            "fetches": fetches, "outputs": [packed(o) for o in outputs], **more}

    def graph(self, name, build, inputs, **more):
        """build(placeholders...) in a graph of its own gives tensors; inputs are arrays."""
        with v1.Graph().as_default() as g:
            feeds = [v1.placeholder(tf.as_dtype(a.dtype), a.shape, name=f"in{i}") for i, a in enumerate(inputs)]
            found = build(*feeds)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                outputs = session.run(found, dict(zip(feeds, inputs)))
            self.put(name, g.as_graph_def().SerializeToString(), {f"in{i}": a for i, a in enumerate(inputs)}, [t.name for t in found],
                     outputs, **more)

    def variables(self, name, build, inputs, start):
        """build(variables..., placeholders...); start has each variable's first value. The outputs are followed by the variables' last
        values, in order."""
        with v1.Graph().as_default() as g:
            feeds = [v1.placeholder(tf.as_dtype(a.dtype), a.shape, name=f"in{i}") for i, a in enumerate(inputs)]
            vs = [tf.Variable(value, name=key, use_resource=True) for key, value in start.items()]
            found = build(*vs, *feeds)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                outputs = session.run(found, dict(zip(feeds, inputs)))
                last = session.run(vs)
            handles = [v.handle.op.name for v in vs]
        arrays = {f"in{i}": a for i, a in enumerate(inputs)}
        fetched = {t.op.name for t in found}
        self.put(name, pruned(g.as_graph_def(), fetched), arrays, [t.name for t in found], outputs + list(last),
                 variables=dict(zip(handles, [packed(v) for v in start.values()])))

    def op(self, op, *args, label="", fetch=None, tolerance=None, **attrs):
        """One op by its raw name; arguments are arrays (placeholders), Known or lists of these."""
        name, n = f"{op}{'/' + label if label else ''}", 0
        while (full := f"{name}#{n}" if n else name) in self.cases:
            n += 1
        flat, known_at = [], {}

        def place(a):
            if isinstance(a, (list, tuple)):
                return [place(e) for e in a]
            if isinstance(a, Known):
                return a
            flat.append(np.asarray(a))
            return len(flat) - 1

        spec = [place(a) for a in args]
        definition, accepted = op_def_registry.get(op), inspect.signature(getattr(tf.raw_ops, op)).parameters

        def build(*feeds):
            def value(s):
                return [value(e) for e in s] if isinstance(s, list) else tf.constant(s.value) if isinstance(s, Known) else feeds[s]

            found = getattr(tf.raw_ops, op)(**{a.name if a.name in accepted else OTHERWISE.get(a.name, "axis"): value(s) for a, s in zip(definition.input_arg, spec)}, **attrs)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            return [found[i] for i in fetch] if fetch else found

        more = {"tolerance": tolerance} if tolerance else {}
        try:
            self.graph(full, build, flat, **more)
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            self.skipped.append((full, str(error).splitlines()[0][:150]))

    def write(self, path):
        with lzma.open(path, "wt", preset=9) as file:
            for case in self.cases.values():
                file.write(json.dumps(case, separators=(",", ":")) + "\n")


def main(path, *modules):
    recorder = Recorder()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.modules["record"] = sys.modules[__name__]
    for module in modules or ("cases_flow",):
        importlib.import_module(module).record(recorder)
    recorder.write(path)
    for name, why in recorder.skipped:
        print(f"TensorFlow refuses {name}: {why}")
    print(len(recorder.cases), "cases", pathlib.Path(path).stat().st_size, "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
