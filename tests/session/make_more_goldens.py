"""Writes more_graphs.jsonl.xz: further models, six steps each, in the form of make_goldens.py, which has more on it. Needs tensorflow
2.21: python tests/session/make_more_goldens.py FILE [NAME...]. Forms beside `graph` and `function`: `frozen`, variables having become
constants and functions written out; `dyn`: the number of examples is not known; `v1`: control flow of TensorFlow 1."""
import json
import lzma
import pathlib
import sys

import make_goldens as first
import optimizers
import recorded
import tensorflow as tf
import tf_learning as learning
import tf_sequences as sequences
import tf_vision as vision
from make_goldens import below, real

v1 = tf.compat.v1
STEPS = 6
IMAGES, LABELS = real(4, 12, 12, 3), below(5, 4)
SERIES, CLASSES, LENGTHS = real(3, 6, 5), below(4, 3), below(7, 3, low=1)
LABELLED = {"x": IMAGES, "labels": LABELS}
SEED = below(1 << 30, 2)


def cases():
    """(model, feeds, optimizer, forms, tolerance)"""
    yield vision.unet, {"x": IMAGES, "target": real(4, 12, 12, offset=0.5, scale=0.2)}, "adam", ["function dyn"], None
    yield vision.mobilenet, LABELLED, "nesterov", ["function"], None
    yield vision.efficientnet, {**LABELLED, "seed": SEED}, "rmsprop", ["function dyn"], None
    yield vision.group_norm_net, LABELLED, "sgd", ["graph"], None
    yield vision.detector, {"x": real(2, 12, 12, 3)}, None, ["frozen"], None
    yield vision.crops, {"x": real(2, 8, 8, 3), "boxes": real(5, 4, scale=0.2, offset=0.5)}, None, ["graph"], None
    yield vision.augment, {"x": IMAGES, "seed": SEED}, None, ["graph"], None
    yield vision.gan, {"x": IMAGES, "z": real(4, 5)}, None, ["graph"], None
    yield vision.vae, {"x": real(4, 5, 5, 2)}, "adam", ["function"], None
    yield vision.simclr, {"x": IMAGES, "other": real(4, 12, 12, 3, offset=0.1)}, "adagrad", ["function dyn"], None
    yield vision.vision_transformer, LABELLED, "keras_adam", ["graph"], None
    yield vision.quantized, LABELLED, "sgd", ["function dyn"], None
    yield vision.nerf, {"origins": real(5, 3), "directions": real(5, 3, offset=0.2)}, "adam", ["graph"], None
    yield vision.super_resolution, {"x": IMAGES}, None, ["frozen"], None
    yield sequences.translate, {"source": below(20, 3, 6), "target": below(20, 3, 7)}, "adam", ["function dyn"], None
    yield sequences.bidirectional_gru, {"x": SERIES, "lengths": LENGTHS, "labels": CLASSES}, "rmsprop", ["function dyn"], None
    yield sequences.scanned_rnn, {"x": SERIES, "labels": CLASSES}, "sgd", ["graph"], None
    yield sequences.word2vec, {"words": below(30, 6), "context": below(29, 6), "sampled": below(28, 8)}, "adagrad", ["function"], None
    yield sequences.crf, {"x": SERIES, "tags": below(4, 3, 6), "lengths": LENGTHS}, "sgd", ["function"], None
    yield sequences.viterbi, {"x": SERIES}, None, ["frozen", "graph v1"], None
    yield sequences.ctc, {"x": real(3, 8, 5), "labels": below(5, 3, 3), "lengths": below(4, 3, low=1)}, "sgd", ["function"], None
    yield sequences.beam_search, {"word": below(12, 2, low=1)}, None, ["graph", "function dyn"], None
    yield sequences.greedy_attention, {"x": SERIES}, None, ["function"], None
    yield sequences.wavenet, {"x": real(3, 10, 4)}, None, ["frozen"], None
    yield sequences.spectrogram, {"sound": real(2, 50)}, None, ["graph"], None
    yield sequences.layer_norm_lstm, {"x": SERIES, "labels": CLASSES}, "sgd", ["function"], None
    tables = {"users": below(20, 6), "items": below(90, 6), "price": real(6), "rating": real(6, offset=1.0)}
    yield learning.recommender, tables, "adagrad", ["function dyn"], None
    yield learning.bags, {"ids": below(20, 9), "rows": below(4, 9), "weights": real(9)}, "sgd", ["graph"], None
    nodes = {"x": real(7, 4), "sources": below(7, 12), "targets": below(6, 12), "graphs": below(3, 7), "labels": below(3, 6)}
    yield learning.graph_network, nodes, "sgd", ["function"], None
    yield learning.sparse_adjacency, {"x": real(6, 3), "edges": below(6, 8, 2)}, None, ["graph"], None
    played = {"state": real(5, 6), "action": below(3, 5), "reward": real(5), "after": real(5, 6, offset=0.1), "done": below(3, 5)}
    yield learning.q_learning, played, "keras_adam", ["function"], None
    yield learning.policy, {"states": real(8, 6), "rewards": real(8)}, "sgd", ["graph"], None
    yield learning.experts, {"x": real(8, 6), "labels": below(5, 8)}, "sgd", ["function dyn"], None
    yield learning.gaussian_process, {"x": real(6, 2), "y": real(6)}, "sgd", ["function dyn"], None
    yield learning.kalman, {"z": real(9)}, None, ["graph"], None
    yield learning.physics, {"points": real(6, 1)}, "adam", ["graph"], None
    yield learning.jacobians, {"x": real(3, 4)}, None, ["graph"], None
    yield learning.integrate, {"x": real(4, 3)}, "sgd", ["function"], None
    yield learning.mixed_precision, LABELLED, None, ["function"], 2e-2  # sums of bfloat16 in another order
    yield mixed_half, LABELLED, None, ["graph"], 2e-3
    yield learning.k_means, {"x": real(10, 2, scale=2.0)}, None, ["function"], None
    yield learning.metrics, {"labels": below(4, 9), "scores": real(9, 4)}, None, ["graph"], None
    yield learning.nested, {"x": real(4), "n": below(8)}, None, ["graph", "function", "graph v1"], None
    yield learning.numbers, {"x": real(5, 3), "k": below(5000, 5)}, None, ["graph"], None
    yield learning.special, {"x": real(9)}, None, ["graph"], None
    yield learning.decompositions, {"x": real(4, 3)}, None, ["function"], None


