// SPDX-License-Identifier: Apache-2.0
// The Graph tab of a report: layers laid out as a graph with panning and zoom; only the visible part is drawn.
'use strict';
const NODE = {width: 176, height: 42, across: 200, down: 72};

// Rank: the longest path from a layer without inputs. Edges that would close a cycle (kept state) are ignored.
function layOut(count, edges) {
  const next = Array.from({length: count}, () => []), before = Array.from({length: count}, () => []);
  for (const [from, to] of edges) next[from].push(to);
  const state = new Uint8Array(count), order = [];
  for (let root = 0; root < count; ++root) {
    const stack = state[root] ? [] : [[root, 0]];
    if (stack.length) state[root] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1], to = next[top[0]][top[1]++];
      if (to === undefined) { state[top[0]] = 2; order.push(top[0]); stack.pop(); continue; }
      if (state[to] === 0) { state[to] = 1; stack.push([to, 0]); }
    }
  }
  const place = new Int32Array(count), rank = new Int32Array(count), rows = [];
  order.reverse().forEach((node, at) => { place[node] = at; });
  for (const [from, to] of edges) if (place[from] < place[to]) before[to].push(from);
  const linked = new Uint8Array(count);
  for (const [from, to] of edges) linked[from] = linked[to] = 1;
  const chain = edges.length === 0; // without edges: in execution order
  for (const node of chain ? [...Array(count).keys()] : order) {
    rank[node] = chain ? node : before[node].reduce((most, from) => Math.max(most, rank[from] + 1), 0);
    (rows[rank[node]] = rows[rank[node]] || []).push(node);
  }
  // Place layers that read only constants or inputs near their readers.
  if (!chain) for (const node of [...order].reverse()) {
    if (before[node].length || !next[node].length) continue;
    const near = Math.min(...next[node].filter(to => place[to] > place[node]).map(to => rank[to])) - 1;
    if (near > rank[node] && Number.isFinite(near)) {
      rows[rank[node]].splice(rows[rank[node]].indexOf(node), 1);
      rank[node] = near;
      rows[near].push(node);
    }
  }
  const x = new Float64Array(count), y = new Float64Array(count);
  rows.forEach((row, at) => {
    const middle = new Map(row.map(node => [node, before[node].length ?
      before[node].reduce((sum, from) => sum + x[from], 0) / before[node].length : 0]));
    row.sort((a, b) => middle.get(a) - middle.get(b) || a - b);
    // Place side by side, as close as possible to the layers that they read.
    const centre = row.reduce((sum, node) => sum + middle.get(node), 0) / row.length;
    row.forEach((node, i) => {
      x[node] = centre + (i - (row.length - 1) / 2) * NODE.across;
      y[node] = at * NODE.down;
    });
  });
  return {x, y, rank, rows, next, before};
}

function shorten(text, most) { return text.length > most ? '…' + text.slice(1 - most) : text; }

function colourOf(layer) {
  return layer.on === 'host' ? 'var(--warm)' : `hsl(${hue(layer.bound)} 45% 52%)`;
}

class GraphView {
  constructor(layers, edges) {
    Object.assign(this, {layers, edges, at: layOut(layers.length, edges), scale: 1, left: 0, top: 0, waiting: false});
    this.inOrder = layers.map((l, i) => i).sort((a, b) => this.at.y[a] - this.at.y[b]);
    this.scene = el('g', {});
    this.svg = el('svg', {class: 'graph', tabindex: 0, role: 'application', 'aria-label':
      'graph of layers: arrow keys go from layer to layer, plus and minus zoom'}, this.scene);
    this.pointers = new Map();
    this.listen();
  }

