// The panels beside the graph, and what is said of the chosen op.
const number = (text) => make("td", { class: "n" }, text);
const cell = (content) => make("td", {}, content);
const opLink = (i) => make("button", { class: "link mono", type: "button", onclick: () => reveal(i) }, labelOf(i));

// A table with a caption and a head; names in `right` are columns of numbers. Columns with nothing in them are left out.
function table(caption, head, rows, right = []) {
  const kept = head.map((_, k) => !rows.length || rows.some((row) => row[k].textContent || row[k].firstElementChild));
  head = head.filter((_, k) => kept[k]);
  rows = rows.map((row) => row.filter((_, k) => kept[k]));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col", class: right.includes(name) ? "n" : null }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row)))));
}

// --- overview ---

function overviewPanel() {
  const out = [];
  if (D.partitioned) out.push(make("p", { class: "note" }, "This program is for several devices. What each of them runs is shown, with the collectives that its shardings need." + (D.staged ? " Stages and passes has the way there." : "")));
  else if (D.why_not) out.push(make("p", { class: "note" }, `This program could not be compiled, so it is shown as it is: ${D.why_not}`));
  if (D.plan) {
    const plan = D.plan;
    out.push(make("h2", {}, "How it runs"), make("dl", {}, ...Object.entries({ device: plan.device, numerics: plan.numerics,
      steps: `${plan.all}: ${counted(plan.kernels, "kernel")}, ${counted(plan.routines, "routine")}, ${plan.interpreted} interpreted`, "interpreted, since": plan.why_interpreted,
      BLAS: plan.blas, flops: short(D.totals.flops), "elementary functions": short(D.totals.transcendentals), read: bytesText(D.totals.bytes_read),
      written: bytesText(D.totals.bytes_written) }).filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])));
  }
  if (D.ports) out.push(make("h2", {}, "What it takes and gives"), portTable());
  out.push(make("h2", {}, "Ops by opcode"), opcodeTable());
  if (D.cost) out.push(make("h2", {}, "What costs most"), costTable());
  return out;
}

function portTable() {
  const rows = D.ports.flatMap((side, k) => side.map((port) => [cell(k ? "output" : "input"), cell(make("code", {}, port[0])), cell(make("code", {}, port[1])),
    cell(port[4] || ""), cell(port[5] ? (k ? "takes an input's memory" : "may be donated") + (port[6] === null ? "" : `: ${k ? "input" : "output"} ${port[6]}`) : "")]));
  return table("Parameters and results", ["what", "name", "type", "sharding", "donation"], rows);
}

function opcodeTable() {
  const count = new Map();
  D.ops.opcode.forEach((code, i) => { const row = count.get(code) || [0, 0, 0]; row[0]++; row[1] += D.ops.bytes[i]; row[2] += D.cost && D.cost[i] ? D.cost[i][0] : 0; count.set(code, row); });
  const rows = [...count].sort((a, b) => b[1][0] - a[1][0]).slice(0, 40).map(([code, [n, bytes, flops]]) => [cell(make("button", { class: "link mono", type: "button",
    onclick: () => { $("search").value = D.strings.opcode[code]; search($("search").value); } }, D.strings.opcode[code])), number(short(n)), number(bytes ? bytesText(bytes) : ""), number(flops ? short(flops) : "")]);
  return table("Choosing one searches for it", ["opcode", "ops", "bytes of results", "flops"], rows, ["ops", "bytes of results", "flops"]);
}

function costTable() {
  const dear = Object.entries(D.cost).map(([i, c]) => [Number(i), c, c[0] + 10 * c[1] + c[2] + c[3]]).sort((a, b) => b[2] - a[2]).slice(0, 25);
  return table("By operations and bytes; loops count once", ["op", "opcode", "scope", "flops", "functions", "read", "written"],
    dear.map(([i, c]) => [cell(opLink(i)), cell(opcodeOf(i)), cell(scopeName(D.ops.scope[i])), number(short(c[0])), number(short(c[1])), number(bytesText(c[2])), number(bytesText(c[3]))]),
    ["flops", "functions", "read", "written"]);
}

// --- stages ---

