// The tree of ops: by name scopes, by calls, or by what runs them. Only the rows in sight are in the document.
const ROW = 24;
const groupings = { scope: "name scope", call: "calls", step: "kernels and steps" };
// A group: its name, its kind, and when asked for its children, which are groups or numbers of ops.
const tree = { rows: [], chosen: -1, root: null, found: null };

function scopeGroups() {
  const n = D.scopes.name.length, groups = [];
  for (let s = 0; s < n; s++) groups.push({ kind: "scope", id: s, label: D.scopes.name[s] || D.name, children: [], count: 0, parent: null });
  for (let s = 1; s < n; s++) {
    groups[s].parent = groups[D.scopes.parent[s]];
    groups[s].parent.children.push(groups[s]);
  }
  D.ops.scope.forEach((s, i) => groups[s].children.push(i));
  for (let s = n - 1; s >= 0; s--) {
    for (const child of groups[s].children) groups[s].count += typeof child === "number" ? 1 : child.count;
  }
  return groups[0];
}

// Computations that an op calls are below it; those that nobody calls are at the top, the entry first.
function callGroups() {
  const groups = D.comps.map((name, id) => ({ kind: "call", id, label: name, children: [], count: 0, parent: null }));
  const byName = new Map(groups.map((group) => [group.label, group])), called = new Set();
  D.ops.comp.forEach((c, i) => { groups[c].children.push(i); groups[c].count++; });
  D.calls = new Map();
  for (const [op, names] of Object.entries(D.called)) {
    const targets = names.map((name) => byName.get(name)).filter(Boolean);
    D.calls.set(Number(op), targets);
    for (const target of targets) called.add(target);
  }
  const top = groups.filter((group) => !called.has(group));
  if (D.kind !== "clusters") top.reverse(); // the entry is the last computation
  return { kind: "root", label: D.name, children: top, count: D.ops.name.length, parent: null };
}

function stepGroups() {
  const rest = new Set(D.ops.name.keys()), top = [];
  (D.steps || []).forEach((step, id) => {
    step[3].forEach((op) => rest.delete(op));
    top.push({ kind: "step", id, label: `${step[2]} ${step[1]}`, children: step[3], count: step[3].length, parent: null });
  });
  if (rest.size) top.push({ kind: "rest", label: "in no step of the entry", children: [...rest], count: rest.size, parent: null });
  return { kind: "root", label: D.name, children: top, count: D.ops.name.length, parent: null };
}

const makers = { scope: scopeGroups, call: callGroups, step: stepGroups };
function regroup(name) {
  tree.root = makers[name]();
  tree.home = new Array(D.ops.name.length);
  const settle = (group) => { for (const child of group.children) if (isGroup(child)) { child.parent = child.parent || group; settle(child); } else tree.home[child] = group; };
  settle(tree.root);
  tree.found = null;
  tree.rows = childRows(tree.root, 1);
  unfold();
  tree.chosen = -1;
  drawTree();
  say();
}

// The largest groups are open at first, as long as what is in them can be overlooked.
const MOST_AT_FIRST = 24;
function unfold() {
  for (;;) {
    const open = tree.rows.map((row, k) => [row, k]).filter(([row]) => isGroup(row.item) && !row.open && row.item.count >= 0.5 * tree.root.count);
    const small = open.find(([row]) => row.item.children.some(isGroup) && tree.rows.length + row.item.children.length <= MOST_AT_FIRST);
    if (!small) break;
    expand(small[1]);
  }
  if (tree.rows.length === 1 && !tree.rows[0].open) expand(0);
}

const isGroup = (item) => typeof item !== "number";
const childrenOf = (item) => isGroup(item) ? item.children : (D.calls && $("group").value === "call" && D.calls.get(item)) || [];
const childRows = (item, level) => childrenOf(item).map((child, k, all) => ({ item: child, level, open: false, at: k + 1, of: all.length }));

function expand(k) {
  const row = tree.rows[k];
  if (!row || row.open || !childrenOf(row.item).length || row.level > 60) return;
  row.open = true;
  const below = childRows(row.item, row.level + 1);
  tree.rows = tree.rows.slice(0, k + 1).concat(below, tree.rows.slice(k + 1));
}

function collapse(k) {
  const row = tree.rows[k];
  let end = k + 1;
  while (end < tree.rows.length && tree.rows[end].level > row.level) end++;
  tree.rows.splice(k + 1, end - k - 1);
  row.open = false;
}

function toggle(k) {
  if (tree.rows[k].open) collapse(k); else expand(k);
  drawTree();
}

