"""StableHLO portable artifacts: every release's own reads and comes back the same, jaxlib reads what we write and we read what
it writes, and no bytes crash the reader."""
import json
import lzma
import os
import pathlib
import random
import struct

import pytest

import xlac

CORPUS = pathlib.Path(__file__).parents[1] / "fuzz" / "corpus"
DATA = pathlib.Path(os.environ.get("XLAC_CONFORMANCE") or pathlib.Path(__file__).resolve().parents[3] / "shared" / "conformance") / "stablehlo"
ARTIFACTS = sorted(CORPUS.glob("*.bc")) + sorted((DATA / "vhlo").glob("stablehlo*.bc"))


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda p: p.name)
def test_artifact_of_a_release(path):
    m = xlac.parse(path.read_bytes())
    assert m.form == "mlir"
    text = m.to_text()
    again = xlac.parse(m.to_bytes(format="mlir-bytecode", version="1.20.0"))
    assert again.to_text() == text


def test_a_newer_version_names_itself():
    data = CORPUS.joinpath("attributes.bc").read_bytes().replace(b"_v1.17.0", b"_v1.99.0")
    with pytest.raises(xlac.ParseError, match=r"1\.99\.0.*1\.20"):
        xlac.parse(data)


def test_versions_that_cannot_be_written():
    m = xlac.parse(CORPUS.joinpath("attributes.bc").read_bytes())
    for version in ("0.8.0", "1.21.0", "x", "1.2", ""):
        with pytest.raises(xlac.Error, match="version"):
            m.to_bytes(format="mlir-bytecode", version=version)


def test_what_an_older_version_lacks_is_named():
    m = xlac.parse("func.func @f(%a: tensor<f8E4M3>) -> tensor<f8E4M3> {\n  return %a : tensor<f8E4M3>\n}\n")
    m.to_bytes(format="mlir-bytecode", version="1.7.0")
    with pytest.raises(xlac.Error, match="f8e4m3.*1.7"):
        m.to_bytes(format="mlir-bytecode", version="1.6.0")


def test_mutants_give_errors_only():
    rng = random.Random(7)
    seeds = [p.read_bytes() for p in ARTIFACTS]
    for _ in range(10_000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)):]
        try:
            xlac.parse(bytes(data), format="mlir-bytecode")
        except xlac.Error as error:
            assert "byte " in str(error) or error.code


def exec_cases(step):
    path = DATA / "exec.jsonl.xz"
    if not path.exists():
        pytest.skip("no conformance data")
    with lzma.open(path, "rt") as file:
        return [json.loads(line)["text"] for i, line in enumerate(file) if i % step == 0]


def test_both_ways_with_jaxlib():
    jm = pytest.importorskip("jax._src.interpreters.mlir")
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    context = jm.make_ir_context()
    compared = 0
    for text in exec_cases(10):
        with context:
            try:
                module = ir.Module.parse(text)
                data = stablehlo.serialize_portable_artifact(module, "1.17.0")
            except Exception:  # dialects and versions that jaxlib's Python does not have
                continue
            want = str(stablehlo.deserialize_portable_artifact(context, data))
            ours = xlac.parse(data)
            back = stablehlo.deserialize_portable_artifact(context, ours.to_bytes(format="mlir-bytecode"))
            assert str(back) == want
            compared += 1
    assert compared > 100


def test_a_region_that_yields_nothing_reads_back():
    module = xlac.parse("func.func @f(%w: !shape.witness) {\n  shape.assuming %w {}\n  return\n}", format="mlir")
    assert xlac.parse(module.to_bytes(format="mlir-bytecode")).to_text() == module.to_text()


def test_what_old_bytecode_alone_has_reads_back_as_text():
    text = xlac.parse(pathlib.Path(__file__).parents[1].joinpath("fuzz/corpus/vhlo_0_9.bc").read_bytes()).to_text()
    assert "stablehlo.cross-replica-sum" in text
    assert xlac.parse(text, format="mlir").to_text() == text


QUANTISED = """func.func @main(%a: tensor<2x!quant.uniform<i8<-7:7>:f32, 1.250000e-01:3>>) -> tensor<2x!quant.uniform<i8<-7:7>:f32, 1.250000e-01:3>> {
  return %a : tensor<2x!quant.uniform<i8<-7:7>:f32, 1.250000e-01:3>>
}"""


