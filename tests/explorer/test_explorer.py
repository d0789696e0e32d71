"""The explorer's page: what is in it, and, where there is a Chromium, what it shows and does."""
import base64
import gzip
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from chromium import Chromium, path

import xlac
from xlac.explorer import explore, gather, stages
from xlac.explorer.align import align

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "python/xlac/demos/transformer_block.hlo"
LAYERS = """
HloModule layers, input_output_alias={ {}: (0, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,8] parameter(0), metadata={op_name="params['w']"}
  e = f32[8,8] exponential(x), metadata={op_name="jit(f)/layer_0/exp" source_file="model.py" source_line=3}
  d = f32[8,8] dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer_0/dot"}
  zero = f32[] constant(0)
  r = f32[8] reduce(d, zero), dimensions={1}, to_apply=sum, metadata={op_name="jit(f)/layer_1/<script>alert(1)</script>/sum"}
  t = f32[8,8] broadcast(r), dimensions={0}, metadata={op_name="jit(f)/layer_1/broadcast"}
  ROOT y = f32[8,8] add(t, e), metadata={op_name="jit(f)/layer_1/add"}
}
"""
X = np.ones((8, 8), np.float32)


def data_of(page):
    return {name: json.loads(gzip.decompress(base64.b64decode(text)))
            for name, text in re.findall(r'<script type="application/gzip" id="data-(\w+)">([^<]*)<', page)}


def chain(n):
    lines = ["HloModule big", "ENTRY main {", "  x = f32[64] parameter(0)", "  y0 = f32[64] negate(x)"]
    for i in range(1, n - 1):
        root = "ROOT " if i == n - 2 else ""
        lines.append(f'  {root}y{i} = f32[64] sine(y{i - 1}), metadata={{op_name="jit(f)/layer_{i // 500}/part_{i // 50 % 10}/op{i}"}}')
    return "\n".join([*lines, "}"])


def test_the_data_says_what_the_program_has():
    parts = data_of(explore(LAYERS, X))
    main = parts["main"]
    names = main["ops"]["name"]
    e, d, y = names.index("e"), names.index("d"), names.index("y")
    assert main["operands"][d] == [e, names.index("x")] and main["labels"] == {str(names.index("x")): "params['w']"}
    scopes = main["scopes"]
    at = main["ops"]["scope"][e]
    assert scopes["name"][at] == "layer_0" and scopes["name"][scopes["parent"][at]] == "jit(f)"
    assert main["strings"]["file"][main["ops"]["file"][e]] == "model.py" and main["ops"]["line"][e] == 3
    assert main["ops"]["bytes"][e] == 256 and main["cost"][str(d)][0] == 2 * 8 ** 3
    assert main["ports"][0][0][0] == "params['w']" and main["called"] == {str(names.index("r")): ["sum"]}
    texts = parts["texts"]
    last = texts["stages"][-1]["lines"]
    assert texts["lines"][last[main["ops"]["text"][y]]].strip().startswith("ROOT %y = ")
    assert [stage["name"] for stage in texts["stages"]][:2] == ["as given", "prepared"] and texts["stages"][-1]["name"] == "as it runs"
    assert sum(row[4] for row in main["profile"]["rows"]) > 0
    events = main["profile"]["events"]
    assert events == sorted(events, key=lambda e: e[3]) and any(names[e[1]] == "d" for e in events if e[1] >= 0) and all(e[4] >= 0 for e in events)
    assert any("vexp" in text or "kernel" in text for _, text in parts["kernels"]) and "result" in parts["notes"]["donation"]
    assert max(parts["memory"]["live"]) == parts["memory"]["sizes"]["peak_bytes"] or parts["memory"]["live"]


def test_programs_of_all_kinds(tmp_path):
    executable = xlac.compile(LAYERS)
    assert data_of(explore(xlac.load(executable.serialize())))["main"]["name"] == "layers"
    assert data_of(explore(LAYERS, device="interp"))["main"]["plan"]["why_interpreted"]
    bad = LAYERS.replace("x = f32[8,8] parameter(0)", "x = f32[8,8] parameter(0), sharding={devices=[2,1]0,1}")
    assert "sharding" in data_of(explore(bad))["main"]
    mlir = xlac.parse(LAYERS).to_stablehlo()
    assert data_of(explore(mlir))["main"]["ops"]["name"]
    unrunnable = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[3] add(x, x)\n}"
    assert data_of(explore(unrunnable))["main"]["why_not"]


