"""Every function of xlac.h that edits a module makes it one that has not been verified, and those that read leave it verified."""
import re

import pytest
from c_header import declarations

HLO = """HloModule demo

inc {
  p = f32[] parameter(0)
  one = f32[] constant(1)
  ROOT s = f32[] add(p, one)
}

dead {
  ROOT q = f32[] parameter(0)
}

ENTRY main {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  c = f32[] call(x), to_apply=inc
  unused = f32[] tanh(x)
  n = f32[] negate(c), control-predecessors={y}
  ROOT r = f32[] multiply(n, x), metadata={op_name="r"}
}
"""
MLIR = """sdy.mesh @m = <["a"=2]>
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %arg0 : tensor<4xf32>
  %1 = stablehlo.negate %arg0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


class Calls:
    """Each function once, with arguments that suit the program."""

    def __init__(self, x, text):
        self.x, self.m = x, x.parse(text)
        x.check(x.lib.xlac_module_verify(self.m, x.ffi.NULL, x.err))

    def computation(self, name):
        return self.x.lib.xlac_computation_find(self.m, name)

    def main(self):
        return self.computation(b"main")

    def op(self, name):
        return self.x.op(self.m, name)

    def out(self, type_):
        return self.x.ffi.new(f"{type_} **")

    def alias(self):
        index = self.x.ffi.new("int64_t[]", 1)
        return self.x.ffi.new("xlac_alias *", {"parameter": 0, "index": index, "output": index})

    def call(self, name, *args):
        x = self.x
        function = getattr(x.lib, f"xlac_{name}")
        if x.ffi.typeof(function).args[-1] == x.ffi.typeof("xlac_error *"):
            return x.check(function(*args, x.err))
        return function(*args)

    def create_op(self):
        opcode, operand = self.x.ffi.new("char[]", b"cosine"), self.x.ffi.new("xlac_op *[]", [self.op("x")])
        spec = self.x.ffi.new("xlac_op_spec *", {"opcode": opcode, "n_operands": 1, "operands": operand})
        self.call("op_create", self.out("xlac_op"), self.m, self.main(), spec)

    def create_constant(self):
        value = self.x.array("f32", [], self.x.ffi.new("float[]", [2]))
        self.call("op_create_constant", self.out("xlac_op"), self.m, self.main(), value, self.x.ffi.NULL)
        self.x.lib.xlac_value_release(value)

    def import_computation(self):
        self.call("computation_import", self.out("xlac_computation"), self.m, self.m, self.computation(b"inc"))

    def text(self, name, *args):
        text, n = self.x.ffi.new("char **"), self.x.ffi.new("size_t *")
        self.call(name, *args, text, n)
        self.x.lib.xlac_free(text[0])

    def made(self, name, *args):
        module = self.out("xlac_module")
        self.call(name, module, self.m, *args)
        self.x.lib.xlac_module_destroy(module[0])

    def constant(self):
        value = self.out("xlac_value")
        self.call("op_constant", self.m, self.op("one"), value)

    def attr(self):
        text = self.x.ffi.new("char **")
        self.call("op_attr", self.m, self.op("r"), b"metadata", text)
        self.x.lib.xlac_free(text[0])

    def interpret(self):
        one = self.x.array("f32", [], self.x.ffi.new("float[]", [2]))
        result = self.out("xlac_value")
        self.call("interpret", self.m, self.x.ffi.NULL, 2, self.x.ffi.new("xlac_value *[]", [one, one]), result)
        for value in (one, result[0]):
            self.x.lib.xlac_value_release(value)

    def compile(self):
        executable = self.out("xlac_executable")
        self.call("compile", self.m, self.x.ffi.NULL, executable)
        self.x.lib.xlac_executable_destroy(executable[0])


HLO_EDITS = {
    "module_set_name": lambda c: c.call("module_set_name", c.m, b"other"),
    "module_set_alias": lambda c: c.call("module_set_alias", c.m, c.alias()),
    "module_add_donor": lambda c: c.call("module_add_donor", c.m, c.alias()),
    "module_clear_aliases": lambda c: c.call("module_clear_aliases", c.m),
    "module_set_entry": lambda c: c.call("module_set_entry", c.m, c.computation(b"dead")),
    "computation_create": lambda c: c.call("computation_create", c.out("xlac_computation"), c.m, b"empty"),
    "computation_import": Calls.import_computation,
    "computation_remove": lambda c: c.call("computation_remove", c.m, c.computation(b"dead")),
    "computation_rename": lambda c: c.call("computation_rename", c.m, c.computation(b"dead"), b"deader"),
    "computation_set_root": lambda c: c.call("computation_set_root", c.m, c.main(), c.op("n")),
    "op_create": Calls.create_op,
    "op_create_parameter": lambda c: c.call("op_create_parameter", c.out("xlac_op"), c.m, c.main(), 2, b"f32[]", b"z"),
    "op_create_constant": Calls.create_constant,
    "op_set_attr": lambda c: c.call("op_set_attr", c.m, c.op("n"), b"metadata", b'{op_name="n"}'),
    "op_set_operand": lambda c: c.call("op_set_operand", c.m, c.op("n"), 0, c.op("x")),
    "op_set_type": lambda c: c.call("op_set_type", c.m, c.op("n"), b"f32[]{:T(128)}"),
    "op_rename": lambda c: c.call("op_rename", c.m, c.op("n"), b"nn"),
    "op_replace_uses": lambda c: c.call("op_replace_uses", c.m, c.op("n"), c.op("x")),
    "op_remove": lambda c: c.call("op_remove", c.m, c.op("unused")),
    "op_move": lambda c: c.call("op_move", c.m, c.op("unused"), c.x.ffi.NULL),
    "module_run": lambda c: c.call("module_run", c.m, b"dce", c.x.ffi.NULL),
}
# What op_set_attr does, by the kinds of attribute that are not a list of values of the op's own.
ATTRIBUTES = {
    "a called computation": lambda c: c.call("op_set_attr", c.m, c.op("c"), b"to_apply", b"dead"),
    "control edges": lambda c: c.call("op_set_attr", c.m, c.op("n"), b"control-predecessors", b"{x}"),
    "no control edges": lambda c: c.call("op_set_attr", c.m, c.op("n"), b"control-predecessors", c.x.ffi.NULL),
    "no metadata": lambda c: c.call("op_set_attr", c.m, c.op("r"), b"metadata", c.x.ffi.NULL),
}
HLO_READS = {
    "module_clone": lambda c: c.made("module_clone"),
    "module_print": lambda c: c.text("module_print", c.m, c.x.ffi.NULL),
    "computation_print": lambda c: c.text("computation_print", c.m, c.main(), c.x.ffi.NULL),
    "op_print": lambda c: c.text("op_print", c.m, c.op("n"), c.x.ffi.NULL),
    "module_serialize": lambda c: c.text("module_serialize", c.m, c.x.lib.XLAC_FORMAT_HLO_PROTO),
    "module_verify": lambda c: c.call("module_verify", c.m, c.x.ffi.NULL),
    "module_is_verified": lambda c: c.call("module_is_verified", c.m),
    "module_fingerprint": lambda c: c.call("module_fingerprint", c.m, c.x.ffi.new("uint64_t *")),
    "module_stats": lambda c: c.call("module_stats", c.m, c.x.ffi.new("xlac_stats *")),
    "module_name": lambda c: c.call("module_name", c.m),
    "module_is_mlir": lambda c: c.call("module_is_mlir", c.m),
    "module_to_stablehlo": lambda c: c.made("module_to_stablehlo"),
    "module_config": lambda c: c.call("module_config", c.m, c.x.ffi.new("xlac_config *")),
    "module_alias": lambda c: c.call("module_alias", c.m, 0, c.alias()),
    "module_donor": lambda c: c.call("module_donor", c.m, 0, c.alias()),
    "module_frontend_attribute": lambda c: c.call("module_frontend_attribute", c.m, 0, c.out("const char"), c.out("const char")),
    "module_entry": lambda c: c.call("module_entry", c.m),
    "computation_next": lambda c: c.call("computation_next", c.m, c.main()),
    "computation_find": lambda c: c.main(),
    "computation_is_live": lambda c: c.call("computation_is_live", c.m, c.main()),
    "computation_name": lambda c: c.call("computation_name", c.m, c.main()),
    "computation_op_count": lambda c: c.call("computation_op_count", c.m, c.main()),
    "computation_param_count": lambda c: c.call("computation_param_count", c.m, c.main()),
    "computation_param": lambda c: c.call("computation_param", c.m, c.main(), 0),
    "computation_root": lambda c: c.call("computation_root", c.m, c.main()),
    "computation_thread": lambda c: c.call("computation_thread", c.m, c.main()),
    "computation_position": lambda c: c.call("computation_position", c.m, c.main(), c.x.ffi.new("uint32_t *"), c.x.ffi.new("uint32_t *")),
    "op_next": lambda c: c.call("op_next", c.m, c.main(), c.op("x")),
    "op_find": lambda c: c.op("x"),
    "op_is_live": lambda c: c.call("op_is_live", c.m, c.op("x")),
    "op_get": lambda c: c.x.info(c.m, c.op("x")),
    "op_operand": lambda c: c.call("op_operand", c.m, c.op("n"), 0),
    "op_called": lambda c: c.call("op_called", c.m, c.op("c"), 0),
    "op_control_predecessors": lambda c: c.call("op_control_predecessors", c.m, c.op("n"), c.x.ffi.NULL, 0),
    "op_users": lambda c: c.call("op_users", c.m, c.op("x"), c.x.ffi.NULL, 0),
    "op_attr_key": lambda c: c.call("op_attr_key", c.m, c.op("r"), 0),
    "op_attr": Calls.attr,
    "op_constant": Calls.constant,
    "module_explain_async": lambda c: c.text("module_explain_async", c.m, c.x.ffi.NULL),
    "interpret": Calls.interpret,
    "compile": Calls.compile,
    "compile_dump": lambda c: c.text("compile_dump", c.m, c.x.ffi.NULL, b"plan"),
}
MLIR_EDITS = {
    "module_run": lambda c: c.call("module_run", c.m, b"cse", c.x.ffi.NULL),
}
MLIR_READS = {
    "module_to_hlo": lambda c: c.made("module_to_hlo"),
    "module_write_artifact": lambda c: c.text("module_write_artifact", c.m, c.x.ffi.NULL),
    "module_reshards": lambda c: c.text("module_reshards", c.m),
    "module_print": lambda c: c.text("module_print", c.m, c.x.ffi.NULL),
}
# Makers and ends of modules, and those that verify what they have made of it.
OTHERS = {"module_parse", "module_create", "module_destroy", "graph_lower", "run_parallel", "module_explain_sharding", "module_annotate", "rehearse", "cache_key",
          "module_name_single_calls"}  # an edit only where there are such calls: test_c_groups.py


def test_every_function_on_a_module_is_listed():
    on_modules = {name for name, _ in re.findall(r"\bxlac_(\w+)\(([^()]*\bxlac_module \*[^()]*)\)", declarations())}
    assert on_modules == HLO_EDITS.keys() | HLO_READS.keys() | MLIR_EDITS.keys() | MLIR_READS.keys() | OTHERS


@pytest.mark.parametrize("text, name, what", [(HLO, *row) for row in HLO_EDITS.items()] + [(HLO, *row) for row in ATTRIBUTES.items()]
                         + [(MLIR, *row) for row in MLIR_EDITS.items()])
def test_after_an_edit_a_module_is_verified_anew(x, text, name, what):
    c = Calls(x, text)
    assert x.lib.xlac_module_is_verified(c.m)
    what(c)
    assert not x.lib.xlac_module_is_verified(c.m)
    x.lib.xlac_module_destroy(c.m)


@pytest.mark.parametrize("text, name, what", [(HLO, *row) for row in HLO_READS.items()] + [(MLIR, *row) for row in MLIR_READS.items()])
def test_reading_leaves_a_module_verified(x, text, name, what):
    c = Calls(x, text)
    what(c)
    assert x.lib.xlac_module_is_verified(c.m)
    x.lib.xlac_module_destroy(c.m)


def test_an_edit_that_breaks_a_module_is_found_after_it_was_verified(x):
    c = Calls(x, HLO)
    c.call("op_set_type", c.m, c.op("n"), b"f32[3]")
    assert "f32[3]" in x.fails(x.lib.xlac_module_verify(c.m, x.ffi.NULL, x.err), 201)
    assert not x.lib.xlac_module_is_verified(c.m)
    x.lib.xlac_module_destroy(c.m)


def test_a_pass_that_changes_nothing_leaves_a_module_verified(x):
    c = Calls(x, HLO)
    c.call("module_run", c.m, b"cse,dce", x.ffi.NULL)
    c.call("module_verify", c.m, x.ffi.NULL)
    c.call("module_run", c.m, b"dce", x.ffi.NULL)
    assert x.lib.xlac_module_is_verified(c.m)
    x.lib.xlac_module_destroy(c.m)


def test_a_copy_is_as_verified_as_its_original(x):
    c, copy = Calls(x, HLO), x.ffi.new("xlac_module **")
    c.call("module_clone", copy, c.m)
    assert x.lib.xlac_module_is_verified(copy[0])
    x.lib.xlac_module_destroy(copy[0])
    c.call("op_rename", c.m, c.op("n"), b"nn")
    c.call("module_clone", copy, c.m)
    assert not x.lib.xlac_module_is_verified(copy[0])
    x.lib.xlac_module_destroy(copy[0])
    x.lib.xlac_module_destroy(c.m)
