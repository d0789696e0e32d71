"""The tables and pictures of docs/performance.md from what benchmarks/peers.py measured: nothing here is measured but what the machine can do."""
import json
import math
import os
import pathlib
import platform
import statistics
import time

from peers_causes import cause_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENGINES = ("xlac", "xlac-fast", "xla", "torch", "torch-compile", "iree", "numpy")
SIZES = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
OPS = (10, 100, 1000, 10_000, 100_000)
BUSY = 3.0  # load of a machine with two CPUs on which something else ran too
# The kinds that issue and table name: what is asked of each is the best peer's time.
NAMED = {"elementwise and transcendental chains": ["exp_4m", "transc_1m", "poly64_1m", "gelu_64k", "gelu_16m"],
         "random numbers, beside PyTorch's own generators": ["rng_normal_4m", "rng_uniform_10m"],
         "sums and variances of rows and columns": ["rowsum_4k", "colsum_4k", "var_4k"], "attention": ["attn_s128", "attn_s512"], "LSTM": ["lstm_128"],
         "ResNet-18": ["resnet18_b1"], "product of bytes": ["dot_s8_1024"], "transposes and copies": ["transpose_4k", "transpose_chain", "concat_slice"]}


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, (tuple, list)) else [value]


def timed(call, budget):
    """Seconds: least and median of the wall, and processor seconds a call. Calls under 200 us are timed some at a time, of long ones few are made."""
    call()
    start = time.perf_counter()
    call()
    some = max(1, int(2e-4 / max(1e-7, time.perf_counter() - start)))
    times, processor, start = [], time.process_time(), time.perf_counter()
    while not times or time.perf_counter() - start < (budget if len(times) >= 3 else 6 * budget) and len(times) < 2000:
        begin = time.perf_counter()
        for _ in range(some):
            call()
        times.append((time.perf_counter() - begin) / some)
    return min(times), statistics.median(times), (time.process_time() - processor) / (len(times) * some)


