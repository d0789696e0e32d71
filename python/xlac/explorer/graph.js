// The graph of a group, whose own groups are one node each, or of what is around an op.
const MOST_NODES = 250, FEW_NODES = 80, MOST_OUTER = 16, NEAR = 3, MOST_NEAR = 60;
const graph = { mode: "group", group: null, op: -1, box: null, whole: null };

// The representative of each op: which of the items has it. Ops elsewhere have none.
function owners(items) {
  const owner = new Int32Array(D.ops.name.length).fill(-1);
  const mark = (item, k) => { if (isGroup(item)) for (const child of item.children) mark(child, k); else owner[item] = k; };
  items.forEach((item, k) => mark(item, k));
  return owner;
}

// Groups come first, then the ops that weigh most, as many as can be looked at.
function drawnOf(group) {
  if (group.children.length <= MOST_NODES) return group.children;
  const weight = (i) => (D.weight && D.weight[i]) || D.ops.bytes[i] * 1e-12, groups = group.children.filter(isGroup);
  const ops = group.children.filter((child) => !isGroup(child)).sort((a, b) => weight(b) - weight(a));
  return [...groups, ...ops].slice(0, FEW_NODES);
}

// What stands for an op outside of `group`: itself where few are read, else the outermost of its groups that does not hold `group`.
function standIn(i, above) {
  let found = i;
  for (let g = tree.home[i]; g && !above.has(g); g = g.parent) found = g;
  return found;
}

function groupGraph(group) {
  const items = drawnOf(group).slice(), owner = owners(items), seen = new Set(), edges = [], outer = new Map(), above = new Set(), read = new Set();
  for (let g = group; g; g = g.parent) above.add(g);
  D.operands.forEach((list, i) => { if (owner[i] >= 0) for (const o of list) if (owner[o] < 0) read.add(o); });
  const own = (i) => {
    if (owner[i] >= 0) return owner[i];
    const item = read.size > MOST_OUTER ? standIn(i, above) : i;
    if (!outer.has(item)) { outer.set(item, items.length); items.push(item); }
    return outer.get(item);
  };
  const link = (a, b) => { const key = a * 1e6 + b; if (a !== b && !seen.has(key)) { seen.add(key); edges.push([a, b]); } };
  D.operands.forEach((list, i) => {
    if (owner[i] >= 0) for (const o of list) if (owner[o] >= 0 || items.length < FEW_NODES) link(own(o), owner[i]);
  });
  return { items, edges, outer: new Set(outer.values()) };
}

// Where to begin: down the groups that hold nearly everything.
function beginning() {
  let group = tree.root;
  for (;;) {
    const large = group.children.filter(isGroup).sort((a, b) => b.count - a.count)[0];
    if (!large || group.children.length - 1 > 3 || large.count < 0.5 * group.count) return group;
    group = large;
  }
}

function nearGraph(op) {
  const at = new Map([[op, 0]]), items = [op];
  let border = [op];
  for (let step = 0; step < NEAR && items.length < MOST_NEAR; step++) {
    const next = [];
    for (const i of border) for (const o of [...D.operands[i], ...usersOf(i)]) {
      if (at.has(o) || items.length >= MOST_NEAR) continue;
      at.set(o, items.length);
      items.push(o);
      next.push(o);
    }
    border = next;
  }
  const edges = [];
  items.forEach((i, k) => { for (const o of new Set(D.operands[i])) if (at.has(o)) edges.push([at.get(o), k]); });
  return { items, edges, outer: new Set() };
}

const cut = (text, n) => text.length > n ? text.slice(0, n - 1) + "…" : text;