GRAPH = "".join(f'node {{ name: "{name}" op: "{op}" {" ".join(f"input: {chr(34)}{i}{chr(34)}" for i in inputs)} attr {{ key: "{"dtype" if op == "Placeholder" else "T"}" value {{ type: DT_FLOAT }} }} }}\n'
                for name, op, inputs in [("a/x", "Placeholder", []), ("a/y", "Neg", ["a/x"]), ("a/z", "Tanh", ["a/y"]), ("a", "Sqrt", ["a/z"]), ("b", "Exp", ["a"]), ("c", "Neg", ["b"])])


def test_clusters_say_who_is_in_none_and_why():
    parts = data_of(explore(xlac.cluster(GRAPH)))
    main, names = parts["main"], parts["main"]["ops"]["name"]
    assert main["kind"] == "clusters" and set(names) == {"a", "a/x", "a/y", "a/z", "b", "c"}, "without the graph's source and sink"
    assert [names[o] for o in main["operands"][names.index("a/y")]] == ["a/x"] and main["operands"][names.index("a/x")] == []
    assert main["ops"]["scope"][names.index("a")] == main["ops"]["scope"][names.index("a/x")], "a node with the name of a scope is in it"
    assert main["comps"] == ["not clustered", "cluster_0"] and sum(main["ops"]["comp"]) == 5
    (why, nodes), = parts["reasons"]["rows"]
    assert "not a candidate" in why and nodes == [names.index("a/x")] and not parts["reasons"]["left"]


SHARDED = """
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.add %1, %x : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""


def test_programs_for_several_devices_are_shown_with_their_collectives():
    parts = data_of(explore(SHARDED))
    main = parts["main"]
    assert main["partitioned"] and {"add", "all-gather"} <= set(main["strings"]["opcode"]), "what one of the devices runs"
    assert [port[4] for port in main["ports"][0]] == ['@mesh, [{"data"}, {}]', '@mesh, [{}, {"model"}]']
    names = [stage["name"] for stage in parts["texts"]["stages"]]
    assert names[0] == "as given" and {"sdy-reshard-to-collectives", "prepared"} <= set(names) and names[-1] == "as it runs"
    assert parts["memory"]["steps"] and any(row[1] == "all-gather" for row in main["steps"])
    assert any("all" in line for line in parts["sharding"]["reshards"]) and sum(parts["sharding"]["bytes"]) > 0


def test_an_executable_for_several_devices_is_shown_as_one_of_them_runs_it():
    executable = xlac.compile(SHARDED, devices=4)
    for given in (executable, xlac.load(executable.serialize())):
        parts = data_of(explore(given))
        main = parts["main"]
        assert main["partitioned"] and not main["staged"] and {"add", "all-gather"} <= set(main["strings"]["opcode"])
        assert "custom-call" not in main["strings"]["opcode"] and len(parts["texts"]["stages"]) == 1
        assert [port[4] for port in main["ports"][0]] == [
            '#sdy.sharding<mesh<["data"=2, "model"=2]>, [{"data"}, {}]>', '#sdy.sharding<mesh<["data"=2, "model"=2]>, [{}, {"model"}]>']
        assert "4 devices" in parts["notes"]["devices"] and any(row[1] == "all-gather" for row in main["steps"])
    assert executable.outputs[0].name == "add" and "devices" not in repr(executable).partition("->")[2]


def test_programs_for_more_devices_than_a_page_opens_are_shown_without_what_one_runs():
    parts = data_of(explore(SHARDED.replace('"data"=2, "model"=2', '"data"=8, "model"=16').replace("8x8", "128x128")))
    assert parts["sharding"]["reshards"] and parts["main"]["ops"]["name"]


BEFORE = """HloModule m

%sum.7 (a.7: f32[], b.7: f32[]) -> f32[] {
  %a.7 = f32[] parameter(0)
  %b.7 = f32[] parameter(1)
  ROOT %r.7 = f32[] add(%a.7, %b.7)
}

%max.8 (a.8: f32[], b.8: f32[]) -> f32[] {
  %a.8 = f32[] parameter(0)
  %b.8 = f32[] parameter(1)
  ROOT %r.8 = f32[] maximum(%a.8, %b.8)
}

ENTRY %e.9 (x.9: f32[4]) -> f32[] {
  %sum.7 = f32[] constant(0)
  %dead = f32[] negate(%sum.7)
  %x.9 = f32[4]{0} parameter(0), metadata={op_name="%x.9"}
  %c = f32[] constant(-inf)
  %s = f32[] reduce(%x.9, %sum.7), dimensions={0}, to_apply=%sum.7
  %m.9 = f32[] reduce(%x.9, %c), dimensions={0}, to_apply=%max.8
  ROOT %d = f32[] divide(%s, %m.9)
}"""
AFTER = """HloModule m, is_scheduled=true

