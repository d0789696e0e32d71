"""DLPack both ways: with NumPy, JAX and PyTorch, and with a producer that says whatever a test wants."""
import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from dlpack_producer import CODES, COPIED, LEGACY, PADDED, READ_ONLY, VERSIONED, Producer, consume, random_array, read

import xlac

DTYPES = [row["name"] for row in xlac._core.dtype_table()]
NARROW = [name for name in DTYPES if CODES[name][1] < 8]
LEGACY_OR_NOT = pytest.mark.parametrize("versioned", [False, True], ids=["legacy", "versioned"])
BIG = 1 << 62


def parts(a):
    return [a, a.T, a[::-1], a[::2, ::-3], a[1], a[1:2, 1:2].reshape(()), a[:0], np.broadcast_to(a[0], (3,) + a.shape[1:]), a[:, 2:3]]


def same(a, b):
    """Equal elements, whatever bits lie beside them (ml_dtypes has negative narrow integers in two forms)."""
    return a.dtype == b.dtype and a.shape == b.shape and a.astype(np.float32).tolist() == b.astype(np.float32).tolist()


def pack(a, bits):
    """The packed bits of an array's elements, row-major."""
    elements = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
    stream = "".join(format(int(v) & ((1 << bits) - 1), f"0{bits}b")[::-1] for v in elements)
    return np.array([int(stream[i:i + 8][::-1], 2) for i in range(0, len(stream), 8)] + [0], np.uint8)


def import_of(producer, **kwargs):
    return xlac.from_dlpack(producer, **kwargs)


def test_every_element_type_has_a_dlpack_type():
    assert set(DTYPES) == set(CODES)


# --- in ---


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in NARROW])
@LEGACY_OR_NOT
def test_import_of_every_type(dtype, versioned):
    for part in parts(random_array(dtype, (4, 6))):
        p = Producer(part, dtype, versioned=versioned)
        xlac.reset_stats()
        b = import_of(p)
        assert b.shape == part.shape and b.dtype == part.dtype and b.numpy().tobytes() == part.tobytes()
        assert b.readonly == (not versioned)  # the old struct can't say that writing is fine
        assert part.size == 0 or b.unsafe_pointer() == part.ctypes.data
        assert xlac.stats()["copies_in"] == 0 and xlac.stats()["dlpack_imports"] == 1
        assert p.deleted == 0
        del b
        assert p.deleted == 1


@pytest.mark.parametrize("dtype", NARROW)
@LEGACY_OR_NOT
def test_import_of_packed_elements(dtype, versioned):
    bits = CODES[dtype][1]
    a = random_array(dtype, (3, 5))
    p = Producer(None, dtype, versioned=versioned, dims=[3, 5], steps=[5, 1], data=(packed := pack(a, bits)).ctypes.data)
    b = import_of(p)
    assert same(b.numpy(), a) and p.deleted == 1 and not b.readonly  # a copy: ours alone
    p = Producer(None, dtype, versioned=versioned, dims=[5, 2], steps=[-1, 5], data=packed.ctypes.data + bits, offset=0)
    if bits == 4:  # element 8 lies on the border of a byte
        assert same(import_of(p).numpy(), a.reshape(-1)[[[8, 13], [7, 12], [6, 11], [5, 10], [4, 9]]])
    p = Producer(None, dtype, versioned=versioned, dims=[3, 5], data=packed.ctypes.data)
    with pytest.raises(BufferError, match="copy=False forbids"):
        import_of(p, copy=False)
    assert p.deleted == 1


@pytest.mark.parametrize("dtype", NARROW)
def test_import_of_padded_elements(dtype):
    a = random_array(dtype, (3, 5))
    p = Producer(a[:, ::-1], dtype, flags=PADDED, steps=[5, -1])
    b = import_of(p, copy=False)
    assert b.unsafe_pointer() == a[:, ::-1].ctypes.data and b.numpy().tobytes() == a[:, ::-1].tobytes()
    dirty = ((a.view(np.uint8) & ((1 << CODES[dtype][1]) - 1)) | 0x80).view(a.dtype)  # a bit beside the element's
    dirty[0, 0] = a[0, 0]
    p = Producer(dirty, dtype, flags=PADDED)
    assert same(import_of(p).numpy(), a) and p.deleted == 1
    with pytest.raises(BufferError, match="copy=False forbids"):
        import_of(Producer(dirty, dtype, flags=PADDED), copy=False)


