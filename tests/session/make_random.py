"""Writes random.json: what TensorFlow's seeded random ops give at their first two runs. Needs tensorflow (2.21 made the committed
file); test_random.py reads it. Each row: op, element type, shape, seeds, two lists of numbers."""
import json
import os
import pathlib

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

SEEDS = {"seed": 87654321, "seed2": 5}


def record(op, build):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        result = build(getattr(tf.raw_ops, op))
        runs = [session.run(result) for _ in range(2)]
    return [op, runs[0].dtype.name, list(runs[0].shape), SEEDS, [np.ravel(r).astype("f8").tolist() for r in runs]]


def main():
    rows = []
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            rows.append(record(op, lambda make: make(shape=[3, 3], dtype=dtype, **SEEDS)))
    for dtype in ("int32", "int64"):
        rows.append(record("RandomUniformInt", lambda make: make(shape=[7], minval=tf.constant(-5, dtype), maxval=tf.constant(1000003, dtype), **SEEDS)))
    for shape in ([11], [7, 2]):
        rows.append(record("RandomShuffle", lambda make: make(value=tf.reshape(tf.range(int(np.prod(shape))), shape), **SEEDS)))
    text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
    (pathlib.Path(__file__).parent / "random.json").write_text(text)


if __name__ == "__main__":
    main()