%top (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %t = f32[] maximum(%p, %q)
}

%all (p.1: f32[], q.1: f32[]) -> f32[] {
  %p.1 = f32[] parameter(0)
  %q.1 = f32[] parameter(1)
  ROOT %dead = f32[] add(%p.1, %q.1)
}

ENTRY %main (x: f32[4]) -> f32[] {
  %x = f32[4]{0} parameter(0), metadata={op_name="%x.9"}
  %low = f32[] constant(-inf)
  %m = f32[] reduce(%x, %low), dimensions={0}, to_apply=%top
  %c = f32[] constant(0)
  %s = f32[] reduce(%x, %c), dimensions={0}, to_apply=%all
  ROOT %d = f32[] divide(%s, %m)
}"""


def test_stages_have_the_names_and_the_order_of_what_runs():
    before, after = BEFORE.split("\n"), AFTER.split("\n")
    live = [line for line in before if "%dead" not in line]
    both = align([before, live], after)
    assert both[1] == ["HloModule m", *after[1:]]
    assert [line for line in both[0] if line not in both[1]] == ["  %dead = f32[] negate(%c)"] and len(both[0]) == len(both[1]) + 1
    assert align([], after) == [] and align([after], after) == [after]
    other = ["HloModule m", "", "ENTRY %k (z: f32[]) -> f32[] {", "  ROOT %z = f32[] parameter(0)", "}"]  # nothing alike: nothing is lost
    assert sorted(align([before, other], after)[0])[-1] == sorted(before)[-1] and len(align([before, other], after)[0]) == len(before)


def test_what_runs_differs_from_the_last_pass_by_its_schedule_alone():
    jax = pytest.importorskip("jax")
    np = pytest.importorskip("numpy")

    def step(p, tokens):
        def loss(p):
            x = p["table"][tokens]
            h = jax.nn.relu(x @ p["w"])
            return jax.nn.logsumexp(h, axis=-1).mean() + (h.max(-1) ** 2).sum()

        value, gradient = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - b, p, gradient), value

    p = {"table": np.ones((16, 8), np.float32), "w": np.eye(8, dtype=np.float32)}
    texts = data_of(explore(jax.jit(step, donate_argnums=0).lower(p, np.arange(4, dtype=np.int32))))["texts"]
    last, runs = ([texts["lines"][k].partition(", metadata=")[0] for k in stage["lines"]] for stage in texts["stages"][-2:])
    assert last[1:] == runs[1:] and len(runs) > 40
    assert last[0].replace(" is_scheduled=true,", "") == runs[0].replace(" is_scheduled=true,", "")


def test_stages_share_their_lines():
    texts = stages.Texts()
    texts.add("one", "a\nb\nc\n")
    texts.add("two", "a\nb\nc\n")
    texts.add("three", "a\nd\nc\n")
    assert texts.lines == ["a", "b", "c", "d"] and [stage["same"] for stage in texts.stages] == [False, True, False]


def test_scopes_split_outside_brackets():
    assert gather.scope_path("jit(f)/transpose(jvp(a/b))/mul") == ("jit(f)", "transpose(jvp(a/b))") and gather.scope_path("mul") == ()


def test_the_page_is_well_formed_and_loads_nothing():
    page = explore(LAYERS, X)
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import|https?://(?!www\.w3\.org)""", page)
    assert "<script>alert" not in page and page.count("<script>") == 1
    assert "srcdoc" in page._repr_html_() and "characters" in repr(page)


def test_the_command(tmp_path):
    program, out = tmp_path / "layers.hlo", tmp_path / "layers.html"
    program.write_text(LAYERS)
    subprocess.run([sys.executable, "-m", "xlac", "explore", program, "--profile", "--random-init-input-literals", "-o", out], check=True)
    assert data_of(out.read_text())["main"]["profile"]


# --- in a browser ---

@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not path():
        pytest.skip("there is no Chromium")
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def show(browser, tmp_path):
    def show(program, *arrays, **how):
        explore(program, *arrays).save(tmp_path / "page.html")
        browser.open(tmp_path / "page.html", **how)
        return browser
    yield show
    assert not browser.problems
    browser.problems.clear()


