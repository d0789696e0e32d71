"""NVRTC, where its wheel is installed (nvidia-cuda-nvrtc), makes machine code of printed kernels for each architecture; it needs no GPU."""
import ctypes
import importlib.util
import pathlib

import pytest

import cubins
import gpu
import test_cuda_attention as attention
import test_cuda_attention_grad as gradients
import test_cuda_programs as programs
import test_cuda_sort_scatter as indexed
import xlac

ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    """Which would have products, so that they had no kernels."""
    monkeypatch.setenv("XLAC_CUBLASLT", "0")


def nvrtc():
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.1[23]")):
            return ctypes.CDLL(str(path))
    pytest.skip("the package nvidia-cuda-nvrtc is not installed")


def machine_code(library, source, architecture):
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    options = [o.encode() for o in (f"--gpu-architecture={architecture}", "--fmad=false", "--std=c++17", "--device-int128")]
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(n))
    log = ctypes.create_string_buffer(n.value)
    library.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()[:3000]
    assert library.nvrtcGetCUBINSize(program, ctypes.byref(n)) == 0 and n.value > 500
    code = ctypes.create_string_buffer(n.value)
    assert library.nvrtcGetCUBIN(program, code) == 0
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def source_of(text):
    report = str(xlac.compile(text, device="cuda").explain("fusion"))
    return report[report.index("typedef signed char int8_t;"):]


def normalised(t, columns):
    """Rows less their mean, by the root of their variance; and a softmax of the same rows."""
    a, r = f"{t}[2048,{columns}]", f"{t}[2048]"
    lines = [f"x = {a} parameter(0)", f"z = {t}[] constant(0)", f"n = {t}[] constant({columns})", f"least = {t}[] constant(-inf)",
             f"nn = {r} broadcast(n), dimensions={{}}", f"s = {r} reduce(x, z), dimensions={{1}}, to_apply=r_add",
             f"mean = {r} divide(s, nn)", f"mm = {a} broadcast(mean), dimensions={{0}}", f"d = {a} subtract(x, mm)", f"v = {a} multiply(d, d)",
             f"vs = {r} reduce(v, z), dimensions={{1}}, to_apply=r_add", f"vn = {r} divide(vs, nn)", f"root = {r} sqrt(vn)",
             f"rr = {a} broadcast(root), dimensions={{0}}", f"o = {a} divide(d, rr)", f"m = {r} reduce(o, least), dimensions={{1}}, to_apply=r_maximum",
             f"most = {a} broadcast(m), dimensions={{0}}", f"l = {a} subtract(o, most)", f"e = {a} exponential(l)",
             f"es = {r} reduce(e, z), dimensions={{1}}, to_apply=r_add", f"ee = {a} broadcast(es), dimensions={{0}}", f"ROOT q = {a} divide(e, ee)"]
    return programs.program(*lines, computations=programs.reducer("add", t) + programs.reducer("maximum", t))


