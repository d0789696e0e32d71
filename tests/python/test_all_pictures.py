"""All pictures: lines and words can be told from what is behind them in light and dark, have names for screen readers, and are laid out evenly."""
import collections
import itertools
import pathlib
import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import xlac
import xlac.sharding
from xlac import draw, memory_svg, picture, sharding_svg, straight
from xlac.clusters import COLOURS
from xlac.layout import GAP_X, Node

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "python/xlac/demos/transformer_block.hlo"
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1882 }
"""


@pytest.mark.parametrize("colours", [picture.LIGHT, picture.DARK], ids=["light", "dark"])
def test_contrast_of_lines_and_words(colours):
    for ground in ("ground", "plain"):
        for name in ("text", "muted", "warn"):
            assert picture.contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        assert picture.contrast(colours["line"], colours[ground]) >= 3, ground


def test_contrast_of_boxes():
    for fill, edge in [*draw.FAMILIES.values(), *sharding_svg.COLOURS]:
        assert picture.contrast(edge, "#ffffff") >= 3 and picture.contrast(picture.ON_COLOUR, fill) >= 4.5, (fill, edge)
        assert picture.contrast(fill, picture.DARK["ground"]) >= 3
    for fill in [*COLOURS, *map(memory_svg.colour, map(str, range(100)))]:
        assert picture.contrast(picture.ON_COLOUR, fill) >= 4.5


def pictures():
    exe = xlac.compile(DEMO)
    arrays = [np.zeros(p.shape, np.float32) for p in exe.module.entry.parameters]
    module = xlac.parse(DEMO)
    mesh = xlac.sharding.Mesh({"a": 2})
    yield "memory", exe.memory.svg()
    yield "profile", exe.profile(*arrays).svg()
    yield "timeline", exe.timeline(*arrays).svg()
    yield "draw", re.search("<svg.*?</svg>", draw.page(module), re.S)[0]
    yield "sharding", xlac.sharding.Sharding(mesh, ["a"]).to_svg((4,))
    yield "program", xlac.sharding.propagate("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }").to_svg()
    yield "clusters", xlac.cluster(GRAPH, format="text").svg()


def test_each_has_a_role_a_name_and_a_title():
    for name, svg in pictures():
        root = xml.fromstring(svg)
        assert root.get("role") == "img" and root.get("aria-label"), name
        assert root[0].tag.endswith("title") and root[0].text, name
        assert "prefers-color-scheme" in svg or name == "draw", name  # that one has its page's style


def test_a_timeline_has_whole_names_ticks_and_arrows():
    program = xlac.parse("""
HloModule m
ENTRY main {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  c = f32[64,64] copy(w)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,64] dot(y, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""").run("async-wrap{ops=copy thread=a-thread-with-a-long-name}")
    svg = xlac.compile(program, lanes={"copy": 1}).timeline(*[np.ones((64, 64), np.float32)] * 2).svg()
    texts = [node.text for node in xml.fromstring(svg).iter() if node.tag.endswith("text")]
    assert "main" in texts and sum(bool(re.fullmatch(r"[\d.]+ (ns|us|ms)", t or "")) for t in texts) >= 2
    assert svg.count(" to ") >= 1


def test_memory_names_steps_arguments_and_results():
    memory = xlac.compile(DEMO).memory
    svg = memory.svg()
    assert all(f">{step}</text>" in svg for step in memory.steps)
    assert "argument w_up" in svg and "result add" in svg
    assert memory_svg.nice(0) == [0.0] and memory_svg.nice(33728)[-1] <= 33728 and 4 <= len(memory_svg.nice(33728)) <= 11


# --- layout ---

def overlaps(nodes):
    rows = collections.defaultdict(list)
    for node in nodes:
        rows[node.layer].append(node)
    for row in rows.values():
        row.sort(key=lambda n: n.x)
        yield from ((a, b) for a, b in itertools.pairwise(row) if b.x - b.width / 2 < a.x + a.width / 2 + GAP_X - 0.01)


def residual(n):
    """A stream with a branch at each step that flows into nothing near: what made drawings drift."""
    lines = ["HloModule m", "ENTRY e {", "  v_0 = f32[8] parameter(0)"]
    for i in range(n):
        lines += [f"  a_{i} = f32[8] tanh(v_{i})", f"  b_{i} = f32[8] negate(a_{i})", f"  c_{i} = f32[8] exponential(a_{i})", f"  d_{i} = f32[8] sine(c_{i})",
                  f"  v_{i + 1} = f32[8] add(d_{i}, v_{i})"]
    lines.append(f"  ROOT r = (f32[8], {', '.join(['f32[8]'] * n)}) tuple(v_{n}, {', '.join(f'b_{i}' for i in range(n))})")
    return xlac.parse("\n".join([*lines, "}"]))


def test_long_streams_are_straight():
    small, large = (draw.Picture(e, draw.post_order(e), "p", 1 << 20, e.root) for e in (residual(n).entry for n in (10, 400)))
    assert large.width < small.width + 700 and large.height > 30 * small.height
    stream = [n.x for n in large.nodes if n.kind == "box" and re.fullmatch(r"c_([12]?\d?\d)", n.key.name)]  # near its end the results come in
    assert len(stream) == 300 and max(stream) - min(stream) < 100
    assert not list(overlaps(large.nodes))


@pytest.mark.parametrize("seed", range(20))
def test_no_boxes_overlap_and_orders_are_kept(seed):
    rng = np.random.default_rng(seed)
    layers = [[Node(float(rng.integers(6, 90)), 20, layer=i, pull=float(rng.choice([1, 10])), kind=str(rng.choice(["box", "bend"])))
               for _ in range(rng.integers(1, 9))] for i in range(12)]
    for upper, lower in itertools.pairwise(layers):
        for node in lower:
            for k in sorted(rng.choice(len(upper), size=rng.integers(0, min(3, len(upper)) + 1), replace=False)):
                upper[k].below.append(node)
                node.above.append(upper[k])
    straight.place_x(layers, GAP_X)
    assert not list(overlaps(itertools.chain(*layers)))
    assert all(a.x < b.x for layer in layers for a, b in itertools.pairwise(layer))
