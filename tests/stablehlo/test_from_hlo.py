"""HLO to StableHLO: jaxlib's own reader and verifier take the text, and it gives the same values as the HLO."""
import pytest

import xlac

HEAD = """HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, num_partitions=2

ENTRY main {
  a = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  b = f32[4] parameter(1)
  c = f32[4] add(a, b), metadata={op_name="jit(f)/add" source_file="f.py" source_line=7}
  ROOT r = (f32[4], f32[4]) tuple(b, c)
}
"""


def test_facts_of_the_module():
    stable = xlac.parse(HEAD).to_stablehlo()
    stable.verify()
    text = stable.to_text()
    assert "module @m attributes {mhlo.num_partitions = 2 : i32}" in text
    assert 'mhlo.sharding = "{devices=[2]<=[2]}", tf.aliasing_output = 1 : i32' in text
    assert "%arg1: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<4xf32>, tensor<4xf32>)" in text
    located = stable.to_text(locations=True)
    assert '"jit(f)/add"' in located and '"f.py":7' in located
    again = stable.to_hlo().to_text()
    assert "input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }" in again
    assert 'metadata={op_name="jit(f)/add" source_file="f.py" source_line=7}' in again


def test_what_stablehlo_lacks_is_refused_by_name():
    with pytest.raises(xlac.Error, match="no type for opaque") as caught:
        xlac.parse("HloModule m\n\nENTRY e {\n  ROOT p = opaque[] parameter(0)\n}\n").to_stablehlo()
    assert (caught.value.line, caught.value.col) == (4, 8)
    with pytest.raises(xlac.Error, match="already"):
        xlac.parse("func.func @main() { return }").to_stablehlo()