const CONTEXT = 3, MOST_LINES = 3000;
async function stagesPanel(panel) {
  const texts = await part("texts"), stages = texts.stages;
  if (!stages.length) return panel.replaceChildren(make("p", { class: "note" }, "There are no states of a program here."));
  const pick = (id, chosen) => make("select", { id, onchange: show }, ...stages.map((stage, k) => make("option", { value: k, selected: k === chosen }, `${k}: ${stage.name}${stage.same ? " (no change)" : ""}`)));
  const all = make("input", { type: "checkbox", id: "stage-all", onchange: show });
  const view = make("div", {}), count = make("span", { role: "status" });
  if (stages.length === 1) return panel.replaceChildren(make("p", { class: "note" }, "An executable keeps only the program that it runs, which is below. To see what each pass changed, explore the program "
    + "itself: xlac.explore(jax.jit(f).lower(...), *arguments), or its text."), make("pre", { tabindex: 0 }, stages[0].lines.slice(0, MOST_LINES).map((k) => texts.lines[k]).join("\n")));
  const form = (stage) => texts.lines[stage.lines[0]].split(" ")[0], changes = stages.map((stage, k) => k > 0 && !stage.same && form(stage) === form(stages[k - 1]));
  const last = changes.lastIndexOf(true) > 0 ? changes.lastIndexOf(true) : stages.length - 1; // the last whose difference says something
  const before = pick("stage-a", last - 1), after = pick("stage-b", last);
  const step = (by) => { const k = Math.min(stages.length - 1, Math.max(1, Number(after.value) + by)); after.value = k; before.value = k - 1; show(); };
  panel.replaceChildren(make("div", { class: "bar-tools" }, make("label", { for: "stage-a" }, "From"), before, make("label", { for: "stage-b" }, "to"), after,
    make("button", { type: "button", onclick: () => step(-1) }, "Pass before"), make("button", { type: "button", onclick: () => step(1) }, "Next pass"), all,
    make("label", { for: "stage-all" }, "all lines"), count), view);
  function show() {
    const a = stages[before.value].lines, b = stages[after.value].lines, rows = diff(a, b);
    const gone = rows.filter((row) => row[1] < 0).length, come = rows.filter((row) => row[0] < 0).length;
    count.textContent = gone + come ? `${gone} lines go, ${come} come` : "nothing changes";
    view.replaceChildren(diffView(texts.lines, a, b, rows, all.checked));
  }
  show();
}

function diffView(lines, a, b, rows, all) {
  const changed = rows.map(([i, j]) => i < 0 || j < 0), near = new Uint8Array(rows.length);
  changed.forEach((is, k) => { if (is) near.fill(1, Math.max(0, k - CONTEXT), k + CONTEXT + 1); });
  const box = make("div", { class: "diff" });
  let hidden = 0, shown = 0;
  const gap = () => { if (hidden) box.append(make("div", { class: "gap" }, `${hidden} lines that are the same`)); hidden = 0; };
  const side = (list, k, kind) => [make("span", { class: "no" }, k < 0 ? "" : String(k + 1)), make("span", { class: k < 0 ? "" : kind }, k < 0 ? "" : (kind === "del" ? "− " : kind === "add" ? "+ " : "") + lines[list[k]])];
  for (let k = 0; k < rows.length; k++) {
    if (!all && !near[k]) { hidden++; continue; }
    gap();
    if (++shown > MOST_LINES) { box.append(make("div", { class: "gap" }, `${rows.length - k} lines more are not shown`)); break; }
    const [i, j] = rows[k];
    box.append(...side(a, i, j < 0 ? "del" : ""), ...side(b, j, i < 0 ? "add" : ""));
  }
  gap();
  return box;
}

// --- memory ---

