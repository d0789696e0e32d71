"""HloModuleProto: what is written reads back as the same program, and no bytes crash the reader. Where jaxlib is there, it reads
what we write and we read what it writes."""
import json
import lzma
import os
import pathlib
import random
import re

import pytest

import xlac

from . import wire

PROGRAM = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, entry_computation_layout={(f32[4,2]{1,0}, s4[3]{0})->(f32[4,2]{1,0}, s4[3]{0})}, frontend_attributes={a="b"}

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=5}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%body (p: (s32[], f32[4,2])) -> (s32[], f32[4,2]) {
  %p = (s32[], f32[4,2]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[4,2]{1,0} get-tuple-element(%p), index=1
  %y = f32[4,2]{1,0} exponential(%x), result_accuracy={tolerance={atol=0,rtol=0.1,ulps=2}}
  ROOT %r = (s32[], f32[4,2]{1,0}) tuple(%i, %y)
}

%condition (q: (s32[], f32[4,2])) -> pred[] {
  %q = (s32[], f32[4,2]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(-7)
  ROOT %lt = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (a: f32[4,2], b: s4[3]) -> (f32[4,2], s4[3]) {
  %b = s4[3]{0} parameter(1)
  %a = f32[4,2]{1,0} parameter(0), sharding={devices=[2,2]<=[2,2]T(1,0)}, metadata={op_name="a" stack_frame_id=1}
  %zero = s32[] constant(0)
  %c = f32[4,2]{0,1} constant({ { 1, 2 }, { 3, 4 }, { 5, nan }, { -inf, -0.5 } })
  %sfour = s4[3]{0} constant({-8, 7, 0})
  %k = (bf16[2]{0}, (pred[2]{0}, c64[])) constant(( {1, 2}, ( {1, 0}, (1, -2) ) ))
  %t = (s32[], f32[4,2]{1,0}) tuple(%zero, %a)
  %w = (s32[], f32[4,2]{1,0}) while(%t), condition=%condition, body=%body
  %o = f32[4,2]{1,0} get-tuple-element(%w), index=1, control-predecessors={%c}, origin={{"x" {0}}}
  %g = f32[4,2]{1,0} all-gather(%o), channel_id=3, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}, use_global_device_ids=true
  %m = f32[4,2]{1,0} all-to-all(%g), replica_groups={{0,1},{2,3}}, dimensions={1}, backend_config={"k":[1]}
  %d = f32[2,2]{1,0} dot(%m, %m), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={high,default}
  %f = f32[4,2]{1,0} negate(%m), sharding={mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}}
  ROOT %out = (f32[4,2]{1,0}, s4[3]{0}) tuple(%f, %sfour)
}

"""
LOST = re.compile(r", (alias_passthrough_params=true|allow_spmd_sharding_propagation_to_(parameters|output)=\{[^}]*\}|"
                  r"replica_count=\d+|num_partitions=\d+)")


def corpus():
    path = pathlib.Path(os.environ.get("XLAC_CONFORMANCE", pathlib.Path(__file__).parents[3] / "shared/conformance"))
    path = path / "hlo/corpus.jsonl.xz"
    if not path.exists():
        pytest.skip("no conformance data")
    with lzma.open(path, "rt") as file:
        return [row for row in map(json.loads, file) if row["kind"] == "roundtrip"]


def test_what_is_written_reads_back():
    module = xlac.parse(PROGRAM)
    data = module.to_bytes()
    for name in ("hlo-proto", "auto"):
        again = xlac.parse(data, format=name)
        assert again.to_text() == module.to_text()
        assert again.to_bytes() == data


def test_the_corpus_reads_back():
    count = 0
    for row in corpus():
        try:
            module = xlac.parse(row["input"])
            again = xlac.parse(module.to_bytes(), format="hlo-proto")
        except xlac.Error as error:
            assert "minor_to_major" in str(error), row["name"]  # which only XLA's text reader lets pass
            continue
        assert again.to_text() == LOST.sub("", module.to_text()), row["name"]
        count += 1
    assert count > 470


FRAMES = """HloModule m, replica_count=2, num_partitions=4, entry_computation_layout={(f32[])->f32[]}

FileNames
1 "a.py"
2 "b.py"

FunctionNames
1 "f"
2 "g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}
2 {file_name_id=2 function_name_id=2 line=2 end_line=2 column=2 end_column=2}
3 {file_name_id=1 function_name_id=2 line=3 end_line=3 column=3 end_column=3}

StackFrames
1 {file_location_id=3 parent_frame_id=3}
2 {file_location_id=1 parent_frame_id=1}
3 {file_location_id=2 parent_frame_id=1}


a {
  p = f32[] parameter(0), metadata={op_name="p" stack_frame_id=3}
  ROOT q = f32[] negate(p), metadata={op_name="q" stack_frame_id=1}
}

b {
  p.1 = f32[] parameter(0), metadata={op_name="p.1" stack_frame_id=2}
  ROOT q.1 = f32[] negate(p.1), metadata={op_name="q.1" stack_frame_id=2}
}

ENTRY e {
  x = f32[] parameter(0), metadata={op_name="x" stack_frame_id=2}
  z = f32[] call(x), to_apply=b, metadata={op_name="z" stack_frame_id=3}
  ROOT y = f32[] call(z), to_apply=a, metadata={op_name="y" stack_frame_id=1}
}
"""


def stacks(text):
    """op_name: [(line, file), ...], the caller last."""
    def rows(title):
        return [line.split(" ", 1)[1] for line in text.split(title + "\n")[1].split("\n\n")[0].strip().split("\n")]
    files, places = [f.strip('"') for f in rows("FileNames")], [dict(re.findall(r"(\w+)=(\d+)", r)) for r in rows("FileLocations")]
    frames = [dict(re.findall(r"(\w+)=(\d+)", r)) for r in rows("StackFrames")]
    result = {}
    for name, row in re.findall(r'op_name="([^"]*)" stack_frame_id=(\d+)', text):
        result[name], row = [], int(row)
        while row:
            place = places[int(frames[row - 1]["file_location_id"]) - 1]
            result[name].append((place["line"], files[int(place["file_name_id"]) - 1]))
            row = int(frames[row - 1]["parent_frame_id"]) - 1
    return result


def test_frames_out_of_order_keep_what_they_say():
    """Rows are numbered as ops come to use them, as XLA has it: where computations print in another order than they were read, each
    print numbers anew. What an op's frame stands for stays."""
    module = xlac.parse(FRAMES)
    wanted, text = stacks(FRAMES), module.to_text()
    assert len(wanted) == 7 and wanted["q"] == [("3", "a.py"), ("1", "a.py")]
    for again in (text, xlac.parse(text).to_text(), xlac.parse(module.to_bytes()).to_text(), xlac.parse(xlac.parse(text).to_bytes()).to_text()):
        assert stacks(again) == wanted
    assert xlac.parse(module.to_bytes()).to_text() == LOST.sub("", text)


def test_jaxlib_numbers_frames_alike_and_loses_the_same():
    _hlo = pytest.importorskip("jaxlib._hlo")
    own, module = _hlo.hlo_module_from_text(FRAMES), xlac.parse(FRAMES)
    assert own.to_string() == module.to_text() and "replica_count=2, num_partitions=4" in own.to_string()
    theirs, ours = own.as_serialized_hlo_module_proto(), module.to_bytes()
    texts = {_hlo.HloModule.from_serialized_hlo_module_proto(data).to_string() for data in (theirs, ours)}
    assert texts | {xlac.parse(data).to_text() for data in (theirs, ours)} == {LOST.sub("", module.to_text())}


def test_jaxlib_reads_it():
    _hlo = pytest.importorskip("jaxlib._hlo")
    own = _hlo.hlo_module_from_text(PROGRAM)
    data = own.as_serialized_hlo_module_proto()
    expected = _hlo.HloModule.from_serialized_hlo_module_proto(data).to_string()
    module = xlac.parse(PROGRAM)
    assert _hlo.HloModule.from_serialized_hlo_module_proto(module.to_bytes()).to_string() == expected
    assert xlac.parse(data).to_text() == module.to_text()


def test_errors_name_the_byte():
    data = xlac.parse(PROGRAM).to_bytes()
    with pytest.raises(xlac.ParseError, match="byte [0-9]+: "):
        xlac.parse(data[:-3], format="hlo-proto")
    with pytest.raises(xlac.ParseError):
        xlac.parse(b"", format="hlo-proto")
    with pytest.raises(xlac.Error):
        xlac.parse(data, format="mlir")


@pytest.mark.parametrize("levels", [1, 2], ids=["HloProto", "HloSnapshot"])
def test_xlas_dumps_hold_the_module_in_other_messages(levels):
    """HloProto: 1 the module, 3 the buffer assignment; HloSnapshot: 1 the HloProto, 2 arguments, 4 the platform."""
    data = xlac.parse(PROGRAM).to_bytes()
    wrapped = wire.encode([(1, 2, data), (3, 2, b"\x0a\x03abc")])
    if levels == 2:
        wrapped = wire.encode([(1, 2, wrapped), (4, 2, b"cpu")])
    for format in ("auto", "hlo-proto"):
        assert xlac.parse(wrapped, format=format).to_text() == xlac.parse(data).to_text()
    for n in range(0, len(wrapped), 7):
        with pytest.raises(xlac.Error):
            xlac.parse(wrapped[:n], format="hlo-proto").verify()
    broken = wire.encode([(1, 2, data[:-3]), (3, 2, b"")])
    with pytest.raises(xlac.ParseError, match="byte [0-9]+: "):
        xlac.parse(broken)


def test_what_a_schedule_leaves_out_is_in_the_messages_order():
    """XLA's schedules have no sequence for fusions, whose ids need not be in an order of operands before users."""
    text = """HloModule m, is_scheduled=true
%f (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  ROOT %s = f32[4]{0} subtract(%p, %q)
}
ENTRY %e (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %y = f32[4]{0} fusion(%x, %x), kind=kLoop, calls=%f
}
"""
    def computation(value):
        fields = wire.decode(value)
        if (1, 2, b"f") not in fields:
            return value
        ops = [wire.decode(v) for n, _, v in fields if n == 2]
        ids = [next((v for n, _, v in op if n == 35), 0) for op in ops]
        to = dict(zip(ids, reversed(ids)))  # the root has the least id now

        def turned(op, id):
            operands = [i for n, k, v in op if n == 36 for i in (wire.varints(v) if k == 2 else [v])]
            return wire.encode([(n, k, v) for n, k, v in op if n not in (35, 36)] + [(35, 0, to[id])] + [(36, 0, to[i]) for i in operands])
        root = next((v for n, _, v in fields if n == 6), 0)
        return wire.encode([(n, k, v) for n, k, v in fields if n not in (2, 6)] + [(2, 2, turned(*pair)) for pair in zip(ops, ids)] + [(6, 0, to[root])])

    def without(schedule, kept):
        return wire.encode([(n, k, v) for n, k, v in wire.decode(schedule) if dict((m, w) for m, _, w in wire.decode(v))[1] == kept])

    fields = wire.decode(xlac.parse(text).to_bytes())
    entry = next(v for n, _, v in fields if n == 6)
    changed = wire.encode([(n, k, computation(v) if n == 3 else without(v, entry) if n == 7 else v) for n, k, v in fields])
    module = xlac.parse(changed)
    module.verify()
    assert [op.opcode for op in module.computation("f")] == ["parameter", "parameter", "subtract"] and module.config["is_scheduled"]


def test_other_bytes_are_text():
    assert xlac.parse("\n" + PROGRAM).name == "m"
    with pytest.raises(xlac.ParseError, match="(?!byte)"):
        xlac.parse(b"\x0a\x80")


def test_unknown_fields_are_passed_over():
    data = xlac.parse(PROGRAM).to_bytes()
    more = data + b"\xc2\x3e\x03abc" + b"\xb8\x3e\x01" + b"\xbd\x3e\0\0\0\0" + b"\xb9\x3e\0\0\0\0\0\0\0\0"
    assert xlac.parse(more, format="hlo-proto").to_text() == xlac.parse(data, format="hlo-proto").to_text()


NAMED = "HloModule modu, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\nENTRY %e (abcd: f32[2]) -> f32[2] {\n  %abcd = f32[2]{0} parameter(0)\n  ROOT %n = f32[2]{0} negate(%abcd)\n}\n"


@pytest.mark.parametrize("name", [b"ROOT", b"true"])
@pytest.mark.parametrize("old", [b"modu", b"abcd"])
def test_names_that_are_words_of_the_text_read_back_from_it(old, name):
    data = xlac.parse(NAMED).to_bytes().replace(old, name)
    text = xlac.parse(data, format="hlo-proto").to_text()
    assert name.decode() + "_" in text
    assert xlac.parse(text).to_text() == text


def test_a_module_without_a_name_reads_back_from_its_text():
    data = xlac.parse(NAMED).to_bytes()
    assert data[:6] == b"\x0a\x04modu"
    text = xlac.parse(data[6:], format="hlo-proto").to_text()
    assert text.startswith("HloModule _,") and xlac.parse(text).to_text() == text


def mutants(data, count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        bad = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 8))):
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.2:
            del bad[draw.randrange(len(bad)):]
        if draw.random() < 0.2:
            start = draw.randrange(len(bad) + 1)
            del bad[start:start + draw.randrange(1, 9)]
        yield bytes(bad)


