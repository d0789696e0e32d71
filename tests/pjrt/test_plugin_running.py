"""Programs through the plugin alone: compiled, run, donated to; what is wrong is an error that says what."""
import ctypes

import numpy as np
import plugin
import pytest

ADD = """module @add { func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32> } }"""
GIVEN = """module @given { func.func public @main(%a: tensor<65536xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<65536xf32>) -> tensor<65536xf32> {
  %0 = stablehlo.add %a, %b : tensor<65536xf32>
  return %0 : tensor<65536xf32> } }"""
# Long enough for a queue: its work is not known before it runs.
LOOP = """module @loop { func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %n = stablehlo.constant dense<20000> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
         %w = stablehlo.cosine %v : tensor<f32>
         stablehlo.return %j, %w : tensor<i32>, tensor<f32> }
  return %0#1 : tensor<f32> } }"""
PLUS = """module @plus { func.func public @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %a : tensor<f32>
  return %0 : tensor<f32> } }"""
FIXED_POINT = 0.7390851


def proto(*fields):
    """Bytes of a message of (number, value) with value an int or bytes."""
    def varint(n):
        out = b""
        while n >= 0x80:
            out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
        return out + bytes([n])
    return b"".join(varint(number << 3 | 2) + varint(len(value)) + value if isinstance(value, bytes) else varint(number << 3) + varint(value)
                    for number, value in fields)


def option(name, value):
    return proto((7, proto((1, name.encode()), (2, proto((1, value.encode()))))))


def test_a_program_is_compiled_and_run(p, client):
    exe = p.compile(client, ADD)
    a, b = (p.put(client, np.array(v, np.float32))[0] for v in ([1, 2, 3, 4], [10, 20, 30, 40]))
    (out,), done = p.run(exe, a, b)
    p.wait(done)
    assert p.get(out).tolist() == [11, 22, 33, 44]
    assert not p.deleted(a)
    p.destroy(a, b, out)
    p.LoadedExecutable_Destroy(executable=exe)


def test_results_that_are_not_ready_are_arguments(p, client):
    """The chain is enqueued at once, and the address of a result is known before it is computed."""
    loop, plus = p.compile(client, LOOP), p.compile(client, PLUS)
    x = p.put(client, np.array(0.5, np.float32))[0]
    buffers, values = [x], []
    for exe in (loop, plus, plus):
        (out,), done = p.run(exe, buffers[-1])
        assert p.Buffer_OpaqueDeviceMemoryDataPointer(buffer=out).device_memory_ptr
        p.Event_Destroy(event=done)
        buffers.append(out)
    for buffer in buffers[1:]:
        values.append(float(p.get(buffer)))
    assert values == pytest.approx([FIXED_POINT, 2 * FIXED_POINT, 4 * FIXED_POINT])
    p.destroy(*buffers)
    for exe in (loop, plus):
        p.LoadedExecutable_Destroy(executable=exe)


def test_who_asks_for_a_result_may_compute_it(p, client):
    """Short programs that nobody has begun are run by who waits for them: once they have run, that is known of them."""
    short, plus = p.compile(client, LOOP.replace("20000", "200")), p.compile(client, PLUS)
    for n in range(50):
        buffers = [p.put(client, np.array(0.5, np.float32))[0]]
        for exe in (short, plus, short, plus):
            (out,), done = p.run(exe, buffers[-1])
            p.Event_Destroy(event=done)
            buffers.append(out)
        p.wait(p.Buffer_ReadyEvent(buffer=buffers[1 + n % 4]).event)
        assert float(p.get(buffers[4])) == pytest.approx(2 * FIXED_POINT) and float(p.get(buffers[2])) == pytest.approx(2 * FIXED_POINT)
        p.destroy(*buffers)
    for exe in (short, plus):
        p.LoadedExecutable_Destroy(executable=exe)


def test_arguments_may_be_deleted_while_the_program_runs(p, client):
    loop = p.compile(client, LOOP)
    x = p.put(client, np.array(0.5, np.float32))[0]
    (out,), done = p.run(loop, x)
    p.Buffer_Delete(buffer=x)
    p.destroy(x)
    p.LoadedExecutable_Destroy(executable=loop)
    p.wait(done)
    assert float(p.get(out)) == pytest.approx(FIXED_POINT)
    p.destroy(out)


@pytest.mark.parametrize("synchronous", [0, 1])
def test_a_donated_buffer_is_deleted_and_its_memory_used(p, synchronous):
    client = p.client(synchronous=synchronous)
    exe = p.compile(client, GIVEN)
    ones = np.ones(65536, np.float32)
    a, b = p.put(client, ones)[0], p.put(client, ones)[0]
    where = p.Buffer_UnsafePointer(buffer=a).buffer_pointer
    (out,), done = p.run(exe, a, b)
    assert p.deleted(a) and not p.deleted(b)
    p.wait(done)
    assert p.Buffer_UnsafePointer(buffer=out).buffer_pointer == where
    assert (p.get(out) == 2).all()
    with pytest.raises(plugin.Failed, match="deleted or donated") as failed:
        p.run(exe, a, b)
    assert failed.value.code == 3
    p.destroy(a, b, out)
    p.LoadedExecutable_Destroy(executable=exe)
    p.Client_Destroy(client=client)


