"""Times of kernels on a GPU, by the GPU's clock, beside torch's in the same run: python benchmarks/cuda.py [MEGABYTES ...].

Memory-bound programs are given as a share of what a copy of the same bytes reaches; products in Tflop/s. Each figure is the least of 20 runs behind 5
that are not counted. On the driver that simulates (XLAC_CUDA_DRIVER) each runs once, with fewer rows to sort, and figures mean nothing."""
import os
import sys
import time

import numpy as np

import xlac

REDUCERS = "".join(f"r_{op} {{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] {op}(x, y) }}\n" for op in ("add", "maximum"))
REDUCERS += "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = pred[] compare(x, y), direction=LT, type=TOTALORDER }\n"
REDUCERS += ("less_with { x = f32[] parameter(0)\n y = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n"
             " ROOT z = pred[] compare(x, y), direction=LT, type=TOTALORDER }\n")
ROW = 4096
SIMULATED = bool(os.environ.get("XLAC_CUDA_DRIVER"))
RUNS = dict(repeat=1, warmup=0) if SIMULATED else dict(repeat=20, warmup=5)


def programs(rows):
    """name: (lines, bytes read and written)"""
    shape, bytes_ = f"f32[{rows},{ROW}]", 4 * rows * ROW
    softmax = ["low = f32[] constant(-inf)", "zero = f32[] constant(0)", f"m = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=r_maximum",
               f"mb = {shape} broadcast(m), dimensions={{0}}", f"d = {shape} subtract(x, mb)", f"e = {shape} exponential(d)",
               f"s = f32[{rows}] reduce(e, zero), dimensions={{1}}, to_apply=r_add", f"sb = {shape} broadcast(s), dimensions={{0}}",
               f"ROOT r = {shape} divide(e, sb)"]
    row = f"f32[{rows}]"
    normal = ["zero = f32[] constant(0)", f"n = f32[] constant({ROW})", f"nb = {row} broadcast(n), dimensions={{}}",
              f"s = {row} reduce(x, zero), dimensions={{1}}, to_apply=r_add", f"m = {row} divide(s, nb)", f"mb = {shape} broadcast(m), dimensions={{0}}",
              f"d = {shape} subtract(x, mb)", f"dd = {shape} multiply(d, d)", f"v = {row} reduce(dd, zero), dimensions={{1}}, to_apply=r_add",
              f"w = {row} divide(v, nb)", "e = f32[] constant(1e-5)", f"eb = {row} broadcast(e), dimensions={{}}", f"we = {row} add(w, eb)",
              f"q = {row} rsqrt(we)", f"qb = {shape} broadcast(q), dimensions={{0}}", f"ROOT r = {shape} multiply(d, qb)"]
    window = f"window={{size=1x{ROW} pad=0_0x{ROW - 1}_0}}"
    return {"copy": ([f"ROOT r = {shape} copy(x)"], 2 * bytes_),
            "elementwise": ([f"t = {shape} tanh(x)", f"ROOT r = {shape} multiply(t, x)"], 2 * bytes_),
            "transpose": ([f"ROOT r = f32[{ROW},{rows}] transpose(x), dimensions={{1,0}}"], 2 * bytes_),
            "sum of rows": (["zero = f32[] constant(0)", f"ROOT r = f32[{rows}] reduce(x, zero), dimensions={{1}}, to_apply=r_add"], bytes_),
            "sum of columns": (["zero = f32[] constant(0)", f"ROOT r = f32[{ROW}] reduce(x, zero), dimensions={{0}}, to_apply=r_add"], bytes_),
            "softmax": (softmax, 2 * bytes_),
            "normalisation": (normal, 2 * bytes_),
            "cumulative sum": (["zero = f32[] constant(0)", f"ROOT r = {shape} reduce-window(x, zero), {window}, to_apply=r_add"], 2 * bytes_),
            "sort of rows": ([f"ROOT r = {shape} sort(x), dimensions={{1}}, to_apply=less"], 2 * bytes_)}


def text(lines, *parameters):
    return "HloModule m\n" + REDUCERS + "ENTRY e {\n" + "\n".join([*parameters, *lines]) + "\n}\n"


