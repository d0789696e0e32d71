"""Passes between propagation and the partitioner: batching dimensions, unreduced axes, single devices, permutations."""
import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'


def run(text, passes):
    module = xlac.parse(text, format="mlir")
    module.verify()
    result = module.run(passes)
    result.verify()
    return result.to_text()


def fails(text, passes, line, *words):
    with pytest.raises(xlac.Error) as caught:
        run(text, passes)
    assert caught.value.line == line
    for word in words:
        assert word in str(caught.value)


# --- sdy-explicit-gather-scatter-batching ---

def gather(indices, row="%i"):
    return f"""func.func @main(%a: tensor<4x8xf32>, %o: tensor<4x1xi32>) -> tensor<4xf32> {{
  {indices}
  %n = stablehlo.concatenate {row}, %o, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %r = "stablehlo.gather"(%a, %n) {{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1],
    index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}} : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}"""


COLUMN = "tensor<4x1xi32>"
PLACES = {
    "iota": f"%i = stablehlo.iota dim = 0 : {COLUMN}",
    "reshape": f"%x = stablehlo.iota dim = 0 : tensor<4xi32>\n%i = stablehlo.reshape %x : (tensor<4xi32>) -> {COLUMN}",
    "broadcast": f"%x = stablehlo.iota dim = 0 : tensor<4xi32>\n%i = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<4xi32>) -> {COLUMN}",
    "from the end where negative": f"""%x = stablehlo.iota dim = 0 : {COLUMN}
  %z = stablehlo.constant dense<0> : {COLUMN}
  %p = stablehlo.compare LT, %x, %z : ({COLUMN}, {COLUMN}) -> tensor<4x1xi1>
  %y = stablehlo.subtract %x, %x : {COLUMN}
  %i = stablehlo.select %p, %y, %x : tensor<4x1xi1>, {COLUMN}""",
}
NO_PLACES = {
    "other dimension": f"%i = stablehlo.iota dim = 1 : {COLUMN}",
    "clamped below": f"""%x = stablehlo.iota dim = 0 : {COLUMN}
  %l = stablehlo.constant dense<0> : tensor<i32>
  %h = stablehlo.constant dense<2> : tensor<i32>
  %i = stablehlo.clamp %l, %x, %h : (tensor<i32>, {COLUMN}, tensor<i32>) -> {COLUMN}""",
    "spread": f"%x = stablehlo.iota dim = 0 : tensor<1xi32>\n%i = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1xi32>) -> {COLUMN}",
    "sum": f"%x = stablehlo.iota dim = 0 : {COLUMN}\n%i = stablehlo.add %x, %x : {COLUMN}",
}


@pytest.mark.parametrize("name", PLACES)
def test_rows_by_an_iota_become_batches(name):
    text = run(gather(PLACES[name]), "sdy-explicit-gather-scatter-batching")
    assert "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1]" in text
    assert "iota" not in text and "(%arg0, %arg1)" in text


@pytest.mark.parametrize("name", NO_PLACES)
def test_other_rows_stay(name):
    assert "batching" not in run(gather(NO_PLACES[name]), "sdy-explicit-gather-scatter-batching")


# --- sdy-drop-sharding-and-mesh ---

def test_drop_sharding_and_mesh():
    text = run(MESH + """func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}""", "sdy-drop-sharding-and-mesh")
    assert "sdy" not in text and "negate" in text


def test_drop_mesh_in_use():
    fails(MESH + """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.reshard %a <@mesh, [{"a"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}""", "sdy-drop-sharding-and-mesh", 3, "mesh")


# --- sdy-verify-unreduced-axes ---

def unreduced(of, to, op="stablehlo.negate %a", result=None):
    a, b = (f'#sdy.sharding<@mesh, [{{}}]{", unreduced=" + x if x else ""}>' for x in (of, to))
    return MESH + f"""func.func @main(%a: tensor<4xf32> {{sdy.sharding = {a}}})
    -> (tensor<4xf32> {{sdy.sharding = {b if result is None else result}}}) {{
  %0 = {op} {{sdy.sharding = #sdy.sharding_per_value<[{b}]>}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


def test_unreduced_axes():
    name = "sdy-verify-unreduced-axes"
    assert "negate" in run(unreduced('{"a"}', '{"a"}'), name)
    assert "negate" in run(unreduced("", '{"a"}'), name)  # a sum that is due later
    fails(unreduced('{"a"}', ""), name, 4, "dropped", "'a'")
    fails(unreduced("", 'max{"a"}'), name, 4, "'max'", "'sum'")
    fails(unreduced('{"a"}', '{"a"}', result="#sdy.sharding<@mesh, [{}]>"), name, 5, "return value 0", "'a'")


def test_unreduced_call():
    fails(MESH + """func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"b"}>}) -> tensor<4xf32> {
  %0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""", "sdy-verify-unreduced-axes", 6, "call argument 0", "'b'")


# --- sdy-resolve-single-device-sharding ---

SINGLE = 'sdy.mesh @one = <[], device_ids=[1]>\nsdy.mesh @two = <[], device_ids=[0]>\n' + MESH


def test_single_device():
    text = run(SINGLE + """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.reshard %a <@one, []> : tensor<4xf32>
  %1 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<4xf32>
  return %2 : tensor<4xf32>
}""", "sdy-resolve-single-device-sharding")
    assert text.index("stablehlo.if") < text.index("@f(%arg0) :") < text.index('sdy.all_reduce {"a", "b"}')
    assert "reshard" not in text and "dense<1> : tensor<i64>" in text


def test_single_device_conflicts():
    text = SINGLE + """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %1:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>, SECOND]>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1#0 : tensor<4xf32>
}"""
    name = "sdy-resolve-single-device-sharding"
    fails(text.replace("SECOND", "<@two, []>"), name, 5, "several devices")
    fails(text.replace("SECOND", '<@mesh, [{"a"}]>'), name, 5, "replicated")
    assert "stablehlo.if" in run(text.replace("SECOND", "<@mesh, [{}]>"), name)
    with pytest.raises(xlac.Error):
        run(text.replace("SECOND", "<@one, []>"), name + "{replica-count=2 partition-count=2}")


# --- sdy-resolve-permutation-factors ---

def reverse(size, mesh, sharding, ids=""):
    shape = "x".join(map(str, size))
    return f"""sdy.mesh @mesh = <[{mesh}]{ids}>