// What a group weighs, kept by measure.
function weightOf(item) {
  if (!D.weight) return 0;
  if (!isGroup(item)) return D.weight[item];
  if (item.weighed === D.weight) return item.weight;
  let sum = 0;
  for (const child of item.children) sum += weightOf(child);
  item.weighed = D.weight;
  return (item.weight = sum);
}

function rowElement(row, k) {
  const item = row.item, group = isGroup(item), kids = childrenOf(item).length;
  const label = group ? item.label || "(no name)" : labelOf(item);
  const whole = D.weight ? weightOf(tree.root) || 1 : 1, share = D.weight ? weightOf(item) / whole : 0;
  const element = make("div", { class: "row", role: "treeitem", id: "row" + k, style: `top:${k * ROW}px;padding-left:${row.level * 14 - 10}px`,
    "aria-level": row.level, "aria-posinset": row.at, "aria-setsize": row.of, "aria-selected": k === tree.chosen ? "true" : "false",
    "aria-expanded": kids ? String(row.open) : null, title: group ? label : `${label}: ${typeOf(item)}` },
    make("span", { class: "twist", "aria-hidden": "true" }, kids ? (row.open ? "▾" : "▸") : ""),
    make("span", { class: "label" }, label),
    make("span", { class: "code" }, group ? counted(item.count, "op") : opcodeOf(item)),
    make("span", { class: "size" }, D.weight ? (weightOf(item) ? D.unit(weightOf(item)) : "") : group ? "" : typeOf(item).slice(0, 24)));
  if (D.weight && share > 0) element.append(make("span", { class: "bar", "aria-hidden": "true" }, make("span", { style: `width:${100 * share}%` })));
  element.addEventListener("click", (event) => {
    if (event.target.classList.contains("twist") && kids) return toggle(k);
    choose(k);
  });
  element.addEventListener("dblclick", () => kids && toggle(k));
  return element;
}

function drawTree() {
  const box = $("tree"), rows = $("rows");
  box.style.setProperty("--rows", tree.rows.length);
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 8), last = Math.min(tree.rows.length, first + Math.ceil(box.clientHeight / ROW) + 20);
  rows.style.height = `${tree.rows.length * ROW}px`;
  rows.replaceChildren(...tree.rows.slice(first, last).map((row, k) => rowElement(row, first + k)));
  const shown = tree.chosen >= first && tree.chosen < last;
  if (shown) box.setAttribute("aria-activedescendant", "row" + tree.chosen); else box.removeAttribute("aria-activedescendant");
}

function choose(k, quiet) {
  if (k < 0 || k >= tree.rows.length) return;
  tree.chosen = k;
  const box = $("tree"), top = k * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
  drawTree();
  if (!quiet) select(tree.rows[k].item);
}

function treeKey(event) {
  const k = tree.chosen, row = tree.rows[k], page = Math.max(1, Math.floor($("tree").clientHeight / ROW) - 1);
  const moves = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: tree.rows.length - 1, PageDown: Math.min(k + page, tree.rows.length - 1),
    PageUp: Math.max(k - page, 0) };
  if (event.key in moves) choose(Math.max(0, moves[event.key]));
  else if (event.key === "ArrowRight" && row) row.open || !childrenOf(row.item).length ? choose(k + 1) : toggle(k);
  else if (event.key === "ArrowLeft" && row) {
    let up = k;
    while (up >= 0 && tree.rows[up].level >= row.level) up--;
    row.open ? toggle(k) : choose(up);
  } else if ((event.key === "Enter" || event.key === " ") && row) { childrenOf(row.item).length ? toggle(k) : select(row.item); }
  else return;
  event.preventDefault();
}

function say(text) {
  $("status").textContent = text || `${counted(D.ops.name.length, "op")} in ${counted(D.comps.length, D.kind === "clusters" ? "cluster" : "computation")}`;
}

// Ops whose name, opcode, type, scope or file has all the words; in place of the tree, until the box is empty.
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return regroup($("group").value);
  if (!D.haystack) {
    const scopes = D.scopes.name.map((_, s) => scopeName(s).toLowerCase());
    D.haystack = D.ops.name.map((name, i) => `${name} ${D.labels[i] || ""} ${opcodeOf(i)} ${typeOf(i)} ${scopes[D.ops.scope[i]]} ${fileOf(i)}`.toLowerCase());
  }
  const found = [];
  D.haystack.forEach((line, i) => { if (words.every((word) => line.includes(word))) found.push(i); });
  tree.rows = found.map((item, k) => ({ item, level: 1, open: false, at: k + 1, of: found.length }));
  tree.chosen = -1;
  $("tree").scrollTop = 0;
  drawTree();
  say(`${counted(found.length, "op")} found`);
}
