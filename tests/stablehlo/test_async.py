"""Futures of StableHLO and async chains of HLO are the same thing, where both have it."""
import numpy as np
import pytest

import xlac

X = np.arange(8, dtype=np.float32)
SUM = "sum { sa = f32[] parameter(0)\n  sb = f32[] parameter(1)\n  ROOT sc = f32[] add(sa, sb) }\n"

FUTURES = {
    "all-reduce": "st = f32[8] all-reduce-start(x), replica_groups={{0}}, to_apply=sum\n  ROOT d = f32[8] all-reduce-done(st)",
    "all-gather": "st = (f32[8], f32[8]) all-gather-start(x), replica_groups={{0}}, dimensions={0}\n  ROOT d = f32[8] all-gather-done(st)",
    "collective-permute": "st = (f32[8], f32[8], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}\n"
                          "  ROOT d = f32[8] collective-permute-done(st)",
    "reduce-scatter": "st = ((f32[8]), f32[8], u32[]) reduce-scatter-start(x), replica_groups={{0}}, dimensions={0}, to_apply=sum\n"
                      "  ROOT d = f32[8] reduce-scatter-done(st)",
    "slice": "st = ((f32[8]), f32[4], u32[]) slice-start(x), slice={[0:8:2]}\n  ROOT d = f32[4] slice-done(st)",
}


def module(body):
    m = xlac.parse(f"HloModule m\n{SUM}ENTRY e {{\n  x = f32[8] parameter(0)\n  {body}\n}}\n")
    m.verify()
    return m


@pytest.mark.parametrize("name", FUTURES)
def test_there_and_back(name):
    m = module(FUTURES[name])
    stable = m.to_stablehlo()
    stable.verify()
    text = stable.to_text()
    assert text.count("stablehlo.async_start") == text.count("stablehlo.async_done") == 1
    assert "func.func public @main(%arg0: tensor<8xf32>) -> tensor<" in text
    back = stable.to_hlo()
    back.verify()
    assert f"{name}-start(" in back.to_text() and f"{name}-done(" in back.to_text()
    want = np.asarray(xlac.interpret(m, X))
    for program in (stable, back):
        np.testing.assert_array_equal(xlac.interpret(program, X, async_order="lazy"), want)


def test_updates_are_lost_and_other_chains_are_calls():
    m = module("st = ((f32[8]), f32[8], s32[]) slice-start(x), slice={[0:8]}\n  u = ((f32[8]), f32[8], s32[]) slice-update(st)\n"
               "  d = f32[8] slice-done(u)\n  s2_ = ((f32[8]), f32[8]) sine-start(d)\n  ROOT r = f32[8] sine-done(s2_)")
    stable = m.to_stablehlo()
    stable.verify()
    assert stable.to_text().count("async_done") == 1 and "call @" in stable.to_text()
    np.testing.assert_array_equal(xlac.interpret(stable, X), xlac.interpret(m, X))


FUTURE = """func.func @main(%x: tensor<8xf32>) -> {result} {{
  %s = "stablehlo.async_start"(%x) ({{
  ^bb0(%a: tensor<8xf32>):
    %b = "stablehlo.slice"(%a) {{start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 1>}} : (tensor<8xf32>) -> tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }}) : (tensor<8xf32>) -> !stablehlo.future<tensor<4xf32>>
{rest}
}}
"""
DONE = '  %{0} = "stablehlo.async_done"(%s) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>\n'


def test_futures_that_hlo_cannot_carry_run_where_they_start():
    twice = FUTURE.format(result="(tensor<4xf32>, tensor<4xf32>)", rest=DONE.format("d") + DONE.format("e") +
                          "  return %d, %e : tensor<4xf32>, tensor<4xf32>")
    never = FUTURE.format(result="tensor<8xf32>", rest="  return %x : tensor<8xf32>")
    for source, want in ((twice, (X[:4], X[:4])), (never, X)):
        m = xlac.parse(source)
        m.verify()
        hlo = m.to_hlo()
        hlo.verify()
        assert "start" not in hlo.to_text()
        np.testing.assert_array_equal(xlac.interpret(m, X), want)


def test_a_sharding_is_the_outcomes():
    source = FUTURE.format(result="tensor<4xf32>", rest=DONE.format("d") + "  return %d : tensor<4xf32>").replace(
        "}) : (tensor<8xf32>) -> !st", '}) {mhlo.sharding = "{replicated}"} : (tensor<8xf32>) -> !st')
    hlo = xlac.parse(source).to_hlo()
    hlo.verify()
    done = next(line for line in hlo.to_text().split("\n") if "slice-done(" in line)
    assert "sharding={replicated}" in done and hlo.to_text().count("sharding") == 1


@pytest.mark.parametrize("root", "su")
def test_a_future_that_is_given_besides_runs_where_it_starts(root):
    """XLA's rules count consumers, and a result is none."""
    ops = {"s": "((f32[8]), f32[3], u32[]) slice-start(p), slice={[1:7:2]}", "u": "((f32[8]), f32[3], u32[]) slice-update(s)", "d": "f32[3] slice-done(u)"}
    lines = "\n".join(f"  {'ROOT ' * (name == root)}{name} = {op}" for name, op in ops.items())
    again = xlac.verify(f"HloModule m\nENTRY e {{\n  p = f32[8] parameter(0)\n{lines}\n}}\n").to_stablehlo().to_hlo()
    again.verify()
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(xlac.interpret(again, x)[1], x[1:7:2])
