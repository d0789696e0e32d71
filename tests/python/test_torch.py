"""Tensors of PyTorch (CPU), both ways, by pointer; and what happens when one side dies first."""
import gc
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import xlac  # noqa: E402

NARROW = [name for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz") if hasattr(torch, name)]
TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]


@pytest.fixture(scope="module")
def increment():
    return xlac.compile("HloModule m\nENTRY e {\n  x = f32[40,50] parameter(0)\n  k = f32[] constant(1)\n  b = f32[40,50] broadcast(k), dimensions={}\n"
                        "  ROOT r = f32[40,50] add(x, b)\n}", donate=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.T, lambda t: t[::2, 1:3], lambda t: t[0, 0], lambda t: t[:0]],
                         ids=["whole", "transposed", "window", "scalar", "empty"])
def test_there_and_back(dtype, view):
    t = view(torch.arange(20).reshape(4, 5).to(getattr(torch, dtype)))
    b = xlac.from_dlpack(t)
    assert b.shape == tuple(t.shape) and (t.numel() == 0 or b.unsafe_pointer() == t.data_ptr())
    assert t.numel() < 2 or b.strides == tuple(s * t.element_size() for s in t.stride())
    back = torch.from_dlpack(b)
    assert back.dtype == t.dtype and torch.equal(back, t)
    assert t.numel() == 0 or back.data_ptr() == t.data_ptr()


def test_a_tensor_is_read_where_it_lies(increment):
    t = torch.randn(50, 40).T
    xlac.reset_stats()
    r = increment(xlac.from_dlpack(t))
    assert xlac.stats()["bytes_copied_in"] == 0
    np.testing.assert_array_equal(r, t.numpy() + 1)
    np.testing.assert_array_equal(increment(t), t.numpy() + 1)


def test_a_result_is_a_tensor_of_the_same_memory(increment):
    r = increment(np.zeros((40, 50), np.float32))
    t = torch.from_dlpack(r)
    assert t.data_ptr() == r.ctypes.data
    del r
    gc.collect()
    assert (t == 1).all()


def test_donating_a_surrendered_tensor(increment):
    t = torch.zeros(40, 50)
    where = t.data_ptr()
    mark = xlac.donate(xlac.from_dlpack(t))
    r = increment(mark)
    assert r.ctypes.data == where and mark.value.is_deleted and (t == 1).all()
    t2 = torch.zeros(40, 50)
    assert increment(xlac.donate(t2)).ctypes.data == t2.data_ptr()


def test_no_donation_while_a_tensor_looks_on(increment):
    b = xlac.from_dlpack(np.zeros((40, 50), np.float32), copy=True)
    t = torch.from_dlpack(b)
    with pytest.warns(xlac.DonationWarning, match="views of it are alive"):
        increment(xlac.donate(b))
    assert not b.is_deleted and (t == 0).all()
    del t
    gc.collect()
    increment(xlac.donate(b))
    assert b.is_deleted


def test_whoever_dies_first():
    def there(i):
        t = torch.full((1000,), float(i))
        b = xlac.from_dlpack(t)
        del t
        return b.numpy()[0] == i, torch.from_dlpack(b)

    results = []

    def run(k):
        for i in range(50):
            ok, t = there(i)
            results.append(ok and float(t.sum()) == 1000.0 * i)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 400 and all(results)
    b = xlac.from_dlpack(np.arange(10.0), copy=True)
    tensors = [torch.from_dlpack(b) for _ in range(5)]
    del b
    gc.collect()
    thread = threading.Thread(target=tensors.clear)
    assert all(float(t.sum()) == 45 for t in tensors)
    thread.start()
    thread.join()


def copies(dtype, n=4):
    return xlac.parse(f"HloModule m\nENTRY e {{ x = {dtype}[{n}] parameter(0)\n ROOT y = {dtype}[{n}] copy(x) }}")


@pytest.mark.parametrize("dtype, name", [(torch.bfloat16, "bf16"), (torch.float8_e4m3fn, "f8e4m3fn"), (torch.float8_e5m2, "f8e5m2"),
                                         (torch.float8_e4m3fnuz, "f8e4m3fnuz"), (torch.float16, "f16"), (torch.float32, "f32"),
                                         (torch.int8, "s8"), (torch.bool, "pred"), (torch.complex64, "c64")])
def test_tensors_of_every_type_are_arguments(dtype, name):
    x = torch.tensor([0.0, 1.0, -2.0, 3.0] * 2).to(dtype)[::2]
    for got in (xlac.interpret(copies(name), x), xlac.compile(copies(name))(x)):
        assert torch.equal(torch.from_dlpack(xlac.asarray(got)).to(torch.complex64), x.to(torch.complex64))


@pytest.mark.parametrize("tensor, hint", [(torch.tensor([1 + 2j]).conj(), "resolve_conj"), (torch.tensor([1 + 2j]).conj().imag, "resolve_neg"),
                                          (torch.ones(1, requires_grad=True), "detach")])
