"""Runs ask whether to stop after a bounded number of elements, whatever the op is: questions are counted, not timed. Each case has what
one op on N elements asks at the least, interpreted and compiled; its operands are arguments, so that nothing else asks."""
import pytest
from test_interrupted_work import Hook

N = 1 << 22
ROWS = 1 << 11
COMPUTATIONS = """add {
  a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = T[] add(a, b)
}
ge {
  a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}
same {
  ROOT a = T[N] parameter(0)
}
go {
  p = (s32[], T[N]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(1)
  ROOT q = pred[] compare(i, k), direction=LT
}
trip {
  p = (s32[], T[N]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = T[N] get-tuple-element(p), index=1
  k = s32[] constant(1)
  n = s32[] add(i, k)
  ROOT q = (s32[], T[N]) tuple(n, v)
}
"""
X = f"  x = T[{N}] parameter(0)\n"
SQUARE = f"  x = T[{ROWS},{N // ROWS}] parameter(0)\n"
ZERO = "  z = T[] constant(0)\n"
ONE_INDEX = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
MANY = 3  # questions for N elements gone through once, at the least; four less what is left at the ends

# name: (type, entry, questions of the interpreter, of the compiled program); None: quadratic there, and asked by other tests
CASES = {
    "result that is an argument": ("s8", X + f"  ROOT r = (T[{N}], T[{N}]) tuple(x, x)", 1, 8),
    "narrow argument": ("s4", X + f"  ROOT r = T[{N}] negate(x)", 2 * MANY, MANY),
    "reshape": ("s8", X + f"  ROOT r = T[{ROWS},{N // ROWS}] reshape(x)", 0, 8),
    "pad": ("s8", X + ZERO + f"  ROOT r = T[{2 * N - 1}] pad(x, z), padding=0_0_1", 3 * MANY, 12),
    "pad of little": ("s8", "  x = T[8] parameter(0)\n" + ZERO + f"  ROOT r = T[{N + 8}] pad(x, z), padding=0_{N}", MANY, 6),
    "dynamic-update-slice": ("s8", X + "  k = s32[] constant(3)\n  u = T[1] constant({1})\n" +
                             f"  y = T[{N}] dynamic-update-slice(x, u, k)\n  ROOT r = (T[{N}], T[{N}]) tuple(x, y)", 1, 8),
    "gather": ("s32", X + f"  i = T[{N},1] reshape(x)\n  ROOT r = T[{N}] gather(x, i), offset_dims={{}}, collapsed_slice_dims={{0}}, "
               "start_index_map={0}, index_vector_dim=1, slice_sizes={1}", 2 * MANY, 40),
    "scatter": ("s32", X + f"  i = T[{N},1] reshape(x)\n  y = T[{N}] scatter(x, i, x), {ONE_INDEX}\n  ROOT r = (T[{N}], T[{N}]) tuple(x, y)",
                2 * MANY, 8),
    "select-and-scatter": ("f32", X + ZERO + f"  s = T[{N // 2}] slice(x), slice={{[0:{N // 2}]}}\n  ROOT r = T[{N}] "
                           "select-and-scatter(x, s, z), window={size=2 stride=2}, select=ge, scatter=add", 12 * MANY, 100),
    "select-and-scatter of one window": ("f32", X + ZERO + f"  s = T[1] slice(x), slice={{[0:1]}}\n  ROOT r = T[{N}] "
                                       f"select-and-scatter(x, s, z), window={{size={N}}}, select=ge, scatter=add", 4 * MANY, 100),
    "scan": ("f32", X + ZERO + f"  ROOT r = T[{N}] reduce-window(x, z), window={{size={N} pad={N - 1}_0}}, to_apply=add", None, 40),
    "scan of lanes": ("f32", SQUARE + ZERO + f"  ROOT r = T[{ROWS},{N // ROWS}] reduce-window(x, z), "
                      f"window={{size={ROWS}x1 pad={ROWS - 1}_0x0_0}}, to_apply=add", None, 40),
    "one window": ("f32", X + ZERO + f"  ROOT r = T[1] reduce-window(x, z), window={{size={N}}}, to_apply=add", MANY, 40),
    "topk": ("s8", X + f"  ROOT r = (T[{N // 4}], s32[{N // 4}]) topk(x), k={N // 4}, largest=true", 36, 40),
    "dot of vectors": ("f32", X + "  ROOT r = T[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", 4 * MANY, 1),
    "outer product": ("f32", f"  x = T[{ROWS}] parameter(0)\n  ROOT r = T[{ROWS},{ROWS}] dot(x, x), lhs_contracting_dims={{}}, "
                      "rhs_contracting_dims={}", MANY, 8),
    "convolution": ("f32", f"  x = T[1,{N},1] parameter(0)\n  k = T[3,1,1] constant({{{{{{1}}}}, {{{{1}}}}, {{{{1}}}}}})\n" +
                    f"  ROOT r = T[1,{N - 2},1] convolution(x, k), window={{size=3}}, dim_labels=b0f_0io->b0f", 3 * MANY, 8),
    "batch-norm-inference": ("f32", f"  x = T[{N},1] parameter(0)\n  o = T[1] constant({{1}})\n" +
                             f"  ROOT r = T[{N},1] batch-norm-inference(x, o, o, o, o), epsilon=0.1, feature_index=1", 4 * MANY, 8),
    "batch-norm-training": ("f32", f"  x = T[{N},1] parameter(0)\n  o = T[1] constant({{1}})\n" +
                            f"  ROOT r = (T[{N},1], T[1], T[1]) batch-norm-training(x, o, o), epsilon=0.1, feature_index=1", 12 * MANY, 8),
    "triangular-solve": ("f32", f"  x = T[1,{N}] parameter(0)\n  a = T[1,1] constant({{{{1}}}})\n  ROOT r = T[1,{N}] triangular-solve(a, x), "
                         "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE", 4 * MANY, 8),
    "fft of many": ("f32", f"  x = T[{N}] parameter(0)\n  ROOT r = c64[{N // 2 + 1}] fft(x), fft_type=RFFT, fft_length={{{N}}}", 150, 8),
    "while": ("s8", X + f"  k = s32[] constant(0)\n  t = (s32[], T[{N}]) tuple(k, x)\n  w = (s32[], T[{N}]) while(t), condition=go, body=trip\n" +
              f"  y = T[{N}] get-tuple-element(w), index=1\n  ROOT r = (T[{N}], T[{N}]) tuple(x, y)", 1, 8),
    "call": ("s8", X + f"  y = T[{N}] call(x), to_apply=same\n  ROOT r = (T[{N}], T[{N}]) tuple(x, y)", 1, 8),
    "AllocateBuffer": ("s8", f"  ROOT r = T[{8 * N}] custom-call(), custom_call_target=\"AllocateBuffer\"", MANY, 8),
}


