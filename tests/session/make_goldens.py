"""Writes graphs.jsonl.xz: graphs of real models and the numbers TensorFlow gives for them. Needs tensorflow (2.21 made
the committed file): python tests/session/make_goldens.py [NAME...]; tests/session/recorded.py reads the file.

Each line is one graph: `graph` (the GraphDef's bytes, as latin-1), `initial` (feeds of the initial values and the node
that assigns them), `feeds` for a step, `fetches`, and `steps`: for each step the fetches' values as flat lists. Feeds
are given by formulas (recorded.make), not by numbers. The two forms users have: `graph`, all in one graph as in
TensorFlow 1, and `function`, where a step is a tf.function: a library and a call."""
import json
import lzma
import os
import pathlib
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import recorded  # noqa: E402
import tf_models  # noqa: E402
import optimizers  # noqa: E402

v1 = tf.compat.v1
STEPS = 20


class Variables:
    """Makes variables whose initial values are fed."""

    def __init__(self):
        self.trained, self.others, self.updates = [], [], []
        self.feeds, self.assigns = {}, []

    def __call__(self, name, shape, scale, offset=0.0, train=True):
        with tf.init_scope():
            name = name.replace("/", "_")
            start = v1.placeholder(tf.float32, shape, f"{name}_start")
            variable = tf.Variable(start, name=name, trainable=train)
            self.assigns.append(variable.initializer)
            seed = 1 + len(self.feeds)
            self.feeds[start.name] = {"kind": "normal", "shape": list(shape), "seed": seed, "scale": scale,
                                      "offset": offset}
        (self.trained if train else self.others).append(variable)
        return variable

    def constant(self, name, shape, value):
        """A variable of the optimizer: its initial value is a constant of the graph."""
        with tf.init_scope():
            variable = tf.Variable(tf.fill(list(shape), tf.constant(value, tf.float32)), name=name.replace("/", "_"),
                                   trainable=False)
            self.assigns.append(variable.initializer)
        self.others.append(variable)
        return variable

    def checksum(self):
        """Two numbers a variable."""
        every = [v.read_value() for v in self.trained + self.others]
        return tf.stack([f(v) for v in every for f in (tf.reduce_sum, lambda v: tf.reduce_sum(v * v))])


def train_step(model, optimizer, *inputs):
    """As TensorFlow 1 makes gradients, and in a tf.function as TensorFlow 2 does."""
    variables = Variables()
    if not tf.inside_function():
        loss = model(variables, *inputs)
        gradients = tf.gradients(loss, variables.trained)
    else:
        with tf.GradientTape() as tape:
            loss = model(variables, *inputs)
        gradients = tape.gradient(loss, variables.trained)
    done = [u() for u in variables.updates]
    done += optimizer(variables, gradients)
    with tf.control_dependencies([tf.group(*[d for d in done if d is not None])]):
        return variables, {"loss": loss, "checksum": variables.checksum()}


def infer_step(model, *inputs):
    variables = Variables()
    return variables, model(variables, *inputs)


def build(case):
    """The graph, as the form says, with the initialiser `init` and one node for each fetch."""
    graph = tf.Graph()
    with graph.as_default():
        inputs = [v1.placeholder(s["dtype"], s["shape"], name=n) for n, s in case["feeds"].items()]
        make = (lambda *a: train_step(case["model"], case["optimizer"], *a)) if case.get("optimizer") else (
            lambda *a: infer_step(case["model"], *a))
        if case["form"] == "function":
            kept = []

            @tf.function(autograph=False)
            def step(*a):
                variables, fetches = make(*a)
                kept[:] = [variables]
                return fetches

            fetches = step(*inputs)
            variables = kept[0]
        else:
            variables, fetches = make(*inputs)
        names = {}
        for name, value in fetches.items():
            names[name] = tf.identity(value, name=name).name
        tf.group(*variables.assigns, name="init")
    return graph, variables, names


def slim(graph_def):
    """Without what no reader needs: the names of the Python code's places, shapes that follow from the ops."""
    for nodes in [graph_def.node] + [f.node_def for f in graph_def.library.function]:
        for node in nodes:
            node.ClearField("experimental_debug_info")
            node.ClearField("experimental_type")
            for key in [k for k in node.attr if k.startswith("_output_shapes")]:
                del node.attr[key]
    graph_def.library.ClearField("registered_gradients")
    return graph_def


