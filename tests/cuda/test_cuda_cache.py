"""Machine code on disk: a program is compiled once; damaged files, folders that can't be, and writers that die make no difference."""
import os
import threading

import numpy as np
import pytest

from simulator import xlac_driver

import xlac

X = np.arange(8, dtype=np.float32)


def text(number):
    return f"HloModule m\nENTRY e {{ x = f32[8] parameter(0)\n c = f32[] constant({number})\n b = f32[8] broadcast(c), dimensions={{}}\n ROOT y = f32[8] multiply(x, b) }}"


@pytest.fixture(scope="module")
def driver():
    return xlac_driver()


@pytest.fixture
def cuda(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_CUDA_CACHE", str(tmp_path / "a" / "b"))
    driver.clear()
    yield driver
    driver.fail(None)


def run(number, **options):
    return xlac.compile(text(number), device="cuda", **options)(X)


def files(tmp_path):
    return sorted((tmp_path / "a" / "b").iterdir())


def test_a_program_is_compiled_once(cuda, tmp_path):
    assert np.array_equal(run(3), 3 * X)
    (path,) = files(tmp_path)
    assert path.suffix == ".cubin" and path.stat().st_mode & 0o77 == 0
    cuda.fail("nvrtcCompileProgram:1")
    assert np.array_equal(run(3), 3 * X)
    with pytest.raises(xlac.Error):
        run(4)


def test_what_the_code_depends_on_is_part_of_its_name(cuda, tmp_path):
    run(3), run(4), run(3, numerics="fast")
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:20], lambda b: b[:-1], lambda b: b + b"x", lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:]])
def test_damaged_files_are_made_again(cuda, tmp_path, damage):
    run(5)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert np.array_equal(run(5), 5 * X) and path.read_bytes() == whole


@pytest.mark.parametrize("place", ["", "/proc/none/here", "/dev/null/x"])
def test_without_a_folder_programs_are_compiled_all_the_same(cuda, monkeypatch, place):
    monkeypatch.setenv("XLAC_CUDA_CACHE", place)
    assert np.array_equal(run(6), 6 * X) and np.array_equal(run(6), 6 * X)


def test_a_driver_that_somebody_chose_has_no_cache_unless_asked_for(cuda, monkeypatch, tmp_path):
    monkeypatch.delenv("XLAC_CUDA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert np.array_equal(run(7), 7 * X) and os.environ.get("XLAC_CUDA_DRIVER") and not (tmp_path / "home").exists()


def test_threads_write_one_file(cuda, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(8))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(r, 8 * X) for r in results) and len(results) == 4 and len(files(tmp_path)) == 1
