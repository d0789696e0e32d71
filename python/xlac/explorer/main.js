// Puts the page together.
const panels = [
  ["overview", "Overview", () => true, (panel) => panel.replaceChildren(...overviewPanel())],
  ["clusters", "Clusters", () => D.kind === "clusters", clustersPanel],
  ["graph", "Graph", () => true, (panel) => { if (!$("canvas")) panel.replaceChildren(...graphPanel()); drawGraph(); }],
  ["stages", "Stages and passes", () => D.kind === "program", stagesPanel],
  ["memory", "Memory", () => $("data-memory"), memoryPanel],
  ["kernels", "Kernels", () => $("data-kernels"), kernelsPanel],
  ["profile", "Profile", () => D.profile, (panel) => panel.replaceChildren(...profilePanel())],
  ["notes", "Sharding and donation", () => $("data-notes") || $("data-sharding"), notesPanel],
];
const done = new Set();

// What comes back is done when the panel is filled.
function tab(name, wanted) {
  let filled = null;
  for (const [id, , , fill] of panels) {
    const button = $("t-" + id), panel = $("p-" + id);
    if (!button) continue;
    const on = id === name;
    button.setAttribute("aria-selected", String(on));
    button.tabIndex = on ? 0 : -1;
    panel.hidden = !on;
    if (on && (id === "graph" || wanted || !done.has(id))) { done.add(id); filled = fill(panel, wanted); }
  }
  return filled;
}

function makeTabs() {
  for (const [id, label, there] of panels) {
    if (!there()) continue;
    $("tabs").append(make("button", { role: "tab", id: "t-" + id, "aria-controls": "p-" + id, type: "button", onclick: () => tab(id) }, label));
    $("panels").append(make("div", { role: "tabpanel", id: "p-" + id, "aria-labelledby": "t-" + id, tabindex: 0, hidden: true }));
  }
  $("tabs").addEventListener("keydown", (event) => {
    const all = [...$("tabs").children], at = all.indexOf(document.activeElement), by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || at < 0) return;
    const next = all[(at + by + all.length) % all.length];
    next.focus();
    next.click();
  });
}

// An op or a group was chosen, somewhere.
function select(item) {
  if (!isGroup(item)) {
    graph.op = item;
    if (graph.mode === "near" || !owned(item)) graph.mode = "near";
  } else {
    graph.mode = "group";
    graph.group = item;
  }
  showDetails(item);
  if (!$("p-graph").hidden) drawGraph();
}

const owned = (item) => graph.group && graph.group.children.length <= MOST_NODES && graph.group.children.includes(item);

// Chooses an op, and shows it in the tree: the groups around it are opened.
function reveal(item) {
  $("search").value = "";
  if (tree.rows.length && !tree.rows.some((row) => isGroup(row.item))) regroup($("group").value);
  const above = [];
  const path = (group, target) => { for (const child of group.children) { if (child === target) return true; if (isGroup(child) && child.count && path(child, target)) { above.unshift(child); return true; } } return false; };
  path(tree.root, item);
  for (const group of above) {
    const k = tree.rows.findIndex((row) => row.item === group);
    if (k >= 0) expand(k);
  }
  const k = tree.rows.findIndex((row) => row.item === item);
  drawTree();
  if (k >= 0) choose(k, true);
  select(item);
}

function setTheme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  $("theme").textContent = dark ? "Dark" : "Light";
}

async function start() {
  await open();
  $("title").textContent = D.name || "(a program without a name)";
  $("summary").textContent = [counted(D.ops.name.length, "op"), counted(D.comps.length, D.kind === "clusters" ? "cluster" : "computation"), ...(D.steps ? [counted(D.steps.length, "step")] : [])].join(", ");
  const groups = D.kind === "clusters" ? { scope: "name scope", call: "cluster" } : D.steps ? groupings : { scope: "name scope", call: "calls" };
  $("group").append(...Object.entries(groups).map(([value, label]) => make("option", { value }, label)));
  $("colour").append(make("option", { value: "" }, "nothing"), ...[...Object.keys(D.tints), ...Object.keys(D.measures)].map((name) => make("option", { value: name }, name)));
  $("colour").value = D.profile ? "time" : D.tints.cluster ? "cluster" : D.tints.collectives ? "collectives" : "";
  measure($("colour").value);
  makeTabs();
  const scoped = D.scopes.name.length > 1;
  $("group").value = scoped && D.kind !== "clusters" ? "scope" : "call";
  $("group").addEventListener("change", () => { graph.group = null; $("search").value = ""; regroup($("group").value); drawGraph(); });
  $("colour").addEventListener("change", () => { measure($("colour").value); drawTree(); drawGraph(); });
  $("search").addEventListener("input", () => search($("search").value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { $("tree").focus(); choose(0); event.preventDefault(); } });
  $("theme").addEventListener("click", setTheme);
  $("theme").textContent = matchMedia("(prefers-color-scheme: dark)").matches ? "Light" : "Dark";
  $("tree").addEventListener("keydown", treeKey);
  $("tree").addEventListener("scroll", () => requestAnimationFrame(drawTree), { passive: true });
  window.addEventListener("resize", () => { drawTree(); if (graph.whole) fit(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { $("search").focus(); event.preventDefault(); }
  });
  regroup($("group").value);
  $("details").replaceChildren(make("p", { class: "note" }, "Choose an op or a group: what is known of it stands here. / searches; arrows walk the tree."));
  await tab(D.profile ? "profile" : D.kind === "clusters" ? "clusters" : "overview");
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
start();