async function memoryPanel(panel) {
  const memory = await part("memory");
  if (!memory || !memory.live.length) return panel.replaceChildren(make("p", { class: "note" }, "This program has no frame: its values are arguments, results and constants."));
  const steps = memory.live.length, most = Math.max(...memory.live, 1), list = make("div", {}), label = make("label", { for: "step" });
  const slider = make("input", { type: "range", id: "step", min: 0, max: steps - 1, value: memory.peak, oninput: () => at(Number(slider.value)) });
  const line = make("svg:line", { class: "now", y1: 0, y2: 160 });
  const chart = make("svg:svg", { class: "chart", viewBox: "0 0 1000 190", preserveAspectRatio: "none", role: "img", "aria-label": `Bytes in use over ${steps} steps, at most ${bytesText(most)} at step ${memory.peak}` },
    make("svg:path", { class: "area", d: area(memory.live, most) }), line);
  chart.addEventListener("click", (event) => { const box = chart.getBoundingClientRect(); at(Math.floor((event.clientX - box.left) / box.width * steps)); });
  panel.replaceChildren(make("dl", {}, ...Object.entries(memory.sizes).flatMap(([name, value]) => [make("dt", {}, name.replace("_bytes", "")), make("dd", {}, bytesText(value))])),
    make("h2", {}, "Memory over time"), make("p", { class: "note" }, `From 0 to ${bytesText(most)}; steps 0 to ${steps - 1}. What is alive at a step is listed below; the peak is chosen at first.`), chart, label, slider, list);
  function at(step) {
    step = Math.max(0, Math.min(steps - 1, step));
    slider.value = step;
    const x = 1000 * (step + 0.5) / steps;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    label.textContent = `Step ${step} of ${steps - 1}: ${memory.steps[step]}, ${bytesText(memory.live[step])} in use`;
    const live = memory.buffers.filter((b) => b[0] === "frame" && b[2] <= step && step <= b[3]).sort((p, q) => q[1] - p[1]);
    list.replaceChildren(table(`What is alive at step ${step}, the largest first`, ["op", "type", "bytes", "from step", "to step", "scope"], live.slice(0, 200).map((b) => {
      const i = D.byName.get(b[4]);
      return [cell(i === undefined ? b[4] || "—" : opLink(i)), cell(make("code", {}, b[5])), number(bytesText(b[1])), number(String(b[2])), number(String(b[3])), cell(i === undefined ? "" : scopeName(D.ops.scope[i]))];
    }), ["bytes", "from step", "to step"]));
  }
  at(memory.peak);
}

// The outline of at most a thousand columns, each as high as the highest step in it.
function area(live, most) {
  const n = Math.min(1000, live.length), points = [];
  for (let k = 0; k < n; k++) {
    const from = Math.floor(k * live.length / n), to = Math.max(from + 1, Math.floor((k + 1) * live.length / n));
    let high = 0;
    for (let s = from; s < to; s++) high = Math.max(high, live[s]);
    const y = 160 - 155 * high / most;
    points.push(`${1000 * k / n} ${y}L${1000 * (k + 1) / n} ${y}`);
  }
  return `M0 160L${points.join("L")}L1000 160z`;
}

// --- kernels ---

async function kernelsPanel(panel, wanted) {
  const kernels = await part("kernels");
  if (!kernels || !kernels.length) return panel.replaceChildren(make("p", { class: "note" }, "This program has no kernels."));
  const text = make("pre", { tabindex: 0 }), title = make("h2", {});
  const items = kernels.map(([where], k) => make("button", { type: "button", onclick: () => show(k) }, where));
  function show(k) {
    items.forEach((item, i) => { if (i === k) item.setAttribute("aria-current", "true"); else item.removeAttribute("aria-current"); });
    title.textContent = kernels[k][0];
    text.textContent = kernels[k][1];
    items[k].scrollIntoView({ block: "nearest" });
  }
  panel.replaceChildren(make("p", { class: "note" }, "Each kernel as xlac writes it, and below it the machine code that runs it, where there is some."),
    make("div", { class: "two" }, make("div", { class: "list" }, ...items), make("div", {}, title, text)));
  const found = wanted ? kernels.findIndex(([where]) => where === wanted) : 0;
  show(Math.max(0, found));
}

// --- profile ---

function profilePanel() {
  const p = D.profile, most = Math.max(...p.rows.map((row) => row[4]), 1e-12);
  return [make("p", { class: "note" }, `${seconds(p.seconds)} a call, the median of ${p.calls}; ${seconds(p.least)} at least. Rows of loops and calls hold those inside them.`), ...timelineOf(p),
    table("What a call runs, the longest first", ["what", "time", "share", "bar", "by", "scope", "source", "times", "least"], p.rows.slice(0, 300).map((row) => {
      const i = row[6].length ? row[6][row[6].length - 1] : -1;
      return [cell(row[6].length === 1 ? opLink(i) : row[0]), number(seconds(row[4])), number(`${(100 * row[4] / p.seconds).toFixed(1)}%`),
        cell(make("span", { class: "meter", style: `width:${Math.max(1, Math.round(60 * row[4] / most))}px` })), cell(row[1]), cell(i < 0 ? "" : scopeName(D.ops.scope[i])),
        cell(i < 0 ? "" : source(i)), number(String(row[3])), number(seconds(row[5]))];
    }), ["time", "share", "times", "least"])];
}

