"""docs/embed.c compiles with the library's sources, warning-free, and does what it says."""
import concurrent.futures
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Icsrc/include"]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_embed(tmp_path):
    sources = [p for p in sorted((ROOT / "csrc").glob("*/*.c")) if p.parent.name != "py"] + [ROOT / "docs/embed.c"]
    compiler = os.environ.get("CC", "cc").split()

    def compile_one(source):
        target = tmp_path / (source.parent.name + "_" + source.stem + ".o")
        run(*compiler, *FLAGS, "-c", str(source), "-o", str(target))
        return str(target)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    run(*compiler, *objects, "-lm", "-lpthread", "-o", str(tmp_path / "embed"))
    assert run(str(tmp_path / "embed")).split() == ["1.5", "3", "4.5", "6"]