  listen() {
    const svg = this.svg, touch = this.pointers;
    svg.onkeydown = event => this.key(event);
    svg.addEventListener('wheel', event => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
      else this.move(-event.deltaX, -event.deltaY);
    }, {passive: false});
    svg.addEventListener('pointerdown', event => {
      touch.set(event.pointerId, [event.clientX, event.clientY]);
      this.moved = 0;
    });
    svg.addEventListener('pointermove', event => {
      const last = touch.get(event.pointerId), now = [event.clientX, event.clientY];
      if (!last) return;
      const others = [...touch].filter(([id]) => id !== event.pointerId).map(each => each[1]);
      this.moved += Math.abs(now[0] - last[0]) + Math.abs(now[1] - last[1]);
      if (this.moved > 4 && !others.length) svg.setPointerCapture(event.pointerId);
      if (others.length) {
        const from = Math.hypot(last[0] - others[0][0], last[1] - others[0][1]) || 1, box = svg.getBoundingClientRect();
        this.zoom(Math.hypot(now[0] - others[0][0], now[1] - others[0][1]) / from, others[0][0] - box.left,
          others[0][1] - box.top);
      } else this.move(now[0] - last[0], now[1] - last[1]);
      touch.set(event.pointerId, now);
    });
    for (const name of ['pointerup', 'pointercancel', 'pointerleave'])
      svg.addEventListener(name, event => touch.delete(event.pointerId));
    svg.addEventListener('click', event => {
      if (this.moved > 4) return;
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / this.scale + this.left;
      const y = (event.clientY - box.top) / this.scale + this.top;
      const found = this.inOrder.find(i => Math.abs(this.at.x[i] - x) <= NODE.width / 2 &&
        Math.abs(this.at.y[i] - y) <= NODE.height / 2);
      if (found !== undefined) pick(found);
    });
  }

  key(event) {
    const {next, before, rows, rank} = this.at, steps = {ArrowDown: next, ArrowUp: before};
    if (event.key === '+' || event.key === '=') this.zoom(1.25);
    else if (event.key === '-') this.zoom(0.8);
    else if (event.key === '0') this.whole();
    else if (event.key in steps || event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      const row = picked === null ? [] : rows[rank[picked]], side = event.key === 'ArrowLeft' ? -1 : 1;
      const to = picked === null ? this.inOrder[0] : event.key in steps ? steps[event.key][picked][0] :
        row[row.indexOf(picked) + side];
      if (to !== undefined) pick(to);
    } else return;
    event.preventDefault();
  }

  size() { return [this.svg.clientWidth || 800, this.svg.clientHeight || 500]; }

  zoom(by, x, y) {
    const [width, height] = this.size(), scale = Math.min(3, Math.max(0.01, this.scale * by));
    x = x === undefined ? width / 2 : x;
    y = y === undefined ? height / 2 : y;
    this.left += x / this.scale - x / scale;
    this.top += y / this.scale - y / scale;
    this.scale = scale;
    this.draw();
  }

  move(dx, dy) { this.left -= dx / this.scale; this.top -= dy / this.scale; this.draw(); }

  bounds() {
    const {x, y} = this.at, wide = NODE.width / 2 + 30, tall = NODE.height / 2 + 16;
    const least = values => values.reduce((a, b) => Math.min(a, b), Infinity);
    const most = values => values.reduce((a, b) => Math.max(a, b), -Infinity);
    return [least(x) - wide, least(y) - tall, most(x) + wide, most(y) + tall];
  }

  whole() {
    const [x0, y0, x1, y1] = this.bounds(), [width, height] = this.size();
    this.scale = Math.min(1, width / (x1 - x0), height / (y1 - y0));
    this.left = (x0 + x1) / 2 - width / 2 / this.scale;
    this.top = (y0 + y1) / 2 - height / 2 / this.scale;
    this.draw();
  }

  // Show the first layers at a readable size.
  begin() {
    const [x0, y0, x1, y1] = this.bounds(), [width] = this.size();
    this.svg.style.height = `clamp(180px, ${Math.ceil(y1 - y0 + 8)}px, 66vh)`;
    this.scale = Math.max(0.6, Math.min(1, width / (x1 - x0)));
    const middle = (x1 - x0) * this.scale <= width ? (x0 + x1) / 2 : this.at.x[this.inOrder[0]];
    this.left = middle - width / 2 / this.scale;
    this.top = y0;
    this.draw();
  }

  show(index) {
    const [width, height] = this.size();
    if (this.scale < 0.4) this.scale = 0.8;
    const x = (this.at.x[index] - this.left) * this.scale, y = (this.at.y[index] - this.top) * this.scale;
    if (x < 100 || x > width - 100) this.left = this.at.x[index] - width / 2 / this.scale;
    if (y < 60 || y > height - 60) this.top = this.at.y[index] - height / 2 / this.scale;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  path(edges) {
    const {x, y, rank} = this.at;
    return edges.map(([from, to]) => {
      const x0 = x[from], y0 = y[from] + NODE.height / 2, x1 = x[to], y1 = y[to] - NODE.height / 2;
      const far = Math.abs(rank[to] - rank[from]);
      const bend = far > 1 ? (x1 < x0 ? -1 : 1) * (90 + 8 * Math.min(far, 9)) : 0;
      if (!bend) return `M${x0} ${y0}C${x0} ${y0 + 18} ${x1} ${y1 - 18} ${x1} ${y1}`;
      const side = (Math.abs(x1 - x0) < 40 ? x0 + bend : x1);
      return `M${x0} ${y0}C${side} ${y0 + 14} ${side} ${y0 + 14} ${side} ${y0 + 50}L${side} ${y1 - 50}` +
        `C${side} ${y1 - 14} ${x1} ${y1 - 20} ${x1} ${y1}`;
    }).join('');
  }

  paint() {
    const [width, height] = this.size(), {x, y} = this.at, bottom = this.top + height / this.scale;
    const right = this.left + width / this.scale, reach = 60, parts = [];
    const seen = this.inOrder.filter(i => y[i] > this.top - reach && y[i] < bottom + reach &&
      x[i] > this.left - NODE.width && x[i] < right + NODE.width);
    const crossing = this.edges.filter(([from, to]) => Math.min(y[from], y[to]) < bottom + reach &&
      Math.max(y[from], y[to]) > this.top - reach);
    const mine = crossing.filter(edge => edge.includes(picked));
    const thin = this.scale < 0.2 ? 1 / this.scale / 3 : 1.2;
    parts.push(el('path', {d: this.path(crossing), fill: 'none', stroke: '#8889', 'stroke-width': thin}));
    if (mine.length) parts.push(el('path', {d: this.path(mine), fill: 'none', stroke: 'var(--mark)',
      'stroke-width': 2.5 * thin}));
    if (this.scale < 0.12) parts.push(...this.boxes(seen));
    else for (const i of seen) parts.push(this.node(i));
    this.scene.setAttribute('transform', `scale(${this.scale})translate(${-this.left} ${-this.top})`);
    this.scene.replaceChildren(...parts);
  }

  // Too small to read: one path per colour.
  boxes(seen) {
    const {x, y} = this.at, paths = {};
    for (const i of seen) (paths[i === picked ? 'var(--mark)' : colourOf(this.layers[i])] ||= []).push(
      `M${x[i] - NODE.width / 2} ${y[i] - NODE.height / 2}h${NODE.width}v${NODE.height}h${-NODE.width}z`);
    return Object.entries(paths).map(([fill, all]) => el('path', {d: all.join(''), fill}));
  }

  node(i) {
    const layer = this.layers[i], x = this.at.x[i] - NODE.width / 2, y = this.at.y[i] - NODE.height / 2;
    const off = layer.on === 'host' ? 'host' + (layer.us === null ? '' : ', ') : '';
    const below = off + (layer.us === null ? off ? '' : shorten(layer.op, 26) : layer.us.toFixed(1) + ' us' +
      (layer.bound ? ', ' + layer.bound : ''));
    return el('g', {'data-layer': i, class: i === picked ? 'picked' : ''},
      el('title', {}, layer.name + '\n' + layer.op),
      el('rect', {x, y, width: NODE.width, height: NODE.height, rx: 5, fill: 'var(--band)', stroke: 'var(--line)'}),
      el('rect', {x, y, width: 6, height: NODE.height, rx: 3, fill: colourOf(layer)}),
      this.scale < 0.3 ? null : el('text', {x: x + 13, y: y + 17}, layer.nodes.length > 1 ?
        shorten(layer.nodes[0], 18) + ' +' + (layer.nodes.length - 1) : shorten(layer.name, 22)),
      this.scale < 0.3 ? null : el('text', {x: x + 13, y: y + 33, class: off ? 'host' : 'soft'}, below));
  }
}