def test_lanes_are_a_last_dimension():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    p = Producer(a, dims=[2, 3], steps=[3, 1], lanes=4)
    assert np.array_equal(import_of(p).numpy(), a)
    assert np.array_equal(import_of(Producer(a, dims=[3, 2], steps=[1, 3], lanes=4)).numpy(), a.transpose(1, 0, 2))
    f4 = random_array("f4e2m1fn", (3, 2))  # PyTorch's pairs
    p = Producer(None, "f4e2m1fn", dims=[3], lanes=2, data=(packed := pack(f4, 4)).ctypes.data)
    assert import_of(p).numpy().tobytes() == f4.tobytes() and packed.size


def test_unaligned_offset_and_pinned():
    raw = np.zeros(64, np.uint8)
    raw[3:27] = np.arange(6, dtype=np.float32).view(np.uint8)
    for kwargs in (dict(data=raw.ctypes.data + 3), dict(data=raw.ctypes.data, offset=3)):
        b = import_of(Producer(None, dims=[6], **kwargs))
        assert b.unsafe_pointer() == raw.ctypes.data + 3 and b.numpy().tolist() == list(range(6))
        assert import_of(b, copy=True).numpy().tolist() == list(range(6))
    for device in ((3, 1), (11, 0)):
        assert import_of(Producer(np.ones(2, np.float32), device=device)).numpy().tolist() == [1, 1]


def test_read_only():
    a = np.ones(3, np.float32)
    assert import_of(Producer(a, flags=READ_ONLY)).readonly and not import_of(Producer(a)).readonly
    assert not import_of(Producer(a, flags=READ_ONLY), copy=True).readonly
    assert not import_of(Producer(a, flags=READ_ONLY)).numpy().flags.writeable


@LEGACY_OR_NOT
def test_copy_is_obeyed(versioned):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    p = Producer(a.T, versioned=versioned)
    xlac.reset_stats()
    b = import_of(p, copy=True)
    assert p.deleted == 1 and b.unsafe_pointer() != a.ctypes.data and np.array_equal(b.numpy(), a.T) and not b.readonly
    assert (xlac.stats()["copies_in"], xlac.stats()["bytes_copied_in"]) == (1, 24)
    p = Producer(a.T, versioned=versioned)
    assert import_of(p, copy=False).unsafe_pointer() == a.ctypes.data
    assert p.calls == [{"max_version": (1, 3), "copy": False}]
    if versioned:
        p = Producer(a, flags=COPIED)
        with pytest.raises(BufferError, match="the producer made a copy"):
            import_of(p, copy=False)
        assert p.deleted == 1
        p = Producer(a, flags=COPIED)
        assert import_of(p, copy=True).unsafe_pointer() == a.ctypes.data  # it is ours already
    for bad in (0, 1, "yes"):
        with pytest.raises(TypeError, match="copy is None, True or False"):
            import_of(a, copy=bad)


@pytest.mark.parametrize("source", ["array", "buffer"])
def test_copy_is_obeyed_for_our_own(source):
    a = np.arange(6.0)
    x = a if source == "array" else xlac.asarray(a)
    assert import_of(x).unsafe_pointer() == import_of(x, copy=False).unsafe_pointer() == a.ctypes.data
    assert import_of(x, copy=True).unsafe_pointer() != a.ctypes.data
    swapped = a.astype(">f8")
    assert np.array_equal(import_of(swapped).numpy(), a)
    with pytest.raises(BufferError, match="byte order"):
        import_of(swapped, copy=False)


def test_versions():
    a = np.ones(3, np.float32)
    for version in ((1, 0), (1, 3), (1, 99)):
        assert import_of(Producer(a, version=version)).numpy().tolist() == [1, 1, 1]
    for version in ((2, 0), (0, 8)):
        p = Producer(a, version=version)
        with pytest.raises(BufferError, match=rf"exports DLPack {version[0]}\.{version[1]}, and xlac reads 1.x"):
            import_of(p)
        assert p.deleted == 1
    old = Producer(a, versioned=False, keywords=False)
    assert import_of(old).numpy().tolist() == [1, 1, 1] and old.calls == [{}]
    assert import_of(Producer(a, steps=None, dims=[3], data=a.ctypes.data)).strides == (4,)  # before 1.2: dense


