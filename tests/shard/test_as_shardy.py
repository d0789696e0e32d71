"""Small programs on which Shardy's answer depends on an order: which of several errors is told, what is numbered first, where what a
pass has made stands. Lines and texts are those of the Shardy in jaxlib 0.10.2."""
import pytest

import xlac

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
T = "tensor<8x8xf32>"
X, Y = '"x"', '"y"'


def function(body, args=f"%a: {T}, %b: {T}", result=T, name="f"):
    return f"func.func @{name}({args}) -> {result} {{\n{body}\n}}\n"


def on(*dims):
    return "<@m, [" + ", ".join("{" + d + "}" for d in dims) + "]>"


def noted(*dims):
    return "{sdy.sharding = #sdy.sharding_per_value<[" + on(*dims) + "]>}"


BAD, ALSO_BAD = on('"q"', ""), noted('"r"', "")
ABS = f" %z = stablehlo.abs %b {ALSO_BAD} : {T}"
RETURN = f" return %a : {T}"

# Each has two faults; the line that is told.
ORDER = {
    "a function's sharding before its ops": (
        function(f" %0 = stablehlo.reshape %a : ({T}) -> tensor<3xf32>\n{RETURN}", f"%a: {T} {{sdy.sharding = #sdy.sharding{BAD}}}, %b: {T}"), 2),
    "a constraint after all attributes": (function(f" %0 = sdy.sharding_constraint %a {BAD} : {T}\n{ABS}\n{RETURN}"), 4),
    "a reshard after all attributes": (function(f" %0 = sdy.reshard %a {BAD} : {T}\n{ABS}\n{RETURN}"), 4),
    "an edge after all attributes": (function(f" %0 = sdy.data_flow_edge %a sharding={BAD} : {T}\n{ABS}\n{RETURN}"), 4),
    "a collective in its place": (function(f" %0 = sdy.all_slice [{{}}, {{}}] %a out_sharding={BAD} : {T}\n{ABS}\n{RETURN}"), 3),
    "a call after all attributes": (function(f" %0 = call @nobody(%a) : ({T}) -> {T}\n{ABS}\n{RETURN}"), 4),
    "a call before a later constraint": (function(f" %0 = call @nobody(%a) : ({T}) -> {T}\n %1 = sdy.sharding_constraint %a {BAD} : {T}\n{RETURN}"), 3),
    "inner names after outer ones": (
        function(f' %0 = sdy.named_computation<"c">(%a) (%c: {T}) {{\n  %1 = func.call @nobody(%c) : ({T}) -> {T}\n  sdy.return %1 : {T}\n'
                 f" }} : ({T}) -> {T}\n %2 = func.call @nobody_else(%0) : ({T}) -> {T}\n{RETURN}"), 7),
    "the last region's names first": (
        function("\n".join(f' %{i} = sdy.named_computation<"c">(%a) (%c: {T}) {{\n  %9 = func.call @nobody(%c) : ({T}) -> {T}\n  sdy.return %9 : {T}\n'
                           f" }} : ({T}) -> {T}" for i in range(2)) + "\n" + RETURN), 8),
    "a computation's inside after what is around it": (
        function(f' %0 = sdy.named_computation<"c">(%a) (%c: {T}) {{\n  %1 = stablehlo.abs %c {ALSO_BAD} : {T}\n  sdy.return %1 : {T}\n'
                 f" }} : ({T}) -> {T}\n{ABS}\n{RETURN}"), 7),
    "what is returned after the ops": (function(f"{ABS}\n{RETURN}", result="tensor<8xf32>"), 3),
    "axes that are bound already before local shapes": (
        function(f' %0 = sdy.manual_computation(%a) in_shardings=[{on("", "")}] out_shardings=[{on("", "")}] manual_axes={{"x"}} (%c: tensor<3x8xf32>) {{\n'
                 f'  %1 = sdy.manual_computation(%c) in_shardings=[{on("", "")}] out_shardings=[{on("", "")}] manual_axes={{"x"}} (%d: tensor<3x8xf32>) {{\n'
                 "   sdy.return %d : tensor<3x8xf32>\n  } : (tensor<3x8xf32>) -> tensor<3x8xf32>\n  sdy.return %1 : tensor<3x8xf32>\n"
                 f" }} : ({T}) -> {T}\n{RETURN}"), 4),
}


def refused_at(line, text):
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(MESH + text).verify()
    assert caught.value.line == line, caught.value


@pytest.mark.parametrize("name", ORDER)
def test_the_error_that_is_told(name):
    text, line = ORDER[name]
    refused_at(line, text)