def test_a_donated_buffer_that_others_look_at_stays_as_it_is(p, client):
    exe = p.compile(client, GIVEN)
    ones = np.ones(65536, np.float32)
    a, b = p.put(client, ones)[0], p.put(client, ones)[0]
    p.Buffer_IncreaseExternalReferenceCount(buffer=a)
    where = p.Buffer_OpaqueDeviceMemoryDataPointer(buffer=a).device_memory_ptr
    (out,), done = p.run(exe, a, b)
    p.wait(done)
    assert p.deleted(a)
    assert set((ctypes.c_float * 65536).from_address(where)) == {1.0}
    assert (p.get(out) == 2).all()
    p.Buffer_DecreaseExternalReferenceCount(buffer=a)
    p.destroy(a, b, out)
    p.LoadedExecutable_Destroy(executable=exe)


def test_what_must_not_be_donated_is_kept(p, client):
    exe = p.compile(client, GIVEN)
    ones = np.ones(65536, np.float32)
    a, b = p.put(client, ones)[0], p.put(client, ones)[0]
    (out,), done = p.run(exe, a, b, keep=[0])
    p.wait(done)
    assert not p.deleted(a) and (p.get(a) == 1).all() and (p.get(out) == 2).all()
    p.destroy(a, b, out)
    p.LoadedExecutable_Destroy(executable=exe)


SECOND = GIVEN.replace(" {tf.aliasing_output = 0 : i32}", "").replace("%b: tensor<65536xf32>", "%b: tensor<65536xf32> {tf.aliasing_output = 0 : i32}")


@pytest.mark.parametrize(("program", "text"), [(GIVEN, "previously donated in the same call"), (SECOND, "also used by the same call")])
def test_a_buffer_is_not_donated_and_used_in_one_call(p, client, program, text):
    """The texts are XLA's, which takes arguments in their order."""
    exe = p.compile(client, program)
    a = p.put(client, np.ones(65536, np.float32))[0]
    with pytest.raises(plugin.Failed, match=text):
        p.run(exe, a, a)
    assert not p.deleted(a)
    p.destroy(a)
    p.LoadedExecutable_Destroy(executable=exe)


def test_wrong_arguments_are_errors(p):
    client = p.client(num_devices=2)
    exe = p.compile(client, ADD)
    a, other = p.put(client, np.ones(4, np.float32))[0], p.put(client, np.ones(4, np.float32), device=p.devices(client)[1])[0]
    wide, real = p.put(client, np.ones(5, np.float32))[0], p.put(client, np.ones(4))[0]
    for arguments, text in [((a,), "takes 2 arguments; 1 are given"), ((a, wide), r"argument 1 of add is f32\[5\]; the program takes f32\[4\]"),
                            ((a, real), r"is f64\[4\]"), ((a, other), r"is on XlacDevice\(id=1\); the program runs on XlacDevice\(id=0\)"),
                            ((a, None), "argument 1 of add is NULL")]:
        with pytest.raises(plugin.Failed, match=text) as failed:
            p.run(exe, *arguments)
        assert failed.value.code == 3
    p.destroy(a, wide, real, other)
    p.LoadedExecutable_Destroy(executable=exe)
    p.Client_Destroy(client=client)


@pytest.mark.parametrize("text, code", [("module {", 3), (b"ML\xefR nonsense", 3), ("", 3)])
def test_a_program_that_is_none_is_an_error(p, client, text, code):
    with pytest.raises(plugin.Failed) as failed:
        p.compile(client, text)
    assert failed.value.code == code and "XLAC-E" in str(failed.value)


@pytest.mark.parametrize("options, text", [
    (option("xlac_numerics", "fast"), None), (option("xlac_threads", "1"), None), (option("xla_dump_to", "/tmp"), None),
    (option("invalid_key", "invalid_value"), "No such compile option: 'invalid_key'"),
    (option("xla_embed_ir_in_executable", "invalid_value"), "'invalid_value' is not a valid bool value"),
    (option("xlac_numerics", "sloppy"), "neither"), (b"\x3a\xff", "CompileOptionsProto"),
    (proto((3, proto((4, 1), (5, 2)))), "is for device 1; devices are 0 to 0"), (proto((3, proto((9, proto((3, proto((1, 7)))))))), "is for device 7"),
])
def test_compile_options_are_read_and_unknown_ones_refused(p, client, options, text):
    if text is None:
        p.LoadedExecutable_Destroy(executable=p.compile(client, ADD, options))
        return
    with pytest.raises(plugin.Failed, match=text):
        p.compile(client, ADD, options)


