"""Machine code of printed kernels for each architecture by NVRTC, with ptxas' registers, spills and local memory; no GPU is needed.

    XLAC_CUDA_SIM_KEEP=FOLDER python tests/cuda/sweep.py SUITE...     leaves the sources of what the suites run
    python tests/cuda/cubins.py FOLDER [--only sm_90 ...] [--share N]     compiles them, each text once; every N-th with --share

Exits 1 where a source is refused, or a kernel spills at sm_90. NVRTC is that of the package nvidia-cuda-nvrtc, or XLAC_NVRTC."""
import argparse
import collections
import ctypes
import importlib.util
import os
import pathlib
import re
import statistics
import sys
import time

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
KERNEL = re.compile(r"Compiling entry function '(\w+)' for '\w+'(.*?)(?=Compiling entry function|\Z)", re.S)


def library():
    """NVRTC; None where there is none."""
    spec = importlib.util.find_spec("nvidia")
    found = [p for folder in (spec.submodule_search_locations or []) if spec for p in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.1[23]"))] if spec else []
    path = os.environ.get("XLAC_NVRTC") or (str(found[0]) if found else None)
    return ctypes.CDLL(path) if path else None


def compiled(nvrtc, source, architecture):
    """(machine code, log); machine code is None where the source is refused. As compile.c does, what spills and has kernels that may have more registers is
    compiled once more with these."""
    code, log = compiled_once(nvrtc, source, architecture)
    if b", BLOCKS" in source and any(spills for _, _, spills, _ in kernels(log)):
        return compiled_once(nvrtc, source, architecture, "-DBLOCKS=1")
    return code, log


def compiled_once(nvrtc, source, architecture, *more):
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    options = [o.encode() for o in (f"--gpu-architecture={architecture}", "--fmad=false", "--std=c++17", "--device-int128", "--ptxas-options=-v", "-w", *more)]
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 0, None, None) == 0
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(n))
    log = ctypes.create_string_buffer(n.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    code = None
    if status == 0 and nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(n)) == 0:
        image = ctypes.create_string_buffer(n.value)
        code = image.raw if nvrtc.nvrtcGetCUBIN(program, image) == 0 else None
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log.value.decode()


def kernels(log):
    """(name, registers, bytes of spills, bytes of shared memory) of each that ptxas names."""
    def number(pattern, text):
        return sum(int(x) for x in re.findall(pattern, text))

    return [(name, number(r"Used (\d+) registers", text), number(r"(\d+) bytes spill", text), number(r"(\d+) bytes smem", text)) for name, text in KERNEL.findall(log)]


def in_local_memory(log):
    """Kernels with arrays of their own there: a table that each thread writes first, say. Spills are not counted."""
    return [(name, frame) for name, text in KERNEL.findall(log)
            for frame in re.findall(r"(\d+) bytes stack frame, 0 bytes spill stores", text) if int(frame)]


def report(architecture, rows, seconds, n_sources):
    registers = sorted(r for _, _, r, _, _ in rows) or [0]
    spilled = [row for row in rows if row[3]]
    print(f"{architecture}: {len(rows)} kernels of {n_sources} sources; registers: median {statistics.median(registers):.0f}, 95 % {registers[len(registers) * 95 // 100]}, "
          f"most {registers[-1]}; {len(spilled)} spill; {1e3 * seconds / max(1, len(rows)):.1f} ms of CPU a kernel", flush=True)
    for path, name, used, spills, _ in sorted(spilled, key=lambda row: -row[3])[:10]:
        print(f"  spills {spills} bytes: {name} of {path.name}, {used} registers")
    return spilled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--share", type=int, default=1)
    options = parser.parse_args()
    nvrtc, bad = library(), 0
    if nvrtc is None:
        sys.exit("no NVRTC: pip install nvidia-cuda-nvrtc, or name the library in XLAC_NVRTC")
    texts = collections.OrderedDict((p.read_bytes(), p) for p in sorted(options.folder.glob("*.cu")))
    chosen = list(texts.items())[::options.share]
    for architecture in options.only:
        rows, start = [], time.process_time()
        for text, path in chosen:
            code, log = compiled(nvrtc, text, architecture)
            bad += code is None
            if code is None:
                print(f"{architecture}: {path.name} is refused: {log[:600]}")
            rows += [(path, *row) for row in kernels(log)]
            for name, frame in in_local_memory(log):
                print(f"{architecture}: {name} of {path.name} has {frame} bytes of local memory")
        spilled = report(architecture, rows, time.process_time() - start, len(chosen))
        bad += len(spilled) if architecture == "sm_90" else 0
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
