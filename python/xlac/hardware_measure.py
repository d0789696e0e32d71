"""What this machine's cores do, as a Hardware: small programs are compiled and run, and their CPU time is counted, the least of many runs."""

import math
import os
import time

import numpy as np

from .hardware import Hardware, Level

SMALL, LARGE = 1 << 15, 1 << 22  # elements: within caches, beyond them
LINKS = 8  # all-reduces in a program
SOME = (32, 32, 8)  # rows, columns and terms of a product that is much slower than a large one


def least(call, seconds=0.05, most=400):
    """CPU seconds of the quickest call."""
    call()
    best, begun = float("inf"), time.process_time()
    for _ in range(most):
        now = time.process_time()
        call()
        best = min(best, time.process_time() - now)
        if time.process_time() - begun > seconds:
            break
    return best


def compiled(body, parameters, **options):
    from . import compile

    names = [f"  x{i} = {kind} parameter({i})\n" for i, kind in enumerate(parameters)]
    return compile(f"HloModule m\nENTRY e {{\n{''.join(names)}{body}\n}}", threads=1, **options)


def floats(*shape):
    return np.full(shape, 0.5, np.float32)


def repeated(n, call):
    """Of calls that are too short for a clock: n at a time."""

    def many():
        for _ in range(n):
            call()

    return lambda: least(many) / n


