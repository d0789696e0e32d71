"""The cache of compiled programs through the C interface."""
SUM = "HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] add(x, x) }\n"


def compiled(x, folder):
    m, out = x.parse(SUM), x.ffi.new("xlac_executable **")
    name = x.ffi.new("char[]", folder)
    status = x.lib.xlac_compile(m, x.options("xlac_compile_options", {"cache": name}), out, x.err)
    x.lib.xlac_module_destroy(m)
    x.check(status)
    came = x.text(x.lib.xlac_executable_cache(out[0]))
    given, got = x.ffi.new("float[64]", [1.5] * 64), x.ffi.new("float[64]")
    x.check(x.lib.xlac_executable_call(out[0], x.ffi.NULL, x.ffi.new("void *[]", [given]), x.ffi.new("void *[]", [got]), x.err))
    assert list(got) == [3.0] * 64
    x.lib.xlac_executable_destroy(out[0])
    return came


def test_a_folder_of_the_callers_keeps_programs(x, tmp_path, monkeypatch):
    monkeypatch.delenv("XLAC_CACHE", raising=False)
    folder = str(tmp_path / "c").encode()
    assert [compiled(x, f) for f in (b"", b"0", folder, folder)] == ["", "", "stored", "hit"]
    monkeypatch.setenv("XLAC_CACHE", str(tmp_path / "d"))
    assert compiled(x, folder) == "hit" and compiled(x, b"") == "" and not (tmp_path / "d").exists()


def test_what_the_cache_knows_a_program_by(x, tmp_path, monkeypatch):
    monkeypatch.delenv("XLAC_CACHE", raising=False)
    m, text, n = x.parse(SUM), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.fails(x.lib.xlac_cache_key(m, x.ffi.NULL, text, n, x.err), 503)
    name = x.ffi.new("char[]", str(tmp_path).encode())
    x.check(x.lib.xlac_cache_key(m, x.options("xlac_compile_options", {"cache": name}), text, n, x.err))
    key = x.take(text[0])
    x.lib.xlac_module_destroy(m)
    assert key.startswith("xlac cache 1\nname m\nprogram ") and len(key) == n[0] and not list(tmp_path.iterdir())
    compiled(x, str(tmp_path).encode())
    (path,) = tmp_path.iterdir()
    assert path.read_bytes().startswith(key.split("entry ")[0].encode()) and key.endswith(f"entry {path}\n")