def test_mutants_are_errors_or_modules(count=int(os.environ.get("XLAC_MUTANTS", "1500"))):
    read = 0
    for bad in mutants(xlac.parse(PROGRAM).to_bytes(), count, 1):
        try:
            module = xlac.parse(bad, format="hlo-proto")
        except xlac.Error:
            continue
        read += 1
        module.to_text()
        try:
            module.verify()
            module.to_bytes()
        except xlac.Error:
            pass
    assert read < count


CONVOLUTION = """HloModule m, entry_computation_layout={(f32[2,5,6,7,3]{4,3,2,1,0}, f32[2,2,2,3,4]{4,3,2,1,0})->f32[2,4,5,6,4]{4,3,2,1,0}}

ENTRY %e (z: f32[2,5,6,7,3], m: f32[2,2,2,3,4]) -> f32[2,4,5,6,4] {
  %z = f32[2,5,6,7,3]{4,3,2,1,0} parameter(0)
  %m = f32[2,2,2,3,4]{4,3,2,1,0} parameter(1)
  ROOT %c = f32[2,4,5,6,4]{4,3,2,1,0} convolution(%z, %m), window={size=2x2x2}, dim_labels=b012f_012io->b012f
}
"""


def test_dimension_numbers_of_a_convolution_name_each_dimension_once():
    data = xlac.parse(CONVOLUTION).to_bytes()
    for spatial in (b"\x5a\x03\x01\x02\x03", b"\x62\x03\x01\x02\x03"):  # of the input and of the result, packed
        assert data.count(spatial) == 1
        with pytest.raises(xlac.ParseError, match="name each dimension once"):
            xlac.parse(data.replace(spatial, spatial[:-2] + b"\x09\x03"), format="hlo-proto")