def test_tensors_that_are_not_what_their_memory_says_are_refused(tensor, hint):
    for copy in (None, True, False):
        with pytest.raises(BufferError, match=hint):
            xlac.from_dlpack(tensor, copy=copy)
    name = "c64" if tensor.is_complex() else "f32"
    for run in (xlac.interpret, lambda m, x: xlac.compile(m)(x)):
        with pytest.raises(xlac.Error, match=f"argument 0.*{hint}"):
            run(copies(name, 1), tensor)


def test_resolved_tensors_are_taken():
    x = torch.tensor([1 + 2j]).conj()
    assert np.asarray(xlac.from_dlpack(x.resolve_conj()))[0] == 1 - 2j
    assert np.asarray(xlac.from_dlpack(x.imag.resolve_neg()))[0] == -2


def test_how_to_convert_is_said_in_pytorchs_words():
    for name, words in (("pred", "torch.bool"), ("f32", "torch.float32"), ("bf16", "torch.bfloat16")):
        with pytest.raises(xlac.ArgumentError, match=f"pass x.to\\({words}\\)"):
            xlac.compile(copies(name))(torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("dtype, hlo", [("float32", "f32"), ("bfloat16", "bf16"), ("float16", "f16"), ("int32", "s32"), ("float8_e4m3fn", "f8e4m3fn"), ("bool", "pred")])
def test_results_are_written_into_tensors(dtype, hlo):
    exe = xlac.compile(f"HloModule m\nENTRY e {{\n  x = {hlo}[3] parameter(0)\n  ROOT r = {hlo}[3] copy(x)\n}}")
    x, out = torch.tensor([1, 0, 1]).to(getattr(torch, dtype)), torch.zeros(3).to(getattr(torch, dtype))
    where = out.data_ptr()
    assert exe(x, out=out) is out and out.data_ptr() == where and torch.equal(out.float(), torch.tensor([1.0, 0, 1]))


def test_tensors_that_require_a_gradient_are_refused_with_a_hint():
    exe = xlac.compile("HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] copy(x)\n}")
    t = torch.zeros(3, requires_grad=True)
    with pytest.raises(xlac.ArgumentError, match="out, array 0.*requires a gradient.*detach"):
        exe(torch.ones(3), out=t)
    with pytest.raises(xlac.ArgumentError, match="detach"):
        exe(t)
    assert exe(torch.ones(3), out=t.detach()).tolist() == [1, 1, 1] and t.tolist() == [1, 1, 1]


@pytest.mark.parametrize("make, hint", [
    (lambda: torch.ones(3).to_sparse(), "to_dense"), (lambda: torch.ones(3, device="meta"), "without memory"),
    (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "dequantize"),
    (lambda: torch.nested.nested_tensor([torch.ones(3)]), "to_padded_tensor"), (lambda: torch.ones(3, requires_grad=True), "detach"),
], ids=["sparse", "meta", "quantized", "nested", "gradient"])
@pytest.mark.filterwarnings("ignore")
def test_tensors_without_plain_elements_are_refused_in_a_line(make, hint):
    exe = xlac.compile(copies("f32", 3))
    for call, kind in ((lambda x: exe(x), xlac.ArgumentError), (xlac.asarray, BufferError), (xlac.from_dlpack, BufferError)):
        with pytest.raises(kind, match=hint) as error:
            call(make())
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["bfloat16", *NARROW])
def test_a_type_is_converted_where_one_is_asked_for(name):
    x = torch.tensor([0.0, 1, -2]).to(getattr(torch, name))
    assert xlac.asarray(x, "f32").numpy().tolist() == x.float().tolist() and xlac.asarray(x, np.float64).dtype == np.float64


@pytest.mark.parametrize("name", [*TYPES, *NARROW])
def test_results_as_buffers_become_tensors(name):
    x = torch.tensor([1, 0, 1]).to(getattr(torch, name))
    hlo = {"bool": "pred", "complex64": "c64", "complex128": "c128", "bfloat16": "bf16"}.get(name) or name.replace("float8_", "f8")
    hlo = hlo.replace("uint", "u").replace("int", "s").replace("float", "f")
    got = torch.from_dlpack(xlac.compile(copies(hlo, 3), results="buffer")(x))
    assert got.dtype == x.dtype and torch.equal(got.to(torch.complex64), x.to(torch.complex64))


def test_a_tensor_of_other_elements_is_refused_in_pytorchs_words(increment):
    for dtype, found in ((torch.float64, "f64"), (torch.bfloat16, "bf16"), (torch.int32, "s32"), (torch.bool, "pred")):
        with pytest.raises(TypeError, match=rf"argument 0 \(x\) .*elements are {found}, .*pass x\.to\(torch\.float32\)"):
            increment(torch.zeros(40, 50).to(dtype))
    narrow = xlac.compile("HloModule m\nENTRY e { x = bf16[2] parameter(0)\n ROOT y = bf16[2] add(x, x) }")
    with pytest.raises(TypeError, match=r"pass x\.to\(torch\.bfloat16\)"):
        narrow(torch.ones(2))


def test_a_model_is_not_a_program():
    for model in (torch.nn.Linear(2, 2), torch.jit.trace(lambda x: x + 1, torch.ones(3))):
        with pytest.raises(TypeError, match="torch_xla.stablehlo"):
            xlac.compile(model)