func.func @main(%a: tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) -> tensor<{shape}xf32> {{
  %0 = stablehlo.reverse %a, dims = [0] {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sharding}>]>}} : tensor<{shape}xf32>
  return %0 : tensor<{shape}xf32>
}}"""


def test_reverse_on_a_mirrored_mesh():
    text = run(reverse([4], '"a"=2, "b"=2', '[{"a"}]'), "sdy-resolve-permutation-factors")
    assert 'sdy.mesh @mesh_reversed = <["a"=2, "b"=2], device_ids=[2, 3, 0, 1]>' in text
    assert 'sdy.reshard %arg0 <@mesh_reversed, [{"a"}]>' in text and "manual" not in text


def test_reverse_of_uneven_parts_exchanges():
    text = run(reverse([7], '"a"=4', '[{"a"}]'), "sdy-resolve-permutation-factors")
    assert "high = [1]" in text and "manual_axes={\"a\"}" in text and "[0:7]" in text
    assert "source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]>" in text


def test_reverse_exchanges_between_devices_of_the_whole_mesh():
    text = run(reverse([3], '"a"=2, "b"=2', '[{"a"}]'), "sdy-resolve-permutation-factors")
    assert "source_target_pairs = dense<[[0, 2], [1, 3]]>" in text
    text = run(reverse([3], '"a"=2, "b"=2', '[{"a"}]', ", device_ids=[3, 2, 1, 0]"), "sdy-resolve-permutation-factors")
    assert "source_target_pairs = dense<[[3, 1], [2, 0]]>" in text


@pytest.mark.parametrize("size, passes", [([5], "sdy-resolve-permutation-factors"),
                                          ([8], "sdy-resolve-permutation-factors{enable-halo-exchange=false}")])
def test_reverse_whole(size, passes):
    text = run(reverse(size, '"a"=4', '[{"a"}]'), passes)
    assert text.index("sdy.reshard %arg0 <@mesh, [{}]>") < text.index("reverse %0") < text.index('sdy.reshard %1 <@mesh, [{"a"}]>')


def slice_of(limit, result='[{"a"}]'):
    return MESH + f"""func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}]>}}) -> tensor<{limit}xf32> {{
  %0 = stablehlo.slice %a [0:{limit}] {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {result}>]>}} : (tensor<4xf32>) -> tensor<{limit}xf32>
  return %0 : tensor<{limit}xf32>
}}"""


def test_slices():
    name = "sdy-resolve-permutation-factors"
    assert "reshard" not in run(slice_of(3), name)  # two and one stay where they are
    assert run(slice_of(2), name).count("reshard") == 2
    assert run(slice_of(3, '[{"b"}]'), name).count("reshard") == 2


def test_mesh_in_place():
    text = reverse([4], '"a"=2', '[{"a"}]').replace("@mesh, [", 'mesh<["a"=2]>, [')
    fails(text, "sdy-resolve-permutation-factors", 3, "in place")


# --- what patterns do on the way ---

CONSTANTS = MESH + """func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %1 = sdy.named_computation<"f">(%0) (%b: tensor<4xf32>) {
    %2 = stablehlo.abs %b : tensor<4xf32>
    %d = stablehlo.constant dense<1.0> : tensor<4xf32>
    %3 = stablehlo.add %2, %d : tensor<4xf32>
    sdy.return %3 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %e = stablehlo.constant dense<1.0> : tensor<4xf32>
  %4 = stablehlo.add %1, %e : tensor<4xf32>
  return %4, %c : tensor<4xf32>, tensor<4xf32>
}"""


@pytest.mark.parametrize("passes", ["cse", "canonicalize", "canonicalize{enable-patterns=sdy-collective}"])
def test_constants_stay_in_their_computation(passes):
    assert run(CONSTANTS, passes).count("stablehlo.constant") == 2


def test_constants_come_first():
    lines = run(CONSTANTS, "canonicalize{enable-patterns=sdy-collective}").split("\n")
    assert "constant" in lines[3] and "negate" in lines[4]


def test_axes_of_one_device_need_no_collective():
    text = run("""sdy.mesh @mesh = <["a"=2, "one"=1]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.reshard %a <@mesh, [{"a", "one"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}""", "sdy-reshard-to-collectives")
    assert 'sdy.all_slice [{"a"}]' in text and "reshard" not in text


def test_export_options():
    text = run(MESH + """func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}""", "sdy-export-pipeline{inline-meshes=true dump-sharding-origins=true dump-propagation-edges=true}")
    assert 'mesh<["a"=2, "b"=2]>' in text and "@mesh" not in text
