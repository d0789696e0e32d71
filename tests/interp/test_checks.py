"""Programs that check and watch themselves: the ops check.expect_*, the custom calls of the same names, interpreter.probe."""
import csv

import numpy as np
import pytest

import xlac
from xlac.dtypes import mlir_name

ONE = np.float32(1)
EPS = np.spacing(ONE)


def run(body, *arrays, types=None, **options):
    types = types or [f"tensor<{''.join(f'{n}x' for n in a.shape)}{mlir_name(a.dtype)}>" for a in arrays]
    parameters = ", ".join(f"%x{i}: {t}" for i, t in enumerate(types))
    text = f"func.func @main({parameters}) {{\n{body}\n  return\n}}\n"
    return xlac.interpret(xlac.parse(text, format="mlir"), *arrays, **options)


def refused(body, *arrays, code=404, **options):
    with pytest.raises(xlac.Error) as caught:
        run(body, *arrays, **options)
    assert caught.value.code == code, caught.value
    return caught.value


F = "tensor<2xf32>"


def pair(a, b, dtype=np.float32):
    return np.asarray(a, dtype), np.asarray(b, dtype)


@pytest.mark.parametrize("a, b, good", [
    ([1, 2], [1, 2], True), ([1, 2], [1, 3], False), ([0.0, 1], [-0.0, 1], True), ([np.nan, 1], [np.nan, 1], True),
    ([np.inf, 1], [np.inf, 1], True), ([np.inf, 1], [-np.inf, 1], False), ([1, 1 + EPS], [1, 1], False)])
@pytest.mark.parametrize("form", ["  check.expect_eq %x0, %x1 : " + F,
                                  '  "check.expect_eq"(%x0, %x1) : (tensor<2xf32>, tensor<2xf32>) -> ()',
                                  "  stablehlo.custom_call @check.expect_eq(%x0, %x1) : (tensor<2xf32>, tensor<2xf32>) -> ()"])
def test_equal(form, a, b, good):
    if good:
        run(form, *pair(a, b))
    else:
        refused(form, *pair(a, b))


@pytest.mark.parametrize("bits, good", [(0, True), (3, True), (4, False)])
@pytest.mark.parametrize("form", [
    "  check.expect_close %x0, %x1, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>",
    "  stablehlo.custom_call @check.expect_close(%x0, %x1) : (tensor<2xf32>, tensor<2xf32>) -> ()"])
def test_close(form, bits, good):
    a, b = pair([1, 1], [1, 1 + bits * EPS])
    if good:
        run(form, a, b)
    else:
        assert "1 of 2 elements differ; at [1]: 1 found, 1.00000048 expected; the largest distance is 4 ulp" in str(
            refused(form, a, b))


def test_close_has_a_least_distance_and_crosses_zero():
    form = "  check.expect_close %x0, %x1, max_ulp_difference = 2, min_ulp_difference = 2 : tensor<2xf32>, tensor<2xf32>"
    tiny = np.finfo(np.float32).smallest_subnormal
    run(form, *pair([tiny, 1], [-tiny, 1 + 2 * EPS]))
    assert "at [0]" in str(refused(form, *pair([tiny, 1], [tiny, 1 + 2 * EPS])))
    assert "not finite" in str(refused(form, *pair([np.inf, 1], [np.finfo(np.float32).max, 1 + 2 * EPS])))


def test_close_complex_is_its_worse_part():
    form = ("  check.expect_close %x0, %x1, max_ulp_difference = 1 : tensor<1xcomplex<f32>>, tensor<1xcomplex<f32>>")
    run(form, *pair([1 + 1j], [1 + EPS + 1j * (1 + EPS)], np.complex64))
    assert "2 ulp" in str(refused(form, *pair([1 + 1j], [1 + 1j * (1 + 2 * EPS)], np.complex64)))


@pytest.mark.parametrize("form, tolerance", [
    ("  check.expect_almost_eq %x0, %x1 : " + F, 1e-4),
    ("  check.expect_almost_eq %x0, %x1, tolerance = 0.5 : " + F, 0.5),
    ("  stablehlo.custom_call @check.expect_almost_eq(%x0, %x1) : (tensor<2xf32>, tensor<2xf32>) -> ()", 1e-3),
    ("  %r = stablehlo.custom_call @check.eq(%x0, %x1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<i1>", 1e-4)])
def test_almost_equal(form, tolerance):
    run(form, *pair([0, np.nan], [0.9 * tolerance, np.nan]))
    run(form, *pair([0, -np.inf], [-0.9 * tolerance, -np.inf]))
    assert "allowed is" in str(refused(form, *pair([0, 1], [1.1 * tolerance, 1])))
    refused(form, *pair([np.inf, 1], [1, 1]))
    refused(form, *pair([np.nan, 1], [1, 1]))


def test_constants():
    run("  check.expect_eq_const %x0, dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", np.array([[1, 2], [3, 4]], np.int32))
    run("  check.expect_eq_const %x0, dense<7> : tensor<3xui8>", np.full(3, 7, np.uint8))
    run("  check.expect_almost_eq_const %x0, dense<0.1> : tensor<f32>", np.float32(0.10005)[()])
    e = refused("  check.expect_eq_const %x0, dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>",
                np.array([[1, 2], [3, 4]], np.int32))
    assert e.line == 2 and "at [1, 1]: 4 found, -4 expected" in str(e) and "check.expect_eq_const" in str(e)


