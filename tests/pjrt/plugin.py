"""A driver for the plugin alone: the structs of csrc/pjrt/slots.def as ctypes, and calls of its slots. Needs no JAX."""
import ctypes
import pathlib
import re

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBERS = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "int32_t": ctypes.c_int32, "int": ctypes.c_int,
           "bool": ctypes.c_bool, "uintptr_t": ctypes.c_size_t, "intptr_t": ctypes.c_ssize_t}
ENUMS = ("PJRT_Error_Code", "PJRT_Buffer_Type", "PJRT_HostBufferSemantics")
TYPES = {"bool": 1, "int8": 2, "int32": 4, "int64": 5, "uint8": 6, "float16": 10, "float32": 11, "float64": 12, "complex64": 14}


class Layout(ctypes.Structure):
    """PJRT_Buffer_MemoryLayout, tiled."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("inner_size", ctypes.c_size_t),
                ("inner_extension", ctypes.c_void_p), ("minor_to_major", ctypes.c_void_p), ("rank", ctypes.c_size_t),
                ("tile_dims", ctypes.c_void_p), ("tile_dim_sizes", ctypes.c_void_p), ("num_tiles", ctypes.c_size_t), ("type", ctypes.c_int)]


class NamedValue(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_size_t), ("type", ctypes.c_int), ("value", ctypes.c_void_p), ("value_size", ctypes.c_size_t)]


class Program(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("code", ctypes.c_char_p),
                ("code_size", ctypes.c_size_t), ("format", ctypes.c_char_p), ("format_size", ctypes.c_size_t)]


class ExecuteOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("send", ctypes.c_void_p), ("recv", ctypes.c_void_p),
                ("n_send", ctypes.c_size_t), ("n_recv", ctypes.c_size_t), ("launch_id", ctypes.c_int), ("keep", ctypes.c_void_p),
                ("n_keep", ctypes.c_size_t), ("context", ctypes.c_void_p), ("call_location", ctypes.c_char_p), ("n_tasks", ctypes.c_size_t),
                ("task_ids", ctypes.c_void_p), ("incarnations", ctypes.c_void_p), ("multi_slice", ctypes.c_void_p), ("major", ctypes.c_bool),
                ("hlo_callbacks", ctypes.c_void_p), ("n_hlo_callbacks", ctypes.c_size_t)]


def c_type(text):
    if text.endswith("*") or "(*" in text or text.endswith(("Callback", "Visitor")):
        return ctypes.c_void_p
    return ctypes.c_int if text in ENUMS else Layout if text == "PJRT_Buffer_MemoryLayout" else NUMBERS[text]


def field(text):
    """(name, type) of one declaration of slots.def."""
    pointer = re.search(r"\(\*(\w+)\)", text)
    if pointer:
        return pointer[1], ctypes.c_void_p
    kind, name = re.fullmatch(r"(.*?[\s*])(\w+)", text.strip(), re.S).groups()
    return name, c_type(kind.replace("const", "").replace(" ", ""))


def slots():
    """(how, name, size, last field, fields) for each row, in order."""
    text = (ROOT / "csrc/pjrt/slots.def").read_text()
    for how, row in re.findall(r"^(SLOT|VOID|ABSENT)\((.*?)\)\n(?=SLOT|VOID|ABSENT|\Z)", text, re.M | re.S):
        parts = [p.strip() for p in row.split(",", 3 if how == "ABSENT" else 4)]
        if how != "ABSENT":
            del parts[1]
        name, size, last, rest = parts
        yield how, name, int(size), last, [field(f) for f in re.split(r";\s*", rest) if f.strip()]


def make_struct(name, fields):
    head = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
    return type(f"PJRT_{name}_Args", (ctypes.Structure,), {"_fields_": head + fields})


SLOTS = list(slots())
STRUCTS = {name: make_struct(name, fields) for _, name, _, _, fields in SLOTS}


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Plugin:
    """The slots as methods: p.Client_Devices(client=c) gives the struct after the call."""

    def __init__(self, path):
        library = ctypes.CDLL(str(path))
        library.GetPjrtApi.restype = ctypes.c_void_p
        self.address = library.GetPjrtApi()
        self.pointers = (ctypes.c_void_p * len(SLOTS)).from_address(self.address + 40)
        self.functions = {}
        for (how, name, *_), pointer in zip(SLOTS, self.pointers):
            self.functions[name] = ctypes.CFUNCTYPE(None if how == "VOID" else ctypes.c_void_p, ctypes.POINTER(STRUCTS[name]))(pointer)

    def __getattr__(self, name):
        if name not in STRUCTS:
            raise AttributeError(name)
        return lambda **fields: self.call(name, **fields)

    def call(self, name, **fields):
        args = STRUCTS[name](struct_size=ctypes.sizeof(STRUCTS[name]), **fields)
        error = self.functions[name](args)
        if error:
            raise self.take(error)
        return args

    def take(self, error):
        text = self.Error_Message(error=error)
        failed = Failed(self.Error_GetCode(error=error).code, ctypes.string_at(text.message, text.message_size).decode())
        self.Error_Destroy(error=error)
        return failed

    # --- what tests do again and again ---

    def client(self, **options):
        values = (NamedValue * (len(options) or 1))()
        for value, (name, given) in zip(values, options.items()):
            text = name.encode()
            value.struct_size, value.name, value.name_size = ctypes.sizeof(NamedValue), text, len(text)
            if isinstance(given, str):
                value.type, value.value, value.value_size = 0, ctypes.cast(ctypes.c_char_p(given.encode()), ctypes.c_void_p), len(given.encode())
            else:
                value.type, value.value, value.value_size = 1, given, 1
        return self.Client_Create(create_options=ctypes.addressof(values), num_options=len(options)).client

    def devices(self, client):
        got = self.Client_Devices(client=client)
        return list((ctypes.c_void_p * got.num_devices).from_address(got.devices))

    def compile(self, client, text, options=b""):
        code = text if isinstance(text, bytes) else text.encode()
        program = Program(ctypes.sizeof(Program), None, code, len(code), b"mlir", 4)
        return self.Client_Compile(client=client, program=ctypes.addressof(program), compile_options=ctypes.cast(options, ctypes.c_void_p),
                                   compile_options_size=len(options)).executable

    def put(self, client, array, device=None, semantics=0):
        device = device or self.devices(client)[0]
        dims, strides = (ctypes.c_int64 * (array.ndim or 1))(*array.shape), (ctypes.c_int64 * (array.ndim or 1))(*array.strides)
        got = self.Client_BufferFromHostBuffer(client=client, data=array.ctypes.data, type=TYPES[array.dtype.name], dims=ctypes.addressof(dims),
                                               num_dims=array.ndim, byte_strides=ctypes.addressof(strides), num_byte_strides=array.ndim,
                                               host_buffer_semantics=semantics, device=device)
        return got.buffer, got.done_with_host_buffer

    def get(self, buffer):
        shape = self.Buffer_Dimensions(buffer=buffer)
        dims = list((ctypes.c_int64 * shape.num_dims).from_address(shape.dims)) if shape.num_dims else []
        number = self.Buffer_ElementType(buffer=buffer).type
        out = np.empty(dims, next(name for name, n in TYPES.items() if n == number))
        self.wait(self.Buffer_ToHostBuffer(src=buffer, dst=out.ctypes.data, dst_size=out.nbytes).event)
        return out

    def wait(self, event):
        try:
            self.Event_Await(event=event)
        finally:
            self.Event_Destroy(event=event)

    def run(self, executable, *arguments, device=None, keep=()):
        """The results' buffers, and the event of the run."""
        inner = self.LoadedExecutable_GetExecutable(loaded_executable=executable).executable
        n = self.Executable_NumOutputs(executable=inner).num_outputs
        self.Executable_Destroy(executable=inner)
        args, outputs, event = (ctypes.c_void_p * (len(arguments) or 1))(*arguments), (ctypes.c_void_p * (n or 1))(), (ctypes.c_void_p * 1)()
        lists, results = (ctypes.c_void_p * 1)(ctypes.addressof(args)), (ctypes.c_void_p * 1)(ctypes.addressof(outputs))
        kept = (ctypes.c_int64 * (len(keep) or 1))(*keep)
        options = ExecuteOptions(struct_size=ctypes.sizeof(ExecuteOptions), keep=ctypes.addressof(kept), n_keep=len(keep))
        self.LoadedExecutable_Execute(executable=executable, options=ctypes.addressof(options), argument_lists=ctypes.addressof(lists), num_devices=1,
                                      num_args=len(arguments), output_lists=ctypes.addressof(results), execute_device=device,
                                      device_complete_events=ctypes.addressof(event))
        return list(outputs)[:n], event[0]

    def deleted(self, buffer):
        return self.Buffer_IsDeleted(buffer=buffer).is_deleted

    def destroy(self, *buffers):
        for buffer in buffers:
            self.Buffer_Destroy(buffer=buffer)