def run(case):
    loops = case.get("loops", "v2")
    (v1.enable_control_flow_v2 if loops == "v2" else v1.disable_control_flow_v2)()
    graph, variables, names = build(case)
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    steps = []
    with v1.Session(graph=graph, config=config) as session:
        session.run("init", {k: recorded.make(f, 0) for k, f in variables.feeds.items()})
        for step in range(STEPS):
            feeds = {f"{k}:0": recorded.make(f, step) for k, f in case["feeds"].items()}
            values = session.run(names, feeds)
            assert all(np.all(np.isfinite(v)) for v in values.values()), case["name"]
            steps.append([[float(f"{x:.7g}") for x in np.ravel(values[n])] for n in names])
    graph_def = slim(graph.as_graph_def())
    return {"name": case["name"], "form": case["form"], "graph": graph_def.SerializeToString(deterministic=True).decode("latin-1"),
            "initial": {"feeds": variables.feeds, "target": "init"},
            "feeds": {f"{k}:0": f for k, f in case["feeds"].items()}, "fetches": list(names.values()), "steps": steps}


# --- cases ---


def real(*shape, scale=1.0, **more):
    return {"dtype": "float32", "kind": "normal", "shape": list(shape), "seed": 1000 + sum(shape), "scale": scale, **more}


def below(limit, *shape, **more):
    return {"dtype": "int32", "kind": "int", "shape": list(shape), "seed": 2000 + limit, "low": 0, "high": limit, **more}


IMAGES, LABELS = real(4, 12, 12, 3), below(4, 4)
BERT = {"ids": below(24, 3, 7), "lengths": below(8, 3, low=1)}
MASKED = {"places": {**below(7, 5, 2), "columns": [3, 7]}, "words": below(24, 5), "seed": below(1 << 30, 2)}


def cases():
    mlp = {"x": real(6, 10), "labels": below(5, 6)}
    smooth = {"x": real(6, 8), "target": real(6, 3)}
    series = {"x": real(3, 6, 5), "labels": below(4, 3)}
    for name, optimizer in list(optimizers.ALL.items()):
        if name == "slow_momentum":
            continue
        yield f"mlp_{name}", tf_models.mlp, mlp, optimizer, ["graph"] if name != "adam" else ["graph", "function"]
    yield "mlp_smooth_sgd", tf_models.mlp_smooth, smooth, optimizers.ALL["sgd"], ["function"]
    yield "cnn_momentum", tf_models.cnn, {"x": IMAGES, "labels": LABELS}, optimizers.ALL["momentum"], ["graph", "function"]
    yield "cnn_infer", tf_models.cnn_infer, {"x": IMAGES}, None, ["graph"]
    yield "resnet20_momentum", tf_models.resnet20, {"x": real(16, 8, 8, 3), "labels": below(5, 16)}, optimizers.ALL["slow_momentum"], ["graph"]
    yield "lstm_unrolled_adam", tf_models.lstm_unrolled, series, optimizers.ALL["adam"], ["graph"]
    yield "lstm_carried", tf_models.lstm_carried, {"x": series["x"]}, None, ["graph", "function", "graph v1"]
    yield "lstm_array_sgd", tf_models.lstm_loop, series, optimizers.ALL["sgd"], ["graph", "function", "graph v1"]
    yield "bert_adam", tf_models.bert_train, {**BERT, **MASKED}, optimizers.ALL["adam"], ["graph", "function"]
    yield "bert_infer", tf_models.bert_infer, BERT, None, ["graph", "function"]
    yield "gpt_infer", tf_models.gpt_infer, {"ids": below(20, 2, 8)}, None, ["graph", "function"]
    yield "gpt_decode", tf_models.gpt_decode, {"word": below(20, 2), "at": {"dtype": "int32", "kind": "step", "shape": []}}, None, ["graph"]


def main(only):
    lines = []
    for name, model, feeds, optimizer, forms in cases():
        for form in forms:
            form, _, loops = form.partition(" ")
            full = "_".join(filter(None, [name, form if form == "function" else "", loops]))
            if only and full not in only:
                continue
            case = {"name": full, "model": model, "feeds": feeds, "optimizer": optimizer, "form": form, "loops": loops or "v2"}
            line = run(case)
            lines.append(line)
            print(f"{full:28} {len(line['graph']):8} bytes, first {line['steps'][0][0][:2]}, last {line['steps'][-1][0][:2]}")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    packed = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
    print(len(lines), "graphs,", len(packed), "bytes")
    if not only:
        (pathlib.Path(__file__).parent / "graphs.jsonl.xz").write_bytes(packed)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