ALL_FORMS = """HloModule m

ENTRY %e (x: f32[2,3], i: s32[]) -> (pred[2,3], f32[1,1], f32[2,3], s32[]) {
  %x = f32[2,3]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %eq = pred[2,3]{1,0} compare(%x, %x), direction=EQ
  %ds = f32[1,1]{1,0} dynamic-slice(%x, %i, %i), dynamic_slice_sizes={1,1}
  %cat = f32[2,3]{1,0} concatenate(%x), dimensions={0}
  %size = s32[] get-dimension-size(%x), dimensions={0}
  ROOT %t = (pred[2,3], f32[1,1], f32[2,3], s32[]) tuple(%eq, %ds, %cat, %size)
}
"""


def change_op(data, opcode, change):
    """The message with the fields of that instruction as `change` gives them."""
    def inside(fields, number, f):
        return [(n, k, wire.encode(f(wire.decode(v))) if n == number else v) for n, k, v in fields]

    def instruction(fields):
        return change(fields) if (2, 2, opcode) in fields else fields

    return wire.encode(inside(wire.decode(data), 3, lambda c: inside(c, 2, instruction)))


def drop(number):
    return lambda fields: [f for f in fields if f[0] != number]


def twice(number):
    return lambda fields: [g for f in fields for g in ([(f[0], f[1], f[2] * 2)] if f[0] == number else [f])]


