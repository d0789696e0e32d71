"""What updates of donated arrays cost, beside NumPy's in place; and that no second array is ever alive.

    python benchmarks/donation.py [--megabytes 256] [--rounds 9]

Rounds of all ways take turns. Prints least and median times, their ratio to NumPy's, and the most memory that a process with one such
array has had while it updated it ten times."""
import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

INCREMENT = "HloModule m, input_output_alias={{ {{}}: (0, {{}}, must-alias) }}\nENTRY e {{\n  x = f32[{n}] parameter(0)\n  k = f32[] constant(1)\n" \
            "  b = f32[{n}] broadcast(k), dimensions={{}}\n  ROOT r = f32[{n}] add(x, b)\n}}\n"
UPDATE = "HloModule m, input_output_alias={{ {{}}: (0, {{}}, must-alias) }}\nENTRY e {{\n  x = f32[{n}] parameter(0)\n  u = f32[4] parameter(1)\n" \
         "  i = s32[] parameter(2)\n  ROOT r = f32[{n}] dynamic-update-slice(x, u, i)\n}}\n"


def peak(n):
    """Runs in a process of its own: megabytes of the array, resident before the updates, and at their peak (Linux)."""
    import xlac
    step = xlac.compile(INCREMENT.format(n=n), threads=1)
    state = xlac.from_dlpack(np.zeros(n, np.float32), copy=True)
    state = step(xlac.donate(state))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak so far
    before = resident("VmRSS")
    for _ in range(10):
        state = step(xlac.donate(state))
    most = resident("VmHWM")
    assert (state == 11).all()
    print(f"{n * 4 / 2**20:.0f} {before:.0f} {most:.0f}")


def resident(name):
    """Megabytes, of this process, now or at the peak."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peak", type=int)
    args = parser.parse_args()
    if args.peak:
        return peak(args.peak)
    import xlac
    n = args.megabytes << 18
    a, state, other = np.zeros(n, np.float32), np.zeros(n, np.float32), np.empty(n, np.float32)
    step, update = xlac.compile(INCREMENT.format(n=n), threads=1), xlac.compile(UPDATE.format(n=n), threads=1)
    u, i = np.ones(4, np.float32), np.int32(5)
    held = {"x": state}

    def donated():
        held["x"] = step(xlac.donate(held["x"]))

    ways = {
        "np.add(a, 1, out=a)": lambda: np.add(a, np.float32(1), out=a),
        "step(xlac.donate(x))": donated,
        "np.copyto(b, a)": lambda: np.copyto(other, a),
        "update of a lent array (protection copy)": lambda: update(a, u, i),
        "update of a donated array": lambda: update(xlac.donate(a), u, i),
    }
    times = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    assert held["x"].ctypes.data == state.ctypes.data
    base = {"step(xlac.donate(x))": "np.add(a, 1, out=a)", "update of a lent array (protection copy)": "np.copyto(b, a)"}
    for name, seconds in times.items():
        line = f"{name:42} min {min(seconds) * 1e3:8.2f} ms  median {statistics.median(seconds) * 1e3:8.2f} ms"
        if name in base:
            of = times[base[name]]
            line += f"  ratio {min(seconds) / min(of):.2f} / {statistics.median(seconds) / statistics.median(of):.2f}"
        print(line)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--peak", str(n)], capture_output=True, text=True, check=True)
    array, before, most = done.stdout.split()
    print(f"one array of {array} MB: {before} MB resident before ten donated updates, {most} MB at their peak")


if __name__ == "__main__":
    main()
