"""topk as a routine: the interpreter's bits, ties and NaN included."""
import numpy as np
import pytest

import xlac

from .test_moves import check, program, shape
from .test_sort import FLOATS, INTEGERS, numbers, with_nans


@pytest.mark.parametrize("t", FLOATS + INTEGERS)
@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize("dims,k", [((5, 100), 7), ((300,), 1), ((3, 4, 33), 33), ((2, 1000), 90), ((4, 0), 0), ((0, 9), 2), ((6, 40), 0)])
def test_topk(t, largest, dims, k):
    x = numbers(np.random.default_rng(13), t, dims)
    out = (*dims[:-1], k)
    text = program(f"  x = {shape(t, dims)} parameter(0)", f"  ROOT r = ({shape(t, out)}, {shape('s32', out)}) topk(x), k={k}, largest={largest}")
    for y in (x, with_nans(x.copy())) if t in FLOATS else (x,):
        check(text, y, routine="heap" if x.size and k else None)


@pytest.mark.parametrize("largest", ["true", "false"])
def test_big_topk(largest):
    x = np.random.default_rng(14).normal(size=(40, 5000)).astype(np.float32)
    check(program("  x = f32[40,5000] parameter(0)", f"  ROOT r = (f32[40,50], s32[40,50]) topk(x), k=50, largest={largest}"), x, routine="heap")


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim,k,whole", [(1, 5, True), (0, 3, True), (1, 7, False)])
def test_approximate_top_k_as_jax_has_it_on_cpus(dim, k, whole, largest):
    """A fallback is exact: sorted and cut."""
    shape = [6, 7]
    shape[dim] = k
    out = "x".join(map(str, shape))
    text = f"""module @m {{
  func.func private @before(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{
    %0 = stablehlo.compare {"GT" if largest else "LT"}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }}
  func.func public @main(%x: tensor<6x7xf32>) -> (tensor<{out}xf32>, tensor<{out}xi32>) {{
    %i = stablehlo.iota dim = {dim} : tensor<6x7xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %v = stablehlo.constant dense<0.0> : tensor<f32>
    %r:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %v, %c) {{backend_config = "", called_computations = [@before],
      mhlo.backend_config = {{aggregate_to_topk = {str(whole).lower()}, is_fallback = true, recall_target = 0.95 : f32, reduction_dim = {dim} : i64,
      reduction_input_size_override = -1 : i64, top_k = {k} : i64}}}}
      : (tensor<6x7xf32>, tensor<6x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<{out}xf32>, tensor<{out}xi32>)
    return %r#0, %r#1 : tensor<{out}xf32>, tensor<{out}xi32>
  }}
}}"""
    x = np.random.default_rng(0).permutation(42).reshape(6, 7).astype(np.float32)
    order = np.argsort(-x if largest else x, axis=dim, kind="stable")
    keep = (slice(0, shape[0]), slice(0, shape[1]))
    for run in (xlac.compile(xlac.parse(text, format="mlir")), lambda a: xlac.interpret(xlac.parse(text, format="mlir"), a)):
        values, places = run(x)
        assert np.array_equal(values, np.take_along_axis(x, order, dim)[keep]) and np.array_equal(places, order[keep])