// What ran when in one call: a bar for each step, those inside others below them, as dark as they are long.
const MOST_BARS = 2000, LANE_HEIGHT = 22;
function timelineOf(p) {
  const events = p.events.slice(0, MOST_BARS);
  if (events.length < 2) return [];
  const end = Math.max(...events.map((e) => e[3] + e[4])), longest = Math.max(...events.map((e) => e[4])), lanes = 1 + Math.max(...events.map((e) => e[2]));
  const chart = make("svg:svg", { class: "chart timeline", viewBox: `0 0 1000 ${lanes * LANE_HEIGHT}`, style: `height:${lanes * LANE_HEIGHT}px`, preserveAspectRatio: "none", role: "img",
    "aria-label": `When ${events.length} steps ran, in ${seconds(end)}; the table has the same by op` },
  ...events.map((e) => make("svg:rect", { x: 1000 * e[3] / end, y: e[2] * LANE_HEIGHT, width: Math.max(0.4, 1000 * e[4] / end), height: LANE_HEIGHT - 3,
    style: `fill:rgba(var(--heat),${(0.25 + 0.75 * e[4] / longest).toFixed(2)})`, onclick: () => e[1] >= 0 && reveal(e[1]) }, make("svg:title", {}, `${e[0]}: at ${seconds(e[3])}, ${seconds(e[4])}`))));
  const tick = (k) => make("span", {}, k ? seconds(end * k / 4) : "0");
  return [make("h2", {}, "When it ran"), make("p", { class: "note" }, `One call${p.events.length > MOST_BARS ? `, its first ${MOST_BARS} steps` : ""}. Choosing a bar chooses its op; “when it runs” colours the graph by the same.`),
    chart, make("div", { class: "ticks", "aria-hidden": "true" }, ...[0, 1, 2, 3, 4].map(tick))];
}

const source = (i) => fileOf(i) ? `${fileOf(i).split("/").pop()}:${D.ops.line[i]}` : "";

// --- clusters ---

async function clustersPanel(panel) {
  const reasons = await part("reasons"), count = new Array(D.comps.length).fill(0);
  D.ops.comp.forEach((c) => { count[c]++; });
  const rows = D.comps.map((name, c) => [cell(make("button", { class: "link mono", type: "button", onclick: () => showCluster(c) }, name)), number(String(count[c])),
    cell(c ? make("span", { class: "swatch", style: `background:${hueOf(c)}` }) : "")]);
  const some = (nodes) => make("span", {}, ...nodes.slice(0, 12).flatMap((i, k) => [k ? ", " : "", opLink(i)]), nodes.length > 12 ? ` and ${nodes.length - 12} more` : "");
  panel.replaceChildren(table("Clusters, and the nodes in none", ["cluster", "nodes", "colour"], rows, ["nodes"]), make("h2", {}, "Why nodes are in no cluster"),
    table("Reasons, the most frequent first", ["nodes", "why", "which"], reasons.rows.map(([why, nodes]) => [number(String(nodes.length)), cell(why), cell(some(nodes))]), ["nodes"]),
    reasons.left ? make("p", { class: "note" }, `${reasons.left} nodes more were not asked.`) : "");
}

function showCluster(c) {
  $("group").value = "call";
  regroup("call");
  tab("graph");
  enter(tree.root.children.find((group) => group.id === c));
}

// --- sharding, donation, fusion ---

