"""Compiled programs on disk: the same results from it, and whatever is wrong with it, none but a compilation."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import xlac
import xlac.cache

PROGRAM = """HloModule wave
ENTRY e {
  x = f32[300] parameter(0)
  s = f32[300] sine(x)
  t = f32[300] tan(x)
  ROOT y = f32[300] add(s, t)
}
"""
LOOP = """HloModule loop
body { p = (s32[], f32[40]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[40] get-tuple-element(p), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[40] cosine(x)
 ROOT t = (s32[], f32[40]) tuple(j, y) }
cond { p = (s32[], f32[40]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(9)
 ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[40] parameter(0)
 z = s32[] constant(0)
 a = (s32[], f32[40]) tuple(z, x)
 w = (s32[], f32[40]) while(a), condition=cond, body=body
 ROOT r = f32[40] get-tuple-element(w), index=1 }
"""
MIXED = """HloModule mixed
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[64,96] parameter(0)
 k = f32[] constant(0.3)
 kb = f32[64,96] broadcast(k), dimensions={}
 p = f32[64,96] power(x, kb)
 d = f32[64,64] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
 z = f32[] constant(0)
 r = f32[64] reduce(p, z), dimensions={1}, to_apply=add
 i = s32[64,96] convert(x)
 m = s64[64,96] convert(i)
 q = s64[64,96] remainder(m, m)
 ROOT t = (f32[64,64], f32[64], s64[64,96]) tuple(d, r, q) }
"""
LARGE = np.concatenate([np.linspace(-9, 9, 297), [1e30, -3e15, np.inf]]).astype(np.float32)
ARGUMENTS = {PROGRAM: LARGE, LOOP: LARGE[:40], MIXED: np.abs(np.linspace(0.5, 90, 6144, dtype=np.float32)).reshape(64, 96)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_CACHE", str(tmp_path / "a" / "b"))
    monkeypatch.delenv("XLAC_CACHE_BYTES", raising=False)
    return tmp_path / "a" / "b"


def files(folder):
    return sorted(folder.iterdir())


def same(a, b):
    return all(np.array_equal(np.asarray(x).view(np.uint8), np.asarray(y).view(np.uint8)) for x, y in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,)))


@pytest.mark.parametrize("program", [PROGRAM, LOOP, MIXED], ids=["functions", "loop", "mixed"])
@pytest.mark.parametrize("options", [{}, {"numerics": "fast"}, {"fuse": False}, {"passes": False}, {"threads": 1}], ids=str)
def test_what_is_found_is_what_was_compiled(folder, monkeypatch, program, options):
    with monkeypatch.context() as without:
        without.setenv("XLAC_CACHE", "")
        plain = xlac.compile(program, **options)
    stored, found = xlac.compile(program, **options), xlac.compile(program, **options)
    assert (plain._cache, stored._cache, found._cache) == ("", "stored", "hit")
    expected = plain(ARGUMENTS[program])
    assert same(stored(ARGUMENTS[program]), expected) and same(found(ARGUMENTS[program]), expected)
    assert found.module.to_text() == plain.module.to_text() and found.plan() == plain.plan() and found.numerics == plain.numerics
    assert xlac.compile_stage(program, "assembly") and found.steps == plain.steps
    assert files(folder)[0].stat().st_mode & 0o77 == 0


def test_donated_parameters_are_part_of_the_key(folder):
    first = xlac.compile(PROGRAM, donate=0)
    again, other = xlac.compile(PROGRAM, donate=0), xlac.compile(PROGRAM)
    assert (first._cache, again._cache, other._cache) == ("stored", "hit", "stored")
    assert again.donations == first.donations and not other.donations
    x = LARGE.copy()
    assert again(x, out=x) is x and same(x, other(LARGE))


@pytest.mark.parametrize("variable, value, word", [("XLAC_MAX_ISA", "portable", "the machine's vector instructions"), ("XLAC_NATIVE", "0", "XLAC_NATIVE")])
def test_another_machine_has_its_own_entries(folder, monkeypatch, variable, value, word):
    expected = xlac.compile(PROGRAM)(LARGE)
    monkeypatch.setenv(variable, value)
    if not (why := xlac.cache.explain_miss(PROGRAM)):
        pytest.skip("a machine without vector instructions that xlac knows")
    assert why.startswith(f"{word}: the entry has ") and why.count("\n") == 0
    assert xlac.compile(PROGRAM)._cache == "stored" and len(files(folder)) == 2
    assert same(xlac.compile(PROGRAM)(LARGE), expected)


def test_why_there_is_no_entry(folder, monkeypatch):
    assert xlac.cache.explain_miss(PROGRAM) == "no entry is of this program, or of one named wave; 0 are of others"
    xlac.compile(PROGRAM)
    assert xlac.cache.explain_miss(PROGRAM) == ""
    assert xlac.cache.explain_miss(PROGRAM, numerics="fast", fuse=False).splitlines() == ["numerics=: the entry has strict, this is fast", "fuse=: the entry has on, this is off"]
    assert xlac.cache.explain_miss(PROGRAM.replace("tan", "cosine")).startswith("the program: the entry has ")
    monkeypatch.setenv("XLAC_CACHE", "")
    with pytest.raises(xlac.ArgumentError, match="there is no cache"):
        xlac.cache.explain_miss(PROGRAM)


def damaged(path, whole, expected):
    """Compiles with the file as it is now, which must make it anew."""
    exe = xlac.compile(PROGRAM)
    assert exe._cache == "stored in place of a damaged entry" and path.read_bytes() == whole
    assert same(exe(LARGE), expected)


def test_each_byte_of_the_head_and_some_of_the_rest_is_checked(folder, caplog):
    expected = xlac.compile(PROGRAM)(LARGE)
    (path,) = files(folder)
    whole = path.read_bytes()
    head = whole.index(b"\n\n") + 2
    places = [*range(head), *range(head, len(whole), 97), len(whole) - 1]
    for i in places:
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1:])
        damaged(path, whole, expected)
    for bit in range(8):  # the last word's upper bits go through one multiplication alone
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1 << bit]))
        damaged(path, whole, expected)
    for n in [0, 1, 7, head - 2, head - 1, head, head + 1, len(whole) - 1]:
        path.write_bytes(whole[:n])
        damaged(path, whole, expected)
    path.write_bytes(whole + b"\0")
    damaged(path, whole, expected)
    assert "the cache and wave: stored in place of a damaged entry" in caplog.text


def test_what_others_could_have_written_is_not_believed(folder):
    expected = xlac.compile(PROGRAM)(LARGE)
    (path,) = files(folder)
    path.chmod(0o666)
    exe = xlac.compile(PROGRAM)
    assert exe._cache.startswith("an entry that can't be read: ") and same(exe(LARGE), expected)
    path.unlink(missing_ok=True)
    (folder / "elsewhere").write_bytes(b"")
    path.symlink_to(folder / "elsewhere")
    assert xlac.compile(PROGRAM)._cache.startswith("an entry that can't be read: ")
    path.unlink(missing_ok=True)
    path.mkdir()
    exe = xlac.compile(PROGRAM)
    assert exe._cache.startswith("not stored: ") and same(exe(LARGE), expected)


@pytest.mark.parametrize("place", ["/proc/none/here", "/dev/null/x", "/" + "n" * 300, "x" * 2000])
def test_without_a_folder_programs_are_compiled_all_the_same(folder, monkeypatch, place, caplog):
    monkeypatch.setenv("XLAC_CACHE", place)
    exe = xlac.compile(LOOP)
    assert exe._cache.startswith(("not stored: ", "there is no folder for it: ")) and exe(LARGE[:40]).shape == (40,)
    if place.startswith(("/proc", "/dev")):
        assert f"not stored: the folder {place} can't be made: " in caplog.text
    assert "the cache and loop: " in caplog.text and xlac.cache.stats()["entries"] == 0 and xlac.cache.clear() == 0 and xlac.cache.entries() == []


FULL = """
import resource, signal, sys
import numpy as np, xlac
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
exe = xlac.compile(sys.argv[1])
assert exe._cache == "not stored: File too large", exe._cache
assert exe(np.zeros(300, np.float32)).sum() == 0
"""


def python(code, *arguments, **environment):
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)


def finished(process):
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said


def test_a_disk_that_is_full_leaves_nothing(folder):
    finished(python(FULL, PROGRAM))
    assert files(folder) == []


RACE = """
import os, sys
import numpy as np, xlac, xlac.cache
x = np.linspace(-3, 3, 300, dtype=np.float32)
came = set()
for i in range(120):
    exe = xlac.compile(sys.argv[1])
    came.add(exe._cache)
    assert np.array_equal(exe(x), np.sin(x) + np.tan(x)) or np.allclose(exe(x), np.sin(x) + np.tan(x), rtol=1e-5)
    if i % 3 == int(sys.argv[2]):
        xlac.cache.clear()
assert came <= {"hit", "stored"}, came
"""


def test_processes_share_a_folder(folder):
    for process in [python(RACE, PROGRAM, str(i)) for i in (0, 1)]:
        finished(process)
    assert all(path.suffix == ".xlac" for path in files(folder))


def test_the_longest_unused_entries_go_first(folder, monkeypatch):
    programs = [PROGRAM.replace("wave", f"wave{i}") for i in range(4)]
    for i, program in enumerate(programs[:3]):
        xlac.compile(program)
        os.utime(max(files(folder), key=lambda path: path.stat().st_mtime), (1000 + i, 1000 + i))
    assert xlac.compile(programs[0])._cache == "hit"  # which is a use
    sizes = [path.stat().st_size for path in files(folder)]
    (folder / f"{'0' * 32}.xlac.1.0x1").write_bytes(b"left by who died")
    os.utime(folder / f"{'0' * 32}.xlac.1.0x1", (1000, 1000))
    (folder / "notes.txt").write_bytes(b"not the cache's" * 9999)
    monkeypatch.setenv("XLAC_CACHE_BYTES", str(sum(sizes) + 100))
    assert xlac.compile(programs[3])._cache == "stored"
    assert sorted(entry["name"] for entry in xlac.cache.entries()) == ["wave0", "wave2", "wave3"]
    assert [entry["name"] for entry in xlac.cache.entries()][-1] == "wave2" and len(files(folder)) == 4
    monkeypatch.setenv("XLAC_CACHE_BYTES", "100")
    assert xlac.compile(LOOP)._cache == "not stored: it is larger than the cache may be"
    monkeypatch.setenv("XLAC_CACHE_BYTES", "many")
    assert xlac.compile(LOOP)._cache == "stored" and xlac.cache.stats()["limit"] == 256 << 20


def test_the_switches(tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_CACHE", "")
    monkeypatch.setenv("XLAC_CACHE_BYTES", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert xlac.cache.folder() is None and xlac.compile(LOOP)._cache == "" and xlac.cache.stats()["folder"] is None
    xlac.cache.enable(limit=10**6)
    assert pathlib.Path(xlac.cache.folder()) == tmp_path / "xlac" / "executables" and xlac.compile(LOOP)._cache == "stored"
    before = xlac.cache.stats()
    assert (before["entries"], before["limit"]) == (1, 10**6) and 0 < before["bytes"] < 10**6
    assert xlac.compile(LOOP)._cache == "hit" and xlac.cache.stats()["hits"] == before["hits"] + 1
    xlac.cache.enable(tmp_path / "other")
    assert xlac.compile(LOOP)._cache == "stored" and xlac.cache.clear() == 1 and xlac.cache.stats()["entries"] == 0
    xlac.cache.disable()
    assert xlac.compile(LOOP)._cache == ""
    with pytest.raises(xlac.ArgumentError, match="limit must be at least 1 byte"):
        xlac.cache.enable(limit=0)


def test_what_is_not_kept(folder):
    assert xlac.compile(PROGRAM, device="interp")._cache == ""
    unbounded = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.add %x, %x : tensor<?xf32>\n return %0 : tensor<?xf32> }"
    exe = xlac.compile("module {" + unbounded + "}")
    assert exe._cache in ("stored", "hit", "") or exe._cache.startswith(("it can't be cached: ", "not stored: "))
    assert same(xlac.compile("module {" + unbounded + "}")(LARGE), LARGE + LARGE)


def test_the_command_line(folder, capsys, tmp_path):
    from xlac.cli import main

    (tmp_path / "wave.hlo").write_text(PROGRAM)
    program = str(tmp_path / "wave.hlo")
    assert main(["cache", program]) == 0 and "no entry is of this program" in capsys.readouterr().out
    xlac.compile(PROGRAM)
    assert main(["cache", program]) == 0 and "the cache has it" in capsys.readouterr().out
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("wave ") and f"folder {folder}, entries 1" in said
    assert main(["cache", "--clear", "--json"]) == 0 and '"removed": 1' in capsys.readouterr().out and files(folder) == []