def test_no_deleter():
    a = np.ones(3, np.float32)
    for versioned in (False, True):
        assert import_of(Producer(a, versioned=versioned, deleter=False)).numpy().tolist() == [1, 1, 1]


@LEGACY_OR_NOT
@pytest.mark.parametrize(("lie", "says"), [
    (dict(data=0), "no data"), (dict(data=0, offset=8), "address space"), (dict(dims=[-1]), "negative"), (dict(rank=-1), "-1 dimensions"),
    (dict(rank=65), "65 dimensions"), (dict(dims=[BIG]), "2\\^63"), (dict(dims=[BIG, BIG, 4], steps=[1, 1, 1]), "2\\^63"),
    (dict(steps=[BIG]), "address space"), (dict(steps=[-BIG]), "address space"), (dict(steps=[BIG // 4]), "address space"),
    (dict(steps=[-(1 << 59)]), "address space"), (dict(device=(2, 0)), "device \\(2, 0\\)"), (dict(device=(8, 1)), "device \\(8, 1\\)"),
    (dict(code=(3, 64)), "code 3 of 64"), (dict(code=(2, 128)), "code 2 of 128"), (dict(code=(0, 24)), "no element type"), (dict(code=(6, 1)), "code 6"),
    (dict(code=(17, 8)), "code 17"), (dict(code=(99, 8)), "code 99"), (dict(code=(0, 0)), "code 0"), (dict(lanes=0), "0 lanes"),
    (dict(offset=(1 << 64) - 1), "address space"), (dict(code=(0, 4), dims=[3, 3], steps=[BIG, BIG]), "address space"),
    (dict(code=(0, 4), data=0), "no data"), (dict(code=(0, 4), dims=[BIG, BIG]), "address space|2\\^63"),
], ids=str)
def test_producers_that_lie(lie, says, versioned):
    a = np.ones(3, np.float32)
    p = Producer(a, versioned=versioned, **lie)
    with pytest.raises(BufferError, match=says):
        import_of(p)
    assert p.deleted == 1 and a.tolist() == [1, 1, 1]


def test_no_shape():
    p = Producer(np.ones(3, np.float32))
    p.struct.tensor.dims = ctypes.POINTER(ctypes.c_int64)()
    with pytest.raises(BufferError, match="no shape"):
        import_of(p)
    p = Producer(np.ones((), np.float32))
    p.struct.tensor.dims = ctypes.POINTER(ctypes.c_int64)()
    assert import_of(p).numpy() == 1


def test_zero_size():
    for dims in ([0], [3, 0], [0, BIG, BIG]):
        b = import_of(Producer(None, dims=dims, data=0, steps=[BIG] * len(dims)))
        assert b.shape == tuple(dims) and b.nbytes == 0 and b.size == 0
        struct, give_back = consume(b.__dlpack__(max_version=(1, 0)))
        assert struct.tensor.data is None and struct.tensor.dims[:len(dims)] == dims
        give_back()


def test_capsules_are_taken_once():
    a = np.ones(3, np.float32)

    class Same:
        def __dlpack__(self, **kwargs):
            return capsule

    for max_version in (None, (1, 0)):
        capsule = xlac.asarray(a).__dlpack__(max_version=max_version)
        assert import_of(Same()).numpy().tolist() == [1, 1, 1]
        assert "used_dltensor" in repr(capsule)
        with pytest.raises(BufferError, match="taken already"):
            import_of(Same())


def test_what_is_no_producer():
    class Bad:
        def __dlpack__(self, **kwargs):
            return 7

    class Raises:
        def __dlpack__(self, **kwargs):
            raise AttributeError("mine")

    for bad in (1, [1], None, "x"):
        with pytest.raises(TypeError, match="with the method __dlpack__"):
            import_of(bad)
    with pytest.raises(TypeError, match="gave int, not a DLPack capsule"):
        import_of(Bad())
    with pytest.raises(AttributeError, match="mine"):
        import_of(Raises())
    for kwargs, kind in ((dict(device="gpu"), ValueError), (dict(device=1), ValueError), (dict(x=1), TypeError)):
        with pytest.raises(kind):
            import_of(np.ones(1), **kwargs)
    with pytest.raises(TypeError):
        xlac.from_dlpack()
    with pytest.raises(TypeError):
        xlac.from_dlpack(x=np.ones(1))
    assert import_of(np.ones(1), device="cpu", copy=None).device == "cpu"


def test_device_cpu_asks_the_producer_for_a_copy():
    class Elsewhere:
        def __init__(self):
            self.there = Producer(np.ones(2, np.float32), device=(2, 1))
            self.here = Producer(np.ones(2, np.float32), flags=COPIED)

        def __dlpack__(self, dl_device=None, **kwargs):
            self.asked = dl_device
            return (self.here if dl_device == (1, 0) else self.there).__dlpack__(**kwargs)

    p = Elsewhere()
    assert import_of(p, device="cpu").numpy().tolist() == [1, 1] and p.asked == (1, 0)
    for kwargs in ({}, dict(device="cpu", copy=False)):
        with pytest.raises(BufferError, match=r"on DLPack device \(2, 1\)"):
            import_of(p, **kwargs)


def test_deleters_run_once_in_any_thread():
    producers = [Producer(np.ones(4, np.float32), versioned=i % 2 == 0) for i in range(200)]
    buffers = [(b := import_of(p), b.numpy(), import_of(b), memoryview(b)) for p in producers]
    del b
    chunks = [[buffers.pop() for _ in range(25)] for _ in range(8)]
    assert not any(p.deleted for p in producers)
    threads = [threading.Thread(target=chunk.clear) for chunk in chunks]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [p.deleted for p in producers] == [1] * 200
    assert not {t for p in producers for t in p.threads} & {threading.get_ident()}


def test_deleting_gives_back_to_the_producer():
    p = Producer(np.ones(4, np.float32))
    b = import_of(p)
    b.delete()
    assert p.deleted == 1
    del b
    assert p.deleted == 1


# --- out ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (1, 3), (7, 0)], ids=str)
def test_export_of_every_type(dtype, version):
    versioned, bits = version is not None and version[0] >= 1, CODES[dtype][1]
    for part in parts(random_array(dtype, (4, 6))):
        if not part.flags.writeable:
            continue
        b = xlac.asarray(part)
        struct, give_back = consume(b.__dlpack__(max_version=version))
        t = struct.tensor
        packs = bits < 8 and (version is None or version < (1, 1))
        assert (t.code, t.bits, t.lanes, t.device, t.device_number, t.offset) == (*CODES[dtype], 1, 1, 0, 0)
        assert tuple(t.dims[:t.rank]) == part.shape and (t.rank == 0 or bool(t.steps))
        if versioned:
            assert (struct.major, struct.minor) == (1, min(version[1], 3) if version[0] == 1 else 3)
            assert struct.flags == (PADDED if bits < 8 and not packs else 0) | (COPIED if packs else 0)
        if packs:
            assert bytes((ctypes.c_char * ((part.size * bits + 7) // 8)).from_address(t.data or 0) if part.size else b"") == pack(part, bits)[:-1].tobytes()
        elif part.size:
            assert t.data == part.ctypes.data
        assert [s * part.itemsize for s in t.steps[:t.rank]] == list(np.empty(part.shape, part.dtype).strides if packs or not part.size else b.strides) or not part.size
        give_back()


def test_export_rules():
    a = np.arange(6, dtype=np.float32)
    b = xlac.asarray(a)
    assert b.__dlpack_device__() == (1, 0)
    struct, give_back = consume(b.__dlpack__(max_version=(1, 0), copy=True))
    assert struct.flags == COPIED and struct.tensor.data != a.ctypes.data
    b.delete()  # the copy is not a view
    assert (ctypes.c_float * 6).from_address(struct.tensor.data)[:] == a.tolist()
    give_back()
    b = xlac.asarray(a)
    for kwargs, kind in ((dict(stream=1), BufferError), (dict(dl_device=(2, 0)), BufferError), (dict(copy=2), TypeError),
                         (dict(max_version=1), TypeError), (dict(max_version=(1, "x")), TypeError), (dict(other=1), TypeError)):
        with pytest.raises(kind):
            b.__dlpack__(**kwargs)
    with pytest.raises(TypeError):
        b.__dlpack__(None)
    kwargs = {"".join(["max_", "version"]): (1, 0), "dl_device": (1, 0), "stream": None}  # a name that is not interned
    assert "dltensor_versioned" in repr(b.__dlpack__(**kwargs))


def test_export_of_what_a_tensor_cannot_say():
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    b = xlac.asarray(frozen)
    assert read(b.__dlpack__(max_version=(1, 0))).flags == READ_ONLY
    assert read(b.__dlpack__()).tensor.data != frozen.ctypes.data  # the old struct has no flag: a copy
    with pytest.raises(BufferError, match="read-only"):
        b.__dlpack__(copy=False)
    record = np.zeros(4, [("a", "u1"), ("b", "<f4")])
    record["b"] = range(4)
    b = xlac.asarray(record["b"])
    assert np.from_dlpack(b).tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="whole numbers of elements"):
        b.__dlpack__(max_version=(1, 0), copy=False)
    with pytest.raises(BufferError, match="know"):
        xlac.asarray([1], "s4").__dlpack__(max_version=(1, 0), copy=False)


def test_exports_are_given_back_once():
    b = xlac.asarray(np.ones(3))
    gc.collect()
    base = xlac.stats()["live_views"]
    capsules = [b.__dlpack__(max_version=v) for v in (None, (1, 0)) for _ in range(2)]  # several at a time
    assert xlac.stats()["live_views"] == base + 4
    taken = [consume(c) for c in capsules[:3]]
    del capsules
    assert xlac.stats()["live_views"] == base + 3  # the one that nobody took
    pointers = {struct.tensor.data for struct, _ in taken}
    assert pointers == {b.unsafe_pointer()}
    del b
    gc.collect()
    for struct, give_back in taken:
        assert (ctypes.c_double * 3).from_address(struct.tensor.data)[:] == [1, 1, 1]
        thread = threading.Thread(target=give_back)
        thread.start()
        thread.join()
    assert xlac.stats()["live_views"] == base


def test_a_thread_that_python_does_not_know_gives_back():
    """The deleter drops the last reference to an ndarray."""
    class Array(np.ndarray):
        pass

    a = np.arange(3.0).view(Array)
    gone, libc = weakref.ref(a), ctypes.CDLL(None)
    capsule = xlac.asarray(a).__dlpack__(max_version=(1, 0))
    struct, _ = consume(capsule)
    address, deleter = ctypes.addressof(struct), ctypes.cast(struct.deleter, ctypes.c_void_p)
    del a
    gc.collect()
    assert gone() is not None
    thread = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, deleter, ctypes.c_void_p(address)) == 0
    assert libc.pthread_join(thread, None) == 0
    assert gone() is None


# --- the table of C functions ---


class Exchange(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("from_object", ctypes.c_void_p), ("to_object", ctypes.c_void_p), ("view_object", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


def our_table():
    capsule = xlac.Buffer.__dlpack_c_exchange_api__
    get = ctypes.pythonapi.PyCapsule_GetPointer
    return Exchange.from_address(get(capsule, b"dlpack_exchange_api"))


def test_our_table():
    from dlpack_producer import Tensor, Versioned

    table = our_table()
    assert (table.major, table.minor, table.previous) == (1, 3, None)
    b = xlac.asarray(np.arange(6.0).reshape(2, 3).T)
    out, object_out, stream = ctypes.c_void_p(), ctypes.py_object(), ctypes.c_void_p(5)
    assert FromObject(table.from_object)(b, out) == 0
    assert Versioned.from_address(out.value).tensor.data == b.unsafe_pointer()
    assert ToObject(table.to_object)(out, object_out) == 0
    assert object_out.value.unsafe_pointer() == b.unsafe_pointer() and object_out.value.strides == b.strides
    view = Tensor()
    assert ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(table.view_object)(b, ctypes.addressof(view)) == 0
    assert (view.data, view.dims[:2], view.steps[:2]) == (b.unsafe_pointer(), [3, 2], [1, 3])
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(table.stream)(1, 0, ctypes.addressof(stream)) == 0
    assert stream.value is None


def test_our_tables_allocator():
    from dlpack_producer import Versioned

    table, said, out = our_table(), [], ctypes.c_void_p()
    say = SetError(lambda ctx, kind, message: said.append((kind, message)))
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, SetError)(table.allocate)
    for like, flags in ((Producer(np.zeros((2, 3), np.float32)), 0), (Producer(None, "s4", dims=[4]), PADDED), (Producer(None, dims=[0, 2]), 0)):
        assert allocate(ctypes.addressof(like.struct.tensor), ctypes.addressof(out), None, say) == 0
        made = Versioned.from_address(out.value)
        assert made.flags == flags and made.tensor.dims[:made.tensor.rank] == like.dims[:made.tensor.rank] and (made.tensor.data or 0) % 64 == 0
        made.deleter(out.value)
    for like in (Producer(None, dims=[1], device=(2, 0)), Producer(None, dims=[-1]), Producer(None, dims=[BIG]), Producer(None, dims=[1], lanes=4),
                 Producer(None, dims=[BIG, BIG])):
        said.clear()
        assert allocate(ctypes.addressof(like.struct.tensor), ctypes.addressof(out), None, say) == -1 and len(said) == 1
        assert said[0][0] in (b"BufferError", b"MemoryError") and said[0][1]


def test_anothers_table():
    made, used = [], []

    @FromObject
    def from_object(object, out):
        p = Producer(np.arange(3, dtype=np.float32), device=(2, 0) if object.elsewhere else (1, 0))
        made.append(p)
        out[0] = ctypes.addressof(p.struct)
        return 0

    newer = Exchange(2, 0, None)
    ours = Exchange(1, 3, None, None, ctypes.cast(from_object, ctypes.c_void_p))
    newer.previous = ctypes.addressof(ours)
    new = ctypes.pythonapi.PyCapsule_New

    def class_with(table):
        class Array:
            elsewhere = False
            __dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)

            def __dlpack__(self, **kwargs):
                used.append(kwargs)
                return Producer.__dlpack__(self.inner, **kwargs)

        return Array

    for table in (ours, newer):
        x = class_with(table)()
        b = import_of(x)
        assert b.numpy().tolist() == [0, 1, 2] and not used and made[-1].deleted == 0
        del b
        assert made[-1].deleted == 1
        assert xlac.asarray(x).shape == (3,) and xlac.donate(x).value.shape == (3,)
        x.elsewhere, x.inner = True, Producer(np.ones(2, np.float32), flags=COPIED)
        assert import_of(x, device="cpu").shape == (2,) and made[-1].deleted == 1
        used.clear()
        x.inner = Producer(np.ones(2, np.float32))
        assert import_of(x, copy=False).shape == (2,) and used[0]["copy"] is False  # the table can't pass that on
        used.clear()


# --- others' arrays ---


@pytest.mark.parametrize("dtype", "pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 c64 c128".split())
def test_numpy_both_ways(dtype):
    for part in parts(random_array(dtype, (4, 6))):
        b = xlac.from_dlpack(part)
        back = np.from_dlpack(b)
        assert back.dtype == part.dtype and back.tobytes() == part.tobytes() and back.flags.writeable == part.flags.writeable
        assert part.size == 0 or back.ctypes.data == part.ctypes.data
        if part.flags.writeable:
            assert xlac.from_dlpack(np.from_dlpack(b)).readonly is False


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in NARROW])
def test_jax_both_ways(dtype):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    a = random_array(dtype, (4, 6))
    x = jax.numpy.asarray(a)
    if x.dtype != a.dtype:
        pytest.skip("no such type there")
    xlac.reset_stats()
    b = xlac.from_dlpack(x)
    assert b.unsafe_pointer() == x.unsafe_buffer_pointer() and b.numpy().tobytes() == a.tobytes() and b.readonly
    assert xlac.stats()["copies_in"] == 0
    ours = xlac.from_dlpack(a, copy=True)  # on xlac's memory, which is aligned as JAX wants it
    y = jax.numpy.from_dlpack(ours)
    assert y.unsafe_buffer_pointer() == ours.unsafe_pointer() and np.asarray(y).tobytes() == a.tobytes()
    del x, ours
    gc.collect()
    assert b.numpy().tobytes() == a.tobytes() == np.asarray(y).tobytes()


def test_jax_of_narrow_types():
    jax = pytest.importorskip("jax")
    for dtype in ("s4", "u4", "f4e2m1fn"):
        a = random_array(dtype, (3, 5))
        b = xlac.asarray(jax.numpy.asarray(a))
        assert b.numpy().dtype == a.dtype and b.numpy().tobytes() == a.tobytes()


def test_torch_both_ways():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        t = torch.ones((4, 6), dtype=dtype)[:, ::2]
        b = xlac.from_dlpack(t)
        assert b.unsafe_pointer() == t.data_ptr() and not b.readonly
        back = torch.from_dlpack(b)
        assert back.data_ptr() == t.data_ptr() and torch.equal(back, t) and back.stride() == t.stride()
        del t
        gc.collect()
        assert torch.equal(back, torch.ones((4, 3), dtype=dtype))
