"""What the first compilation of a process costs: CPU milliseconds in fresh processes in which NumPy is imported, minimum and median.

    python benchmarks/first_compile.py [processes]

`import` is that of xlac; the others parse, compile and call a program for the first time, or interpret it; `again` is the same in the
same process. Run it with PYTHONPATH at another checkout to compare."""
import json
import statistics
import subprocess
import sys

from peers import keeping_bytecode

PROGRAMS = {
    "elementwise": "HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] exponential(x)\n  ROOT z = f32[2,3] add(x, y)\n}\n",
    "product": "HloModule m\nENTRY e {\n  x = f32[200,300] parameter(0)\n  y = f32[300,70] parameter(1)\n"
               "  ROOT z = f32[200,70] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
}
CHILD = """
import json, sys, time
import numpy as np
name, text, how = json.load(sys.stdin)
arrays = [np.ones((2, 3), np.float32)] if name == "elementwise" else [np.ones((200, 300), np.float32), np.ones((300, 70), np.float32)]
found = {}
def measure(what, function):
    start = time.process_time()
    result = function()
    found[what] = 1e3 * (time.process_time() - start)
    return result
def load():
    global xlac
    import xlac
measure("import", load)
module = measure("parse", lambda: xlac.parse(text))
if how == "interpret":
    measure("interpret", lambda: xlac.interpret(module, *arrays))
    measure("again", lambda: xlac.interpret(module, *arrays))
else:
    exe = measure("compile", lambda: xlac.compile(module))
    measure("call", lambda: exe(*arrays))
    measure("again", lambda: xlac.compile(module))
print(json.dumps(found))
"""


def once(name, how):
    done = subprocess.run([sys.executable, "-c", CHILD], input=json.dumps([name, PROGRAMS[name], how]), capture_output=True, text=True,
                          env=keeping_bytecode())
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main(processes=11):
    print(f"CPU ms, minimum / median of {processes} fresh processes")
    for name in PROGRAMS:
        for how in ("compile", "interpret"):
            runs = [once(name, how) for _ in range(processes)]
            figures = ", ".join(f"{key} {min(r[key] for r in runs):.2f} / {statistics.median(r[key] for r in runs):.2f}" for key in runs[0])
            print(f"{name:<12} {how:<10} {figures}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