async function notesPanel(panel) {
  const notes = await part("notes"), sharding = await part("sharding"), out = [];
  if (sharding) {
    const sent = sharding.bytes.reduce((a, b) => a + b, 0);
    out.push(make("h2", {}, `Collectives that the shardings imply: ${sharding.reshards.length}, ${bytesText(sent)}`), make("pre", {}, sharding.reshards.join("\n") || "none"));
    if (sharding.suspicions.length) out.push(make("h2", {}, "Probably mistakes"), make("pre", {}, sharding.suspicions.join("\n")));
  }
  if (notes && notes.devices) out.push(make("h2", {}, "On its devices"), make("pre", {}, notes.devices));
  const marked = Object.entries(D.sharding);
  if (marked.length) out.push(table("Ops with a sharding", ["op", "sharding"], marked.slice(0, 500).map(([i, s]) => [cell(opLink(Number(i))), cell(make("code", {}, D.strings.sharding[s]))])));
  if (notes) out.push(make("h2", {}, "Donation: which results take the memory of arguments, and why others do not"), make("pre", {}, notes.donation || "nothing is donated"),
    make("h2", {}, "Fusion: which ops are one kernel, and why"), make("pre", {}, notes.fusion));
  panel.replaceChildren(...(out.length ? out : [make("p", { class: "note" }, "Nothing to say.")]));
}

// --- the chosen op ---

async function showDetails(item) {
  const box = $("details"), rows = [];
  const row = (name, value) => { if (value !== "" && value !== null && value !== undefined) rows.push(make("dt", {}, name), make("dd", {}, value)); };
  if (isGroup(item)) {
    row("ops", String(item.count));
    if (D.weight) row($("colour").value, D.unit(weightOf(item)));
    return box.replaceChildren(make("h2", {}, item.label || D.name), make("dl", {}, ...rows), make("button", { type: "button", onclick: () => { tab("graph"); enter(item); } }, "Show its graph"));
  }
  const cost = D.cost && D.cost[item], links = (list) => make("span", {}, ...list.slice(0, 40).flatMap((i, k) => [k ? ", " : "", opLink(i)]), list.length > 40 ? `, and ${list.length - 40} more` : "");
  row("opcode", opcodeOf(item));
  row("type", make("code", {}, typeOf(item)));
  row("bytes", D.ops.bytes[item] ? bytesText(D.ops.bytes[item]) : "");
  row("scope", scopeName(D.ops.scope[item]));
  row("source", fileOf(item) ? `${fileOf(item)}:${D.ops.line[item]}` : "");
  row(D.kind === "clusters" ? "cluster" : "computation", D.comps[D.ops.comp[item]]);
  row("sharding", item in D.sharding ? make("code", {}, D.strings.sharding[D.sharding[item]]) : "");
  if (cost) { row("flops", short(cost[0])); row("functions", cost[1] ? short(cost[1]) : ""); row("read", bytesText(cost[2])); row("written", bytesText(cost[3])); }
  if (D.profile) row("time", D.measures.time(item) ? `${seconds(D.measures.time(item))}, ${(100 * D.measures.time(item) / D.profile.seconds).toFixed(1)}%` : "");
  const inside = D.inside && D.inside[item];
  if (inside) row("runs in", make("button", { class: "link", type: "button", onclick: () => openKernel(inside) }, `${D.programs[inside[0]]}, step ${inside[1]}`));
  row("operands", D.operands[item].length ? links(D.operands[item]) : "");
  row("users", usersOf(item).length ? links(usersOf(item)) : "");
  row("calls", (D.called[item] || []).join(", "));
  if (D.kind === "clusters" && !D.ops.comp[item]) row("why in none", ((await part("reasons")).rows.find(([, nodes]) => nodes.includes(item)) || [""])[0]);
  const text = make("pre", {});
  box.replaceChildren(make("h2", {}, labelOf(item)), make("dl", {}, ...rows), text,
    make("button", { type: "button", onclick: () => { tab("graph"); graph.mode = "near"; graph.op = item; drawGraph(); } }, "Show what is around it"));
  const texts = await part("texts"), stage = texts.stages[texts.stages.length - 1], at = D.ops.text[item];
  if (stage && at >= 0) text.textContent = texts.lines[stage.lines[at]].trim(); else text.remove();
}

async function openKernel([program, step]) {
  const kernels = await part("kernels"), wanted = (kernels || []).map((k) => k[0]).find((where) => where.startsWith(`${D.programs[program]}, step ${step}:`));
  tab("kernels", wanted);
}
