"""The pass inline on functions of MLIR form: what it comes to is counted before anything is done."""
import pytest

import xlac


def doubling(n):
    """Functions of which each calls the one before it twice."""
    functions = ["func.func private @f0(%a: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.negate %a : tensor<f32>\n  return %0 : tensor<f32>\n}"]
    for i in range(1, n + 1):
        call = f"call @f{i - 1}"
        functions.append(f"func.func @f{i}(%a: tensor<f32>) -> tensor<f32> {{\n  %0 = {call}(%a) : (tensor<f32>) -> tensor<f32>\n"
                         f"  %1 = {call}(%0) : (tensor<f32>) -> tensor<f32>\n  return %1 : tensor<f32>\n}}")
    return xlac.parse("\n".join(functions), format="mlir")


def count(module, name):
    return next(sum("negate" in i.to_text() for i in c.instructions) for c in module.computations if c.name == name)


def test_each_call_becomes_the_body():
    inlined = doubling(5).run("inline")
    inlined.verify()
    assert "call" not in inlined.to_text() and [count(inlined, f"f{i}") for i in range(1, 6)] == [2, 4, 8, 16, 32]


def test_too_much_is_refused_before_anything_grows():
    module = doubling(62)
    before = module.to_text()
    with pytest.raises(xlac.Error, match="inlining @f.* would make more than 4000000 ops: set max-ops higher") as caught:
        module.run("inline", in_place=True)
    assert caught.value.line and module.to_text() == before


def test_the_limit_counts_what_all_functions_come_to():
    """f0 to f3 come to 1, 4, 10 and 22 ops while calls stand beside their bodies: 37 in all."""
    doubling(3).run("inline{max-ops=37}").verify()
    with pytest.raises(xlac.Error, match="inlining @f2 would make more than 36 ops"):
        doubling(3).run("inline{max-ops=36}")


def test_recursion_stays():
    text = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}"
    assert "call @f" in xlac.parse(text, format="mlir").run("inline").to_text()


def test_calls_with_edges_of_shardy_stay():
    """sdy.func_data_flow_edge stands for what passes between a call and its function: without the call it is not valid."""
    body = "func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  EDGE\n  %1 = stablehlo.abs %0 : tensor<4xf32>\n  return %1 : tensor<4xf32>\n}\n"
    main = ("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  RESULT\n  return %1 : tensor<4xf32>\n}")
    edge, copy = "sdy.func_data_flow_edge", "stablehlo.negate"
    for argument, result in ((edge, copy), (copy, edge), (copy, copy)):
        text = (body.replace("EDGE", f"%0 = {argument} %a : tensor<4xf32>") +
                main.replace("RESULT", f"%1 = {result} %0 : tensor<4xf32>"))
        inlined = xlac.parse(text, format="mlir").run("inline")
        inlined.verify()
        assert ("call @f" in inlined.to_text()) == (edge in (argument, result))
