"""Arrays of other libraries on a GPU, both ways at zero copy: PyTorch, CuPy and JAX, those that are installed. Only with XLAC_CUDA_ON_GPU=1."""
import os

import numpy as np
import pytest

import xlac

pytestmark = pytest.mark.skipif(not os.environ.get("XLAC_CUDA_ON_GPU"), reason="XLAC_CUDA_ON_GPU is not set")
X = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
DOUBLE = "HloModule m\nENTRY e { x = f32[256,256] parameter(0)\n ROOT y = f32[256,256] add(x, x) }"


def torch_library():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no GPU")
    return torch, lambda a: torch.from_numpy(a).cuda(), lambda t: t.data_ptr(), lambda t: t.cpu().numpy()


def cupy_library():
    cupy = pytest.importorskip("cupy")
    return cupy, cupy.asarray, lambda t: t.data.ptr, lambda t: t.get()


def jax_library():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this jax has no GPU")
    import jax.dlpack
    import jax.numpy as jnp

    jax.from_dlpack = jax.dlpack.from_dlpack
    return jax, jnp.asarray, lambda t: t.unsafe_buffer_pointer(), np.asarray


LIBRARIES = {"torch": torch_library, "cupy": cupy_library, "jax": jax_library}


@pytest.mark.parametrize("name", LIBRARIES)
def test_in_and_out_at_zero_copy(name):
    library, put, pointer, get = LIBRARIES[name]()
    exe, theirs = xlac.compile(DOUBLE, device="cuda", results="buffer"), put(X)
    ours = xlac.from_dlpack(theirs)
    assert ours.device == "cuda:0" and ours.unsafe_pointer() == pointer(theirs)
    for _ in range(20):
        result = exe(theirs)
        back = library.from_dlpack(result)
        assert pointer(back) == result.unsafe_pointer() and np.array_equal(get(back), 2 * X)
        del result
        assert np.array_equal(get(back), 2 * X)


def test_work_on_a_stream_of_torchs_is_waited_for():
    torch, put, _, get = torch_library()
    exe, stream, x = xlac.compile(DOUBLE, device="cuda", results="buffer"), torch.cuda.Stream(), put(X)
    for i in range(20):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)  # some 10 ms of the GPU's time
            y = x + float(i)
            assert np.array_equal(np.asarray(exe(y)), 2 * (X + i))


def test_a_donated_buffer_is_updated_in_place():
    text = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] add(x, x) }"
    step, x = xlac.compile(text, device="cuda", results="buffer"), xlac.asarray(np.ones(64, np.float32), device="cuda")
    at = x.unsafe_pointer()
    for _ in range(5):
        x = step(xlac.donate(x))
    assert x.unsafe_pointer() == at and x.numpy().tolist() == [32.0] * 64


def test_numbas_interface_is_cupys():
    cupy = pytest.importorskip("cupy")
    b = xlac.asarray(X, device="cuda")
    assert np.array_equal(cupy.asarray(b).get(), X)