def elementwise(body, n):
    exe = compiled(body.replace("N", str(n)), [f"f32[{n}]", f"f32[{n}]"])
    x, y, out = floats(n), floats(n), floats(n)
    return repeated(max(1, (1 << 18) // n), lambda: exe(x, y, out=out))()


def chain(op, times, start="x0"):
    lines = [f"  v{i} = f32[N] {op}({start if i == 0 else f'v{i - 1}'}, x1)\n" for i in range(times)]
    return "".join(lines) + f"  ROOT r = f32[N] add(v{times - 1}, x1)"


def tiny_steps():
    """Seconds that one step more takes: products of 4 x 4 that are never one kernel."""
    times = {}
    for n in (10, 110):
        lines = [f"  d{i} = f32[4,4] dot({'x0' if i == 0 else f'd{i - 1}'}, x1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                 for i in range(n)]
        exe = compiled("".join(lines) + f"  ROOT r = f32[4,4] negate(d{n - 1})", ["f32[4,4]", "f32[4,4]"])
        x = floats(4, 4)
        times[n] = repeated(50, lambda exe=exe, x=x: exe(x, x))()
    return max(1e-9, (times[110] - times[10]) / 100)


def mixed(rows, columns):
    """Bytes a second that steps go through which stay in caches: sums of rows, differences and transpositions, one after another."""
    from . import compile

    times = {}
    for n in (4, 24):
        lines = [f"""  m{i} = f32[{rows}] reduce(v{i}, z), dimensions={{1}}, to_apply=add
  b{i} = f32[{rows},{columns}] broadcast(m{i}), dimensions={{0}}
  d{i} = f32[{rows},{columns}] subtract(v{i}, b{i})
  t{i} = f32[{columns},{rows}] transpose(d{i}), dimensions={{1,0}}
  v{i + 1} = f32[{rows},{columns}] reshape(t{i})""" for i in range(n)]
        exe = compile("HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
                      f"ENTRY e {{\n  v0 = f32[{rows},{columns}] parameter(0)\n  z = f32[] constant(0)\n" + "\n".join(lines)
                      + f"\n  ROOT r = f32[{rows},{columns}] negate(v{n}) }}", threads=1)
        x = floats(rows, columns)
        times[n] = repeated(10, lambda exe=exe, x=x: exe(x))()
    return 4 * (5 * rows * columns + 2 * rows) * 20 / max(1e-9, times[24] - times[4])


def link(devices):
    """(seconds of beginning a call on a device, latency, bandwidth) of a device's link: a call that sends nothing, and all-reduces of little, one
    after another, and of much, whose time is as links.py has it."""
    from . import compile

    seconds, groups = {}, f"replica_groups={{{{{','.join(map(str, range(devices)))}}}}}, to_apply=add"
    for many, n in ((0, 64), (LINKS, 64), (1, 1 << 20)):
        sums = "".join(f"  x{i + 1} = f32[{n}] all-reduce(x{i}), {groups}\n" for i in range(many))
        text = f"""HloModule m, num_partitions={devices}
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{ x0 = f32[{n}] parameter(0)
{sums}  ROOT r = f32[{n}] negate(x{many}) }}"""
        exe, x = compile(text, devices=devices, threads=devices, async_work=1), floats(n)  # on threads, as steps of any size run
        seconds[many] = repeated(1 if n > 64 else 20, lambda exe=exe, x=x: exe(x))() / devices
    steps, share = 2 * (devices - 1).bit_length(), 2 * (devices - 1) / devices
    latency = max(1e-8, (seconds[LINKS] - seconds[0]) / LINKS / steps)
    return seconds[0], latency, share * 4 * (1 << 20) / max(1e-9, seconds[1] - seconds[0])


def products(batches, rows, columns, terms):
    """Operations a second of so many products at once, each of rows that lie between those of the others, as attention has them."""
    a, b = (batches, rows, terms), (batches, columns, terms)
    if batches > 1:
        a, b = ((size, batches, terms) for size in (rows, columns))
    at = 1 if batches > 1 else 0
    exe = compiled(f"  ROOT d = f32[{batches},{rows},{columns}] dot(x0, x1), lhs_batch_dims={{{at}}}, rhs_batch_dims={{{at}}}, "
                   "lhs_contracting_dims={2}, rhs_contracting_dims={2}", ["f32" + str(list(shape)) for shape in (a, b)])
    x, y = floats(*a), floats(*b)
    return 2 * batches * rows * columns * terms / repeated(1 if batches == 1 else 10, lambda: exe(x, y))()


def half_length(large, small, n, sizes):
    """(rate of products without end, length at which each dimension costs twice), where products of n x n x n do `large` operations a second and
    those of `sizes` do `small`. The ratio of the two grows with the length: it is found by halving."""
    low, high = 0.0, float(n)
    for _ in range(60):
        h = (low + high) / 2
        ratio = math.prod(1 + h / size for size in sizes) / (1 + h / n) ** 3
        low, high = (h, high) if ratio < large / small else (low, h)
    return large * (1 + low / n) ** 3, low


def measure_hardware(devices=2):
    """This machine as a Hardware whose devices are threads of one process: `matrix`, `vector` and memory of one core, and the link of a group of
    `devices`. CPU time is counted, so that other work on the machine matters little. Takes some seconds."""
    if isinstance(devices, bool) or not isinstance(devices, int) or not 2 <= devices <= 64:
        from .codes import Code
        from .errors import ArgumentError

        raise ArgumentError(f"devices: {devices!r}; expected a number from 2 to 64", Code.BAD_ARGUMENT)
    matrix, half = half_length(products(1, 512, 512, 512), products(64, *SOME), 512, SOME)
    one, many = elementwise(chain("multiply", 2), SMALL), elementwise(chain("multiply", 66), SMALL)
    vector = 64 * SMALL / max(1e-9, many - one)
    tanh = elementwise("  t = f32[N] tanh(x0)\n  ROOT r = f32[N] add(t, x1)", SMALL) - elementwise("  ROOT r = f32[N] add(x0, x1)", SMALL)
    cached = mixed(256, 32)
    memory = 12 * LARGE / elementwise("  ROOT r = f32[N] add(x0, x1)", LARGE)
    begins, latency, bandwidth = link(devices)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 16e9
    return Hardware("this machine", {"default": matrix}, vector, float(total), memory, (Level(None, bandwidth, latency),), step_seconds=tiny_steps(),
                    matrix_efficiency=1.0, memory_efficiency=1.0, transcendental_flops=max(1.0, tanh / SMALL * vector), overlaps=False,
                    cache_bytes=float(1 << 20), cache_bandwidth=cached, at_once=cpus, half_length=half, call_seconds=begins,
                    sources=("measure_hardware()",))
