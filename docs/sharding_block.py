"""Writes docs/sharding-block.md and the pictures docs/img/sharding-*.svg: a transformer block with two annotations that cost, what they cost, and
the annotation that saves it. Run it when propagation or its pictures change; tests/shard/test_pictures.py compares.

  python docs/sharding_block.py"""
import pathlib

import xlac
import xlac.sharding as sharding

HERE = pathlib.Path(__file__).parent
HEAD = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func public @main({args}) -> tensor<8x128x256xf32> {{
"""
# The key's weights are cut along their rows, where those of query and value are along their columns; and the second product of the MLP is
# asked to be whole on every device.
ARGUMENTS = (("x", "8x128x256", '{"data"}, {}, {}'), ("wq", "256x256", '{}, {"model"}'), ("wk", "256x256", '{"model"}, {}'),
             ("wv", "256x256", '{}, {"model"}'), ("wo", "256x256", '{"model"}, {}'), ("up", "256x1024", '{}, {"model"}'),
             ("down", "1024x256", '{"model"}, {}'))


class Block:
    """The text of a program, op by op."""

    def __init__(self):
        self.lines, self.n = [], 0

    def op(self, text):
        self.lines.append(f"  %{self.n} = {text}")
        self.n += 1
        return f"%{self.n - 1}"

    def dot(self, x, y, shapes, contract, batch=""):
        a, b, c = shapes
        return self.op(f"stablehlo.dot_general {x}, {y}, {batch}contracting_dims = {contract} : (tensor<{a}xf32>, tensor<{b}xf32>) -> tensor<{c}xf32>")

    def heads(self, y, w):
        t = self.dot(y, w, ("8x128x256", "256x256", "8x128x256"), "[2] x [0]")
        t = self.op(f"stablehlo.reshape {t} : (tensor<8x128x256xf32>) -> tensor<8x128x4x64xf32>")
        return self.op(f"stablehlo.transpose {t}, dims = [0, 2, 1, 3] : (tensor<8x128x4x64xf32>) -> tensor<8x4x128x64xf32>")

    def softmax(self, a):
        s, r = "8x4x128x128", "8x4x128"
        low, zero = (self.op(f"stablehlo.constant dense<{v}> : tensor<f32>") for v in ("0xFF800000", "0.000000e+00"))
        top = self.op(f"stablehlo.reduce({a} init: {low}) applies stablehlo.maximum across dimensions = [3] : (tensor<{s}xf32>, tensor<f32>) -> tensor<{r}xf32>")
        top = self.op(f"stablehlo.broadcast_in_dim {top}, dims = [0, 1, 2] : (tensor<{r}xf32>) -> tensor<{s}xf32>")
        e = self.op(f"stablehlo.exponential {self.op(f'stablehlo.subtract {a}, {top} : tensor<{s}xf32>')} : tensor<{s}xf32>")
        total = self.op(f"stablehlo.reduce({e} init: {zero}) applies stablehlo.add across dimensions = [3] : (tensor<{s}xf32>, tensor<f32>) -> tensor<{r}xf32>")
        total = self.op(f"stablehlo.broadcast_in_dim {total}, dims = [0, 1, 2] : (tensor<{r}xf32>) -> tensor<{s}xf32>")
        return self.op(f"stablehlo.divide {e}, {total} : tensor<{s}xf32>")


def program():
    b, x, batch = Block(), "8x128x256", "batching_dims = [0, 1] x [0, 1], "
    h, s = "8x4x128x64", "8x4x128x128"
    q, k, v = (b.heads("%x", f"%{w}") for w in ("wq", "wk", "wv"))
    a = b.softmax(b.dot(q, k, (h, h, s), "[3] x [3]", batch))
    c = b.dot(a, v, (s, h, h), "[3] x [2]", batch)
    c = b.op(f"stablehlo.transpose {c}, dims = [0, 2, 1, 3] : (tensor<{h}xf32>) -> tensor<8x128x4x64xf32>")
    c = b.op(f"stablehlo.reshape {c} : (tensor<8x128x4x64xf32>) -> tensor<{x}xf32>")
    y = b.op(f"stablehlo.add %x, {b.dot(c, '%wo', (x, '256x256', x), '[2] x [0]')} : tensor<{x}xf32>")
    up = b.op(f"stablehlo.tanh {b.dot(y, '%up', (x, '256x1024', '8x128x1024'), '[2] x [0]')} : tensor<8x128x1024xf32>")
    up = b.op(f"sdy.sharding_constraint {up} <@mesh, [{{}}, {{}}, {{}}]> : tensor<8x128x1024xf32>")
    out = b.op(f"stablehlo.add {y}, {b.dot(up, '%down', ('8x128x1024', '1024x256', x), '[2] x [0]')} : tensor<{x}xf32>")
    args = ", ".join(f"%{n}: tensor<{t}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{s}]>}}" for n, t, s in ARGUMENTS)
    return HEAD.format(args=args) + "\n".join(b.lines) + f"\n  return {out} : tensor<{x}xf32>\n}}\n"


def table(trace):
    yield "| collective | after (line) | bytes a device sends | annotation that removes it | then |\n|---|---|---|---|---|"
    for r in trace.reshards:
        m = trace.remedy(r)
        what = f"`{m.sharding or 'none'}` on `{m.value}`" if m else "none of those tried"
        sent = f"{abs(m.saves)} bytes {'less' if m.saves >= 0 else 'more'} in all" if m and m.saves else "as much in all"
        then = (sent + (f"; {-m.holds} bytes less of arguments held" if m.holds < 0 else
                f"; {m.holds} bytes more of arguments held" if m.holds else "")) if m else ""
        yield f"| `{r.opcode}` {r.name} | `{r.of}` ({r.line}) | {r.bytes} | {what} | {then} |"


def made():
    """The files: a dictionary of path to text."""
    result = sharding.propagate(xlac.parse(program()))
    trace, total = result.trace, lambda t: sum(r.bytes for r in t.reshards)
    best = trace.remedies[0]
    annotated = sharding.annotate(xlac.parse(program()), {best.value: best.sharding and "#sdy.sharding" + best.sharding})
    after = sharding.propagate(annotated)
    second = after.trace.remedies[0]
    twice = sharding.propagate(sharding.annotate(annotated, {second.value: second.sharding and "#sdy.sharding" + second.sharding}))
    mesh = sharding.Mesh({"data": 4, "model": 2})
    tiles = sharding.Sharding(mesh, ["data", (), "model"])
    words = [
        "# What shardings cost: a transformer block\n",
        "*Written by `docs/sharding_block.py`; a test compares it with what the program gives now.*\n",
        "A transformer block on 8 devices, 4 for `data` and 2 for `model`. Its arguments are the input, the weights of queries, keys, values and "
        "output, and the two of the MLP: `%arg0` to `%arg6`. Two annotations are not as they should be: the weights of the keys, `%arg2`, "
        "are cut along their rows, and the MLP's hidden values are asked to be whole everywhere. What that makes the devices send, by "
        "`xlac shard block.mlir --remedies` or `trace.reshards` and `trace.remedy(reshard)`:\n",
        *table(trace),
        f"\nIn all every device sends {total(trace)} bytes. Each annotation was found by trying: the program is propagated again with it, and the "
        "collective is gone. \"Then\" is what all collectives send after it, against now.\n",
        "![The block as it is](img/sharding-block.svg)\n",
        f"The best one is {best}. With it, every device sends {total(after.trace)} bytes:\n",
        *table(after.trace),
        f"\nThe next is {second}; then it is {total(twice.trace)} bytes, and what is left is what such a block has to add up:\n",
        "![The block as it should be](img/sharding-block-after.svg)\n",
        *table(twice.trace),
        "\nWhy a dimension is sharded as it is: `xlac shard block.mlir --explain %0:2`, or `trace.explain`. Of the first product's result:\n",
        "```", str(trace.explain("%0", 2)), trace.picture("%0"), "```\n",
        "The same tiles as a picture, as `Sharding.to_svg(shape)` and notebooks show it:\n",
        "![The tiles of a tensor](img/sharding-tiles.svg)\n",
    ]
    return {"sharding-block.md": "\n".join(words), "img/sharding-block.svg": result.to_svg(), "img/sharding-block-after.svg": twice.to_svg(),
            "img/sharding-tiles.svg": tiles.to_svg((8, 128, 256))}


if __name__ == "__main__":
    for name, text in made().items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text)