FORMS = {"no direction": (b"compare", drop(63), "needs the attribute"), "four start indices": (b"dynamic-slice", lambda f: twice(36)(f), "one start index for each"),
         "nothing to concatenate": (b"concatenate", drop(36), "at least one operand"), "two dimensions": (b"get-dimension-size", twice(14), "works on one dimension"),
         "no dimension": (b"get-dimension-size", drop(14), "works on one dimension"), "a tuple of nothing": (b"tuple", drop(36), "tuple type has 4 elements")}


@pytest.mark.parametrize("what", FORMS)
def test_ops_that_have_no_text_are_refused(what):
    opcode, change, message = FORMS[what]
    data = xlac.parse(ALL_FORMS).to_bytes("hlo-proto")
    changed = change_op(data, opcode, change)
    assert changed != data and change_op(data, opcode, lambda f: f) == data
    with pytest.raises(xlac.ParseError, match=message):
        xlac.parse(changed, format="hlo-proto")


CHAINS = """HloModule m, is_scheduled=true

%w (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p)
}

ENTRY %e (x: f32[8], y: f32[3]) -> (f32[8], f32[3], f32[9]) {
  %x = f32[8]{0} parameter(0)
  %y = f32[3]{0} parameter(1)
  %s = ((f32[8]{0}), f32[8]{0}, s32[]) async-start(%x), calls=%w
  %u = ((f32[8]{0}), f32[8]{0}, s32[]) async-update(%s)
  %d = f32[8]{0} async-done(%u)
  %t = token[] after-all()
  %a = f32[3]{0} add-dependency(%y, %t)
  %z = f32[] constant(0)
  %q = f32[9]{0} pad(%x, %z), padding=0_1_0
  ROOT %r = (f32[8]{0}, f32[3]{0}, f32[9]{0}) tuple(%d, %a, %q)
}
"""


