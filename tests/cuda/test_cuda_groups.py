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
