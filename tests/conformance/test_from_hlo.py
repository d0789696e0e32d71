"""HLO to StableHLO on the data: every program that verifies goes there and back with the same values."""
import base64
import re

import numpy as np
import pytest

import xlac

from .conftest import cases, data_dir
from .test_stablehlo import EXEC, caselib, known, outcome, runnable, with_names  # noqa: F401 (caselib is a fixture)

HLO = "hlo/corpus.jsonl.xz"
REFUSED = {  # XLA's translation refuses the first two as well, and loses the slices of the third
    "syn_shape_opaque": "no type for opaque", "op_custom_call": "no tiles, memory spaces, nested tuples",
    "op_collective_permute_inplace": "no collective-permute of slices",
}


@pytest.fixture(scope="module")
def jaxlib_reads():
    ir = pytest.importorskip("jaxlib.mlir.ir")
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)

    def read(text):
        with context:
            ir.Module.parse(text)
    return read


def there_and_back(module):
    """The StableHLO module. Its text is a fixed point, it goes back to HLO, and from there to the same signature."""
    stable = module.to_stablehlo()
    text = stable.to_text()
    assert xlac.parse(text, format="mlir").to_text() == text
    back = stable.to_hlo()
    back.verify(xla_compat=True)
    again = xlac.parse(back.to_text(), format="hlo").to_stablehlo()
    assert signature(again.to_text()) == signature(text)
    return stable


def signature(text):
    types = re.search(r"func\.func public @main.*", text)[0]
    return re.sub(r'"[^"]*"|%\w+', "", types)


# Sampled, for jaxlib's reader is slower than all the rest: every tenth program.
@pytest.mark.parametrize("case", cases(EXEC, with_names(lambda r: True), "exec"))
def test_stablehlo_programs(case, caselib, jaxlib_reads, request):  # noqa: F811
    module, checks = runnable(case, caselib)
    try:
        translated = module.to_hlo()
        translated.verify(xla_compat=True)
    except xlac.Error as error:
        pytest.skip(f"no HLO: {error}")
    known(case, "exec", request)
    stable = there_and_back(translated)
    if len(case["text"]) % 10 == 0:
        jaxlib_reads(stable.to_text())
    outcome(case, caselib, stable, checks)


@pytest.mark.parametrize("case", cases(HLO, lambda r: r["kind"] == "roundtrip", "corpus"))
def test_hlo_programs(case, jaxlib_reads):
    module = xlac.parse(case["input"], format="hlo")
    try:
        module.verify(xla_compat=True)
    except xlac.Error as error:
        pytest.skip(f"not verified: {error}")
    if case["name"] in REFUSED:
        with pytest.raises(xlac.Error, match=REFUSED[case["name"]]) as caught:
            module.to_stablehlo()
        assert caught.value.line and caught.value.col
        return
    stable = there_and_back(module)
    if len(case["input"]) < 20000:
        jaxlib_reads(stable.to_text())
    if "run" in case:
        args = [np.frombuffer(base64.b64decode(a["b64"]), dtype=a["dtype"]).reshape(a["shape"]) for a in case["run"]["args"]]
        for got, want in zip(leaves(xlac.interpret(stable, *args)), leaves(xlac.interpret(module, *args)), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


def programs():
    folder = data_dir().parent / "bench" / "programs"
    return sorted(folder.glob("*.hlo.txt")) or [pytest.param(None, marks=pytest.mark.skip(reason="no benchmark programs"))]


@pytest.mark.parametrize("path", programs(), ids=lambda p: p.name.split(".")[0] if p else "none")
def test_benchmark_programs(path, jaxlib_reads):
    text = path.read_text()
    stable = there_and_back(xlac.parse(text, format="hlo"))
    if len(text) < 100000:
        jaxlib_reads(stable.to_text())