def shape_of(data, opcode):
    found = []
    change_op(data, opcode, lambda fields: found.append(next(f for f in fields if f[0] == 3)) or fields)
    return found[0]


def with_shape_of(other):
    return lambda data, fields: [shape_of(data, other) if f[0] == 3 else f for f in fields]


def negative_interior(_, fields):
    """PaddingConfig is field 21, its dimension 1, the interior of that 3."""
    minus_one = wire.encode([(2, 0, 1), (3, 0, 2**64 - 1)])
    return [(21, 2, wire.encode([(1, 2, minus_one)])) if f[0] == 21 else f for f in fields]


def no_padding(_, fields):
    return [(21, 2, b"") if f[0] == 21 else f for f in fields]


SHAPES = {"no padding": (b"pad", no_padding, "has no padding for any dimension"), "an update of another shape": (b"async-update", with_shape_of(b"async-done"), r"shape is \(\(operands...\), outputs"),
          "a start that is not a tuple": (b"async-start", with_shape_of(b"async-done"), r"shape is \(\(operands...\), outputs"),
          "another shape than its operand": (b"add-dependency", with_shape_of(b"pad"), r"add-dependency has its operand's shape"),
          "taken from between elements": (b"pad", negative_interior, "interior padding that is negative")}


@pytest.mark.parametrize("what", SHAPES)
def test_shapes_that_the_text_has_not_are_refused(what):
    opcode, change, message = SHAPES[what]
    data = xlac.parse(CHAINS).to_bytes("hlo-proto")
    assert xlac.parse(data, format="hlo-proto").to_text() == xlac.parse(CHAINS).to_text()
    with pytest.raises(xlac.ParseError, match=message):
        xlac.parse(change_op(data, opcode, lambda fields: change(data, fields)), format="hlo-proto")


