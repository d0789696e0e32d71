"""Sharded programs on several GPUs of one process: each device of the group runs on its own."""

import numpy as np
import pytest

import xlac
from simulator import xlac_driver

PRODUCT = """
module @product attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                  %b: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return (rng.integers(-8, 9, (8, 16)) / 8).astype("f"), (rng.integers(-8, 9, (16, 4)) / 8).astype("f")


@pytest.mark.parametrize("where", [{"device": "cuda", "devices": 2}, {"devices": ["cuda:0", "cuda:1"]}, {"devices": ["cuda:1", "cuda:0"]},
                                   {"devices": ["cuda:1"] * 2}, {"device": "cuda:1", "devices": 2}])
@pytest.mark.parametrize("results", ["numpy", "buffer", "sharded"])
def test_a_product_over_two_gpus(cuda, arrays, where, results):
    a, b = arrays
    exe = xlac.compile(PRODUCT, results=results, **where)
    want = xlac.interpret(PRODUCT.replace("mhlo.num_partitions = 2", "mhlo.num_partitions = 1"), a, b)
    for _ in range(3):
        assert np.asarray(exe(a, b)).tobytes() == np.asarray(want).tobytes()
    assert cuda.reports() == []


def test_each_device_has_its_own_gpu(cuda, arrays):
    """A library loaded on each: modules are of a device."""
    modules = cuda.count("cuModuleLoadData")
    exe = xlac.compile(PRODUCT, device="cuda", devices=2)
    assert cuda.count("cuModuleLoadData") == modules + 2
    exe(*arrays)
    xlac.compile(PRODUCT, device="cuda:1", devices=2)(*arrays)
    assert cuda.count("cuModuleLoadData") == modules + 3
    assert cuda.reports() == []


def test_fewer_gpus_than_devices_are_shared(cuda):
    """The simulated driver has eight."""
    text = PRODUCT.replace('"x"=2', '"x"=16').replace("partitions = 2", "partitions = 16")
    a, b = np.ones((8, 16), np.float32), np.ones((16, 4), np.float32)
    modules = cuda.count("cuModuleLoadData")
    np.testing.assert_array_equal(xlac.compile(text, device="cuda", devices=16)(a, b), np.tanh(np.full((8, 4), 16, np.float32)))
    assert cuda.count("cuModuleLoadData") == modules + 8
    assert cuda.reports() == []


@pytest.mark.parametrize("devices, words", [(["cuda:0", "cpu"], "a group can't be on cuda:0 and cpu:0"), (["cpu:0", "cpu:1"], "a group can't be on"),
                                            (["cuda:0", "cuda:8"], "there is no cuda:8: the driver has 8 GPUs"), (["cuda:0", "tpu"], "there is no device 'tpu")])
def test_devices_that_are_no_group(cuda, devices, words):
    with pytest.raises(xlac.Error, match=words):
        xlac.compile(PRODUCT, devices=devices)
    with pytest.raises(xlac.Error, match="2 devices, and other than so many names"):
        xlac.compile(PRODUCT, device="cuda:0,cuda:1,cuda:0", devices=2)
    with pytest.raises(xlac.Error, match="there is no device"):
        xlac.compile("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", device="cuda:0,cuda:1")


def test_a_group_is_saved_and_loaded(cuda, arrays):
    exe = xlac.compile(PRODUCT, device="cuda", devices=2)
    loads = cuda.count("cuModuleLoadData")
    again = xlac.load(exe.serialize(), device="cuda")
    assert cuda.count("cuModuleLoadData") == loads + 2
    assert again(*arrays).tobytes() == exe(*arrays).tobytes()


STEP = """
module @step attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>, tf.aliasing_output = 0 : i32},
                  %b: tensor<8xf32>) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
    %0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.add %a, %0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
}
"""


@pytest.fixture
def step(cuda):
    a, b = np.arange(128, dtype=np.float32).reshape(8, 16), np.arange(8, dtype=np.float32)
    yield a, b, a + b[:, None]
    assert cuda.reports() == []


def test_shards_stay_on_their_gpus(cuda, step):
    a, b, want = step
    exe = xlac.compile(STEP, device="cuda", devices=2, results="sharded")
    y = exe(a, b)
    assert [s.data.device for s in y.shards] == ["cuda:0", "cuda:1"]
    np.testing.assert_array_equal(np.asarray(y), want)
    copies = cuda.count("cuMemcpyDtoHAsync_v2"), cuda.count("cuMemcpyHtoDAsync_v2")
    z = exe(y, b)
    assert (cuda.count("cuMemcpyDtoHAsync_v2"), cuda.count("cuMemcpyHtoDAsync_v2") - 2) == copies  # b, to both
    np.testing.assert_array_equal(np.asarray(z), want + b[:, None])
    np.testing.assert_array_equal(np.asarray(y), want)


def test_shards_are_donated_on_their_gpus(cuda, step):
    a, b, want = step
    exe = xlac.compile(STEP, device="cuda", devices=2, results="sharded")
    y = exe(a, b)
    places = [s.data.__cuda_array_interface__["data"][0] for s in y.shards]
    z = exe(xlac.donate(y), b, donate="require")
    assert y.is_deleted and [s.data.__cuda_array_interface__["data"][0] for s in z.shards] == places
    np.testing.assert_array_equal(np.asarray(z), want + b[:, None])
    on_host = xlac.compile(STEP, devices=2, results="sharded")(a, b)
    with pytest.raises(xlac.DonationError, match="its shards lie in other memory than the program's results"):
        exe(xlac.donate(on_host), b, donate="require")
    np.testing.assert_array_equal(np.asarray(exe(on_host, b)), want + b[:, None])


def test_shards_of_other_gpus_and_cut_otherwise_are_copied(cuda, step):
    a, b, want = step
    exe = xlac.compile(STEP, device="cuda", devices=2, results="sharded")
    crossed = xlac.compile(STEP, devices=["cuda:1", "cuda:0"], results="sharded")
    rows = xlac.compile(STEP.replace('[{}, {"x"}]', '[{"x"}, {}]'), device="cuda", devices=2, results="sharded")
    y = exe(a, b)
    for other in (crossed, rows, xlac.compile(STEP, devices=2, results="sharded")):
        z = other(y, b)
        np.testing.assert_array_equal(np.asarray(z), want + b[:, None])
        np.testing.assert_array_equal(np.asarray(exe(z, b)), want + 2 * b[:, None])


@pytest.mark.parametrize("devices", [["cuda:0", "cuda:1"], ["cuda:0"] * 2])
@pytest.mark.parametrize("results", ["numpy", "buffer"])
def test_whole_arrays_of_a_gpu_are_cut_on_the_host(cuda, step, devices, results):
    a, b, want = step
    exe = xlac.compile(STEP, devices=devices, results=results)
    np.testing.assert_array_equal(np.asarray(exe(xlac.asarray(a, device="cuda:0"), xlac.asarray(b, device="cuda:1"))), want)
