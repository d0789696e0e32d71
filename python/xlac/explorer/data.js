// The data of the page: unpacked, and turned into what the panels ask for.
const $ = (id) => document.getElementById(id);
const svgNs = "http://www.w3.org/2000/svg";

// An element with attributes ("on..." are listeners) and children; text is text, never markup.
function make(tag, attributes, ...children) {
  const svg = tag.startsWith("svg:");
  const node = svg ? document.createElementNS(svgNs, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

async function unpack(name) {
  const node = $("data-" + name);
  if (!node) return null;
  const text = atob(node.textContent), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const parts = {};  // promises of parts that were asked for
function part(name) {
  parts[name] = parts[name] || unpack(name);
  return parts[name];
}

let D = null;  // the part "main", and what is worked out from it
const units = ["", "k", "M", "G", "T", "P"];
function short(x) {
  let u = 0;
  while (Math.abs(x) >= 1000 && u < 5) { x /= 1000; u++; }
  return (u || !Number.isInteger(x) ? x.toPrecision(3).replace(/\.?0+$/, "") : String(x)) + units[u];
}
const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
const bytesText = (x) => short(x) + "B";
function seconds(x) {
  for (const [unit, scale] of [["s", 1], ["ms", 1e3], ["µs", 1e6]]) if (x * scale >= 1) return (x * scale).toPrecision(3) + " " + unit;
  return (x * 1e9).toPrecision(3) + " ns";
}

const labelOf = (i) => D.labels[i] || D.ops.name[i];
const opcodeOf = (i) => D.strings.opcode[D.ops.opcode[i]];
const typeOf = (i) => D.strings.type[D.ops.type[i]];
const fileOf = (i) => D.strings.file[D.ops.file[i]];
function scopeName(s) {
  const names = [];
  for (; s > 0; s = D.scopes.parent[s]) names.unshift(D.scopes.name[s]);
  return names.join("/");
}

// Users as offsets into one array: computed when first asked for.
function usersOf(i) {
  if (!D.users) {
    const n = D.ops.name.length, start = new Int32Array(n + 1);
    for (const list of D.operands) for (const o of list) start[o + 1]++;
    for (let k = 0; k < n; k++) start[k + 1] += start[k];
    const fill = start.slice(), all = new Int32Array(start[n]);
    D.operands.forEach((list, user) => { for (const o of list) all[fill[o]++] = user; });
    D.users = { start, all };
  }
  return [...new Set(D.users.all.subarray(D.users.start[i], D.users.start[i + 1]))];
}

// What ops can be coloured by, in numbers: a name, and a function of an op.
function measures() {
  const found = { "bytes of the result": (i) => D.ops.bytes[i] };
  if (D.cost) {
    found["flops"] = (i) => D.cost[i] ? D.cost[i][0] + D.cost[i][1] : 0;
    found["bytes moved"] = (i) => D.cost[i] ? D.cost[i][2] + D.cost[i][3] : 0;
  }
  if (D.profile) {
    const spent = new Map();
    for (const row of D.profile.rows) if (!row[9] && row[6].length) spent.set(row[6][row[6].length - 1], row[4]);
    found["time"] = (i) => spent.get(i) || 0;
  }
  return found;
}

// Colours that are no sum: when an op begins in a call, from early to late, and which cluster a node is in.
const hueOf = (c) => `hsl(${(c * 137 + 200) % 360} 65% 55%)`;
function tints() {
  const found = {};
  if (D.kind === "clusters") found.cluster = { of: (i) => D.ops.comp[i] || null, colour: (c) => hueOf(c) };
  const moving = D.strings.opcode.map((name) => /^(all-|reduce-scatter|collective-|ragged-all|send|recv)/.test(name));
  if (moving.includes(true)) found.collectives = { of: (i) => moving[D.ops.opcode[i]] ? 1 : null, colour: () => "hsl(340 75% 55%)" };
  if (D.profile && D.profile.events.length > 1) {
    const first = new Map(), end = Math.max(...D.profile.events.map((e) => e[3] + e[4]));
    for (const e of D.profile.events) if (e[1] >= 0 && !first.has(e[1])) first.set(e[1], e[3] / end);
    const stepOf = (i) => D.inside && D.inside[i] && D.inside[i][0] === 0 ? D.steps[D.inside[i][1]][0] : i;
    found["when it runs"] = { of: (i) => first.get(i) ?? first.get(stepOf(i)) ?? null, colour: (at) => `hsl(${(220 + 160 * at) % 360} 70% 55%)` };
  }
  return found;
}

// The tint of an op, or of a group: the first of those in it for times, and the one that all have for clusters.
function tintOf(item) {
  if (!D.tint) return null;
  if (!isGroup(item)) return D.tint.of(item);
  if (item.tinted === D.tint) return item.tintAt;
  const all = item.children.map(tintOf).filter((at) => at !== null);
  item.tinted = D.tint;
  return (item.tintAt = !all.length ? null : D.kind === "clusters" ? (all.every((at) => at === all[0]) ? all[0] : null) : Math.min(...all));
}

function measure(name) {
  D.tint = D.tints[name] || null;
  const of = name && D.measures[name];
  if (!of) { D.weight = null; D.most = 0; return; }
  const n = D.ops.name.length;
  D.weight = new Float64Array(n);
  D.most = 0;
  for (let i = 0; i < n; i++) {
    D.weight[i] = of(i);
    if (D.weight[i] > D.most) D.most = D.weight[i];
  }
  D.unit = name === "time" ? seconds : name.startsWith("bytes") ? bytesText : short;
}

async function open() {
  D = await part("main");
  D.measures = measures();
  D.tints = tints();
  if (D.kind === "clusters") D.measures = {};
  D.byName = new Map();
  D.ops.name.forEach((name, i) => D.byName.set(name, i));
}
