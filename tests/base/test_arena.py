import random

import pytest


@pytest.fixture
def faulty(lib, ffi):
    """An allocator that never fails until `left` is set, and a count of what it holds."""
    f = ffi.new("shim_faulty *", {"left": -1})
    yield f, lib.shim_faulty_alloc(f)
    assert f.live == 0, "something was not freed"


@pytest.fixture
def arena(lib, ffi, faulty):
    a = ffi.new("base_arena *")
    lib.base_arena_init(a, faulty[1])
    yield a
    lib.base_arena_free(a)
    assert a.used == 0


def address(ffi, p):
    return int(ffi.cast("uintptr_t", p))


def test_pieces_do_not_overlap(lib, ffi, arena):
    rng = random.Random(1)
    pieces = []
    for i in range(3000):
        size, align = rng.choice([0, 1, 7, 8, 24, 100, 5000, 40000]), 1 << rng.randrange(8)
        p = lib.base_arena_aligned(arena, size, align)
        assert p != ffi.NULL and address(ffi, p) % align == 0
        if size:
            ffi.memmove(p, bytes([i % 251]) * size, size)
            pieces.append((p, size, i % 251))
    for p, size, fill in pieces:
        assert ffi.buffer(p, size)[:] == bytes([fill]) * size


def test_chunks_double_from_16_kib_to_2_mib(lib, ffi, arena, faulty):
    sizes, used = [], 0
    for _ in range(400000):
        assert lib.base_arena_alloc(arena, 64) != ffi.NULL
        if arena.used != used:
            sizes.append(arena.used - used)
            used = arena.used
    assert sizes[:8] == [16384, 16384] + [1 << k for k in range(15, 21)]
    assert set(sizes[8:]) == {1 << 21} and faulty[0].calls == len(sizes)


def test_a_big_piece_leaves_the_chunk_in_use(lib, ffi, arena):
    small = lib.base_arena_alloc(arena, 16)
    big = lib.base_arena_alloc(arena, 3 << 20)
    assert big != ffi.NULL
    ffi.memmove(big, b"x" * (3 << 20), 3 << 20)
    assert address(ffi, lib.base_arena_alloc(arena, 16)) == address(ffi, small) + 16


def test_helpers(lib, ffi, arena):
    z = lib.base_arena_zalloc(arena, 1000)
    assert ffi.buffer(z, 1000)[:] == bytes(1000)
    assert ffi.string(lib.base_arena_strndup(arena, b"hello world", 5)) == b"hello"
    assert ffi.string(lib.base_arena_strndup(arena, ffi.NULL, 0)) == b""
    assert ffi.buffer(lib.base_arena_memdup(arena, b"abc\0def", 7), 7)[:] == b"abc\0def"
    assert lib.base_arena_memdup(arena, ffi.NULL, 0) != ffi.NULL
    assert lib.base_arena_array(arena, 10, 8) != ffi.NULL