def test_tolerances_are_for_floats():
    i = np.zeros(2, np.int32)
    refused('  "check.expect_close"(%x0, %x0) {max_ulp_difference = 1 : ui64} : (tensor<2xi32>, tensor<2xi32>) -> ()', i,
            code=400)
    run("  %r = stablehlo.custom_call @check.eq(%x0, %x0) : (tensor<2xi32>, tensor<2xi32>) -> tensor<i1>", i)


def test_a_check_in_a_branch_not_taken_is_not_made():
    body = """  %no = stablehlo.constant dense<false> : tensor<i1>
  "stablehlo.if"(%no) ({
    check.expect_eq_const %x0, dense<9> : tensor<i32>
    stablehlo.return
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> ()"""
    run(body, np.int32(1)[()])
    refused(body.replace("false", "true"), np.int32(1)[()])


PROBED = """func.func @main(%n: tensor<i64>) -> tensor<i64> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %i = stablehlo.while(%a = %zero) : tensor<i64>
  cond {
    %c = stablehlo.compare LT, %a, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %b = stablehlo.add %a, %one : tensor<i64>
    %p = interpreter.probe %b, probe_id = "loop/0" : tensor<i64>
    stablehlo.return %p : tensor<i64>
  }
  check.expect_serialized_eq %one, probe_id = "loop/0" : tensor<i64>
  check.expect_serialized_eq %n, probe_id = "loop/0", iter = 2 : tensor<i64>
  return %i : tensor<i64>
}
"""


def test_probes_into_a_list():
    seen = []
    assert xlac.interpret(xlac.parse(PROBED), np.int64(3), probes=seen) == 3
    assert [(name, int(a)) for name, a in seen] == [("loop/0", 1), ("loop/0", 2), ("loop/0", 3)]


def test_probes_that_nobody_asked_for_pass_their_operand_on():
    quiet = "\n".join(line for line in PROBED.split("\n") if "check." not in line)
    assert xlac.interpret(xlac.parse(quiet), np.int64(3)) == 3
    with pytest.raises(xlac.Error, match="keeps nothing") as caught:
        xlac.interpret(xlac.parse(PROBED), np.int64(3))
    assert caught.value.code == 404 and "probes" in caught.value.hint


def test_probes_of_a_run_that_fails():
    seen = []
    with pytest.raises(xlac.Error, match="has not come to iteration 2"):
        xlac.interpret(xlac.parse(PROBED), np.int64(1), probes=seen)
    assert [(name, int(a)) for name, a in seen] == [("loop/0", 1)]


def test_probes_into_a_directory(tmp_path):
    text = """func.func @main(%x: tensor<2x3xf32>) {
  %a = interpreter.probe %x, probe_id = "a" : tensor<2x3xf32>
  %b = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3xui8>
  %c = interpreter.probe %b, probe_id = "b" : tensor<2x3xui8>
  return
}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    xlac.interpret(xlac.parse(text), x, probes=tmp_path / "out")
    rows = list(csv.reader((tmp_path / "out/index.csv").open()))
    assert [row[:2] for row in rows] == [["a", "tensor<2x3xf32>"], ["b", "tensor<2x3xui8>"]]
    assert np.array_equal(np.load(rows[0][2]), x) and np.load(rows[1][2]).dtype == np.uint8


def test_probes_of_participants():
    text = """func.func @one(%x: tensor<i64>) -> tensor<i64> {
  %p = interpreter.probe %x, probe_id = "p" : tensor<i64>
  return %p : tensor<i64>
}
func.func @main() {
  %a = stablehlo.constant dense<4> : tensor<i64>
  %b = stablehlo.constant dense<5> : tensor<i64>
  %r:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@one, @one]]} : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
  check.expect_eq_const %r#1, dense<5> : tensor<i64>
  return
}
"""
    seen = []
    xlac.interpret(xlac.parse(text), probes=seen)
    assert sorted(int(a) for _, a in seen) == [4, 5]


def test_probes_must_be_a_list():
    with pytest.raises(TypeError, match="list"):
        xlac._core.interpret(xlac.parse(PROBED), np.int64(3), probes=3)


UNUSED_CHECK = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.custom_call @check.eq(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<i1>
  return %x : tensor<2xf32>
}"""


def test_a_check_that_nobody_uses_is_made_by_every_engine_and_kept_by_passes():
    module = xlac.parse(UNUSED_CHECK)
    right, wrong = np.array([1, 2], np.float32), np.array([1, 3], np.float32)
    folded = module.to_hlo().run("dce,algebraic-simplification,dce")
    assert "check.eq" in folded.to_text()
    for run_it in (lambda x: xlac.interpret(module, x), xlac.compile(module), xlac.compile(module, passes=False), xlac.compile(folded)):
        np.testing.assert_array_equal(run_it(right), right)
        with pytest.raises(xlac.Error, match="check.eq"):
            run_it(wrong)