function graph() {
  const s = here(), view = new GraphView(s.layers, s.edges);
  followers.view = view;
  followers.set('graph', index => { if (!document.getElementById('tab-Graph').hidden) view.show(index); });
  const find = el('input', {type: 'search', placeholder: 'find a layer', 'aria-label': 'find a layer',
    oninput: event => {
    const wanted = event.target.value.toLowerCase();
    const found = wanted ? s.layers.findIndex(l => l.name.toLowerCase().includes(wanted)) : -1;
    if (found >= 0) pick(found);
  }});
  requestAnimationFrame(() => picked === null ? view.begin() : view.show(picked));
  const button = (text, label, what) => el('button', {onclick: what, 'aria-label': label}, text);
  return [el('div', {class: 'tools'}, button('+', 'larger', () => view.zoom(1.25)),
    button('−', 'smaller', () => view.zoom(0.8)), button('whole', 'whole graph', () => view.whole()), find,
    ...[...new Set(s.layers.map(l => l.on === 'host' ? 'host' : l.bound).filter(Boolean))].map(kind =>
      el('span', {}, el('span', {class: 'bar', style: 'width:12px;background:' +
        (kind === 'host' ? 'var(--warm)' : `hsl(${hue(kind)} 45% 52%)`)}), kind))),
    el('div', {class: 'draw'}, view.svg),
    note((s.edges.length ? '' : 'The edges are unknown here; layers are in execution order. ') +
      'Drag or scroll to move, Ctrl and the wheel or + and − to zoom; arrow keys go from layer to layer.'),
    el('h2', {}, 'From ONNX to the device'),
    table([['ONNX nodes', r => r.nodes.join(', '), null, 'long'],
      ...(s.layers.some(r => r.top) ? [['Top ops', r => r.top || '', null, 'long']] : []), ['on', r => r.on],
      ['device op, commands', r => r.op, null, 'long']], s.layers, (row, index) => index,
    'graph-table')];
}