def mixed_half(var, x, labels):
    return learning.mixed_precision(var, x, labels, tf.float16)


def open_ended(placeholder):
    """The first size of every feed is unknown."""

    def make(dtype, shape=None, name=None):
        known = name.endswith("_start") or name == "seed" or not shape
        return placeholder(dtype, shape if known else [None, *shape[1:]], name)

    return make


def frozen(case):
    """Of a case in the form `graph` its graph without variables."""
    v1.enable_control_flow_v2()
    graph, variables, names = first.build(case)
    with v1.Session(graph=graph) as session:
        session.run("init", {k: recorded.make(f, 0) for k, f in variables.feeds.items()})
        kept = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), [n.split(":")[0] for n in names.values()])
    return first.slim(kept).SerializeToString(deterministic=True).decode("latin-1")


def record(name, model, feeds, optimizer, form, tolerance):
    form, _, mode = form.partition(" ")
    case = {"name": name, "model": model, "feeds": feeds, "optimizer": optimizers.ALL.get(optimizer), "loops": mode if mode == "v1" else "v2",
            "form": "function" if form == "function" else "graph"}
    placeholder = v1.placeholder
    if mode == "dyn":
        v1.placeholder = open_ended(placeholder)
    line = first.run(case)
    if form == "frozen":
        line.update(graph=frozen(case), initial={"feeds": {}, "target": None}, form=form)
    v1.placeholder = placeholder
    return {**line, "tolerance": tolerance} if tolerance else line


def main(path, *only):
    first.STEPS, lines = STEPS, []
    for model, feeds, optimizer, forms, tolerance in cases():
        for form in forms:
            name = "_".join([model.__name__, *([form.replace(" ", "_")] if form != "graph" else [])])
            if only and name not in only:
                continue
            lines.append(record(name, model, feeds, optimizer, form, tolerance))
            print(name, len(lines[-1]["graph"]), lines[-1]["steps"][-1][0][:2], flush=True)
    packed = lzma.compress("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    print(len(lines), "graphs,", len(packed), "bytes")
    pathlib.Path(path).write_bytes(packed)


if __name__ == "__main__":
    main(*sys.argv[1:])
