// Places for the nodes of a graph, in layers from top to bottom: each node below what it reads, near the middle of its neighbours. Long edges
// have a place in each layer they pass, so that they go beside nodes and not behind them.
// nodes: [{w, h}], edges: [[from, to]]; sets x, y (middles) of nodes and returns the size, and the places that edges pass.
const MOST_PLACES = 3000, LANE = 12;
function layout(nodes, edges) {
  const forward = acyclic(nodes.length, edges), all = nodes.slice(), rank = ranksOf(nodes.length, forward), routes = new Map();
  const down = all.map(() => []), up = all.map(() => []);
  const link = (a, b) => { down[a].push(b); up[b].push(a); };
  for (const [a, b] of forward) {
    let last = a;
    const places = [];
    for (let r = rank[a] + 1; r < rank[b] && all.length < MOST_PLACES; r++) {
      rank[all.length] = r;
      places.push(all.length);
      all.push({ w: LANE, h: 0, x: 0, y: 0 });
      down.push([]);
      up.push([]);
      link(last, all.length - 1);
      last = all.length - 1;
    }
    link(last, b);
    routes.set(a * 1e6 + b, places.map((k) => all[k]));
  }
  const layers = [];
  all.forEach((_, k) => { (layers[rank[k]] = layers[rank[k]] || []).push(k); });
  order(layers, up, down);
  place(all, layers, up, down);
  return { ...stack(all, layers), routes };
}

function ranksOf(n, forward) {
  const down = Array.from({ length: n }, () => []), up = Array.from({ length: n }, () => []);
  for (const [a, b] of forward) { down[a].push(b); up[b].push(a); }
  return [...ranks(n, down, up)];
}

// The edges without those that close a circle (groups may read one another), found depth first.
function acyclic(n, edges) {
  const next = Array.from({ length: n }, () => []), state = new Uint8Array(n), kept = [];
  for (const [a, b] of edges) if (a !== b) next[a].push(b);
  for (let s = 0; s < n; s++) {
    if (state[s]) continue;
    const stack = [[s, 0]];
    state[s] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1], a = top[0];
      if (top[1] === next[a].length) { state[a] = 2; stack.pop(); continue; }
      const b = next[a][top[1]++];
      if (state[b] === 1) continue;
      kept.push([a, b]);
      if (!state[b]) { state[b] = 1; stack.push([b, 0]); }
    }
  }
  return kept;
}

// The longest way from a source; then nodes without sources of their own move down to just above what reads them.
function ranks(n, down, up) {
  const rank = new Int32Array(n), waiting = up.map((list) => list.length), ready = [];
  waiting.forEach((w, k) => { if (!w) ready.push(k); });
  for (let at = 0; at < ready.length; at++) {
    for (const b of down[ready[at]]) {
      rank[b] = Math.max(rank[b], rank[ready[at]] + 1);
      if (!--waiting[b]) ready.push(b);
    }
  }
  for (let k = 0; k < n; k++) if (!up[k].length && down[k].length) rank[k] = Math.min(...down[k].map((b) => rank[b])) - 1;
  const least = Math.min(0, ...rank);
  return rank.map((r) => r - least);
}

// Sweeps that sort each layer by the mean place of the neighbours in the one before.
function order(layers, up, down) {
  const at = [];
  const number = () => layers.forEach((layer) => layer && layer.forEach((k, i) => { at[k] = i; }));
  number();
  for (let sweep = 0; sweep < 8; sweep++) {
    const near = sweep % 2 ? down : up, turn = sweep % 2 ? [...layers].reverse() : layers;
    for (const layer of turn) {
      if (!layer) continue;
      const key = new Map(layer.map((k) => [k, near[k].length ? near[k].reduce((s, o) => s + at[o], 0) / near[k].length : at[k]]));
      layer.sort((a, b) => key.get(a) - key.get(b));
      layer.forEach((k, i) => { at[k] = i; });
    }
  }
}

const GAP_X = 26, GAP_Y = 46;

// Each layer is spread around the mean of its neighbours, kept apart; from both sides in turn, so that nothing drifts.
function place(nodes, layers, up, down) {
  for (const layer of layers) {
    let x = 0;
    for (const k of layer || []) { nodes[k].x = x + nodes[k].w / 2; x += nodes[k].w + GAP_X; }
    for (const k of layer || []) nodes[k].x -= x / 2;
  }
  for (let sweep = 0; sweep < 12; sweep++) {
    const near = sweep % 2 ? down : up, turn = sweep % 2 ? [...layers].reverse() : layers;
    for (const layer of turn) if (layer) settle(nodes, layer, near);
  }
}

function settle(nodes, layer, near) {
  const want = layer.map((k) => near[k].length ? near[k].reduce((s, o) => s + nodes[o].x, 0) / near[k].length : nodes[k].x);
  const apart = (i) => (nodes[layer[i - 1]].w + nodes[layer[i]].w) / 2 + GAP_X;
  const left = want.slice(), right = want.slice();
  for (let i = 1; i < layer.length; i++) left[i] = Math.max(left[i], left[i - 1] + apart(i));
  for (let i = layer.length - 2; i >= 0; i--) right[i] = Math.min(right[i], right[i + 1] - apart(i + 1));
  layer.forEach((k, i) => { nodes[k].x = (left[i] + right[i]) / 2; });
}

function stack(nodes, layers) {
  let y = 0, least = Infinity, most = -Infinity;
  for (const layer of layers) {
    if (!layer) continue;
    const high = Math.max(...layer.map((k) => nodes[k].h));
    for (const k of layer) {
      nodes[k].y = y + high / 2;
      least = Math.min(least, nodes[k].x - nodes[k].w / 2);
      most = Math.max(most, nodes[k].x + nodes[k].w / 2);
    }
    y += high + GAP_Y;
  }
  for (const node of nodes) node.x -= least;
  return { width: Math.max(1, most - least), height: Math.max(1, y - GAP_Y) };
}
