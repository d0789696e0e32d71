"""Propagation on small programs; what is expected is what Shardy gives."""
import re

import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4, "c"=2]>\n'
T = "tensor<8x8xf32>"


def on(*dims, more=""):
    return f"#sdy.sharding<@mesh, [{', '.join('{' + d + '}' for d in dims)}]{more}>"


def arg(name, *dims, **more):
    return f"%{name}: {T} {{sdy.sharding = {on(*dims, **more)}}}" if dims else f"%{name}: {T}"


def program(args, lines, results="%r", out=None):
    n = results.count("%")
    types = ", ".join([f"{T} {{sdy.sharding = {out}}}" if out else T] * n)
    return f"{MESH}func.func @main({', '.join(args)}) -> ({types}) {{\n" + "\n".join(lines) + f"\n  return {results} : {', '.join([T] * n)}\n}}\n"


def shardings(text, passes):
    out = xlac.parse(text).run(passes).to_text()
    return re.findall(r"sharding_per_value<\[<@mesh, (\[.*?\](?:, \w+=\{.*?\})?)>\]>", out), out


def only(text, passes):
    found, _ = shardings(text, passes)
    assert len(found) == 1, found
    return found[0]


def test_forward_and_backward():
    text = program([arg("x", '"a", ?', "?"), arg("y")], [f"  %r = stablehlo.add %x, %y : {T}"])
    found, out = shardings(text, "sdy-basic-propagate")
    assert found == ['[{"a", ?}, {?}]']
    assert out.count('[{"a", ?}, {?}]') == 4  # both arguments, the sum, and the result


def test_a_closed_dimension_takes_nothing():
    text = program([arg("x", '"a", ?', "?"), arg("y", "", "?")], [f"  %r = stablehlo.add %x, %y : {T}"])
    assert shardings(text, "sdy-basic-propagate")[0] == []
    assert only(text, "sdy-aggressive-propagate") == '[{"a", ?}, {?}]'


def test_the_common_beginning_goes_on_where_axes_differ():
    text = program([arg("x", '"a", "b"', "?"), arg("y", '"a", "c"', "?")], [f"  %r = stablehlo.add %x, %y : {T}"])
    assert only(text, "sdy-basic-propagate") == '[{"a", ?}, {?}]'


def test_replicated_axes_are_kept_free():
    text = program([arg("x", '"a", ?', "?"), arg("y", "?", "?", more=', replicated={"a"}')], [f"  %r = stablehlo.add %x, %y : {T}"])
    _, out = shardings(text, "sdy-aggressive-propagate")
    assert '[{?}, {?}], replicated={"a"}' in out


def test_axes_are_split_where_factors_need_it():
    text = (f'{MESH}func.func @main(%x: tensor<8xf32> {{sdy.sharding = {on(chr(34) + "b" + chr(34))}}}) -> tensor<2x4xf32> {{\n'
            "  %r = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>\n  return %r : tensor<2x4xf32>\n}\n")
    assert only(text, "sdy-basic-propagate") == '[{"b":(1)2, ?}, {"b":(2)2, ?}]'
    assert shardings(text, "sdy-basic-propagate{conservative-propagation=true}")[0] == []


def test_user_priorities():
    text = program([arg("x", '"a", ?', "?"), arg("y", "?", '"a", ?')], [f"  %r = stablehlo.add %x, %y : {T}"])
    assert only(text, "sdy-user-priority-propagate") == '[{"a", ?}, {?}]'
    later = text.replace('[{"a", ?}, {?}]', '[{"a", ?}p1, {?}]', 1)
    assert only(later, "sdy-user-priority-propagate") == '[{?}, {"a", ?}]'


def test_elementwise_ops_come_before_dots():
    lines = [f"  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}", f"  %r = stablehlo.add %d, %z : {T}"]
    text = program([arg("x", '"a", ?', "?"), arg("y"), arg("z", "?", '"a", ?')], lines)
    assert shardings(text, "sdy-op-priority-propagate")[0] == ['[{?}, {"a", ?}]'] * 2


def test_groups_have_one_sharding():
    lines = [f"  %r = stablehlo.tanh %x : {T}", f"  sdy.sharding_group %y group_id=0 : {T}", f"  sdy.sharding_group %r group_id=0 : {T}"]
    out = xlac.parse(program([arg("x", '"a", ?', "?"), arg("y")], lines)).run("sdy-basic-propagate").to_text()
    assert out.count('[{"a", ?}, {?}]') >= 4


