"""Attributes that are words: numbers in memory, one table for both syntaxes and the protocol."""
import pathlib
import re

import pytest

import xlac

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'W\((\w+), (\w+), (\d+), "(\w*)",\s*"(\w*)"\)')


def rows():
    return ROW.findall((ROOT / "csrc/ir/attrs/words.h").read_text().replace("\\\n", " "))


def words(which, column):
    return [row[column] for row in rows() if row[0] == which and row[column]]


def program(op, operands="x, x", kind="f32[4,4]", of="f32[4,4]"):
    return f"HloModule m\nENTRY e {{\n  x = {of} parameter(0)\n  ROOT y = {kind} {op.replace('OPERANDS', operands)}\n}}\n"


HLO = {  # an op for each set of words, with WORD in its place
    "DIRECTION": program("compare(OPERANDS), direction=WORD", kind="pred[4,4]"),
    "DISTRIBUTION": "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[4] rng(x, x), distribution=WORD\n}\n",
    "RNG": "HloModule m\nENTRY e {\n  x = u64[2] parameter(0)\n  ROOT y = (u64[2], u32[4]) rng-bit-generator(x), algorithm=WORD\n}\n",
    "DOT": program("dot(OPERANDS), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=WORD"),
    "PRECISION": program("dot(OPERANDS), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={WORD,WORD}"),
    "FFT": program("fft(OPERANDS), fft_type=WORD, fft_length={4}", "x", "c64[4,4]", "c64[4,4]"),
    "SCHEDULE": program("custom-call(OPERANDS), custom_call_target=\"t\", schedule=WORD"),
    "PADDING": program("custom-call(OPERANDS), custom_call_target=\"t\", padding_type=WORD"),
    "API": program("custom-call(OPERANDS), custom_call_target=\"t\", api_version=WORD"),
    "TRANSPOSE": program("triangular-solve(OPERANDS), left_side=true, lower=true, transpose_a=WORD"),
    "ACCURACY": program("exponential(OPERANDS), result_accuracy={mode=WORD}", "x"),
}
UNPRINTED = {"unset", "SCHEDULE_NONE", "PADDING_INVALID", "API_VERSION_ORIGINAL", "TRANSPOSE_INVALID", "default"}


@pytest.mark.parametrize("which, word", [(which, word) for which in HLO for word in words(which, 3)])
def test_a_word_of_hlo_goes_through_text_and_protocol(which, word):
    module = xlac.parse(HLO[which].replace("WORD", word))
    text = module.to_text()
    assert (re.search(rf"[={{,]{word}\b", text) is not None) == (word not in UNPRINTED)
    assert xlac.parse(text).to_text() == text
    assert xlac.parse(module.to_bytes()).to_text() == text


@pytest.mark.parametrize("which", HLO)
def test_an_unknown_word_of_hlo_is_refused_with_those_that_are_known(which):
    with pytest.raises(xlac.ParseError) as error:
        xlac.parse(HLO[which].replace("WORD", "nonsense"))
    assert "'nonsense' is not a value of" in str(error.value) and ", ".join(words(which, 3)[:8]) in str(error.value)


MLIR = {
    "DIRECTION": "%0 = stablehlo.compare WORD, %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>",
    "COMPARISON": "%0 = stablehlo.compare LT, %x, %x, WORD : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>",
    "FFT": "%0 = stablehlo.fft %x, type = WORD, length = [4] : (tensor<4x4xf32>) -> tensor<4x3xcomplex<f32>>",
    "PRECISION": "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [WORD, WORD] : "
                 "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
    "TRANSPOSE": '%0 = "stablehlo.triangular_solve"(%x, %x) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose WORD>, '
                 "unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
}


def function(op):
    return f"func.func @main(%x: tensor<4x4xf32>) {{\n  {op}\n  return\n}}\n"


@pytest.mark.parametrize("which, word", [(which, word) for which in MLIR for word in words(which, 4)])
def test_a_word_of_mlir_goes_through_text_and_bytecode(which, word):
    module = xlac.parse(function(MLIR[which].replace("WORD", word)))
    text = module.to_text()
    assert xlac.parse(text).to_text() == text
    again = xlac.parse(module.to_bytes(format="mlir-bytecode")).to_text()
    assert (again == text) != (word in {"NOTYPE", "DEFAULT"})  # which artifacts leave out


@pytest.mark.parametrize("which", MLIR)
def test_an_unknown_word_of_mlir_is_refused_with_those_that_are_known(which):
    with pytest.raises(xlac.ParseError) as error:
        xlac.parse(function(MLIR[which].replace("WORD", "NONSENSE")))
    assert "'NONSENSE' is no" in str(error.value) and ", ".join(words(which, 4)) in str(error.value)


BOTH = ["DIRECTION", "PRECISION", "TRANSPOSE", "FFT", "DISTRIBUTION", "RNG"]


@pytest.mark.parametrize("which, hlo, mlir", [(row[0], row[3], row[4]) for row in rows() if row[0] in BOTH and row[3] and row[4]])
def test_a_word_is_the_same_in_both_forms(which, hlo, mlir):
    if "INVALID" in mlir or hlo in ("RFFT", "IRFFT"):
        pytest.skip("refused by the verifier for this program")
    text = HLO[which].replace("WORD", hlo)
    translated = xlac.parse(text).to_stablehlo()
    assert re.search(rf"\b{mlir}\b", translated.to_text(format="mlir"))
    assert re.search(rf"[={{,]{hlo}\b", translated.to_hlo().to_text()) or hlo in UNPRINTED


def test_numbers_of_words_rise_by_one():
    for which in {row[0] for row in rows()}:
        numbers = [int(row[2]) for row in rows() if row[0] == which]
        assert numbers == list(range(len(numbers))), which


def test_no_room_below_the_readers_compares_words():
    """Passes, devices and plans compare numbers."""
    known = {w for row in rows() for w in row[3:] if w}
    wrong = []
    for room in ("passes", "shard", "convert", "scalar", "interp", "cpu", "plan", "fuse", "kernel", "driver", "pipeline", "ir", "tf/lower"):
        for path in sorted((ROOT / "csrc" / room).rglob("*.c")):
            wrong += [f"{path.relative_to(ROOT)}: {word}" for word in re.findall(r'str(?:n?cmp|str)\([^;"]*"(\w+)"', path.read_text())
                      if word in known - {"TRANSPOSE"}]
    assert wrong == []