def seconds(module, *args):
    """Of all steps of a call together, without the copies of arguments and results."""
    profile = xlac.compile(module, device="cuda").profile(*args, **RUNS)
    return sum(step["min_seconds"] for step in profile.steps)


def torch_seconds(function, *args):
    import torch

    start, end, best = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), float("inf")
    for i in range(25):
        start.record()
        function(*args)
        end.record()
        torch.cuda.synchronize()
        if i >= 5:
            best = min(best, start.elapsed_time(end) * 1e-3)
    return best


def torch_times(x):
    """The same of torch, by name; empty where there is none with a GPU."""
    torch = torch_with_gpu()
    if torch is None:
        return {}
    t = torch.from_numpy(x).cuda()
    functions = {"copy": lambda: t.clone(), "elementwise": lambda: torch.tanh(t) * t, "transpose": lambda: t.t().contiguous(),
                 "sum of rows": lambda: t.sum(1), "sum of columns": lambda: t.sum(0), "softmax": lambda: torch.softmax(t, 1),
                 "normalisation": lambda: torch.nn.functional.layer_norm(t, (ROW,)), "cumulative sum": lambda: t.cumsum(1), "sort of rows": lambda: t.sort(1)}
    return {name: torch_seconds(f) for name, f in functions.items()}


def memory_bound(megabytes):
    rows = max(1, megabytes * (1 << 20) // (4 * ROW))
    x = np.random.default_rng(0).standard_normal((rows, ROW), dtype=np.float32)
    others, copy = torch_times(x), None
    few = min(rows, 2)  # a thread of the simulator for each element and step of a network: minutes for a megabyte
    for name, (lines, bytes_) in (programs(rows) | ({"sort of rows": programs(few)["sort of rows"]} if SIMULATED else {})).items():
        n = few if SIMULATED and name == "sort of rows" else rows
        took = seconds(text(lines, f"x = f32[{n},{ROW}] parameter(0)"), x[:n])
        rate = bytes_ / took * 1e-9 if took else 0.0
        copy = copy or rate
        beside = f", torch {1e6 * others[name]:.1f} us" if name in others else ""
        share = 100 * rate / copy if copy else 0
        print(f"{megabytes:6d} MB  {name:16s} {1e6 * took:9.1f} us  {rate:7.0f} GB/s  {share:5.1f} % of a copy{beside}", flush=True)


def sorts(n):
    """Of one line, alone and with its elements' numbers, as an argsort is; torch.sort always gives both."""
    x = np.random.default_rng(0).standard_normal(n, dtype=np.float32)
    torch = torch_with_gpu()
    t = torch.from_numpy(x).cuda() if torch is not None else None
    beside = f", torch {1e6 * torch_seconds(torch.sort, t):.1f} us" if torch is not None else ""
    forms = {"alone": [f"ROOT r = f32[{n}] sort(x), dimensions={{0}}, to_apply=less"],
             "argsort": [f"i = s32[{n}] iota(), iota_dimension=0", f"ROOT r = (f32[{n}], s32[{n}]) sort(x, i), dimensions={{0}}, to_apply=less_with"]}
    for name, lines in forms.items():
        took = seconds(text(lines, f"x = f32[{n}] parameter(0)"), x)
        print(f"{n:10d} sort of one line, {name:8s} {1e6 * took:9.1f} us  {n / took * 1e-9 if took else 0:7.2f} G elements/s{beside}", flush=True)


def torch_with_gpu():
    """torch, or None where there is none with a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def torch_product(a, t):
    """Seconds of the same product by torch; None where there is none with a GPU."""
    torch = torch_with_gpu()
    if torch is None:
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    x = torch.from_numpy(a).cuda().to({"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[t])
    return torch_seconds(lambda: x @ x)


def products(n, library=True):
    """By cuBLASLt where it is found, or by xlac's own kernels."""
    if not library:
        os.environ["XLAC_CUBLASLT"] = "0"
    a = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    for t in ("f32", "bf16") if library else ("f16", "bf16"):
        lines = [f"x = {t}[{n},{n}] convert(p)", f"d = {t}[{n},{n}] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                 f"ROOT r = f32[{n},{n}] convert(d)"]
        profile = xlac.compile(text(lines, f"p = f32[{n},{n}] parameter(0)"), device="cuda").profile(a, **RUNS)
        took, other = max(step["min_seconds"] for step in profile.steps), torch_product(a, t)
        beside = f", torch {1e6 * other:.1f} us" if other else ""
        print(f"{n:6d}     product {t if library else t + ' own':8s} {1e6 * took:9.1f} us  {2 * n**3 / took * 1e-12 if took else 0:7.2f} Tflop/s{beside}", flush=True)


def attention(length, heads=16, width=64):
    """Of bf16, masked by nothing: two products and a softmax, beside torch's scaled_dot_product_attention."""
    a, s, r = f"bf16[{heads},{length},{width}]", f"f32[{heads},{length},{length}]", f"f32[{heads},{length}]"
    batch = "lhs_batch_dims={0}, rhs_batch_dims={0}"
    lines = [f"{n} = {a} convert(p{i})" for i, n in enumerate("qkv")]
    lines += ["low = f32[] constant(-inf)", "zero = f32[] constant(0)", f"d = {s} dot(q, k), {batch}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}",
              f"c = f32[] constant({width**-0.5})", f"cb = {s} broadcast(c), dimensions={{}}", f"x = {s} multiply(d, cb)",
              f"m = {r} reduce(x, low), dimensions={{2}}, to_apply=r_maximum", f"mb = {s} broadcast(m), dimensions={{0,1}}", f"y = {s} subtract(x, mb)",
              f"e = {s} exponential(y)", f"t = {r} reduce(e, zero), dimensions={{2}}, to_apply=r_add", f"tb = {s} broadcast(t), dimensions={{0,1}}",
              f"g = {s} divide(e, tb)", f"h = {s.replace('f32', 'bf16')} convert(g)",
              f"o = {a} dot(h, v), {batch}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}", f"ROOT r = f32[{heads},{length},{width}] convert(o)"]
    args = [np.random.default_rng(i).standard_normal((heads, length, width), dtype=np.float32) for i in range(3)]
    took = seconds(text(lines, *(f"p{i} = f32[{heads},{length},{width}] parameter({i})" for i in range(3))), *args)
    torch, beside = torch_with_gpu(), ""
    if torch is not None:
        q, k, v = (torch.from_numpy(x)[None].cuda().to(torch.bfloat16) for x in args)
        beside = f", torch {1e6 * torch_seconds(torch.nn.functional.scaled_dot_product_attention, q, k, v):.1f} us"
    print(f"{length:6d}     attention bf16   {1e6 * took:9.1f} us  {4 * heads * length**2 * width / took * 1e-12 if took else 0:7.2f} Tflop/s{beside}", flush=True)


def calls():
    """The host's time for a call of many small kernels, which is one launch of a graph, and for one of a single kernel."""
    lines = ["v0 = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"]
    for i in range(20):
        lines.append(f"t{i} = f32[64,64] tanh(v{i})")
        lines.append(f"v{i + 1} = f32[64,64] dot(t{i}, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    programs_ = {"one kernel": text(["ROOT r = f32[64,64] add(x, x)"], "x = f32[64,64] parameter(0)"),
                 "a graph": text([*lines, "ROOT r = f32[64,64] add(v20, x)"], "x = f32[64,64] parameter(0)")}
    for name, module in programs_.items():
        exe = xlac.compile(module, device="cuda", results="buffer")
        x, best = xlac.asarray(np.ones((64, 64), np.float32) / 64, device="cuda:0"), float("inf")
        for _ in range(50):
            start = time.perf_counter()
            exe(x)
            best = min(best, time.perf_counter() - start)
        print(f"           call, {name:10s} {1e6 * best:9.1f} us", flush=True)


if __name__ == "__main__":
    for size in [int(s) for s in sys.argv[1:]] or [64, 256]:
        memory_bound(size)
    sorts(1 << 14 if SIMULATED else 1 << 24)
    for size in (1024, 4096) if len(sys.argv) == 1 else (64,):
        products(size)
    for size in (1024, 4096) if len(sys.argv) == 1 else (64,):
        attention(size)
    calls()
    for size in (1024, 4096) if len(sys.argv) == 1 else (64,):
        products(size, library=False)