SOURCES = {
    "elementwise": programs.program("x = f32[64,64] parameter(0)", "a = f32[64,64] tanh(x)", "b = bf16[64,64] convert(a)", "c = bf16[64,64] exponential(b)",
                                    "ROOT r = f32[64,64] convert(c)"),
    "rows": programs.program("x = f32[9,2570] parameter(0)", "z = f32[] constant(0)", "e = f32[9,2570] exponential(x)",
                             "ROOT s = f32[9] reduce(e, z), dimensions={1}, to_apply=r_add", computations=programs.reducer("add", "f32")),
    "product": programs.program("x = f32[70,33] parameter(0)", "y = f32[33,90] parameter(1)",
                                "ROOT d = f32[70,90] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "tensor product": programs.program("x = bf16[700,330] parameter(0)", "y = bf16[330,2900] parameter(1)",
                                       "ROOT d = bf16[700,2900] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "product and more": programs.program(
        "x = bf16[700,128] parameter(0)", "y = bf16[128,2900] parameter(1)", "b = bf16[2900] parameter(2)",
        "d = bf16[700,2900] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "bb = bf16[700,2900] broadcast(b), dimensions={1}",
        "s = bf16[700,2900] add(d, bb)", "f = f32[700,2900] convert(s)", "t = f32[700,2900] tanh(f)", "g = f32[700,2900] multiply(f, t)",
        "ROOT r = bf16[700,2900] convert(g)"),
    "attention f32": attention.program("f32", rows=512, keys=512, depth=64, width=64),
    "attention bf16": attention.program("bf16", rows=512, keys=512, depth=128, width=128, between=attention.SCALED, x="x"),
    "wide": programs.program("x = s64[70] parameter(0)", "y = s64[70] parameter(1)", "p = s64[70] power(x, y)", "ROOT d = s64[70] divide(p, y)"),
    "sort": indexed.sort("4,3000", ["f32", "s32"], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of short lines": indexed.sort("4,500", ["bf16"], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of long lines": indexed.sort("4,8192", ["f32"], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of f64": indexed.sort("4,4096", ["f64"], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of f64 and more": indexed.sort("4,8000", ["f64", "s32", "u8"], 1, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of one line": indexed.sort("1000000", ["f32"], 0, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "sort of one line and more": indexed.sort("1000000", ["f64", "s32"], 0, "compare(p0, p1), direction=LT, type=TOTALORDER"),
    "scatter of rows": indexed.scatter("bf16", 50, 64, 300), "histogram": indexed.scatter("s64", 50, 64, 300, "maximum", window=False)}
def roots(rounds=4):
    """Newton's rounds towards the root x of x - e sin x = m, and an angle of it."""
    lines, x = [], "m"
    for i in range(rounds):
        steps = [("si", f"sine({x})"), ("es", f"multiply(h, si{i})"), ("w", f"subtract({x}, es{i})"), ("b", f"subtract(w{i}, m)"), ("co", f"cosine({x})"),
                 ("ec", f"multiply(h, co{i})"), ("d", f"subtract(ones, ec{i})"), ("q", f"divide(b{i}, d{i})"), ("x", f"subtract({x}, q{i})")]
        lines += [f"{name}{i} = f64[5000] {op}" for name, op in steps]
        x = f"x{i}"
    return programs.program("e = f64[5000] parameter(0)", "m = f64[5000] parameter(1)", "t = f64[5000] parameter(2)", "one = f64[] constant(1)",
                            "half = f64[] constant(0.5)", "ones = f64[5000] broadcast(one), dimensions={}", "halves = f64[5000] broadcast(half), dimensions={}",
                            "h = f64[5000] multiply(halves, e)", *lines, "p = f64[5000] add(ones, h)", "pr = f64[5000] sqrt(p)", "n = f64[5000] subtract(ones, h)",
                            "nr = f64[5000] sqrt(n)", f"hx = f64[5000] multiply({x}, halves)", "sx = f64[5000] sine(hx)", "cx = f64[5000] cosine(hx)",
                            "y = f64[5000] multiply(pr, sx)", "z = f64[5000] multiply(nr, cx)", "two = f64[] constant(2)", "twos = f64[5000] broadcast(two), dimensions={}",
                            "at = f64[5000] atan2(y, z)", "angle = f64[5000] multiply(twos, at)", "hh = f64[5000] multiply(h, h)",
                            "rest = f64[5000] subtract(ones, hh)", "far = f64[5000] multiply(t, rest)", "ca = f64[5000] cosine(angle)",
                            "ha = f64[5000] multiply(h, ca)", "near = f64[5000] add(ones, ha)", "o = f64[5000] divide(far, near)",
                            "ROOT r = (f64[5000], f64[5000]) tuple(angle, o)")


SPILLED = {  # by ptxas' own choice of registers at sm_90
    "roots": roots(),
    "bytes and more": programs.program(
        "x = s8[16,32] parameter(0)", "y = s8[32,32] parameter(1)", "f = f32[16] parameter(2)", "g = f32[32] parameter(3)",
        "d = s32[16,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "w = f32[16,32] convert(d)",
        "ff = f32[16,32] broadcast(f), dimensions={0}", "gg = f32[16,32] broadcast(g), dimensions={1}", "a = f32[16,32] multiply(w, ff)",
        "b = f32[16,32] multiply(a, gg)", "z = f32[] constant(0)", "zz = f32[16,32] broadcast(z), dimensions={}", "ROOT r = f32[16,32] maximum(b, zz)")}
MOST = {"tensor product": 168, "product and more": 224, "attention bf16": 232, "attention f32": 224}  # registers


@pytest.mark.parametrize("name", SOURCES)
def test_kernels_become_machine_code_for_each_architecture(name):
    library = nvrtc()
    gpu.use()
    source = source_of(SOURCES[name])
    for architecture in ARCHITECTURES:
        assert machine_code(library, source, architecture)[:4] == b"\x7fELF"


def test_standard_kernels_do_not_spill():
    library = nvrtc()
    gpu.use()
    rows = {f"{t} rows of {n}": normalised(t, n) for t, n in (("f32", 768), ("f32", 1024), ("bf16", 4096))}
    for name, text in (SOURCES | rows | SPILLED).items():
        code, log = cubins.compiled(library, source_of(text).encode(), "sm_90")
        found = cubins.kernels(log)
        assert code[:4] == b"\x7fELF" and found, name
        assert all(0 < registers <= MOST.get(name, 128) and spills == 0 for _, registers, spills, _ in found), (name, found)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("wide", [24, 32, 48, 64, 80, 128])
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_gradients_of_attention_do_not_spill(t, wide, causal):
    """Of these ptxas' own choice of registers spills some: with all that a block may have none does, on any architecture."""
    gpu.use()
    text = gradients.program(t, batch=(2, 3), rows=512, keys=512, depth=wide, width=wide, causal=causal)
    report = str(xlac.compile(text, device="cuda", numerics="fast").explain("fusion"))
    source = report[report.index("typedef signed char int8_t;"):].encode()
    for architecture in ARCHITECTURES if wide in (32, 64) else ["sm_90"]:
        code, log = cubins.compiled(nvrtc(), source, architecture)
        found = cubins.kernels(log)
        assert code and len(found) == 6 and all(spills == 0 for _, _, spills, _ in found), (architecture, found)


@pytest.mark.parametrize("dims, types", [("4,1000", ["f64", "s32"]), ("4,1000", ["bf16"]), ("4,3000", ["s16", "s32", "s32"])])
def test_sorts_do_not_spill(dims, types):
    """A block's sort names how many blocks are to run beside one another; where registers don't do for them, it may be half as many."""
    gpu.use()
    order = "compare(p0, p1), direction=LT" + (", type=TOTALORDER" if types[0][0] != "s" else "")
    source = source_of(indexed.sort(dims, types, 1, order)).encode()
    for architecture in ("sm_90", "sm_100", "sm_120"):
        code, log = cubins.compiled(nvrtc(), source, architecture)
        found = cubins.kernels(log)
        assert code and found and all(spills == 0 for _, _, spills, _ in found), (architecture, found)


def test_all_functions_of_the_prelude_become_machine_code():
    from test_prelude import prelude

    rows, _ = prelude().table()
    head = "".join(f"typedef {c} {t};\n" for c, t in (("signed char", "int8_t"), ("short", "int16_t"), ("int", "int32_t"), ("long long", "int64_t"),
                                                      ("unsigned char", "uint8_t"), ("unsigned short", "uint16_t"), ("unsigned int", "uint32_t"),
                                                      ("unsigned long long", "uint64_t")))
    head += "template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack { T e[N]; };\n"
    source = head + "".join(prelude().definition(text) for text, _ in rows.values())
    machine_code(nvrtc(), source + 'extern "C" __global__ void k(float *p) { p[0] = op_EXP_F32(p[1]); }\n', "sm_90")