def arguments(x, m):
    """Zeros for the entry's parameters."""
    ffi, lib = x.ffi, x.lib
    text = x.print_module(m)
    entry = text[text.index("ENTRY"):]
    types = [line.split("= ")[1].split("{")[0].split(" ")[0] for line in entry.split("\n") if " parameter(" in line]
    values = []
    for t in types:
        dtype, dims = t[:-1].split("[")
        values.append(x.array(dtype, [int(d) for d in dims.split(",") if d], ffi.NULL))
    return ffi.new("xlac_value *[]", values or [ffi.NULL]), values


def questions(x, what, engine):
    """A function that runs the case, stopped at question `at` (0: never), and the hook that counts."""
    dtype, entry = CASES[what][:2]
    m = x.parse("HloModule m\n" + COMPUTATIONS.replace("T[", dtype + "[").replace("[N]", f"[{N}]") + "ENTRY e {\n" + entry.replace("T[", dtype + "[") + "\n}\n")
    lib, ffi, hook = x.lib, x.ffi, Hook(x)
    out, exe = ffi.new("xlac_value **"), ffi.new("xlac_executable **")
    options = x.options("xlac_interpret_options", {"interrupted": lib.on_interrupted})
    array, values = arguments(x, m)
    if engine == "compiled":
        x.check(lib.xlac_compile(m, x.options("xlac_compile_options", {"threads": 1}), exe, x.err))

    def run(at):
        hook.asked, hook.at = 0, at
        if engine == "compiled":
            return lib.xlac_executable_run(exe[0], options, len(values), array, out, x.err)
        return lib.xlac_interpret(m, options, len(values), array, out, x.err)

    def free():
        for v in values:
            lib.xlac_value_release(v)
        lib.xlac_executable_destroy(exe[0])
        lib.xlac_module_destroy(m)
    return run, hook, out, free


def check(x, what, engine, least):
    run, hook, out, free = questions(x, what, engine)
    x.check(run(0))
    x.lib.xlac_value_release(out[0])
    asked = hook.asked
    assert asked >= least, f"{asked} questions"
    for at in sorted({1, asked // 2 or 1, asked} if asked else ()):
        x.fails(run(at), 402)
        assert hook.asked == at, "nobody is asked again"
    free()


@pytest.mark.parametrize("what", [w for w in CASES if CASES[w][2] is not None])
def test_interpreted_ops_ask_after_a_bounded_number_of_elements(x, what):
    check(x, what, "interpreted", CASES[what][2])


@pytest.mark.parametrize("what", [w for w in CASES if CASES[w][3] is not None])
def test_compiled_ops_ask_after_a_bounded_number_of_elements(x, what):
    check(x, what, "compiled", CASES[what][3])

