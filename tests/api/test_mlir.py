"""Modules in MLIR form through the C interface: form, translation, artifacts, several participants."""
PROGRAM = b"""module @m {
  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
ALL_REDUCE = b"""HloModule m, replica_count=2
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
ENTRY e {
  x = s32[] constant(20)
  ROOT y = s32[] all-reduce(x), replica_groups={{0,1}}, to_apply=add
}
"""


def parse(x, text):
    out = x.ffi.new("xlac_module **")
    assert x.lib.xlac_module_parse(out, text, len(text), x.ffi.NULL, x.err) == 0, x.err
    return out[0]


def test_form_and_translation(x):
    module, out = parse(x, PROGRAM), x.ffi.new("xlac_module **")
    assert x.lib.xlac_module_is_mlir(module)
    assert x.lib.xlac_module_to_hlo(out, module, x.err) == 0
    assert not x.lib.xlac_module_is_mlir(out[0])
    again = x.ffi.new("xlac_module **")
    assert x.lib.xlac_module_to_hlo(again, out[0], x.err) != 0  # it is HLO already
    assert x.lib.xlac_module_to_stablehlo(again, out[0], x.err) == 0
    assert x.lib.xlac_module_is_mlir(again[0])
    x.lib.xlac_module_destroy(again[0])
    assert x.lib.xlac_module_to_stablehlo(again, module, x.err) != 0  # it is StableHLO already
    x.lib.xlac_module_destroy(out[0])
    x.lib.xlac_module_destroy(module)


def test_artifacts_come_back(x):
    module = parse(x, PROGRAM)
    data, n = x.ffi.new("char **"), x.ffi.new("size_t *")
    assert x.lib.xlac_module_write_artifact(module, b"1.17.0", data, n, x.err) == 0
    written = bytes(x.ffi.buffer(data[0], n[0]))
    x.lib.xlac_free(data[0])
    assert written.startswith(b"ML\xefR") and b"StableHLO_v1.17.0" in written
    back = parse(x, written)
    assert x.lib.xlac_module_is_mlir(back)
    x.lib.xlac_module_destroy(back)
    x.lib.xlac_module_destroy(module)


SHARDED = b"""sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}]>}) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_propagation_says_how(x):
    module, text, n = parse(x, SHARDED), x.ffi.new("char **"), x.ffi.new("size_t *")
    assert x.lib.xlac_module_explain_sharding(module, text, n, x.err) == 0
    assert b"stablehlo.tanh" in bytes(x.ffi.buffer(text[0], n[0]))
    x.lib.xlac_free(text[0])
    assert x.lib.xlac_module_reshards(module, text, n, x.err) == 0
    assert b"reshards" in bytes(x.ffi.buffer(text[0], n[0]))
    x.lib.xlac_free(text[0])
    assert x.lib.xlac_module_annotate(module, b"result 0", b'#sdy.sharding<@m, [{"a"}]>', x.err) == 0
    assert x.lib.xlac_module_annotate(module, b"%arg0", b"", x.err) == 0
    assert x.lib.xlac_module_annotate(module, b"%nobody", b"", x.err) < 0
    assert x.lib.xlac_module_annotate(module, x.ffi.NULL, b"", x.err) < 0
    x.lib.xlac_module_destroy(module)


def test_participants_meet(x):
    module = parse(x, ALL_REDUCE)
    programs, results = x.ffi.new("xlac_program[2]"), x.ffi.new("xlac_value *[2]")
    assert x.lib.xlac_run_parallel(module, x.ffi.NULL, 2, 1, programs, results, x.ffi.NULL, x.err) == 0, x.err
    info = x.ffi.new("xlac_value_info *")
    for i in range(2):
        x.lib.xlac_value_get(results[i], info)
        assert x.ffi.cast("int *", info.data)[0] == 40
        x.lib.xlac_value_release(results[i])
    x.lib.xlac_module_destroy(module)


PROBED = b"""func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = interpreter.probe %0, probe_id = "p" : tensor<2xf32>
  return
}
"""


def test_probes(x):
    module, probes, out = parse(x, PROBED), x.ffi.new("xlac_probes **"), x.ffi.new("xlac_value **")
    x.check(x.lib.xlac_probes_create(probes, x.err))
    options = x.options("xlac_interpret_options", {"probes": probes[0]})
    for count in (1, 2):
        x.check(x.lib.xlac_interpret(module, options, 0, x.ffi.NULL, out, x.err))
        x.lib.xlac_value_release(out[0])
        assert x.lib.xlac_probes_count(probes[0]) == count
    name = x.ffi.new("const char **")
    x.check(x.lib.xlac_probes_get(probes[0], 1, name, out, x.err))
    assert x.text(name[0]) == "p" and x.floats(out[0]) == [1, 2]
    x.lib.xlac_value_release(out[0])
    assert "no number 2" in x.fails(x.lib.xlac_probes_get(probes[0], 2, name, out, x.err), 503)
    x.lib.xlac_probes_destroy(probes[0])
    x.lib.xlac_probes_destroy(x.ffi.NULL)
    x.lib.xlac_module_destroy(module)
