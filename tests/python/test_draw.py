"""Pictures: well-formed, complete, self-contained, and drawn in linear time."""
import sys
import re
import time
import xml.etree.ElementTree as ElementTree

import pytest

import xlac
from xlac import demo, draw


@pytest.fixture(scope="module")
def block():
    return xlac.parse(demo.read("hlo"))


def chain(n):
    lines = ["  x0 = f32[64,64] parameter(0)"]
    lines += [f"  x{i} = f32[64,64] add(x{i - 1}, x{max(i - 7, 0)})" for i in range(1, n)]
    return xlac.parse("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


def svgs(html):
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html, re.S)]


def titles(svg):
    return [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]


def test_the_picture_is_self_contained(block):
    html = block._repr_html_()
    assert "<script" not in html and "javascript" not in html.lower()
    assert set(re.findall(r'https?://[^"\s<]+', html)) == {"http://www.w3.org/2000/svg"}
    assert html.count("<svg") == html.count("</svg>") >= 3 and html.count("<details") == html.count("</details>") > 0
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<title>.*?</title>|<text.*?</text>", "", html, flags=re.S))


def test_every_op_is_drawn_or_told(block):
    shown = "\n".join(t for svg in svgs(block._repr_html_()) for t in titles(svg))
    for op in block.entry:
        if op.opcode not in ("constant", "broadcast"):
            assert f"%{op.name} = " in shown
    assert "the root" in shown


def test_boxes_do_not_overlap(block):
    picture = draw.Picture(block.entry, draw.post_order(block.entry), "p", 1 << 20, block.entry.root)
    layers = {}
    for node in picture.nodes:
        layers.setdefault(node.layer, []).append(node)
    for layer in layers.values():
        layer.sort(key=lambda n: n.x)
        for left, right in zip(layer, layer[1:]):
            assert left.x + left.width / 2 < right.x - right.width / 2
    for edge in picture.edges:
        assert edge.path is None or all(a.layer + 1 == b.layer for a, b in zip(edge.path, edge.path[1:]))


def test_links_lead_somewhere(block):
    html = block._repr_html_()
    ids = set(re.findall(r'id="([^"]+)"', html))
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert targets and targets <= ids


def test_odd_names_and_values_are_escaped():
    m = xlac.parse('HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] custom-call(x), '
                   'custom_call_target="<script>&\\"", metadata={op_name="]]> <b>"}\n}\n')
    html = m._repr_html_()
    assert "<script" not in html and "<b>" not in html
    svgs(html)


def test_loops_conditionals_and_every_family():
    m = xlac.parse("""HloModule m
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[8] get-tuple-element(s), index=1
  ROOT t = (s32[], f32[8]) tuple(j, v) }
cond { c = (s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  n = s32[] constant(9)
  ROOT lt = pred[] compare(k, n), direction=LT }
ENTRY e { p = (s32[], f32[8]) parameter(0)
  ROOT w = (s32[], f32[8]) while(p), condition=cond, body=body }
""")
    html = m._repr_html_()
    assert "▸ condition cond" in html and "▸ body body" in html and "called by w" in html
    assert "compare LT 9" in html
    known = set(draw.FAMILIES)
    assert {draw.family_of(row) for row in xlac._core.opcode_table()} <= known
    members = " ".join(draw.MEMBERS.values()).split()
    assert set(members) <= {row["name"] for row in xlac._core.opcode_table()}


def test_big_modules_are_drawn_in_linear_time():
    """By the calls that are made, which no other work on the machine changes."""
    def calls(module):
        made = 0

        def count(frame, event, arg):
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            draw.html(module)
        finally:
            sys.setprofile(None)
        return made

    small, large = calls(chain(1250)), calls(chain(5000))
    assert small > 1250 and large < 5 * small


def test_very_big_modules_are_cut():
    html = draw.html(chain(3000), max_ops=100)
    assert "Only the first 100 of 3000 ops" in html and len(html) < 200_000


def test_wide_and_empty_modules():
    params = ", ".join(f"p{i}" for i in range(300))
    lines = "\n".join(f"  p{i} = f32[] parameter({i})" for i in range(300))
    types = ", ".join(["f32[]"] * 300)
    svgs(draw.html(xlac.parse(f"HloModule m\nENTRY e {{\n{lines}\n  ROOT t = ({types}) tuple({params})\n}}\n")))
    svgs(draw.html(xlac.parse("HloModule m\nENTRY e {\n  ROOT c = f32[] constant(1)\n}\n")))
    svgs(draw.html(xlac.parse("HloModule m\nENTRY e {\n  ROOT t = () tuple()\n}\n")))


def test_dot(block):
    text = block.to_dot()
    assert text.startswith("digraph") and text.rstrip().endswith("}")
    assert text.count("[label=") == block.stats()["ops"] and text.count("subgraph") == block.stats()["computations"]


def test_page_is_a_document(block):
    page = draw.page(block)
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")


def test_functions_that_return_several_values_or_none_are_drawn():
    """In MLIR they have no op that is the root."""
    text = "func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\n  %0 = stablehlo.tanh %x : tensor<2xf32>\n" \
        "  return %0, %x : tensor<2xf32>, tensor<2xf32>\n}\n"
    for module in (xlac.parse(text), xlac.parse("func.func public @main() {\n  return\n}\n")):
        assert "<svg" in module._repr_html_()


def test_one_computation_and_one_op(block):
    html = block.entry._repr_html_()
    assert html.count("<svg") == 1 == html.count('class="pane"') and f"{len(block.entry)} ops" in html
    dot = next(op for op in block.entry if op.opcode == "dot")
    html = dot._repr_html_()
    near = "\n".join(t for svg in svgs(html) for t in titles(svg))
    for op in [dot, *dot.operands, *dot.users, *dot.users[0].users]:
        assert op.opcode in ("constant", "broadcast") or f"%{op.name} = " in near
    assert html.count("<g id=") < 30 and dot.computation.name in html
    constant = next(op for op in block.entry if op.opcode == "constant" and op.shape == ())
    assert f"%{constant.name} = " in constant._repr_html_()
    assert "Only the nearest" not in html


def test_an_op_with_many_users_has_a_small_picture():
    lines = [f"  {'ROOT ' if i == 499 else ''}y{i} = f32[4] negate(x)" for i in range(500)]
    module = xlac.parse("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n" + "\n".join(lines) + "\n}\n")
    html = module.entry["x"]._repr_html_()
    assert "Only the nearest 40" in html and html.count("<g id=") == 40


@pytest.mark.parametrize("text", ["HloModule m\nENTRY e {\n  ROOT t = token[] after-all()\n}\n", "HloModule m\nENTRY e {\n  ROOT t = () tuple()\n}\n",
                                  "module {\n func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n }\n}"])
def test_ops_without_sizes(text):
    module = xlac.parse(text)
    for thing in (module, module.entry, *module.entry):
        assert "<svg" in thing._repr_html_()