def test_a_saved_program_runs_again_and_a_damaged_one_is_an_error(p, client):
    exe = p.compile(client, ADD)
    inner = p.LoadedExecutable_GetExecutable(loaded_executable=exe).executable
    saved = p.Executable_Serialize(executable=inner)
    data = ctypes.string_at(saved.serialized_bytes, saved.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(saved.serialized_executable_deleter)(saved.serialized_executable)
    p.Executable_Destroy(executable=inner)
    p.LoadedExecutable_Destroy(executable=exe)
    again = p.Executable_DeserializeAndLoad(client=client, serialized_executable=ctypes.cast(data, ctypes.c_void_p),
                                            serialized_executable_size=len(data)).loaded_executable
    a = p.put(client, np.arange(4, dtype=np.float32))[0]
    (out,), done = p.run(again, a, a)
    p.wait(done)
    assert p.get(out).tolist() == [0, 2, 4, 6]
    p.destroy(a, out)
    p.LoadedExecutable_Destroy(executable=again)
    for bad in (b"", data[:70], data[:-1], data[:200] + b"?" + data[201:], b"x" * 100):
        with pytest.raises(plugin.Failed):
            p.Executable_DeserializeAndLoad(client=client, serialized_executable=ctypes.cast(bad, ctypes.c_void_p), serialized_executable_size=len(bad))


def test_devices_are_as_many_as_asked_for_and_share_programs(p):
    client = p.client(num_devices=3)
    devices = p.devices(client)
    names = [p.DeviceDescription_ToString(device_description=p.Device_GetDescription(device=d).device_description) for d in devices]
    assert [ctypes.string_at(n.to_string, n.to_string_size) for n in names] == [b"XlacDevice(id=0)", b"XlacDevice(id=1)", b"XlacDevice(id=2)"]
    exe = p.compile(client, ADD)
    for device in devices:
        a = p.put(client, np.ones(4, np.float32), device=device)[0]
        (out,), done = p.run(exe, a, a, device=device)
        p.wait(done)
        assert p.Buffer_Device(buffer=out).device == device and p.get(out).tolist() == [2] * 4
        p.destroy(a, out)
    p.LoadedExecutable_Destroy(executable=exe)
    p.Client_Destroy(client=client)
    with pytest.raises(plugin.Failed, match="a number from 1 to 1024"):
        p.client(num_devices=0)
    with pytest.raises(plugin.Failed, match="no table of the client.s"):
        p.client(num_nodes=2)
    with pytest.raises(plugin.Failed, match="process 2 of 2"):
        p.client(num_nodes=2, node_id=2)


def fields(data):
    """(number, value) of a message's, with value an int or bytes."""
    def varint(at):
        end = next(i for i in range(at, len(data)) if data[i] < 0x80) + 1
        return sum((b & 0x7F) << 7 * i for i, b in enumerate(data[at:end])), end
    at = 0
    while at < len(data):
        tag, at = varint(at)
        value, at = varint(at) if tag & 7 in (0, 2) else (data[at:at + (8 if tag & 7 == 1 else 4)], at + (8 if tag & 7 == 1 else 4))
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


@pytest.mark.parametrize("results", [1, 2])
def test_the_optimised_program_says_what_each_device_has(p, results):
    """Clients that don't ask the shardings' extension read it there: an OpSharding of the results, a tuple if they are several, and of each parameter."""
    client = p.client(num_devices=2)
    cut = 'tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}'
    body = f"return {', '.join(['%a'] * results)} : {', '.join(['tensor<4xf32>'] * results)}"
    text = (f'module @cut {{ sdy.mesh @m = <["x"=2]> func.func public @main(%a: {cut}, %b: tensor<f32>) -> ({", ".join([cut] * results)}) {{ {body} }} }}')
    assignment = proto((1, 1), (2, 2), (3, proto((1, 0))), (3, proto((1, 1))))
    exe = p.compile(client, text, proto((3, proto((4, 1), (5, 2), (9, assignment)))))
    one = p.LoadedExecutable_GetExecutable(loaded_executable=exe).executable
    program = plugin.Program(ctypes.sizeof(plugin.Program))
    size = p.Executable_OptimizedProgram(executable=one, program=ctypes.addressof(program)) and program.code_size
    room = ctypes.create_string_buffer(size)
    program.code = ctypes.cast(room, ctypes.c_char_p)
    p.Executable_OptimizedProgram(executable=one, program=ctypes.addressof(program))
    (_, module), (_, config) = fields(room.raw)
    tiled = dict(fields(next(v for n, v in fields(module) if n == 12)))
    parameters = [v for n, v in fields(module) if n == 14]
    assert len(parameters) == 2 and parameters[1] == b""  # the second one is whole
    assert dict(fields(parameters[0]))[1] == 3 and (tiled == dict(fields(parameters[0])) if results == 1 else tiled == {1: 2, 5: parameters[0]})
    assert {n: v for n, v in fields(config) if n in (4, 5)} == {4: 1, 5: 2}
    p.Executable_Destroy(executable=one)
    p.LoadedExecutable_Destroy(executable=exe)
    p.Client_Destroy(client=client)
