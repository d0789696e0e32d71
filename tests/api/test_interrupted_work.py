"""xlac_set_interrupt and the hook of runs: asked often enough whatever the work is, heeded at any question, nothing lost."""
import pytest

OPS = 20_000
CHAIN = ("HloModule m\nENTRY e {\n  p0 = f32[8] parameter(0)\n" +
         "".join(f"  p{i} = f32[8] {'sine' if i % 3 else 'negate'}(p{i - 1})\n" for i in range(1, OPS)) + f"  ROOT r = f32[8] negate(p{OPS - 1})\n}}\n")


class Hook:
    """Counts questions; says stop at number `at` (from 1)."""

    def __init__(self, x):
        self.x, self.asked, self.at = x, 0, 0

        @x.ffi.def_extern(name="on_interrupted")
        def on_interrupted(ctx):
            self.asked += 1
            return self.asked == self.at

    def run(self, call, at=0):
        self.asked, self.at = 0, at
        hook = self.x.ffi.new("xlac_interrupt *", {"interrupted": self.x.lib.on_interrupted})
        before = self.x.lib.xlac_set_interrupt(hook[0])
        assert before.interrupted == self.x.ffi.NULL
        try:
            return call()
        finally:
            assert self.x.lib.xlac_set_interrupt(before).interrupted == self.x.lib.on_interrupted


def calls(x, m):
    """Name: (call, how to free what it gives)."""
    ffi, lib = x.ffi, x.lib
    raw, module, text, n, number = CHAIN.encode(), ffi.new("xlac_module **"), ffi.new("char **"), ffi.new("size_t *"), ffi.new("uint64_t *")
    exe, null = ffi.new("xlac_executable **"), ffi.NULL

    def verify():
        lib.xlac_module_set_name(m, b"m", x.err)  # an edit: what is verified is not verified again
        op = x.op(m, "r")
        x.check(lib.xlac_op_rename(m, op, b"r", x.err))
        return lib.xlac_module_verify(m, null, x.err)
    return {
        "parse": (lambda: lib.xlac_module_parse(module, raw, len(raw), null, x.err), lambda: lib.xlac_module_destroy(module[0])),
        "clone": (lambda: lib.xlac_module_clone(module, m, x.err), lambda: lib.xlac_module_destroy(module[0])),
        "verify": (verify, lambda: None),
        "fingerprint": (lambda: lib.xlac_module_fingerprint(m, number, x.err), lambda: None),
        "print": (lambda: lib.xlac_module_print(m, null, text, n, x.err), lambda: lib.xlac_free(text[0])),
        "to_stablehlo": (lambda: lib.xlac_module_to_stablehlo(module, m, x.err), lambda: lib.xlac_module_destroy(module[0])),
        "compile": (lambda: lib.xlac_compile(m, null, exe, x.err), lambda: lib.xlac_executable_destroy(exe[0])),
    }


@pytest.mark.parametrize("what", ["parse", "clone", "fingerprint", "print", "to_stablehlo", "compile"])
def test_a_call_is_stopped_at_any_question_and_loses_nothing(x, what):
    m = x.parse(CHAIN)
    text, hook = x.print_module(m), Hook(x)
    call, free = calls(x, m)[what]
    x.check(call())  # what a first call finds out of the module, a second one need not ask again
    free()
    x.check(hook.run(call))
    free()
    questions = hook.asked
    assert questions >= OPS * 16 // (1 << 21) + 1, "asked at least once"
    for at in sorted({1, questions // 2 or 1, questions}):
        x.fails(hook.run(call, at), 402)
        assert hook.asked == at, "nobody is asked again"
    assert x.print_module(m) == text
    x.check(call())
    free()
    x.lib.xlac_module_destroy(m)


def test_the_number_of_questions_grows_with_the_work(x):
    def asked(ops):
        raw, out = CHAIN.replace("ENTRY", "ENTRY")[:CHAIN.index(f"  p{ops} =")].encode(), x.ffi.new("xlac_module **")
        raw += f"  ROOT r = f32[8] negate(p{ops - 1})\n}}\n".encode()
        hook = Hook(x)
        x.check(hook.run(lambda: x.lib.xlac_module_parse(out, raw, len(raw), x.ffi.NULL, x.err)))
        parsing, m = hook.asked, out[0]
        x.check(hook.run(lambda: x.lib.xlac_module_verify(m, x.ffi.NULL, x.err)))
        x.lib.xlac_module_destroy(m)
        return parsing, hook.asked
    small, large = asked(2000), asked(16000)
    assert large[0] >= small[0] + 2 and large[1] >= 6 * max(small[1], 1)
    assert large[1] >= 16000 // 256, "verifying asks once for at most 256 ops"


N = 1 << 22
LONG = {
    "iota": f"  ROOT r = s8[{N}] iota(), iota_dimension=0",
    "iota of rows": f"  ROOT r = s8[2,{N // 2}] iota(), iota_dimension=0",
    "bitcast-convert of narrow": f"  i = s4[{N}] iota(), iota_dimension=0\n  ROOT r = s8[{N // 2}] bitcast-convert(v)".replace("(v)", "(w)").replace(
        "\n", f"\n  w = s4[{N // 2},2] reshape(i)\n", 1),
    "reverse": f"  i = s8[{N}] iota(), iota_dimension=0\n  ROOT r = s8[{N}] reverse(i), dimensions={{0}}",
    "concatenate": f"  i = s8[{N}] iota(), iota_dimension=0\n  ROOT r = s8[{2 * N}] concatenate(i, i), dimensions={{0}}",
    "topk": f"  i = s8[{N}] iota(), iota_dimension=0\n  ROOT r = (s8[3], s32[3]) topk(i), k=3, largest=true",
    "sort": f"  i = s8[{N}] iota(), iota_dimension=0\n  ROOT r = s8[{N}] sort(i), dimensions={{0}}, to_apply=less",
}
LESS = "less {\n  a = s8[] parameter(0)\n  b = s8[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n"


@pytest.mark.parametrize("what", LONG)
def test_the_interpreter_asks_after_a_bounded_number_of_elements(x, what):
    m = x.parse(f"HloModule m\n{LESS if what == 'sort' else ''}ENTRY e {{\n{LONG[what]}\n}}\n")
    hook, out = Hook(x), x.ffi.new("xlac_value **")
    options = x.options("xlac_interpret_options", {"interrupted": x.lib.on_interrupted})

    def run(at):
        hook.asked, hook.at = 0, at
        return x.lib.xlac_interpret(m, options, 0, x.ffi.NULL, out, x.err)
    x.check(run(0))
    x.lib.xlac_value_release(out[0])
    assert hook.asked >= N // (1 << 20) - 1, "a question for at most 2^20 elements of the result"
    questions = hook.asked
    for at in sorted({1, questions // 2, questions}):
        x.fails(run(at), 402)
        assert hook.asked == at
    x.lib.xlac_module_destroy(m)
