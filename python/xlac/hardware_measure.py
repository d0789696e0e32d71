"""What this machine's cores do, as a Hardware: small programs are compiled and run, and their CPU time is counted, the least of many runs."""
import os
import time

import numpy as np

from .hardware import Hardware, Level

TINY, SMALL, LARGE = 16, 1 << 15, 1 << 22  # elements: overhead alone, within caches, beyond them


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


def link(devices):
    """(latency, bandwidth) of a device's link: all-reduces of little and of much, whose time is as links.py has it."""
    seconds = {}
    for n in (64, 1 << 20):
        text = f"""HloModule m, num_partitions={devices}
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[{n}] parameter(0) ROOT s = f32[{n}] all-reduce(x), replica_groups={{{{{','.join(map(str, range(devices)))}}}}}, to_apply=add }}"""
        from . import compile

        exe, x = compile(text, devices=devices, threads=devices, async_work=1), floats(n)  # on threads, as steps of any size run
        seconds[n] = repeated(1 if n > 64 else 20, lambda exe=exe, x=x: exe(x))() / devices
    steps, share = 2 * (devices - 1).bit_length(), 2 * (devices - 1) / devices
    latency = max(1e-8, seconds[64] / steps)
    return latency, share * 4 * (1 << 20) / max(1e-9, seconds[1 << 20] - seconds[64])


def measure_hardware(devices=2):
    """This machine as a Hardware whose devices are threads of one process: `matrix`, `vector` and memory of one core, and the link of a group of
    `devices`. CPU time is counted, so that other work on the machine matters little. Takes some seconds."""
    if isinstance(devices, bool) or not isinstance(devices, int) or not 2 <= devices <= 64:
        from .codes import Code
        from .errors import ArgumentError

        raise ArgumentError(f"devices: {devices!r}; expected a number from 2 to 64", Code.BAD_ARGUMENT)
    a = floats(512, 512)
    product = compiled("  ROOT d = f32[512,512] dot(x0, x1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["f32[512,512]", "f32[512,512]"])
    matrix = 2 * 512 ** 3 / least(lambda: product(a, a), 0.3)
    overhead = elementwise("  ROOT r = f32[N] add(x0, x1)", TINY)
    one, many = elementwise(chain("multiply", 2), SMALL), elementwise(chain("multiply", 66), SMALL)
    vector = 64 * SMALL / max(1e-9, many - one)
    tanh = elementwise("  t = f32[N] tanh(x0)\n  ROOT r = f32[N] add(t, x1)", SMALL) - elementwise("  ROOT r = f32[N] add(x0, x1)", SMALL)
    cached = 12 * SMALL / max(1e-9, elementwise("  ROOT r = f32[N] add(x0, x1)", SMALL) - overhead)
    memory = 12 * LARGE / elementwise("  ROOT r = f32[N] add(x0, x1)", LARGE)
    latency, bandwidth = link(devices)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 16e9
    return Hardware("this machine", {"default": matrix}, vector, float(total), memory, (Level(None, bandwidth, latency),), step_seconds=tiny_steps(),
                    matrix_efficiency=1.0, memory_efficiency=1.0, transcendental_flops=max(1.0, tanh / SMALL * vector), overlaps=False,
                    cache_bytes=float(1 << 20), cache_bandwidth=cached, at_once=cpus, sources=("measure_hardware()",))
