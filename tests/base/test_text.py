import pytest


@pytest.fixture
def text(lib, ffi):
    f = ffi.new("shim_faulty *", {"left": -1})
    t = ffi.new("base_text *")
    lib.base_text_init(t, lib.shim_faulty_alloc(f))
    yield t, f
    lib.base_text_free(t)
    assert f.live == 0


def test_writing(lib, ffi, text):
    t, _ = text
    lib.base_put(t, b"", 0)
    assert ffi.string(lib.base_text_cstr(t)) == b""
    want = b""
    for i in range(3000):
        lib.base_put(t, b"abc\0"[: i % 5], i % 5 if i % 5 < 4 else 3)
        want += b"abc\0"[: i % 5][: i % 5 if i % 5 < 4 else 3]
        lib.base_putc(t, b",")
        lib.base_put_i64(t, -i)
        lib.base_putf(t, b"<%d %s>", ffi.cast("int", i), ffi.new("char[]", b"x" * (i % 300)))
        want += b",%d<%d %s>" % (-i, i, b"x" * (i % 300))
    for v in (0, 9, 10, 2**63 - 1, -(2**63)):
        lib.base_put_i64(t, v)
        want += str(v).encode()
        lib.base_putf(t, b"%lld", ffi.cast("long long", v))
        want += str(v).encode()
    lib.base_putf(t, b"%s%d, %llu, %u%%: %3d %s", ffi.NULL, ffi.cast("int", -(2**31)), ffi.cast("unsigned long long", 2**64 - 1),
                  ffi.cast("unsigned", 2**32 - 1), ffi.cast("int", 7), ffi.new("char[]", b"x"))
    want += b"(null)-2147483648, 18446744073709551615, 4294967295%:   7 x"
    lib.base_put_u64(t, 2**64 - 1)
    lib.base_puts(t, b"end")
    want += str(2**64 - 1).encode() + b"end"
    assert ffi.buffer(t.s, t.n)[:] == want
    assert ffi.buffer(lib.base_text_cstr(t), t.n + 1)[:] == want + b"\0"


def test_failure_drops_what_follows(lib, ffi, text):
    t, f = text
    f.left = 1
    lib.base_put(t, b"a" * 200, 200)
    lib.base_put(t, b"b" * 2000, 2000)
    assert t.failed and t.n == 200
    f.left = -1
    for write in (lambda: lib.base_putc(t, b"c"), lambda: lib.base_put(t, b"d", 1), lambda: lib.base_put_i64(t, 5),
                  lambda: lib.base_putf(t, b"%d", ffi.cast("int", 7)), lambda: lib.base_put(t, b"", 0)):
        write()
        assert t.failed and t.n == 200 and lib.base_text_cstr(t) == ffi.NULL


def test_failure_in_each_kind_of_write(lib, ffi, text):
    t, f = text
    f.left = 0
    lib.base_putf(t, b"%d", ffi.cast("int", 7))
    assert t.failed and lib.base_text_cstr(t) == ffi.NULL


def test_status(lib, ffi):
    e = ffi.new("xlac_error *")
    assert lib.base_fail_at(e, 101, 3, 7, b"%add.1", b"unknown opcode %s", ffi.new("char[]", b"frob")) == -101
    assert (e.code, e.line, e.col) == (101, 3, 7)
    assert ffi.string(e.op) == b"%add.1" and ffi.string(e.message) == b"unknown opcode frob"
    assert ffi.string(e.hint) == b""
    assert lib.base_hint(e, -101, b"did you mean %s?", ffi.new("char[]", b"drop")) == -101
    assert ffi.string(e.hint) == b"did you mean drop?"
    assert lib.base_oom(e, b"parsing") == -600 and ffi.string(e.message) == b"out of memory while parsing"
    assert (e.line, e.col, ffi.string(e.op), ffi.string(e.hint)) == (0, 0, b"", b"")
    assert lib.base_fail(ffi.NULL, 100, b"x") == -100 and lib.base_hint(ffi.NULL, -100, b"x") == -100
    assert lib.base_fail_at(ffi.NULL, 100, 1, 1, ffi.NULL, b"x") == -100


def test_code_names(lib, ffi):
    assert ffi.string(lib.base_code_name(600)) == b"OUT_OF_MEMORY"
    assert ffi.string(lib.base_code_title(100)) == b"the text is not well formed"
    for code in (0, 99, -100, 10**6):
        assert lib.base_code_name(code) == ffi.NULL and lib.base_code_title(code) == ffi.NULL


@pytest.mark.parametrize("character", ["x", "é", "한", "😀"])
def test_long_messages_are_cut_between_characters(lib, ffi, character):
    e = ffi.new("xlac_error *")
    for shift in range(4):
        whole = "a" * shift + character * 700
        arg = ffi.new("char[]", whole.encode())
        lib.base_fail_at(e, 100, 1, 1, arg, b"%s", arg)
        lib.base_hint(e, -100, b"%s", arg)
        for field, size in ((e.op, 96), (e.message, 640), (e.hint, 256)):
            got = ffi.string(field).decode()
            assert whole.startswith(got) and size - 1 - len(got.encode()) < len(character.encode())
