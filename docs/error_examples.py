"""Examples of errors.md: for each code a program, or lines of Python, that meet it, and what to do. docs/generate.py runs them and shows what is said,
so no message on the page is written by hand. The codes that nothing can be made to meet say why."""
import textwrap

import numpy as np

import xlac

SMALL = "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"


def entry(*lines, header="", before=""):
    """A program with these ops."""
    return f"HloModule m{header}\n\n{before}ENTRY main {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


ADD = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"
X = "x = f32[4] parameter(0)"
PYTHON, TEXT = "python", "text"
# Code: (what the example is written in, the example, what to do). Text is parsed and verified; Python finds `small`, the program SMALL.
EXAMPLES = {
    "SYNTAX": (TEXT, entry(X, "ROOT y = f32[4] add(x, x"), "Go to the line and column; the message says what was expected there."),
    "UNKNOWN_OPCODE": (TEXT, entry(X, "ROOT y = f32[4] ad(x, x)"), "`xlac ops` lists all ops."),
    "UNKNOWN_NAME": (TEXT, entry(X, "ROOT y = f32[4] add(x, z)"), "Ops are defined before they are used; the names of parameters are those of this computation."),
    "DUPLICATE_NAME": (TEXT, entry(X, "y = f32[4] negate(x)", "ROOT y = f32[4] add(x, x)"), "Rename one of the two."),
    "BAD_ATTRIBUTE": (TEXT, entry(X, "ROOT y = f32[4,1] reshape(x), dimension={0}"), "`xlac ops reshape` says which attributes an op has."),
    "BAD_LITERAL": (TEXT, entry("ROOT y = s8[2] constant({1, 300})"), "Give a value that the element type has, and as many as the shape."),
    "BAD_SHAPE_TEXT": (TEXT, entry("ROOT x = f32[2,3]{0} parameter(0)"), "Shapes are `f32[2,3]`; behind them stands the layout, `{1,0}`, which names each dimension once, the minor one first."),
    "BAD_HEADER": (TEXT, entry(X, "ROOT y = f32[4] negate(x)", header=", input_output_alias={ 0 }"), "[aliasing.md](aliasing.md) and [formats.md](formats.md) show what stands in the header."),
    "BAD_SHARDING_TEXT": (TEXT, entry("ROOT x = f32[4] parameter(0), sharding={devices=[2]0,1,2}"), "[sharding.md](sharding.md) shows how shardings are written."),
    "CANNOT_INFER": (TEXT, entry(X, "ROOT y = reshape(x)"), "Write the type of the result."),
    "BAD_PROTO": (PYTHON, "xlac.parse(small.to_bytes('hlo-proto')[:40])", "Read the file as bytes, whole; `format=` names the format where it isn't recognised."),
    "VERIFY": (PYTHON, "xlac.parse('HloModule m\\nENTRY e { ROOT x = opaque[] parameter(0) }').to_stablehlo()", "The message says which rule of the op it is, or which form lacks it."),
    "VERIFY_SHAPE": (TEXT, entry(X, "ROOT y = f32[5] add(x, x)"), "Write the type that the operands give, or mend the operands."),
    "VERIFY_OPERANDS": (TEXT, entry(X, "ROOT y = f32[4] not(x)"), "The message says what the op takes: use `convert` for other element types."),
    "VERIFY_ATTRIBUTE": (TEXT, entry(X, "ROOT y = f32[4] reverse(x), dimensions={1}"), "`xlac ops reverse` says what the attribute may be."),
    "VERIFY_CALLED": (TEXT, entry("x = s32[4] parameter(0)", "zero = s32[] constant(0)", "ROOT y = s32[] reduce(x, zero), dimensions={0}, to_apply=sum", before=ADD),
                      "Give the computation the parameters and the result that its caller needs."),
    "VERIFY_ASYNC": (TEXT, entry("x = f32[4] parameter(0)", "ROOT s = (f32[4], f32[4], u32[]) copy-start(x)"), "Each start has one done; [async.md](async.md) shows chains."),
    "VERIFY_ALIAS": (TEXT, entry(X, "ROOT y = f32[4] negate(x)", header=", input_output_alias={ {}: (1, {}, may-alias) }"), "Parameters are counted from 0; [aliasing.md](aliasing.md)."),
    "VERIFY_STRUCTURE": (PYTHON, "xlac.parse('module {}').to_hlo()", "Give the module a function `@main`, or an ENTRY."),
    "VERIFY_LAYOUT": (TEXT, entry("ROOT x = f32[4]{0:T(0)} parameter(0)"), "Leave the layout out, or write one that the shape can have."),
    "VERIFY_SHARDING": (TEXT, entry("ROOT x = f32[4] parameter(0), sharding={devices=[2,2]0,1,2,3}"), "A sharding has a number of tiles for each dimension of the array."),
    "VERIFY_COLLECTIVE": (TEXT, entry(X, "ROOT y = f32[4] all-reduce(x), replica_groups={{0,0}}, to_apply=sum", before=ADD), "Each device is in one group, once."),
    "VERIFY_SCHEDULE": (None, "A module whose header says `is_scheduled=true` and which, after an edit or in a proto, lists an op before one that it needs.", "List operands and control predecessors first, or leave `is_scheduled` out."),
    "INFER": (TEXT, entry(X, "y = f32[5] parameter(1)", "ROOT z = f32[4] add(x, y)"), "HLO broadcasts nothing by itself: use `broadcast`."),
    "EVAL": (PYTHON, "xlac.parse('''func.func @main() -> tensor<2xf32> {\n  %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}''').to_hlo()", "The message names the op and what it met."),
    "UNKNOWN_CUSTOM_CALL": (PYTHON, "exe = xlac.compile('''" + entry(X, 'ROOT y = f32[4] custom-call(x), custom_call_target="mine"') + "''')\nexe(np.ones(4, np.float32))",
                            "Register it: [custom-calls.md](custom-calls.md)."),
    "INTERRUPTED": (None, "Ctrl-C during a run: Python raises KeyboardInterrupt, C gets this code.", "Nothing: arguments that were donated are kept where that was still possible."),
    "PARTICIPANTS": (PYTHON, "exe = xlac.compile('''" + entry(X, "ROOT y = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=sum", before=ADD) + "''')\nexe(np.ones(4, np.float32))",
                     "Compile it for as many devices: `xlac.compile(program, devices=2)`, [sharding.md](sharding.md)."),
    "CHECK": (PYTHON, "xlac.interpret('''func.func @main() {\n  %0 = stablehlo.constant dense<1> : tensor<2xi32>\n  check.expect_eq_const %0, dense<2> : tensor<2xi32>\n  return\n}''')",
              "The program checks itself, as StableHLO's tests do; the message says which value is another."),
    "DEVICE": (None, "`xlac.compile(program, device=\"cuda\")` where there is no NVIDIA driver, say.", "[cuda.md](cuda.md) says what a device needs; the message lists what was tried."),
    "ARGUMENT_COUNT": (PYTHON, "xlac.compile(small)()", "`exe.inputs` lists what it takes."),
    "ARGUMENT_TYPE": (PYTHON, "xlac.compile(small)(np.ones(4))", "Convert: `x.astype(np.float32)`. Element types are never converted silently."),
    "ARGUMENT_SHAPE": (PYTHON, "xlac.compile(small)(np.ones(5, np.float32))", "`exe.inputs` lists the shapes; a program has fixed ones."),
    "BAD_ARGUMENT": (PYTHON, "xlac.compile(small).explain('speed')", "The message says what there is."),
    "BUFFER_DELETED": (PYTHON, "x = xlac.asarray(np.ones(4, np.float32))\nx.delete()\nxlac.compile(small)(x)", "Use the result that took its place; [donation.md](donation.md)."),
    "BUFFER_VIEWED": (PYTHON, "x = xlac.asarray(np.ones(4, np.float32))\nview = x.numpy()\nx.delete()", "Drop the views first: `del view`."),
    "BUFFER_READONLY": (None, "In C: `xlac_buffer_take` of a buffer that lends read-only memory. In Python such a donation is borrowed instead, with a DonationWarning.", "Copy the array."),
    "DONATION_UNUSABLE": (PYTHON, "every_other = np.ones(8, np.float32)[::2]\nxlac.compile(must)(xlac.donate(every_other), donate='require')", "[donation.md](donation.md) and `exe.explain(\"donation\")` say why."),
    "DONATION_TWICE": (PYTHON, "x = xlac.asarray(np.ones(4, np.float32))\nxlac.compile(two)(xlac.donate(x), x)", "Give a copy for one of the two."),
    "OUT_OF_MEMORY": (None, "An allocation failed: a result or the frame is larger than the memory there is. `exe.memory` says before a run what it will take.",
                      "[memory.md](memory.md) says what is alive at the peak, and what to do."),
    "TOO_LARGE": (TEXT, entry("ROOT x = f32[4294967296,4294967296] parameter(0)"), "Sizes in bytes have 63 bits."),
    "TOO_DEEP": (PYTHON, "xlac.parse('HloModule m\\nENTRY e {\\n  ROOT x = ' + '(' * 5000 + 'f32[]' + ')' * 5000 + ' parameter(0)\\n}')", "Nothing that a compiler writes is nested so."),
    "BAD_PIPELINE": (PYTHON, "small.run('dcee')", "`xlac opt --list-passes` and [passes.md](passes.md) list them."),
    "LEGALIZE": (PYTHON, "xlac.parse('''func.func @main(%a: tensor<1x4xf32>, %b: tensor<4xf32>) -> tensor<1x4xf32> {\n  %0 = chlo.broadcast_shift_left %a, %b : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>\n  return %0 : tensor<1x4xf32>\n}''').run('chlo-legalize-to-stablehlo')", "The message names the op; leave the pass out, or write the op otherwise."),
    "LOWER": (PYTHON, "graph = '''\nnode { name: \"a\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\nnode { name: \"b\" op: \"PyFunc\" input: \"a\" attr { key: \"Tin\" value { list { type: DT_FLOAT } } }\n       attr { key: \"Tout\" value { list { type: DT_FLOAT } } } attr { key: \"token\" value { s: \"t\" } } }'''\nxlac.lower_graph(graph, {'a': 'f32[4]'}, ['b'])", "The message names the node; a session runs such nodes itself."),
    "EDIT": (PYTHON, "small.clone().entry['x'].remove()", "Take its users away first."),
    "INTERNAL": (None, "A fault of xlac's own.", "Please report the program: `xlac reduce` makes it small."),
    "IO": (None, "`xlac run program.hlo --input x.npy` where x.npy is not a file that NumPy reads.", "Write it with `numpy.save`."),
    "BAD_EXECUTABLE": (PYTHON, "xlac.load(xlac.compile(small).serialize()[:100])", "Compile the program again, with the version that loads it."),
}


TWO = entry(X, "y = f32[4] parameter(1)", "ROOT z = f32[4] add(x, y)", header=", input_output_alias={ {}: (0, {}, may-alias) }")
MUST = SMALL.replace("HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }")


def names():
    return {"xlac": xlac, "np": np, "small": xlac.parse(SMALL), "two": TWO, "must": MUST}


def meet(kind, example):
    """The error that an example meets, or None."""
    try:
        if kind == TEXT:
            xlac.parse(example).verify()
        else:
            exec(example, names())
    except xlac.Error as error:
        return error
    return None


def shown(kind, example):
    """The lines of the page, and the code that was met."""
    if kind is None:
        return [example, ""], None
    error = meet(kind, example)
    head = ["```" if kind == TEXT else "```py", example.rstrip(), "```", ""]
    return [*head, "```", *textwrap.dedent(str(error)).splitlines(), "```", ""], error.code if error else None