def click(browser, selector):
    browser.run(f"document.querySelector({json.dumps(selector)}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    browser.run("new Promise((done) => setTimeout(done, 120))")


def press(browser, *keys):
    for key in keys:
        browser.run(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")


def text(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


ACCESSIBLE = """(() => {
  const bad = [];
  for (const e of document.querySelectorAll('button, input, select, [role=button], [role=tab], [role=treeitem], svg[role=img]')) {
    const name = e.getAttribute('aria-label') || e.innerText || e.textContent || (e.labels && e.labels.length && e.labels[0].textContent);
    if (!name || !name.trim()) bad.push('no name: ' + e.outerHTML.slice(0, 80));
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  if (new Set(ids).size !== ids.length) bad.push('ids twice');
  const parse = (c) => c.match(/[\\d.]+/g).map(Number), light = (c) => { const [r, g, b] = parse(c).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255,255,255)'; };
  for (const e of document.querySelectorAll('header *, #side *, #main *, #details *')) {
    if (!e.childNodes.length || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest('svg') || !e.getClientRects().length) continue;
    const a = light(getComputedStyle(e).color), b = light(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 80)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push('wider than the window');
  if (!document.documentElement.lang || !document.title) bad.push('no language or title');
  return bad;
})()"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [420, 1400])
def test_every_panel_is_accessible(show, dark, width):
    page = show(LAYERS, X, dark=dark, width=width)
    for tab in ("overview", "graph", "stages", "memory", "kernels", "profile", "notes"):
        click(page, "#t-" + tab)
        assert page.run(ACCESSIBLE) == [], tab
        assert len(text(page, "#p-" + tab)) > 20, tab


def axe():
    """The rules of axe-core, where a package that brings them is installed: pip install --no-deps axe-playwright-python."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        pytest.skip("axe-core is not installed")
    return (pathlib.Path(found.origin).parent / "axe.min.js").read_text()


PROGRAMS = {"program": lambda: (LAYERS, X), "sharded": lambda: (SHARDED,), "clusters": lambda: (xlac.cluster(GRAPH),), "executable": lambda: (xlac.compile(LAYERS),)}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [420, 1400])
@pytest.mark.parametrize("what", PROGRAMS)
def test_axe_finds_nothing(show, dark, width, what):
    page = show(*PROGRAMS[what](), dark=dark, width=width)
    page.run(axe() + "; 1")
    for tab in page.run("[...document.querySelectorAll('[role=tab]')].map((e) => e.id)"):
        click(page, "#" + tab)
        assert page.run("axe.run().then((found) => found.violations.map((v) => [v.id, v.nodes[0].html]))") == [], tab


def test_keyboard_walks_the_tree_and_opens_ops(show):
    page = show(LAYERS, X)
    page.run("document.getElementById('tree').focus()")
    press(page, "Home", "End", "Home", "ArrowDown")
    labels = page.run("[...document.querySelectorAll('.row')].map((e) => [e.querySelector('.label').textContent, e.ariaLevel, e.ariaExpanded])")
    assert ["parameters", "1", "false"] in labels
    assert ["jit(f)", "1", "true"] in labels, "where most is, is open"
    k = [label for label, *_ in labels].index("layer_0")
    press(page, "Home", *["ArrowDown"] * k, "ArrowRight", "ArrowDown")
    assert page.run("document.querySelector('.row[aria-selected=true] .label').textContent") == "e"
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert "model.py:3" in text(page, "#details") and "exponential(%x)" in text(page, "#details")
    press(page, "ArrowLeft", "ArrowLeft")
    assert "layer_0" in page.run("document.querySelector('.row[aria-selected=true]').innerText")
    click(page, "#details button:last-child")
    assert page.run("document.querySelectorAll('#canvas .node').length") >= 2


def test_search_and_what_is_around_an_op(show):
    page = show(LAYERS, X)
    page.run("(() => { const s = document.getElementById('search'); s.value = 'layer_0 dot'; s.dispatchEvent(new Event('input')); })()")
    assert text(page, "#status") == "1 op found"
    click(page, ".row")
    click(page, "#t-graph")
    click(page, ".bar-tools button")
    found = page.run("[...document.querySelectorAll('#canvas .node')].map((e) => e.getAttribute('aria-label'))")
    assert any(label.startswith("op d, dot") for label in found) and any("params" in label for label in found)


def test_diffs_of_passes(show):
    dead = LAYERS.replace("  zero =", "  nobody = f32[8,8] negate(e)\n  zero =")
    page = show(dead, X)
    click(page, "#t-stages")
    page.run("(() => { const a = document.getElementById('stage-a'); a.value = 0; a.dispatchEvent(new Event('change')); })()")
    gone = page.run("[...document.querySelectorAll('.diff .del')].map((e) => e.textContent).join()")
    assert "negate(" in gone
    assert "go," in text(page, "#p-stages")


def test_diff_of_lists(show):
    page = show(LAYERS)
    code = (ROOT / "python/xlac/explorer/diff.js").read_text()
    for a, b in (([1, 2, 3], [1, 3]), ([1, 1, 2], [1, 2, 2]), ([], [1]), ([5, 6, 7, 8], [7, 8, 5, 6]), ([1, 2, 2, 3], [0, 2, 2, 2, 3, 4])):
        rows = page.run(f"(() => {{ {code}; return diff({a}, {b}); }})()")
        assert [a[i] for i, _ in rows if i >= 0] == a and [b[j] for _, j in rows if j >= 0] == b
        assert all(a[i] == b[j] for i, j in rows if i >= 0 and j >= 0)


@pytest.mark.parametrize("n", [10, 200, 2000, 100_000])
def test_large_programs_open_within_a_second_of_cpu(show, n):
    page = show(chain(n))
    assert page.busy() < 1, "CPU seconds of the page's thread"
    assert page.run("document.querySelectorAll('.row').length") < 120
    click(page, "#t-graph")
    assert page.run("document.querySelectorAll('#canvas .node').length") > 0
    page.run("(() => { const s = document.getElementById('search'); s.value = 'op7'; s.dispatchEvent(new Event('input')); })()")
    assert "found" in text(page, "#status")


def colour(page, name):
    page.run(f"(() => {{ const c = document.getElementById('colour'); c.value = {json.dumps(name)}; c.dispatchEvent(new Event('change')); }})()")


def fills(page):
    """{what a node is: its colour} of the nodes that have one of their own."""
    return dict(page.run("[...document.querySelectorAll('#canvas .node')].map((e) => [e.getAttribute('aria-label').split(',')[0], e.querySelector('rect:not(.ground)').style.fill]).filter((f) => f[1])"))


def test_the_graph_is_coloured_by_time_by_when_and_by_cluster(show):
    page = show(LAYERS, X)
    click(page, "#t-graph")
    assert fills(page), "by time at first"
    colour(page, "when it runs")
    by_when = fills(page)
    assert by_when["op e"] != by_when["op y"] and "begins first" in text(page, "#graph-legend")
    assert page.run("document.querySelectorAll('.timeline rect').length") == len(data_of(explore(LAYERS, X))["main"]["profile"]["events"])
    colour(page, "")
    assert fills(page) == {} and text(page, "#graph-legend") == ""
    page = show(xlac.cluster(GRAPH))
    assert "not a candidate" in text(page, "#p-clusters")
    click(page, "#t-graph")
    assert len(set(fills(page).values())) == 1 and "op b" in fills(page) and not any("a/x" in what for what in fills(page)) and "cluster_0" in text(page, "#graph-legend")


def test_an_executable_says_where_passes_are_to_be_seen(show):
    page = show(xlac.compile(LAYERS))
    click(page, "#t-stages")
    assert "explore the program" in text(page, "#p-stages") and "ROOT %y" in text(page, "#p-stages pre")


def test_times_come_first_and_words_of_the_graph_can_be_read(show):
    page = show(LAYERS, X, width=420)
    heads = page.run("[...document.querySelectorAll('#p-profile th')].map((e) => e.textContent)")
    assert heads[:3] == ["what", "time", "share"] and page.run("document.querySelectorAll('#p-profile td')[1].getBoundingClientRect().right < innerWidth")
    page = show(chain(2000), width=420)
    click(page, "#t-graph")
    assert page.run("(() => { const c = document.getElementById('canvas'); return 12 * c.clientWidth / c.viewBox.baseVal.width; })()") > 7, "pixels of a letter"


def test_printing_shows_the_panel_alone(show):
    page = show(LAYERS, X, media="print")
    assert page.run("getComputedStyle(document.getElementById('side')).display") == "none"
    assert page.run("getComputedStyle(document.getElementById('p-profile')).display") == "block"


def test_programs_with_a_sharded_axis_keep_jaxs_names():
    jax = pytest.importorskip("jax")
    cut = jax.sharding.NamedSharding(jax.sharding.AbstractMesh((2,), ("data",)), jax.sharding.PartitionSpec("data"))
    lowered = jax.jit(lambda p, x: (p["w"] * x).sum(), in_shardings=({"w": cut}, cut)).trace({"w": X}, X).lower(lowering_platforms=("cpu",))
    main = data_of(explore(lowered, {"w": X}, X))["main"]
    assert main["partitioned"] and [port[0] for port in main["ports"][0]] == ["p['w']", "x"] and main["profile"]["rows"]