LOOP = [f"  %n = stablehlo.constant dense<3> : tensor<i32>", f"  %w:2 = stablehlo.while(%v = %x, %i = %n) : {T}, tensor<i32>", "  cond {",
        "    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>", "    stablehlo.return %c : tensor<i1>", "  } do {",
        f"    %u = stablehlo.tanh %v : {T}", f"    stablehlo.return %u, %i : {T}, tensor<i32>", "  }"]


def test_through_loops():
    out = xlac.parse(program([arg("x", '"a", ?', "?")], LOOP, "%w#0")).run(
        "sdy-add-data-flow-edges,sdy-basic-propagate,func.func(sdy-sink-data-flow-edges)").to_text()
    assert '#sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>' in out and "stablehlo.tanh %iterArg {sdy.sharding" in out


def test_constraints_in_a_branch_go_to_the_loops_value_that_they_are_on():
    loop = ["%z = stablehlo.constant dense<0> : tensor<i32>",
            f"%w:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, {T} cond {{",
            "  %c = stablehlo.compare LT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "  stablehlo.return %c : tensor<i1> } do {",
            f"  %b = \"stablehlo.case\"(%i) ({{ stablehlo.return %v : {T} }}, {{",
            f"    %k = sdy.sharding_constraint %v <@mesh, [{{\"a\"}}, {{}}]> : {T}",
            f"    stablehlo.return %k : {T} }}) : (tensor<i32>) -> {T}",
            f"  stablehlo.return %i, %b : tensor<i32>, {T} }}"]
    out = xlac.parse(program([arg("x")], loop, "%w#1")).run("sdy-add-data-flow-edges,sdy-apply-sharding-constraints", verify_each=True)
    body = out.to_text().partition("} do {")[2].splitlines()
    assert "sdy.sharding_constraint %iterArg_0" in body[1] and "stablehlo.case" in body[2]
    assert xlac.parse(out.to_text()).to_text() == out.to_text()


def test_barriers_let_through_what_they_allow():
    for direction, want in (("FORWARD", 1), ("NONE", 0), ("BACKWARD", 0)):
        line = f"  %r = sdy.propagation_barrier %x allowed_direction={direction} : {T}"
        out = xlac.parse(program([arg("x", '"a", ?', "?")], [line])).run("sdy-basic-propagate").to_text()
        assert out.count('sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>') == want, direction


def test_rules_are_kept_on_demand():
    text = program([arg("x", '"a", ?', "?"), arg("y")], [f"  %r = stablehlo.add %x, %y : {T}"])
    assert "sharding_rule" not in xlac.parse(text).run("sdy-basic-propagate").to_text()
    assert "sharding_rule" in xlac.parse(text).run("sdy-basic-propagate{keep-sharding-rules=true}").to_text()


REFUSED = {
    "several functions": (program([arg("x")], [], "%x").replace("@main", "@f") + program([arg("x")], [], "%x").replace("@main", "@g").split("\n", 1)[1],
                          "main"),
    "a mesh in place": (program([arg("x").replace(T, T + ' {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}, {}]>}', 1)],
                                [f"  %r = stablehlo.tanh %x : {T}"]), "in place"),
    "two groups": (program([arg("x")], [f"  sdy.sharding_group %x group_id={g} : {T}" for g in (0, 1)], "%x"), "two sharding groups"),
    "an edge of nothing": (program([arg("x")], [f"  %r = sdy.data_flow_edge %x : {T}"]), "owns no data flow"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_shardy_dies_of_is_an_error(name):
    text, words = REFUSED[name]
    with pytest.raises(xlac.Error, match=words) as caught:
        xlac.parse(text).run("sdy-user-priority-propagate")
    assert caught.value.line


def test_unknown_strategies_are_refused():
    with pytest.raises(xlac.Error, match="basic-then-aggressive"):
        xlac.parse(program([arg("x")], [], "%x")).run("sdy-aggressive-propagate{propagation-strategy=wild}")


def test_explicit_reshards():
    text = program([arg("x", '"a"', ""), arg("y", "", '"a"')], [f"  %r = stablehlo.add %x, %y : {T}"])
    full = xlac.parse(text).run("func.func(sdy-insert-explicit-reshards{enable-full-version=true})").to_text()
    assert full.count("sdy.reshard") == 2  # one operand takes the sharding of the other, the result goes back
    assert "sdy.reshard" not in xlac.parse(text).run("func.func(sdy-insert-explicit-reshards)").to_text()


def test_contracted_axes_are_added_up():
    line = f"  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"
    text = program([arg("x", "", '"a"'), arg("y", '"a"', "")], [line])
    assert 'sdy.all_reduce {"a"}' in xlac.parse(text).run("func.func(sdy-insert-explicit-reshards{enable-full-version=true})").to_text()
