"""What the reader refuses, and where it says the fault lies: tests/text/errors.txt."""

import pathlib
import re
import time

import pytest

import xlac

CASE = re.compile(r"^=== (.+) \| E(\d+) (\d+):(\d+)\n", re.M)


def error_cases():
    text = (pathlib.Path(__file__).parent / "errors.txt").read_text(encoding="utf-8")
    marks = list(CASE.finditer(text))
    ends = [m.start() for m in marks[1:]] + [len(text)]
    for m, end in zip(marks, ends):
        yield pytest.param(text[m.end() : end], *(int(g) for g in m.groups()[1:]), id=m.group(1))


@pytest.mark.parametrize("text,code,line,col", list(error_cases()))
def test_refused(text, code, line, col):
    with pytest.raises(xlac.ParseError) as caught:
        xlac.parse(text, strict=True)
    error = caught.value
    assert (error.code, error.line, error.col) == (code, line, col)
    assert len(error.message) > 10


@pytest.mark.parametrize("opening", ["(", "negate(", "{", "f32[] add(", "b(", "/*", "constant(("])
def test_deep_nesting_is_an_error(opening):
    with pytest.raises(xlac.Error) as caught:
        xlac.parse("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  y = " + opening * 200_000)
    assert caught.value.line == 4


def test_every_prefix_of_a_module_is_refused_or_read():
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
        "c {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n  x = f32[2,3]{1,0:T(8,128)S(1)} parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n"
        "  k = f32[] constant(-1.5e3)\n  l = c64[2] constant({(1, nan(0x1)), (inf, -0)})\n"
        '  ROOT r = f32[2] reduce(x, k), dimensions={1}, to_apply=c, metadata={op_name="a\\"b" source_line=3}\n}\n'
    )
    xlac.parse(text)
    for n in range(len(text.rstrip())):
        try:
            xlac.parse(text[:n])
        except xlac.ParseError as error:
            assert error.line >= 1 and error.col >= 1


HEAD = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n"


def chain(n):
    updates = "".join(f"  q{i + 1}_ = ((f32[]), f32[]) negate-update(q{i}_)\n" for i in range(n))
    return f"{HEAD}  q0_ = ((f32[]), f32[]) negate-start(x)\n{updates}  d = f32[] negate-done(q{n}_)\n}}\n"


def waiting(n):
    names = ", ".join(f"p{i}_" for i in range(n))
    return f"{HEAD}{''.join(f'  p{i}_ = f32[] negate(x)%s' % chr(10) for i in range(n))}  y = f32[] negate(x), control-predecessors={{{names}}}\n}}\n"


CARELESS = {  # shapes of texts that make a careless reader quadratic
    "ops in operands": lambda n: HEAD + "".join(f"  p{i}_ = f32[] negate(negate(x))\n" for i in range(n)) + "}\n",
    "names with numbers": lambda n: HEAD + "".join(f"  a.{i // 7}.0{i} = f32[] negate(x)\n" for i in range(n)) + "}\n",
    "a chain of updates": chain, "many control predecessors": waiting}


def least_cpu(text):
    def once():
        start = time.process_time()
        xlac.parse(text)
        return time.process_time() - start
    return min(once() for _ in range(3))


@pytest.mark.parametrize("shape", CARELESS)
def test_memory_is_linear_and_time_not_quadratic(shape):
    """Eight times the text is eight times the module; the ratio of CPU times, both taken here, is far from the 64 of quadratic work."""
    small, large = CARELESS[shape](4000), CARELESS[shape](32000)
    memory = [xlac.parse(text).stats()["bytes"] for text in (small, large)]
    assert memory[1] < 10 * memory[0]
    assert least_cpu(large) < 32 * max(least_cpu(small), 0.002)


def test_sizes_in_metadata_are_read():
    """XLA prints them but does not read them back."""
    text = ('HloModule m\nENTRY e {\n  ROOT a = f32[] parameter(0), metadata={op_name="x" size_of_generated_code_in_bytes=4 '
            "size_of_memory_working_set_in_bytes=5000000000}\n}")
    once = xlac.parse(text).to_text()
    assert "size_of_generated_code_in_bytes=4 size_of_memory_working_set_in_bytes=5000000000" in once
    assert xlac.parse(once).to_text() == once


def test_numpys_names_of_element_types_have_hints():
    for theirs, ours in (("float32", "f32"), ("int64", "s64"), ("bfloat16", "bf16"), ("bool", "pred")):
        with pytest.raises(xlac.Error, match=f"did you mean '{ours}'"):
            xlac.parse(f"HloModule m\nENTRY e {{ ROOT x = {theirs}[4] parameter(0) }}")


def test_other_systems_names_of_ops_have_hints():
    """As few letters away as erf is from exp, and mulhi from mul, they would lead elsewhere."""
    hlo = "HloModule m\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] {}(x)\n}}"
    mlir = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = stablehlo.{} %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}}"
    for theirs, ours in (("exp", "exponential"), ("mul", "multiply"), ("max", "maximum"), ("where", "select"), ("ln", "log"), ("clone", "copy"), ("relu", "maximum")):
        with pytest.raises(xlac.Error) as caught:
            xlac.parse(hlo.format(theirs))
        assert caught.value.hint == f"did you mean '{ours}'?"
    for theirs, ours in (("where", "select"), ("cast", "convert"), ("matmul", "dot_general"), ("expo", "exponential"), ("sqr", "sqrt")):
        with pytest.raises(xlac.Error) as caught:
            xlac.parse(mlir.format(theirs))
        assert caught.value.hint == f"did you mean 'stablehlo.{ours}'?"
    for theirs, ours in (("exponent", "exponential"), ("sqr", "sqrt"), ("ad", "add")):
        with pytest.raises(xlac.Error) as caught:
            xlac.parse(hlo.format(theirs))
        assert caught.value.hint == f"did you mean '{ours}'?"
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(hlo.format("frobnicate"))
    assert "xlac ops" in caught.value.hint
