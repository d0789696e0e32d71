"""Ops of sdy on one device: interpreted, compiled and in HLO they are their operand, or their region. JAX lowers them into programs
of one device too. On more devices the error names the passes."""
import numpy as np
import pytest

import xlac

X = np.arange(8, dtype=np.float32)
MESHES = {"none": "<[]>", "one": '<["x"=1]>', "ones": '<["x"=1, "y"=1]>', "maximal": "<[], device_ids=[0]>"}
ON = {"none": "[{}]", "one": '[{"x"}]', "ones": '[{"x", "y"}]', "maximal": "[]"}


def program(body, mesh='<["x"=1]>'):
    return f"""module @m {{
  sdy.mesh @mesh = {mesh}
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
    {body}
    return %r : tensor<8xf32>
  }}
}}"""


def three_ways(text, *args):
    """The results interpreted, compiled, and of its HLO."""
    module = xlac.parse(text)
    module.verify()
    hlo = module.to_hlo()
    hlo.verify()
    assert "sdy" not in hlo.to_text()
    return xlac.interpret(module, *args), xlac.compile(module)(*args), xlac.compile(hlo)(*args)


def assert_doubles(body, mesh='<["x"=1]>'):
    for got in three_ways(program(body, mesh), X):
        np.testing.assert_array_equal(got, 2 * X)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("op", ["sharding_constraint", "reshard"])
@pytest.mark.parametrize("named", [True, False])
def test_constraints_are_their_operand(mesh, op, named):
    if mesh == "maximal":
        where = f"<@mesh, []>" if named else "<mesh<[], device_ids=[0]>, []>"
    else:
        where = f"<@mesh, {ON[mesh]}>" if named else f"<mesh{MESHES[mesh]}, {ON[mesh]}>"
    assert_doubles(f"%r = sdy.{op} %0 {where} : tensor<8xf32>", MESHES[mesh])


@pytest.mark.parametrize("body", [
    "%r = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8xf32>",
    "sdy.sharding_group %0 group_id=7 : tensor<8xf32>\n %r = stablehlo.abs %0 : tensor<8xf32>",
    "%r = sdy.data_flow_edge %0 : tensor<8xf32>",
    "%r = sdy.data_flow_edge %0 sharding=<@mesh, [{}]> : tensor<8xf32>",
    "%c = sdy.constant dense<0.0> : tensor<8xf32>\n %r = stablehlo.add %0, %c : tensor<8xf32>",
    """%r = sdy.named_computation<"f">(%arg0) (%x: tensor<8xf32>) {
      %2 = stablehlo.add %x, %x : tensor<8xf32>
      sdy.return %2 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>""",
])
@pytest.mark.parametrize("mesh", ['<["x"=1]>', '<["x"=4]>'])
def test_what_only_speaks_of_shardings_is_its_operand_on_any_mesh(body, mesh):
    assert_doubles(body, mesh)


@pytest.mark.parametrize("op, on", [('all_gather [{"x"}]', "[{}]"), ('all_slice [{"x"}]', '[{"x"}]'), ('all_reduce {"x"}', "[{}]"),
                                    ('reduce_scatter [{"x"}]', '[{"x"}]'), ("collective_permute", "[{}]")])
def test_collectives_are_their_operand(op, on):
    before = '[{"x"}]' if "gather" in op else "[{}]"
    unreduced = ', unreduced={"x"}' if "reduce" in op else ""
    assert_doubles(f"""%s = sdy.sharding_constraint %0 <@mesh, {before}{unreduced}> : tensor<8xf32>
    %r = sdy.{op} %s out_sharding=<@mesh, {on}> : tensor<8xf32>""")


def manual(inner, mesh):
    return program(f"""%k = stablehlo.constant dense<1.0> : tensor<8xf32>
    %r = sdy.manual_computation(%arg0, %k) in_shardings=[<@mesh, [{{"x"}}]>, <@mesh, [{{"x"}}]>] out_shardings=[<@mesh, [{{"x"}}]>] manual_axes={{"x"}} (%a: tensor<{inner}xf32>, %b: tensor<{inner}xf32>) {{
      %1 = stablehlo.multiply %a, %b : tensor<{inner}xf32>
      %2 = "stablehlo.all_reduce"(%1) <{{replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<{inner}xf32>) -> tensor<{inner}xf32>
      %3 = stablehlo.add %2, %a : tensor<{inner}xf32>
      sdy.return %3 : tensor<{inner}xf32>
    }} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>""", mesh)


def test_a_manual_computation_is_its_region():
    for got in three_ways(manual(8, '<["x"=1]>'), X):
        np.testing.assert_array_equal(got, 2 * X)


def test_regions_inside_loops_and_functions_may_have_them():
    text = """module @m {
  sdy.mesh @empty_mesh = <[]>
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %i = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%n = %i, %x = %arg0) : tensor<i32>, tensor<8xf32>
    cond {
      %p = stablehlo.compare LT, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %m = stablehlo.add %n, %one : tensor<i32>
      %y = sdy.sharding_constraint %x <@empty_mesh, [{}]> : tensor<8xf32>
      %z = func.call @twice(%y) : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %m, %z : tensor<i32>, tensor<8xf32>
    }
    return %0#1 : tensor<8xf32>
  }
  func.func private @twice(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.reshard %arg0 <@empty_mesh, [{}]> : tensor<8xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}"""
    for got in three_ways(text, X):
        np.testing.assert_array_equal(got, 8 * X)


@pytest.mark.parametrize("text", [
    program('%r = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>', '<["x"=4]>'),
    program('%r = sdy.reshard %0 <mesh<["y"=4]>, [{}]> : tensor<8xf32>'),
    manual(2, '<["x"=4]>'),
], ids=["constraint", "inline", "manual"])
@pytest.mark.parametrize("way", [lambda m: xlac.interpret(m, X), xlac.compile, lambda m: m.to_hlo()],
                         ids=["interpret", "compile", "to_hlo"])
def test_more_devices_are_refused_with_the_passes_to_run(text, way):
    module = xlac.parse(text)
    with pytest.raises(xlac.Error, match=r"sdy\.\w+ is on a mesh of 4 devices.*") as info:
        way(module)
    assert "sdy-convert-global-to-local" in str(info.value) and info.value.line > 4


def test_the_passes_that_the_error_names_make_it_run():
    module = xlac.parse(program('%r = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>', '<["x"=4]>'))
    local = module.run("sdy-propagation-pipeline,sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives,"
                       "sdy-convert-global-to-local,sdy-drop-sharding-and-mesh")
    np.testing.assert_array_equal(xlac.compile(local)(X[:2]), 2 * X[:2])