def test_sizes_that_overflow(lib, ffi, arena, faulty):
    top = 2**64 - 1
    for size in (top, top - 8, top - 100, 2**63, 2**63 - 1):
        assert lib.base_arena_alloc(arena, size) == ffi.NULL
        assert lib.base_arena_zalloc(arena, size) == ffi.NULL
        assert lib.base_arena_aligned(arena, size, 64) == ffi.NULL
    assert lib.base_arena_array(arena, 2**33, 2**33) == ffi.NULL
    assert lib.base_arena_array(arena, 3, top // 2) == ffi.NULL
    assert lib.base_arena_strndup(arena, b"", top) == ffi.NULL
    assert lib.base_arena_alloc(arena, 8) != ffi.NULL, "a refused size leaves the arena usable"


def test_every_allocation_may_fail(lib, ffi, arena, faulty):
    f = faulty[0]
    f.left = 2
    got = [lib.base_arena_alloc(arena, 1000) for _ in range(100)]
    first = got.index(ffi.NULL)
    assert first == 32 and all(p == ffi.NULL for p in got[first:]), "two chunks of 16 KiB hold 16 pieces each"
    assert lib.base_arena_strndup(arena, b"x" * 2000, 2000) == ffi.NULL
    assert lib.base_arena_memdup(arena, b"x" * 2000, 2000) == ffi.NULL
    f.left = -1
    assert lib.base_arena_alloc(arena, 1000) != ffi.NULL


def test_vectors(lib, ffi, faulty):
    f, alloc = faulty
    total = ffi.new("uint64_t *")
    assert lib.shim_vec_push(alloc, 100000, total) and total[0] == sum(range(100000))
    assert f.calls == 15, "doubling from 8"
    for left in range(8):
        f.left, total[0] = left, 0
        assert not lib.shim_vec_push(alloc, 10000, total)
        n = 8 << (left - 1) if left else 0
        assert total[0] == sum(range(n)), "what was there stays"
    f.left = -1


def test_vector_limits(lib, ffi, faulty):
    f, alloc = faulty
    items, cap = ffi.new("void **"), ffi.new("uint32_t *")
    assert not lib.base_vec_grow(alloc, items, cap, 8, 2**32)
    assert not lib.base_vec_grow(alloc, items, cap, 2**40, 2**31)
    assert cap[0] == 0 and f.calls == 0
    assert lib.base_vec_grow(alloc, items, cap, 4, 3) and cap[0] == 8
    assert lib.base_vec_grow(alloc, items, cap, 4, 1000) and cap[0] == 1000
    alloc.fn(alloc.ctx, items[0], 0)


def test_interner(lib, ffi, arena, faulty):
    f = faulty[0]
    t = ffi.new("base_interner *")
    lib.base_interner_init(t, arena)
    assert lib.base_intern_find(t, b"a", 1) == ffi.NULL
    seen = {}
    for i in range(5000):
        text = b"%%add.%d" % (i // 2) + b"x" * (i // 2 % 40)
        p = lib.base_intern(t, text, len(text))
        assert ffi.buffer(p.s, p.n + 1)[:] == text + b"\0"
        assert p.hash ^ (p.hash & 15) == lib.base_hash(text, len(text) - 1) & ~15, "names of a row meet in a cache line"
        assert seen.setdefault(text, p) == p and lib.base_intern_find(t, text, len(text)) == p
    assert t.n == 2500 and t.cap == 8192
    nul = lib.base_intern(t, b"a\0b", 3)
    assert nul.n == 3 and nul != lib.base_intern(t, b"a", 1) and lib.base_intern(t, b"a\0b", 3) == nul
    assert lib.base_intern(t, ffi.NULL, 0) == lib.base_intern(t, b"", 0)
    assert lib.base_intern_find(t, b"absent", 6) == ffi.NULL
    assert lib.base_intern(t, b"", 2**32) == ffi.NULL
    f.left = 0
    while (p := lib.base_intern(t, text := b"new %d" % t.n, len(text))) != ffi.NULL:
        pass
    f.left = -1
    assert lib.base_intern(t, text, len(text)) != ffi.NULL and lib.base_intern_find(t, b"a\0b", 3) == nul
    lib.base_interner_free(t)


def test_interner_without_memory(lib, ffi, arena, faulty):
    t = ffi.new("base_interner *")
    lib.base_interner_init(t, arena)
    for left in (0, 1):
        faulty[0].left = left
        assert lib.base_intern(t, b"a", 1) == ffi.NULL and lib.base_intern_find(t, b"a", 1) == ffi.NULL
    faulty[0].left = -1
    assert lib.base_intern(t, b"a", 1) != ffi.NULL
    lib.base_interner_free(t)


def test_hash_spreads(lib):
    texts = [b"%%%s.%d" % (w, i) for w in (b"add", b"fusion", b"param_0", b"") for i in range(4000)]
    hashes = [lib.base_hash(t, len(t)) for t in texts]
    assert len(set(hashes)) >= len(texts) - 2
    for bits in (0xFFF, 0xFFF00000):
        buckets = {}
        for h in hashes:
            buckets[h & bits] = buckets.get(h & bits, 0) + 1
        assert max(buckets.values()) < 20, "4 expected"


def test_large_blocks_come_aligned_and_grow(lib, ffi):
    alloc = lib.base_alloc_libc
    for size in (2 << 20, (5 << 20) + 3):
        p = alloc.fn(alloc.ctx, ffi.NULL, size)
        assert p != ffi.NULL and int(ffi.cast("uintptr_t", p)) % (2 << 20) == 0
        ffi.buffer(p, size)[size - 3 :] = b"end"
        p = alloc.fn(alloc.ctx, p, size + (3 << 20))
        assert ffi.buffer(p, size)[size - 3 :] == b"end"
        assert alloc.fn(alloc.ctx, p, 0) == ffi.NULL
    assert alloc.fn(alloc.ctx, ffi.NULL, (1 << 63) - 1) == ffi.NULL


def test_what_is_foreseen_is_one_chunk(lib, ffi, arena, faulty):
    f = faulty[0]
    lib.base_arena_foresee(arena, 100000)
    assert arena.used == 100000 and f.calls == 1
    lib.base_arena_foresee(arena, 50000)
    assert f.calls == 1, "there is room already"
    for _ in range(1500):
        assert lib.base_arena_alloc(arena, 64) != ffi.NULL
    assert f.calls == 1
    lib.base_arena_foresee(arena, 2**63)
    assert arena.used == 100000 + (2 << 20)
    f.left = 0
    lib.base_arena_foresee(arena, 4 << 20)
    f.left = -1
    assert lib.base_arena_alloc(arena, 64) != ffi.NULL, "a wish that fails changes nothing"