def signed_varint(value):
    """An integer of MLIR's bytecode that is stored with its sign."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    for n in range(1, 9):
        if value < 1 << 7 * n:
            return (value << n | 1 << n - 1).to_bytes(n, "little")
    return b"\0" + value.to_bytes(8, "little")


@pytest.mark.parametrize("old, new, message", [
    (0.125, 1e-300, "scale 1.0*e-300 out of expressed type range"), (0.125, -0.125, "scale -1.25"), (0.125, float("nan"), "scale"),
    (-7, -6, None), (7, -8, "illegal storage min and storage max")])
def test_quantised_types_keep_to_the_rules_of_the_text(old, new, message):
    def put(x):
        bits = int.from_bytes(struct.pack("<d", x), "little", signed=True) if isinstance(x, float) else x
        return signed_varint(bits)

    data = xlac.parse(QUANTISED).to_bytes(format="mlir-bytecode", version="1.20.0")
    three = signed_varint(3)
    parts = {0.125: put(0.125) + three, -7: three + put(-7) + put(7), 7: put(-7) + put(7)}
    changed = {0.125: put(new) + three, -7: three + put(new) + put(7), 7: put(-7) + put(new)}
    assert data.count(parts[old]) == 1
    bad = data.replace(parts[old], changed[old])
    if message is None:
        assert "i8<-6:7>" in xlac.parse(bad).to_text()
        return
    with pytest.raises(xlac.ParseError, match=message):
        xlac.parse(bad)


OWN_RESULT = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%i) ({
    stablehlo.return VALUE : tensor<4xf32>
  }, {
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


def test_a_region_that_uses_its_own_ops_result_is_refused():
    """A number of a value is a byte, twice the number and one: %a is 0, %b 1, the result of case 3."""
    of_a, of_b = (xlac.parse(OWN_RESULT.replace("VALUE", v)).to_bytes(format="mlir-bytecode") for v in ("%a", "%b"))
    places = [i for i, (x, y) in enumerate(zip(of_a, of_b)) if x != y]
    assert len(of_a) == len(of_b) and len(places) == 1 and (of_a[places[0]], of_b[places[0]]) == (1, 3)
    own = bytearray(of_a)
    own[places[0]] = 7
    with pytest.raises(xlac.Error, match="value 3 is used before it is there"):
        xlac.parse(bytes(own))


FUNCTIONS = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func private @fa() {
  return
}
func.func private @fb() {
  return
}"""
CONVOLUTION = """func.func @main(%a: tensor<8x4x4x8xf32>, %b: tensor<3x3x4x6xf32>) -> tensor<8x2x2x6xf32> {
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<8x4x4x8xf32>, tensor<3x3x4x6xf32>) -> tensor<8x2x2x6xf32>
  return %0 : tensor<8x2x2x6xf32>
}"""
BOUNDED = """func.func @main(%a: tensor<4x?xf32, #stablehlo.bounds<?, 5>>, %b: tensor<4x5xf32>) -> tensor<4x?xf32, #stablehlo.bounds<?, 5>> {
  return %a : tensor<4x?xf32, #stablehlo.bounds<?, 5>>
}"""
SHARDED = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


NAMED = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1 = sdy.named_computation<"foo">(%0) (%b: tensor<8xf32>) {
    %2 = stablehlo.abs %b : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


@pytest.mark.parametrize("text, message", [
    (NAMED, "is outside of a region that is isolated from above"), (FUNCTIONS, "redefinition of symbol named"), (CONVOLUTION, "expected a number that is positive"), (BOUNDED, "so it can't have a bound"),
    (SHARDED, "lacks the attribute")])
def test_an_artifact_with_another_byte_keeps_to_the_rules_of_the_text(text, message):
    """Each byte by each other one: what is read prints as text that reads back. Among the errors is the one that the text's reader has, too."""
    data, refused = xlac.parse(text).to_bytes(format="mlir-bytecode"), set()
    for i in range(data.index(b"\0") + 1, len(data)):
        for value in [data[i] ^ 1 << bit for bit in range(8)] + [0, 1, 3, 5, 7, 9, 255]:
            try:
                module = xlac.parse(data[:i] + bytes([value]) + data[i + 1:], format="mlir-bytecode", allow_unregistered=True)
            except xlac.Error as error:
                refused.add(str(error))
                continue
            printed = module.to_text()
            try:
                module.verify()
            except xlac.VerifyError:
                pass
            assert xlac.parse(printed, format="mlir", allow_unregistered=True).to_text() == printed
    assert any(message in why for why in refused)


def test_no_scales_along_a_dimension_of_size_zero():
    t = "tensor<0x2x!quant.uniform<i8:f32:0, {}>>"
    text = f"func.func @main(%a: {t}) -> {t} {{\n  %0 = stablehlo.add %a, %a : {t}\n  return %0 : {t}\n}}"
    module = xlac.parse(text)
    module.verify()
    assert xlac.parse(module.to_bytes(format="mlir-bytecode")).to_text() == module.to_text()
    for name in ("stablehlo-legalize-quant-to-math", "stablehlo-legalize-quantized-op-to-qdq"):
        module.run(name).verify()


def test_names_of_ops_may_hold_zeros():
    """They end where the file says, not at a zero: this one begins as an op's name does."""
    text = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.subtract %a, %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
    data = xlac.parse(text).to_bytes("mlir-bytecode", version="1.7.0")
    assert data.count(b"subtract_v1") == 1
    for name in (b"add_v1\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0\0\0", b"subtract_v\0"):
        with pytest.raises(xlac.ParseError):
            xlac.parse(data.replace(b"subtract_v1", name))