REFUSED = {
    "no replicated axes": (function(RETURN, f"%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{}}], replicated={{}}>}}"), 2),
    "no unreduced axes": (function(RETURN, f"%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{}}], unreduced={{}}>}}"), 2),
    "an exchange of no axes": (function(f' %0 = sdy.all_to_all [{{}}: 0->1] %a out_sharding={on("", "")} : {T}\n{RETURN}'), 3),
    "a reducer that does not commute": (
        function(f" %c = stablehlo.constant dense<0.0> : tensor<f32>\n %0 = stablehlo.reduce(%a init: %c) applies stablehlo.subtract across "
                 f"dimensions = [0] : ({T}, tensor<f32>) -> tensor<8xf32>\n{RETURN}"), 4),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    text, line = REFUSED[name]
    refused_at(line, text)


NAMED = f' %0 = sdy.named_computation<"c">(%a) (%c: {T}) {{\n  sdy.return %c : {T}\n }} : ({T}) -> {T}\n return %0 : {T}'
LOOP = f"""
 %c = stablehlo.constant dense<0> : tensor<i32>
 %0:2 = stablehlo.while(%i = %c, %v = %a) : tensor<i32>, {T}
  cond {{
   %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
  }} do {{
   %1 = stablehlo.abs %v : {T}
   %2 = sdy.sharding_constraint %1 {on(X, "")} : {T}
   stablehlo.return %i, %2 : tensor<i32>, {T}
  }}
 %3 = stablehlo.abs %0#1 : {T}
 %4 = sdy.sharding_constraint %3 {on("", Y)} : {T}
 return %4 : {T}"""

# What passes make that does not hold is told, and where.
LEFT_BROKEN = {
    "an edge of an edge": (function(NAMED), "sdy-add-data-flow-edges,sdy-add-data-flow-edges", 3),
    "a collective whose operand has changed": (
        function(f' %0 = sdy.all_gather [{{}}, {{"y"}}] %a out_sharding={on("", "")} : {T}\n return %0 : {T}',
                 f'%a: {T} {{sdy.sharding = #sdy.sharding{on("?", Y)}}}, %b: {T} {{sdy.sharding = #sdy.sharding{on(X, "")}}}'
                 ).replace(" %0 =", f" %1 = stablehlo.add %a, %b : {T}\n %0 =", 1).replace("return %0", f"%2 = stablehlo.add %1, %0 : {T}\n return %2"),
        "sdy-basic-propagate", 4),
    "a reshard that keeps an axis free and shards along it": (
        function(f' %0 = stablehlo.abs %a {noted(X, "")} : {T}\n'
                 f' %1 = stablehlo.abs %b {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}, {{}}], replicated={{"x"}}>]>}} : {T}\n'
                 f' %2 = stablehlo.add %0, %1 {noted(X, "")} : {T}\n return %2 : {T}'),
        "func.func(sdy-insert-explicit-reshards{enable-full-version=true})", 4),
}


@pytest.mark.parametrize("name", LEFT_BROKEN)
def test_what_a_pass_leaves_broken(name):
    text, passes, line = LEFT_BROKEN[name]
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(MESH + text).run(passes)
    assert caught.value.line == line, caught.value


@pytest.mark.parametrize("text,passes", [
    ("func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n return %a : tensor<8xf32>\n}", "sdy-propagation-pipeline"),
    ("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>\n return %0 : tensor<8xf32>\n}\n"
     "func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>\n return %0 : tensor<8xf32>\n}",
     "sdy-propagation-pipeline"),
])
def test_what_shardy_dies_of_has_a_position(text, passes):
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(MESH + text).run(passes)
    assert caught.value.line, caught.value


def ran(text, passes, **options):
    module = xlac.parse(text, **options)
    module.verify()
    out = module.run(passes).to_text()
    assert xlac.parse(out, **options).to_text() == out
    return out


def test_meshes_of_replica_groups_are_lifted():
    group = "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\", size = 2>, #stablehlo.mesh_axis<name = \"y\", size = 2>]>"
    gather = (f' %%%d = "stablehlo.all_gather"(%%a) {{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {group}, '
              f'axes = [#stablehlo.axis_ref<name = "x">]>}} : ({T}) -> tensor<16x8xf32>')
    out = ran(MESH + function("\n".join(gather % i for i in range(2)) + "\n" + RETURN), "sdy-lift-inlined-meshes")
    # Shardy takes StableHLO's meshes for others than its own, even where they are equal.
    assert out.count("sdy.mesh @") == 2 and '@mesh = <["x"=2, "y"=2]>' in out and out.count("mesh = @mesh,") == 2


def test_an_origin_that_nobody_named():
    body = f' %0 = stablehlo.abs %a {noted(X, "")} : {T}\n return %0 : {T}'
    out = ran(MESH + function(body, f"%a: {T}"), "sdy-aggressive-propagate{debug-sharding-origins=true}")
    assert out.count('{x = ": 0"}') == 3


def test_inner_constraints_and_computations_come_first():
    out = ran(MESH + function(LOOP, f"%a: {T}", name="main"), "sdy-add-data-flow-edges,sdy-apply-sharding-constraints{debug-propagation-edge-sharding=true}")
    assert [line.split("step-")[1][0] for line in out.split("\n") if "step-" in line] == ["0", "1"]
    inner = f' %0 = sdy.manual_computation(%a) in_shardings=[{on("", "")}] out_shardings=[{on("", "")}] manual_axes={{"x"}} (%c: {T}) {{\n'
    inner += inner.replace("%0", "%1").replace("%a", "%c").replace("%c: ", "%d: ").replace('"x"', '"y"') + f"  sdy.return %d : {T}\n }} : ({T}) -> {T}\n"
    inner += f"  sdy.return %1 : {T}\n }} : ({T}) -> {T}\n return %0 : {T}"
    out = ran(MESH + function(inner, f"%a: {T}"), "sdy-add-data-flow-edges,sdy-aggressive-propagate{debug-sharding-origins=true}")
    assert [line.split("mc_")[1][0] for line in out.split("\n") if "mc_" in line] == ["0", "1"]


@pytest.mark.parametrize("after", ["", ",xla-sdy-stablehlo-export-shardings"])
def test_a_rule_noted_on_a_dynamic_constraint_is_an_error_of_its_pass(after):
    dynamic = "tensor<?x?xf32>"
    text = MESH + function(f' %0 = sdy.sharding_constraint %a <@m, [{{"x"}}, {{}}]> : {dynamic}\n return %0 : {dynamic}', f"%a: {dynamic}", dynamic)
    with pytest.raises(xlac.Error, match=r"operand - expected a ranked tensor with a static shape"):
        xlac.parse(text).run("sdy-apply-sharding-constraints" + after)


def test_a_constant_that_a_region_returns_moves_out():
    body = (f' %0 = "stablehlo.map"(%a, %b) ({{\n ^bb0(%c: tensor<f32>, %d: tensor<f32>):\n  %1 = stablehlo.constant dense<2.0> : tensor<f32>\n'
            f"  stablehlo.return %1 : tensor<f32>\n }}) {{dimensions = array<i64: 0, 1>}} : ({T}, {T}) -> {T}\n return %0 : {T}")
    out = ran(MESH + function(body), "sdy-export-pipeline").split("\n")
    at = [i for i, line in enumerate(out) if "constant" in line or "stablehlo.map" in line or "stablehlo.return %cst" in line]
    assert len(at) == 3 and "constant" in out[at[0]]


def test_what_does_nothing_goes():
    body = (' stablehlo.custom_call @f() : () -> ()\n sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {\n  sdy.return\n'
            f" }} : () -> ()\n stablehlo.custom_call @g() {{has_side_effect = true}} : () -> ()\n{RETURN}")
    out = ran(MESH + function(body), "canonicalize{enable-patterns=sdy-collective}")
    assert "@f()" not in out and "manual" not in out and "@g()" in out


def test_an_unknown_op_may_end_a_function():
    text = MESH + function(' "their.end"(%a) {k = 1 : i32} : (tensor<8x8xf32>) -> ()', f"%a: {T} {{sdy.sharding = #sdy.sharding{on('?', '')}}}", result="tensor<4xf32>")
    out = ran(text, "sdy-close-shardings", allow_unregistered=True)
    assert f"%arg0: {T} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{}}]>}}) -> tensor<4xf32> {{\n    \"their.end\"(%arg0) {{k = 1 : i32}} : ({T}) -> ()\n" in out
    with pytest.raises(xlac.Error):
        xlac.parse(text)


def test_constants_of_both_dialects_are_merged():
    body = f" %0 = sdy.constant dense<1.0> : {T}\n %1 = stablehlo.constant dense<1.0> : {T}\n %2 = stablehlo.add %0, %1 : {T}\n return %2 : {T}"
    out = ran(MESH + function(body), "func.func(sdy-constant-or-scalar-merger)")
    assert "sdy.constant" in out and "stablehlo.constant" not in out


def test_padding_that_cuts_the_end_off_stays_even():
    rows = '{sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", "y"}, {}]>]>}'
    body = (f" %0 = stablehlo.slice %a [0:7, 0:8] {rows} : ({T}) -> tensor<7x8xf32>\n %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
            f" %1 = stablehlo.pad %0, %c, low = [1, 0], high = [-1, 0], interior = [0, 0] {rows} : (tensor<7x8xf32>, tensor<f32>) -> tensor<7x8xf32>\n"
            ' %2 = sdy.all_gather [{"x", "y"}, {}] %1 out_sharding=<@m, [{}, {}]> : tensor<7x8xf32>\n return %2 : tensor<7x8xf32>')
    text = MESH + function(body, f'%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{"x", "y"}}, {{}}]>}}', "tensor<7x8xf32>")
    out = ran(text, "func.func(sdy-pad-for-divisibility)")
    assert f"low = [1, 0], high = [-1, 0], interior = [0, 0] {rows} : ({T}, tensor<f32>) -> {T}" in out
    with pytest.raises(xlac.Error, match="before or after it is padded"):  # the data's own end would be in the result
        ran(text.replace("high = [-1, 0]", "high = [1, 0]").replace("(tensor<7x8xf32>, tensor<f32>) -> tensor<7x8xf32>",
            "(tensor<7x8xf32>, tensor<f32>) -> tensor<9x8xf32>").replace("%1 out_sharding=<@m, [{}, {}]> : tensor<7x8xf32>",
            "%1 out_sharding=<@m, [{}, {}]> : tensor<9x8xf32>").replace("return %2 : tensor<7x8xf32>", "return %2 : tensor<9x8xf32>").replace(
            "-> tensor<7x8xf32> {", "-> tensor<9x8xf32> {"), "func.func(sdy-pad-for-divisibility)")
