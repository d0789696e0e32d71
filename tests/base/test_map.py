import random

import pytest


@pytest.fixture
def faulty(ffi):
    return ffi.new("shim_faulty *", {"left": -1})


@pytest.fixture
def table(lib, ffi, faulty):
    m = ffi.new("base_map *")
    lib.base_map_init(m, lib.shim_faulty_alloc(faulty))
    yield m
    lib.base_map_free(m)
    assert faulty.live == 0


def get(lib, ffi, m, key):
    out = ffi.new("uint64_t *", 12345)
    found = lib.base_map_get(m, key, out)
    assert found or out[0] == 12345
    return out[0] if found else None


def test_like_a_dict(lib, ffi, table):
    rng = random.Random(1)
    model = {}
    keys = [0, 1, 2**64 - 1, 2**63, 2**32] + [rng.randrange(2**64) for _ in range(2000)] + list(range(3000))
    keys += [0x7F0000000000 + 64 * i for i in range(3000)]
    for key in keys + rng.sample(keys, 2000):
        assert get(lib, ffi, table, key) == model.get(key)
        value = rng.choice([0, rng.randrange(2**64)])
        assert lib.base_map_set(table, key, value)
        model[key] = value
    assert {k: get(lib, ffi, table, k) for k in model} == model
    assert get(lib, ffi, table, 2**50 + 1) is None
    assert table.n + 1 == len(model) and table.cap & (table.cap - 1) == 0 and table.n <= table.cap * 3 // 4 + 1


def test_clear(lib, ffi, table):
    for round_ in range(3):
        for k in range(100):
            assert get(lib, ffi, table, k) is None
            assert lib.base_map_set(table, k, k + round_)
        assert [get(lib, ffi, table, k) for k in range(100)] == [k + round_ for k in range(100)]
        lib.base_map_clear(table)
    assert table.n == 0


def test_allocation_failure_keeps_what_is_there(lib, ffi, table, faulty):
    faulty.left = 0
    assert lib.base_map_set(table, 0, 7), "key 0 needs no memory"
    assert not lib.base_map_set(table, 1, 1)
    faulty.left = 2
    added = 1
    while lib.base_map_set(table, added, added * 3):
        added += 1
    assert added - 1 == 24, "three quarters of 32 slots"
    assert [get(lib, ffi, table, k) for k in range(1, added)] == [3 * k for k in range(1, added)]
    assert get(lib, ffi, table, added) is None and get(lib, ffi, table, 0) == 7
    faulty.left = -1
    assert lib.base_map_set(table, added, 1)
