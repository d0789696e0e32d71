"""Ten programs of any size, each as JAX, PyTorch and NumPy would write it: what benchmarks/peers.py times.

A row is: the functions, the shapes of the arguments for about n elements, and what a call does at least: flops and bytes for n elements."""
import math


def side(n, multiple=1):
    return max(multiple, int(math.sqrt(n)) // multiple * multiple)


def rows(width):
    return lambda n: (max(1, n // width), width)


def adam(m):
    """Of one step: m is jax.numpy, torch or numpy."""
    def step(p, g, a, b):
        a, b = 0.9 * a + 0.1 * g, 0.999 * b + 0.001 * g * g
        return p - 0.001 * a / (m.sqrt(b) + 1e-8), a, b
    return step


def gelu(m):
    return lambda x: 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(m, maximum):
    def run(x):
        e = m.exp(x - maximum(x))
        return e / e.sum(-1, keepdims=True)
    return run


def layer_norm(m):
    def run(x):
        d = x - x.mean(-1, keepdims=True)
        return d / m.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
    return run


def of_jax():
    import jax.numpy as m

    return {"adam": adam(m), "exp": m.exp, "gelu": gelu(m), "softmax": softmax(m, lambda x: x.max(-1, keepdims=True)), "layer_norm": layer_norm(m),
            "sum": lambda x: x.sum(), "transpose": lambda x: x.T + 1, "product": lambda x, y: x @ y, "gather": lambda x, i: x[i], "cumsum": lambda x: m.cumsum(x, -1)}


def of_numpy():
    import numpy as m

    return {"adam": adam(m), "exp": m.exp, "gelu": gelu(m), "softmax": softmax(m, lambda x: x.max(-1, keepdims=True)), "layer_norm": layer_norm(m),
            "sum": lambda x: x.sum(), "transpose": lambda x: m.ascontiguousarray(x.T + 1), "product": lambda x, y: x @ y, "gather": lambda x, i: x[i],
            "cumsum": lambda x: m.cumsum(x, -1)}


def of_torch():
    import torch as m
    import torch.nn.functional as f

    return {"adam": adam(m), "exp": m.exp, "gelu": lambda x: f.gelu(x, approximate="tanh"), "softmax": lambda x: f.softmax(x, -1),
            "layer_norm": lambda x: f.layer_norm(x, x.shape[-1:], None, None, 1e-5), "sum": lambda x: x.sum(),
            "transpose": lambda x: (x.T + 1).contiguous(), "product": lambda x, y: x @ y, "gather": lambda x, i: x[i], "cumsum": lambda x: m.cumsum(x, -1)}


# name: (shapes of n elements, flops an element, arrays of n floats that are read or written, the most elements)
PROGRAMS = {
    "adam": (lambda n: [(n,)] * 4, 12, 7, 10**7), "exp": (lambda n: [(n,)], 10, 2, 10**7), "gelu": (lambda n: [(n,)], 18, 2, 10**7),
    "softmax": (lambda n: [rows(100)(n)], 13, 2, 10**7), "layer_norm": (lambda n: [rows(100)(n)], 7, 2, 10**7),
    "sum": (lambda n: [(n,)], 1, 1, 10**7), "transpose": (lambda n: [(side(n), side(n))], 1, 2, 10**7),
    "product": (lambda n: [(side(n), side(n))] * 2, None, 3, 10**6), "gather": (lambda n: [rows(50)(n), ("indexes", max(1, n // 50))], 0, 2, 10**7),
    "cumsum": (lambda n: [rows(100)(n)], 1, 2, 10**7),
}


def flops(name, n):
    per = PROGRAMS[name][1]
    return 2.0 * side(n) ** 3 if per is None else float(per * n)


def arguments(name, n):
    """NumPy arrays, the same in every process."""
    import numpy as np

    rng, out = np.random.default_rng(n), []
    for shape in PROGRAMS[name][0](n):
        if shape[0] == "indexes":
            out.append(rng.integers(0, out[0].shape[0], shape[1], dtype=np.int32))
        else:
            out.append(rng.uniform(0.1, 1.1, shape).astype(np.float32))
    return out
