"""Page faults and time of calls with large results, beside jitted JAX and NumPy, in one run.

  python benchmarks/result_memory.py [--rounds 5] [--mb 1 8 32 128]

The program adds 1 to an array of so many MB. Every round times all sides in turn; printed are minimum and median in milliseconds a call, and
page faults a call in the last round."""
import argparse
import resource
import statistics
import time

import numpy as np


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def sides(n):
    import jax

    import xlac

    x = np.ones(n, np.float32)
    exe = xlac.compile(xlac.parse(f"""HloModule m
ENTRY e {{
  x = f32[{n}] parameter(0)
  one = f32[] constant(1)
  ones = f32[{n}] broadcast(one), dimensions={{}}
  ROOT y = f32[{n}] add(x, ones)
}}"""))
    jitted, on_device = jax.jit(lambda x: x + 1), jax.device_put(x)
    assert (exe(x) == np.asarray(jitted(x))).all()
    return {"xlac": lambda: exe(x), "jax": lambda: jitted(on_device).block_until_ready(), "NumPy": lambda: x + 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=int, nargs="*", default=[1, 8, 32, 128])
    options = parser.parse_args()
    for mb in options.mb:
        calls, found, missed = sides(mb << 18), {}, {}
        for _ in range(options.rounds):
            for name, call in calls.items():
                call()
                before = faults()
                for _ in range(5):
                    start = time.perf_counter()
                    call()
                    found.setdefault(name, []).append(1e3 * (time.perf_counter() - start))
                missed[name] = (faults() - before) / 5
        print(f"{mb:4} MB: " + ", ".join(f"{name} {min(t):.3f} (median {statistics.median(t):.3f}), {missed[name]:.0f} faults"
                                        for name, t in found.items()), flush=True)


if __name__ == "__main__":
    main()