function drawGraph() {
  const panel = $("p-graph");
  if (panel.hidden) return;
  const near = graph.mode === "near" && graph.op >= 0, group = graph.group = graph.group || beginning();
  const canvas = $("canvas"), note = $("graph-note");
  $("graph-path").replaceChildren(...(near ? [document.createTextNode(`around ${D.ops.name[graph.op]}`)] : crumbs(group)));
  const found = near ? nearGraph(graph.op) : groupGraph(group), missing = near ? 0 : group.children.length - drawnOf(group).length;
  canvas.replaceChildren();
  note.textContent = missing ? `${missing} of ${group.children.length} ops and groups here are not drawn: those that weigh least. Choose an op, and its surroundings are.` : "";
  $("graph-legend").replaceChildren(...legend());
  const nodes = found.items.map((item, k) => nodeOf(item, found.outer.has(k)));
  const size = layout(nodes, found.edges);
  canvas.append(make("svg:defs", {}, make("svg:marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    make("svg:path", { d: "M0 0L8 4L0 8z", fill: "var(--line)" }))));
  for (const [a, b] of found.edges) canvas.append(edgeOf(nodes[a], nodes[b], size.routes.get(a * 1e6 + b) || []));
  nodes.forEach((node) => canvas.append(nodeElement(node)));
  canvas.setAttribute("aria-label", `Graph of ${near ? "what is around " + D.ops.name[graph.op] : group.label || "the program"}: ${nodes.length} nodes`);
  graph.whole = { x: -20, y: -20, w: size.width + 40, h: size.height + 40 };
  fit(nodes.find((node) => node.item === graph.op));
}

function nodeOf(item, outer) {
  const group = isGroup(item), label = cut(group ? item.label || "(no name)" : labelOf(item), 26);
  const sub = cut(group ? `${item.count} ops` : `${opcodeOf(item)} ${typeOf(item)}`, 32);
  return { item, outer, label, sub, w: Math.max(70, 7.2 * label.length + 16, 5.8 * sub.length + 16), h: 38, x: 0, y: 0 };
}

function nodeElement(node) {
  const group = isGroup(node.item), share = D.weight && D.most ? Math.min(1, weightOf(node.item) / (group ? weightOf(tree.root) || 1 : D.most)) : 0;
  const act = () => group ? enter(node.item) : select(node.item);
  const box = { x: node.x - node.w / 2, y: node.y - node.h / 2, width: node.w, height: node.h, rx: group ? 8 : 3 };
  const ground = make("svg:rect", { ...box, class: "ground" }), rect = make("svg:rect", box);
  const tint = tintOf(node.item);
  if (tint !== null) { rect.style.fill = D.tint.colour(tint); rect.style.fillOpacity = 0.4; }
  if (share > 0) rect.style.fill = `rgba(var(--heat), ${(0.1 + 0.7 * share).toFixed(2)})`;
  return make("svg:g", { class: `node${group ? " group" : ""}${node.outer ? " outer" : ""}${node.item === graph.op ? " chosen" : ""}`, role: "button", tabindex: 0,
    "aria-label": `${group ? "group" : "op"} ${node.label}, ${node.sub}`, onclick: act,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } },
    make("svg:title", {}, group ? `${node.item.label}: ${node.item.count} ops; opens` : `${D.ops.name[node.item]}: ${typeOf(node.item)}`), ground, rect,
    make("svg:text", { x: node.x, y: node.y - 3 }, node.label), make("svg:text", { class: "sub", x: node.x, y: node.y + 12 }, node.sub));
}

function edgeOf(a, b, places) {
  const hot = a.item === graph.op || b.item === graph.op, points = [{ x: a.x, y: a.y + a.h / 2 }, ...places, { x: b.x, y: b.y - b.h / 2 }];
  if (b.y <= a.y) return backEdge(a, b, hot);
  let d = `M${points[0].x} ${points[0].y}`;
  for (let k = 1; k < points.length; k++) {
    const p = points[k - 1], q = points[k], bend = Math.max(10, Math.abs(q.y - p.y) / 2);
    d += `C${p.x} ${p.y + bend} ${q.x} ${q.y - bend} ${q.x} ${q.y}`;
  }
  return make("svg:path", { class: hot ? "edge hot" : "edge", "marker-end": "url(#arrow)", d });
}

// Groups may read one another: the way back goes up beside them.
function backEdge(a, b, hot) {
  const from = { x: a.x + a.w / 2, y: a.y }, to = { x: b.x + b.w / 2, y: b.y }, out = Math.max(from.x, to.x) + 30 + Math.abs(from.y - to.y) / 12;
  return make("svg:path", { class: hot ? "edge back hot" : "edge back", "marker-end": "url(#arrow)", d: `M${from.x} ${from.y}C${out} ${from.y} ${out} ${to.y} ${to.x} ${to.y}` });
}

function crumbs(group) {
  const path = [];
  for (let g = group; g; g = g.parent) path.unshift(g);
  return path.flatMap((g, k) => [k ? document.createTextNode(" / ") : null, make("button", { class: "link", type: "button", onclick: () => enter(g) }, g.label || "(no name)")]).filter(Boolean);
}

function enter(group) {
  graph.mode = "group";
  graph.group = group;
  drawGraph();
}

function legend() {
  if (!D.tint) return [];
  const entry = (at, text) => make("span", {}, make("span", { class: "swatch", style: `background:${D.tint.colour(at)}` }), ` ${text}`);
  if (D.kind === "clusters") return D.comps.slice(1, 13).map((name, c) => entry(c + 1, name));
  if (D.tint === D.tints.collectives) return [entry(1, "moves data between devices")];
  return [entry(0, "begins first"), entry(0.5, "in the middle"), entry(1, "last")];
}

// Shows all where its words can be read, else as much as can be: around the chosen node, or from the top.
const READABLE = 1.6, EASY = 1.25;
function fit(chosen) {
  const canvas = $("canvas"), w = canvas.clientWidth || 800, h = canvas.clientHeight || 500, scale = Math.max(graph.whole.w / w, graph.whole.h / h, 0.75);
  const easy = scale <= READABLE ? scale : EASY, middle = chosen || { x: graph.whole.x + graph.whole.w / 2, y: graph.whole.y + (easy < scale ? easy * h / 2 : graph.whole.h / 2) };
  graph.box = { x: middle.x - easy * w / 2, y: middle.y - easy * h / 2, w: easy * w, h: easy * h };
  view();
}

function view() {
  const b = graph.box;
  $("canvas").setAttribute("viewBox", `${b.x} ${b.y} ${b.w} ${b.h}`);
}

function zoom(factor, px = 0.5, py = 0.5) {
  const b = graph.box;
  if (!b) return;
  graph.box = { x: b.x + b.w * px * (1 - factor), y: b.y + b.h * py * (1 - factor), w: b.w * factor, h: b.h * factor };
  view();
}

function graphPanel() {
  const tool = (text, act) => make("button", { type: "button", onclick: act }, text);
  const canvas = make("svg:svg", { id: "canvas", role: "group", "aria-label": "Graph" }); // dragged by the pointer, zoomed by the wheel
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY }; });
  window.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held || !graph.box) return;
    graph.box.x -= (event.clientX - held.x) * graph.box.w / canvas.clientWidth;
    graph.box.y -= (event.clientY - held.y) * graph.box.h / canvas.clientHeight;
    held = { x: event.clientX, y: event.clientY };
    view();
  });
  return [make("div", { class: "bar-tools" }, tool("Around the op", () => { graph.mode = "near"; drawGraph(); }), tool("Its group", () => {
    graph.mode = "group";
    drawGraph();
  }), tool("Up", () => graph.group && graph.group.parent && enter(graph.group.parent)), tool("+", () => zoom(1 / 1.3)), tool("−", () => zoom(1.3)),
  tool("Fit", () => { const w = $("canvas").clientWidth, h = $("canvas").clientHeight, s = Math.max(graph.whole.w / w, graph.whole.h / h);
    graph.box = { x: graph.whole.x + graph.whole.w / 2 - s * w / 2, y: graph.whole.y + graph.whole.h / 2 - s * h / 2, w: s * w, h: s * h }; view(); }),
  make("span", { id: "graph-path" })), make("p", { id: "graph-note", class: "note" }), make("div", { id: "graph-legend", class: "legend" }), canvas];
}