def test_an_update_has_its_operands_shape():
    """The start gives another output than the update passes on."""
    data = xlac.parse(CHAINS).to_bytes("hlo-proto")
    other = xlac.parse(CHAINS.replace("f32[8]{0}, s32[])", "f32[8]{0}, u32[])")).to_bytes("hlo-proto")
    changed = change_op(data, b"async-update", lambda fields: [shape_of(other, b"async-update") if f[0] == 3 else f for f in fields])
    with pytest.raises(xlac.ParseError, match="an async update has its operand's shape"):
        xlac.parse(changed, format="hlo-proto")


def test_a_schedule_that_is_no_order_is_refused():
    """Field 7 is the schedule: a map from a computation's id to the ids of its instructions in order."""
    def backwards(sequence):
        (_, kind, ids), = wire.decode(sequence)
        assert kind == 2
        return wire.encode([(1, 0, i) for i in reversed(wire.varints(ids))])

    def entries(schedule):
        return wire.encode([(n, k, wire.encode([(m, j, backwards(w) if m == 2 else w) for m, j, w in wire.decode(v)]))
                            for n, k, v in wire.decode(schedule)])

    data = xlac.parse(CHAINS).to_bytes("hlo-proto")
    changed = wire.encode([(n, k, entries(v) if n == 7 else v) for n, k, v in wire.decode(data)])
    assert changed != data
    with pytest.raises(xlac.Error, match="stands before"):
        xlac.parse(changed, format="hlo-proto")


TRANSFERS = """HloModule m

ENTRY %e (p: f32[8], t: token[]) -> (s32[4], token[]) {
  %p = f32[8]{0} parameter(0)
  %t = token[] parameter(1)
  %send = (f32[8]{0}, u32[], token[]) send(%p, %t), channel_id=1
  %send-done = token[] send-done(%send), channel_id=1
  %recv = (s32[4]{0}, u32[], token[]) recv(%send-done), channel_id=2
  %recv-done = (s32[4]{0}, token[]) recv-done(%recv), channel_id=2
  %outfeed = token[] outfeed(%p, %t), outfeed_shape=f32[8]{0}
  ROOT %r = (s32[4]{0}, token[]) infeed(%outfeed)
}
"""


@pytest.mark.parametrize("opcode, other", [(b"send", b"recv"), (b"send-done", b"send"), (b"recv-done", b"send"), (b"outfeed", b"parameter")])
def test_types_that_the_operands_tell_are_what_they_are_whatever_is_declared(opcode, other):
    """XLA's constructors of these ops make the types themselves, so text and protos that declare others read as if they did not."""
    data = xlac.parse(TRANSFERS).to_bytes("hlo-proto")
    changed = change_op(data, opcode, lambda fields: [shape_of(data, other) if f[0] == 3 else f for f in fields])
    module = xlac.parse(changed, format="hlo-proto")
    assert changed != data and module.to_text() == xlac.parse(module.to_text()).to_text() == xlac.parse(data, format="hlo-proto").to_text()


def test_a_start_whose_operands_are_other_than_what_it_wraps_takes_is_written_whole():
    """Sugar would say that the wrapped op takes the start's operands; such a module reads, and does not verify."""
    text = """HloModule m

%w (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%q)
}

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %s = ((f32[8]{0}), f32[8]{0}, s32[]) async-start(%p), calls=%w
  ROOT %d = f32[8]{0} async-done(%s)
}
"""
    data, other = (xlac.parse(t).to_bytes("hlo-proto") for t in (text, text.replace("(p: f32[8])", "(p: s32[8])").replace("%p = f32", "%p = s32")))
    assert "negate-start" in xlac.parse(data, format="hlo-proto").to_text()
    module = xlac.parse(other, format="hlo-proto")
    again = xlac.parse(module.to_text())
    assert "async-start" in module.to_text() and again.to_text() == module.to_text()
    for each in (module, again):
        with pytest.raises(xlac.VerifyError):
            each.verify()
