"""Buffers under the sanitizers, without Python: buffers.c with the few files of the core that it needs."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ["api/buffer.c", "api/device_buffer.c", "api/value.c", "api/runtime.c", "api/library.c", "runtime/host.c", "runtime/host_device.c",
         "runtime/host_queue.c", "runtime/device.c", "runtime/devices.c", "runtime/event.c", "cpu/move/move.c", "driver/copy.c",
         "base/heed.c", "base/status.c", "base/memory.c", "runtime/recycle.c", "runtime/lane.c", "runtime/threads.c", "runtime/cpus.c", "base/dtype.c"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_buffers(sanitizer, tmp_path):
    program = tmp_path / "buffers"
    # sections that nothing needs are dropped, and with them what they would need
    command = ["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-fno-strict-aliasing",
               "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Icsrc", "-Icsrc/include", "tests/api/buffers.c",
               *("csrc/" + f for f in FILES), "-lm", "-lpthread", "-ldl", "-o", str(program)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if "cannot find -l" in built.stderr or "libasan" in built.stderr or "libtsan" in built.stderr:
        pytest.skip("no such sanitizer here")
    assert built.returncode == 0, built.stderr[-3000:]
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr[-3000:]