def results(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def peaks(threads):
    """{"bytes": {size of an array: bytes a second of NumPy's copy}, "flops": a second of OpenBLAS's product}: what this machine does now, for distances."""
    import numpy as np

    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    found = {}
    for size in (4 * n for n in SIZES):
        a, b = np.ones(size // 4, np.float32), np.zeros(size // 4, np.float32)
        found[size] = 2 * size / timed(lambda x=a, y=b: np.copyto(y, x), 0.2)[0]
    a = np.ones((1024, 1024), np.float32)
    return {"bytes": found, "flops": 2 * 1024**3 / timed(lambda: a @ a, 0.5)[0]}


def limit_of(bytes_, flops, size, peak):
    """Seconds: bytes at a copy's speed, or flops at a product's. size: of one array, in bytes."""
    near = min(peak["bytes"], key=lambda s: abs(math.log(s / max(size, 1))))
    return max(bytes_ / peak["bytes"][near], flops / peak["flops"])


def best(rows, *key):
    """{(engine, *key): the row whose `what` is least over the rounds}"""
    found = {}
    for row in rows:
        at = (row["engine"], *(row[k] for k in key))
        if "error" not in row and ("least" in row or row["kind"] == "compile"):
            measure = "compile_cpu" if row["kind"] == "compile" else "least"
            if at not in found or row[measure] < found[at][measure]:
                found[at] = row
    return found


def shown(seconds):
    return f"{seconds * 1e6:,.1f}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"


def geomean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def engines_of(found):
    return [e for e in ENGINES if any(key[0] == e for key in found)]


def times_cells(cells):
    return [f"{shown(c['least'])} / {shown(c['median'])}" if c else "-" for c in cells]


def peer_ratios(found, *at):
    """Of one program: (best peer's time / xlac's, the same of processor time, the peer), or None."""
    ours, peers = found.get(("xlac", *at)), [row for key, row in found.items() if key[1:] == at and not key[0].startswith("xlac")]
    if not ours or not peers:
        return None
    first = min(peers, key=lambda row: row["least"])
    return first["least"] / ours["least"], min(row["cpu"] for row in peers) / max(ours["cpu"], 1e-9), first["engine"]


def sizes_table(rows, peak):
    import peers_programs

    found, lines = best(rows, "name", "n"), []
    engines = engines_of(found)
    for name in dict.fromkeys(key[1] for key in found):
        for n in [n for n in SIZES if ("xlac", name, n) in found and n in (1000, 100_000, 10_000_000, 1_000_000)]:
            ours, ratios = found["xlac", name, n], peer_ratios(found, name, n)
            limit = limit_of(4 * n * peers_programs.PROGRAMS[name][2], peers_programs.flops(name, n), 4 * n, peak)
            lines.append([name, f"{n:,}", *times_cells([found.get((e, name, n)) for e in engines]), f"{ours.get('off') or 0:.0e}",
                          f"{ours['least'] / limit:.1f}", *([f"{ratios[0]:.2f}", f"{ratios[1]:.2f}"] if ratios else ["-", "-"])])
    return table(["program", "elements", *engines, "off", "xlac / limit", "best peer / xlac", "the same, CPU"], lines)


def summary(rows, *key):
    """Ratios to each peer over all that both ran: geometric mean, and on how many xlac is slower. Wall and processor time."""
    found, lines = best(rows, *key), []
    for engine in ENGINES[1:]:
        pairs = [(found["xlac", *at[1:]], row) for at, row in found.items() if at[0] == engine and ("xlac", *at[1:]) in found]
        if pairs:
            wall, cpu = ([theirs[k] / max(ours[k], 1e-9) for ours, theirs in pairs] for k in ("least", "cpu"))
            lines.append([engine, str(len(pairs)), f"{geomean(wall):.2f}", str(sum(r < 0.97 for r in wall)), f"{geomean(cpu):.2f}", str(sum(r < 0.97 for r in cpu))])
    return table(["peer", "programs", "its time / xlac's", "xlac slower on", "its CPU time / xlac's", "slower by CPU time on"], lines)


def programs_table(rows, peak):
    found, lines = best(rows, "name"), []
    engines = engines_of(found)
    for name in sorted({key[1] for key in found}):
        xla, ours, ratios = found.get(("xla", name)), found.get(("xlac", name)), peer_ratios(found, name)
        limit = limit_of(ours["bytes"], ours["flops"], ours["bytes"] / 2, peak) if ours else None
        lines.append([name, *times_cells([found.get((e, name)) for e in engines]), f"{ours.get('off') or 0:.0e}" if ours else "-",
                      f"{ours['least'] / limit:.1f}" if limit else "-", f"{xla['least'] / ours['least']:.2f}" if xla and ours else "-",
                      *([f"{ratios[0]:.2f}", f"{ratios[1]:.2f}"] if ratios else ["-", "-"])])
    return table(["program", *engines, "off", "xlac / limit", "XLA / xlac", "best peer / xlac", "the same, CPU"], lines)


def costs_table(rows):
    """What compiling takes and holds, over the programs that both ran: geometric means of a peer's over xlac's, and the worst of them."""
    found, lines = best(rows, "name"), []
    for engine in [e for e in engines_of(found) if not e.startswith("xlac")]:
        pairs = [(found["xlac", *at[1:]], row) for at, row in found.items() if at[0] == engine and ("xlac", *at[1:]) in found]
        cells = []
        for what in ("compile", "first", "memory"):
            ratios = [theirs[what] / ours[what] for ours, theirs in pairs]
            cells.append(f"{geomean(ratios):.1f} ({min(ratios):.2f})")
        lines.append([engine, str(len(pairs)), *cells])
    return table(["peer", "programs", "compiling from text", "start of a process to its first result", "peak memory of the process"], lines)


def compile_table(rows):
    found = best(rows, "n")
    engines = engines_of(found)
    return table(["ops", *engines], [[f"{n:,}", *(f"{found[e, n]['compile_cpu'] * 1e3:,.2f}" if (e, n) in found else "-" for e in engines)] for n in OPS])


def unseen_ratios(rows):
    """[(XLA's time / xlac's, name, whether it is of those held back)], the slowest first"""
    return sorted((min(r["call"]["xla"]) / min(r["call"]["xlac"]), r["name"], r["held"]) for r in rows)


def unseen_table(rows):
    ratios, lines = unseen_ratios(rows), []
    rooms = {"all": ratios, "held back": [r for r in ratios if r[2]]} | {f"{room}.py": [r for r in ratios if r[1].startswith(room + ".")] for room in
                                                                       sorted({r[1].split(".")[0] for r in ratios})}
    for name, some in rooms.items():
        if some:
            of = [r[0] for r in some]
            lines.append([name, str(len(of)), f"{geomean(of):.2f}", str(sum(x < 1 for x in of)), str(sum(x < 0.9 for x in of)), f"{some[0][1]} {of[0]:.2f}"])
    return table(["programs", "how many", "XLA's time / xlac's", "slower on", "below 0.9", "the slowest"], lines)


def sweep_table(rows):
    done, lines = [r for r in rows if "ratio" in r], []
    for t in dict.fromkeys(["all", *(r["type"] for r in sorted(done, key=lambda r: r["type"]))]):
        of = sorted((r["ratio"], r["op"]) for r in done if t in ("all", r["type"]))
        lines.append([t, str(len(of)), f"{geomean([x for x, _ in of]):.2f}", str(sum(x < 1 for x, _ in of)), f"{of[0][1]} {of[0][0]:.2f}"])
    return table(["type", "ops", "XLA's time / xlac's", "slower on", "the slowest"], lines)


def named_table(rows):
    found, lines = best(rows, "name"), []
    for kind, names in NAMED.items():
        for name in names:
            ratios = peer_ratios(found, name)
            if ratios:
                fast = found.get(("xlac-fast", name))
                ours = found["xlac", name]
                lines.append([kind, name, shown(ours["least"]), f"{shown(ratios[0] * ours['least'])} ({ratios[2]})", f"{ratios[0]:.2f}",
                              f"{ratios[0] * ours['least'] / fast['least']:.2f}" if fast else "-", f"{ratios[1]:.2f}"])
    return table(["kind", "program", "xlac", "best peer", "best peer / xlac", "best peer / xlac-fast", "best peer / xlac, CPU"], lines)


def target(name, asked, measured, holds):
    return [name, asked, measured, "yes" if holds else "no"]


def targets_table(kinds, unseen, sweep):
    """What the issue asks of the tables above, and whether this run has it."""
    found, lines = best(kinds["programs"], "name"), []
    names = sorted({key[1] for key in found})
    against_xla = sorted((found["xla", n]["least"] / found["xlac", n]["least"], n) for n in names if ("xla", n) in found and ("xlac", n) in found)
    against_best = {n: ratios[0] for n in names if (ratios := peer_ratios(found, n))}
    if against_xla:
        mean, (worst, which) = geomean([r for r, _ in against_xla]), against_xla[0]
        lines.append(target(f"{len(against_xla)} programs beside XLA: geometric mean", "2.8", f"{mean:.2f}", mean >= 2.8))
        lines.append(target("the slowest of them", "0.97", f"{worst:.2f} ({which})", worst >= 0.97))
        mean, share = geomean(list(against_best.values())), statistics.fmean(r >= 0.95 for r in against_best.values())
        lines.append(target(f"{len(against_best)} programs beside the best peer: geometric mean", "1.35", f"{mean:.2f}", mean >= 1.35))
        lines.append(target("of them at 0.95 or more", "90 %", f"{share:.0%}", share >= 0.9))
    for what, held in (("programs of benchmarks/programs", False), ("those held back", True)):
        of = [r for r in unseen_ratios(unseen) if r[2] or not held]
        if of:
            mean = geomean([r[0] for r in of])
            lines.append(target(f"{len(of)} {what}, beside XLA: geometric mean", "2.0", f"{mean:.2f}", mean >= 2))
            lines.append(target("the slowest of them", "0.9", f"{of[0][0]:.2f} ({of[0][1]})", of[0][0] >= 0.9))
    done = [r["ratio"] for r in sweep if "ratio" in r]
    if done:
        lines.append(target(f"ops on types that XLA compiles, {len(done)}: slower than XLA on", "0", str(sum(r < 1 for r in done)), min(done) >= 1))
    for kind, some in NAMED.items():
        of = {n: against_best[n] for n in some if n in against_best}
        if of:
            lines.append(target(f"{kind}: the slowest beside the best peer", "1.0", f"{min(of.values()):.2f} ({min(of, key=of.get)})", min(of.values()) >= 1))
    return table(["what", "asked", "measured", "holds"], lines + cost_targets(found, names))


def cost_targets(found, names):
    both = [(found["xlac", n], found["xla", n]) for n in names if ("xlac", n) in found and ("xla", n) in found]
    if not both:
        return []
    warm, cold = (geomean([theirs[k] / ours[k] for ours, theirs in both]) for k in ("compile", "first"))
    larger = [n for n in names if ("xlac", n) in found and any(row["memory"] < found["xlac", n]["memory"] for key, row in found.items()
                                                               if key[1] == n and not key[0].startswith("xlac"))]
    return [target("compiling from text beside XLA: geometric mean", "50", f"{warm:.0f}", warm >= 50),
            target("the same from the start of the process to the first result", "50", f"{cold:.1f}", cold >= 50),
            target("peak memory: programs on which a peer's process was smaller", "0", f"{len(larger)} of {len(names)}", not larger)]


def misses_table(kinds, unseen, sweep):
    """What is behind, the farthest first, with the cause and the next idea."""
    lines, found, named = [], best(kinds["programs"], "name"), [n for some in NAMED.values() for n in some]
    for name in sorted({key[1] for key in found}):
        ratios, xla, ours = peer_ratios(found, name), found.get(("xla", name)), found.get(("xlac", name))
        if ratios and (ratios[0] < (1.0 if name in named else 0.95) or xla and xla["least"] / ours["least"] < 0.97):
            lines.append((ratios[0], name, f"{ratios[0]:.2f} of {ratios[2]}, {ratios[1]:.2f} by CPU time"))
    lines += [(ratio, name, f"{ratio:.2f} of xla") for ratio, name, held in unseen_ratios(unseen) if ratio < 0.9]
    slow = {}
    for row in (r for r in sweep if r.get("ratio", 1) < 1):
        slow.setdefault(row["op"], []).append((row["ratio"], row["type"] + (f" to {row['to']}" if row["op"] == "convert" else "")))
    lines += [(min(of)[0], f"op {op}", ", ".join(f"{t} {r:.2f}" for r, t in sorted(of)[:6]) + (f" and {len(of) - 6} more" if len(of) > 6 else ""))
              for op, of in slow.items()]
    return table(["program or op", "a peer's time / xlac's", "likely cause", "next idea"], [[name, text, *cause_of(name)] for _, name, text in sorted(lines)])


def machine(rows, threads):
    loads = sorted(r["load"] for r in rows)
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    middle = statistics.median(loads)
    return [f"{os.cpu_count()} CPUs ({model}), {threads} threads; the load of the machine was {middle:.1f} in the median, from {loads[0]:.1f} to "
            f"{loads[-1]:.1f}" + (": it was busy, so wall times are disturbed." if middle > BUSY else ": nothing else ran."), ""]


def pictures(rows):
    import plot

    panels, names = {}, []
    for (engine, name, n), row in sorted(best([r for r in rows if r["kind"] == "sizes"], "name", "n").items(), key=lambda item: ENGINES.index(item[0][0])):
        panels.setdefault(name, {}).setdefault(engine, []).append((n, row["least"]))
        names += [engine] * (engine not in names)
    if panels:
        (ROOT / "docs/img/performance-sizes.svg").write_text(plot.svg(panels, names, "elements", "Time of a call against the number of elements, ten programs"))
    curves = {}
    for (engine, n), row in best([r for r in rows if r["kind"] == "compile"], "n").items():
        curves.setdefault(engine, []).append((n, row["compile_cpu"]))
    if curves:
        names = [e for e in ENGINES if e in curves]
        text = plot.svg({"compile": curves}, names, "ops", "CPU time of compiling against the number of ops", 1, (420, 220))
        (ROOT / "docs/img/performance-compile.svg").write_text(text)


def write(path, threads):
    """Puts the tables between the marks of docs/performance.md."""
    rows, page = results(path), ROOT / "docs/performance.md"
    kinds = {kind: [r for r in rows if r["kind"] == kind] for kind in ("sizes", "programs", "compile")}
    others = [path.with_name(f"peers-{name}.json") for name in ("unseen", "op_sweep")]
    unseen, sweep = (json.loads(other.read_text()) if other.exists() else [] for other in others)
    peak, parts = peaks(threads), {"machine": machine(rows, threads)} if rows else {}
    if kinds["sizes"]:
        parts["sizes"] = summary(kinds["sizes"], "name", "n") + sizes_table(kinds["sizes"], peak)
    if kinds["programs"]:
        parts["programs"] = summary(kinds["programs"], "name") + programs_table(kinds["programs"], peak)
        parts |= {"costs": costs_table(kinds["programs"]), "named": named_table(kinds["programs"])}
    if kinds["compile"]:
        parts["compile"] = compile_table(kinds["compile"])
    if unseen:
        parts["unseen"] = unseen_table(unseen)
    if sweep:
        parts["sweep"] = sweep_table(sweep)
    parts |= {"targets": targets_table(kinds, unseen, sweep), "misses": misses_table(kinds, unseen, sweep)}
    text = page.read_text()
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        at, until = text.index(begin) + len(begin), text.index(end)
        text = text[:at] + "\n".join(lines) + "\n" + text[until:]
    page.write_text(text)
    pictures(rows)
