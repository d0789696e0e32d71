// Differences between two lists of numbers of lines. Lines of programs mostly occur once, so those in both that do are matched in their
// longest common order, and what is equal around them follows.
function diff(a, b) {
  const pairs = matched(a, b), out = [];
  let i = 0, j = 0;
  for (const [x, y] of [...pairs, [a.length, b.length]]) {
    while (i < x && j < y && a[i] === b[j]) out.push([i++, j++]);
    let endX = x, endY = y;
    while (endX > i && endY > j && a[endX - 1] === b[endY - 1]) { endX--; endY--; }
    while (i < endX) out.push([i++, -1]);
    while (j < endY) out.push([-1, j++]);
    while (i < x) out.push([i++, j++]);
    if (x < a.length && y < b.length) out.push([i++, j++]);
  }
  return out;
}

// Pairs of places of lines that both have once, as long an increasing sequence as there is.
function matched(a, b) {
  const once = (list) => {
    const found = new Map();
    list.forEach((line, k) => found.set(line, found.has(line) ? -1 : k));
    return found;
  };
  const inA = once(a), inB = once(b), pairs = [];
  for (const [line, k] of inA) if (k >= 0 && inB.get(line) >= 0) pairs.push([k, inB.get(line)]);
  pairs.sort((p, q) => p[0] - q[0]);
  const tails = [], before = new Int32Array(pairs.length).fill(-1);
  pairs.forEach((pair, k) => {
    let low = 0, high = tails.length;
    while (low < high) { const mid = (low + high) >> 1; if (pairs[tails[mid]][1] < pair[1]) low = mid + 1; else high = mid; }
    if (low) before[k] = tails[low - 1];
    tails[low] = k;
  });
  const out = [];
  for (let k = tails.length ? tails[tails.length - 1] : -1; k >= 0; k = before[k]) out.push(pairs[k]);
  return out.reverse();
}
