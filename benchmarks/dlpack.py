"""What taking and handing out an array by DLPack costs, beside NumPy and JAX, in one run.

    python benchmarks/dlpack.py [--rounds 15] [--bytes 64]

Prints, for each way, the least and the median of the rounds in nanoseconds, and whether the memory was shared. Rounds of all ways
take turns, so that a busy machine is busy for all."""
import argparse
import statistics
import time

import numpy as np

import xlac


class Method:
    """An array that speaks by its method alone, as most libraries' do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)


def pointer(x):
    if isinstance(x, xlac.Buffer):
        return x.unsafe_pointer()
    return x.ctypes.data if isinstance(x, np.ndarray) else x.unsafe_buffer_pointer()


def ways(nbytes):
    """{name: (function, source, calls a round)}"""
    array = np.ones(nbytes // 4, np.float32)
    buffer = xlac.from_dlpack(array)
    method = Method(array)
    out = {
        "xlac.from_dlpack(ndarray)": (lambda: xlac.from_dlpack(array), array, 5000),
        "xlac.from_dlpack(Buffer)": (lambda: xlac.from_dlpack(buffer), array, 5000),
        "xlac.from_dlpack(__dlpack__ of ndarray)": (lambda: xlac.from_dlpack(method), array, 5000),
        "Buffer.__dlpack__()": (lambda: buffer.__dlpack__(max_version=(1, 3)), None, 5000),
        "np.from_dlpack(Buffer)": (lambda: np.from_dlpack(buffer), array, 5000),
        "Buffer.numpy()": (buffer.numpy, array, 5000),
        "np.asarray(Buffer)": (lambda: np.asarray(buffer), array, 5000),
        "ndarray.__dlpack__()": (lambda: array.__dlpack__(max_version=(1, 3)), None, 5000),
        "np.from_dlpack(ndarray)": (lambda: np.from_dlpack(array), array, 5000),
    }
    try:
        import jax.numpy as jnp
    except ImportError:
        return out
    theirs = jnp.asarray(array)
    aligned = xlac.from_dlpack(array, copy=True)
    out |= {
        "jnp.from_dlpack(ndarray)": (lambda: jnp.from_dlpack(array), array, 200),
        "jnp.from_dlpack(Buffer)": (lambda: jnp.from_dlpack(aligned), aligned, 200),
        "np.from_dlpack(jax.Array)": (lambda: np.from_dlpack(theirs), theirs, 200),
        "xlac.from_dlpack(jax.Array)": (lambda: xlac.from_dlpack(theirs), theirs, 200),
    }
    return out


def seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--bytes", type=int, default=64)
    options = parser.parse_args()
    table = ways(options.bytes)
    times = {name: [] for name in table}
    for _ in range(options.rounds):
        for name, (function, _, calls) in table.items():
            times[name].append(seconds(function, calls))
    print(f"{'way':42s}{'min ns':>10s}{'median':>10s}  memory")
    for name, (function, source, _) in table.items():
        shared = "" if source is None else "shared" if pointer(function()) == pointer(source) else "copied"
        print(f"{name:42s}{min(times[name]) * 1e9:10.0f}{statistics.median(times[name]) * 1e9:10.0f}  {shared}")


if __name__ == "__main__":
    main()
