// SPDX-License-Identifier: Apache-2.0
// Draws the tabs of a report from the JSON in the page, with graph.js and accuracy.js before it in the same script.
'use strict';
const models = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg', HUES = {multiply: 210, output: 190, vector: 140, ddr: 48, latency: 0,
  'bank port': 280, 'dma local': 50};
let which = 0, stage = 0, picked = null;
const followers = new Map(); // called with the picked layer, for drawings without elements that have data-layer
const model = () => models[which], here = () => model().stages[stage];
const titleOf = stage => (stage.name && stage.name !== 'static' ? stage.name + ', ' : '') + stage.chip;
const choices = models.flatMap((m, i) => m.stages.map((s, j) => [i, j, m.stages.length === 1 ? m.file :
  (models.length > 1 ? m.file + ', ' : '') + titleOf(s)]));
function el(name, attributes, ...inside) {
  const drawn = ['svg', 'rect', 'line', 'circle', 'text', 'path', 'title', 'g'].includes(name);
  const node = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'onclick' || key === 'oninput' || key === 'onchange') node[key] = value;
    else if (value !== null && value !== false) node.setAttribute(key, value);
  }
  node.append(...inside.filter(each => each !== null && each !== undefined).map(each =>
    each instanceof Node ? each : document.createTextNode(String(each))));
  return node;
}
const bytes = n => n < 1024 ? n + ' B' : n < 1048576 ?
  (n / 1024).toFixed(1) + ' KiB' : (n / 1048576).toFixed(2) + ' MiB';
const fixed = (n, digits) => n === null || n === undefined || n === 'nan' ? '–' : Number(n).toFixed(digits);
const exact = n => n === null || n === undefined ? '–' : Math.abs(n) > 0 && Math.abs(n) < 1e-3 ?
  Number(n).toExponential(2)
  : Number(n).toFixed(4);
const hue = bound => HUES[bound] === undefined ? 90 : HUES[bound];
const card = (label, value) => el('div', {class: 'card'}, el('span', {}, label), el('b', {}, value));
const note = text => el('p', {class: 'soft'}, text);

// Rows of layers by the layer numbers in commands.
function layerRow(layer) {
  const s = here();
  s.rowOf ||= new Map(s.perf ? s.perf.layers.map((each, row) => [each.layer, row]) : []);
  return s.rowOf.has(layer) ? s.rowOf.get(layer) : -1;
}

function pick(index) {
  picked = index;
  for (const node of document.querySelectorAll('[data-layer]'))
    node.classList.toggle('picked', Number(node.dataset.layer) === index);
  const bar = document.getElementById('picked'), layer = here().layers[index];
  bar.hidden = !layer;
  if (!layer) return;
  const rows = model().accuracy.filter(row => row.name === layer.name);
  bar.textContent = layer.name + ' · ' + layer.on + (layer.us === null ?
    '' : ' · ' + layer.us.toFixed(2) + ' us, bound by ' +
    layer.bound) + ' · ' + bytes(layer.moved) + ' moved' + (rows.length && rows[0].whole ? ' · cos ' +
    fixed(rows[0].whole.cosine, 6) : '');
  const row = document.querySelector('section:not([hidden]) tr.picked');
  if (row) row.scrollIntoView({block: 'nearest'});
  for (const follow of followers.values()) follow(index);
}

// columns: [title, value of a row, text of a value, class]; a click on a title sorts.
function table(columns, rows, layerOf, name) {
  const body = el('tbody', {}), order = rows.map((row, index) => index);
  let sorted = -1, up = false;
  const fill = () => body.replaceChildren(...order.map(index => {
    const layer = layerOf ? layerOf(rows[index], index) : -1;
    const line = el('tr', layer >= 0 ? {'data-layer': layer, tabindex: 0, onclick: () => pick(layer)} : {});
    if (layer >= 0) {
      if (layer === picked) line.classList.add('picked');
      line.onkeydown = event => { if (event.key === 'Enter') pick(layer); };
    }
    for (const [, value, text, kind] of columns) {
      const raw = value(rows[index]), shown = text ? text(raw, rows[index]) : raw;
      line.append(el('td', {class: kind || '', 'data-value': raw === null || raw === undefined ? '' : raw}, shown));
    }
    return line;
  }));
  const head = el('tr', {}, ...columns.map(([title, value, , kind], at) => el('th', {class: kind || ''},
    el('button', {onclick: () => {
      up = sorted === at ? !up : kind !== 'num';
      sorted = at;
      const key = index => { const v = value(rows[index]); return v === null || v === undefined ? -Infinity : v; };
      order.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a - b) * (up ? 1 : -1));
      fill();
    }}, title))));
  fill();
  return el('div', {class: 'wide'}, el('table', {id: name}, el('thead', {}, head), body));
}

function overview() {
  const m = model(), s = here(), p = s.perf;
  const total = Object.values(s.constants).reduce((a, b) => a + b, 0);
  const shares = Object.entries(s.constants).sort((a, b) => b[1] - a[1])
    .map(([type, count]) => type + ' ' + (100 * count / total).toFixed(1) + ' %').join(', ');
  return [el('div', {class: 'cards'}, card('verdict', m.verdict), card('file', bytes(m.bytes)), card('chip', s.chip),
    s.time ? card(s.time.how.split(',')[0] + ' time', fixed(s.time.us, 1) + ' us') : null,
    p ? card('of the peak of products', (100 * p.mac_utilisation).toFixed(1) + ' %') : null,
    p ? card('DDR traffic', (p.ddr_moved_bytes / 1e6).toFixed(2) + ' MB') : null,
    p ? card('local memory per lane', bytes(p.local_memory.peak_bytes)) : null,
    ...s.workspaces.map(space => card('workspace, ' + space.memory, bytes(space.bytes))),
    card('constants', bytes(total)), card('layers', s.layers.length), card('advice', m.advice.length)),
    ...sizes(), el('h2', {}, 'Types of constants'), note((shares || 'no constants') + (p ?
      '; those packed for a chip are bytes (I8)' : '')),
    el('h2', {}, 'Inputs and outputs'), table([['', r => r.way], ['name', r => r.name], ['type', r => r.dtype],
      ['shape', r => r.shape.join('×')]], [...s.inputs.map(t => ({way: 'input', ...t})),
      ...s.outputs.map(t => ({way: 'output', ...t}))]),
    el('h2', {}, 'Versions and hashes'), table([['', r => r[0]], ['value', r => r[1], null, 'long']],
      [['made by', m.producer], ['schema', m.schema_hash], ['SHA-256', m.sha256],
       ...m.chips.map(chip => ['chip ' + chip.name, chip.fingerprint || '–']), ...m.properties.map(e => [e.key,
         e.value || ''])])];
}

// For a file with several sizes or chips: a table to switch between them.
function sizes() {
  const m = model();
  return m.stages.length === 1 ? [] : [el('h2', {}, 'Sizes and chips in this file'), table([
    ['stage', r => m.stages.indexOf(r), (at, r) => el('button', {'aria-pressed': r === here(), onclick: () =>
      choose(which, at)}, titleOf(r))],
    ['inputs', r => r.inputs.map(t => t.name + ' ' + t.shape.join('×')).join(', ')],
    ['us', r => r.time ? r.time.us : null, v => fixed(v, 1), 'num'],
    ['DDR bytes', r => r.perf ? r.perf.ddr_moved_bytes : null, v => v === null ? '–' : v, 'num'],
    ['layers', r => r.layers.length, null, 'num']], m.stages, null, 'sizes-table')];
}

function layerOfTensor(tensor, name) {
  const layers = here().layers, named = layers.findIndex(layer => layer.name === name);
  return named >= 0 ? named : layers.findIndex(layer => layer.name === tensor ||
    (layer.tensors || []).includes(tensor));
}

function accuracyTab() {
  const rows = model().accuracy;
  const without = note('Nothing was passed: model_deploy --json > deploy.json with --test_input and ' +
    '--test_reference, or model_tool layers DIR --json > deploy.json, then tessera report --accuracy deploy.json');
  const most = Math.max(1e-30, ...rows.map(row => row.whole ? row.whole.rel_l2 || 0 : 0));
  const of = (row, side, key) => row[side] && typeof row[side][key] === 'number' ? row[side][key] : null;
  // The length is relative to the largest error, so the colour is the verdict's: outside, excused or ok.
  const heat = (value, row) => value === null ? '–' : el('span', {}, el('span', {class: 'bar',
    style: `width:${Math.round(70 * Math.sqrt(value / most))}px` +
      `;background:hsl(${row.wrong ? 0 : row.whole && row.whole.excuse ? 45 : 120} 65% 45%)`}),
    exact(value));
  const error = model().output_error;
  return [...error ? [note('Outputs against f32: ' + error)] : [],
    rows.length ? table([['layer', r => r.name, null, 'long'], ['tensor', r => r.tensor],
    ['cosine', r => of(r, 'whole', 'cosine'), v => fixed(v, 7), 'num'],
    ['error, with inherited', r => of(r, 'whole', 'rel_l2'), heat], ['own error', r => of(r, 'own', 'rel_l2'),
      exact, 'num'],
    ['max|e|', r => of(r, 'whole', 'max_abs'), exact, 'num'],
    ['', r => r.wrong ? 'outside' : r.whole && r.whole.excuse || 'ok']], rows,
    row => layerOfTensor(row.tensor, row.name), 'accuracy-table') : without, ...channelsDrawing(rows),
    ...rangesDrawing()];
}

function partitionTab() {
  const partition = model().partition, parts = [table([['subnet', r => r.name], ['on', r => r.kind], ['', r => r.isa],
    ['steps', r => r.steps, null, 'num'], ['ONNX nodes', r => r.nodes, null, 'num']],
    here().subnets.filter(each => each.kind !== 'Control'))];
  for (const subnet of here().subnets.filter(each => each.reason)) parts.push(
    el('h2', {}, `Why the host runs ${subnet.name}`),
    el('ul', {}, ...subnet.reason.split('; ').map(reason => el('li', {}, reason))));
  if (partition.host_ops && partition.host_ops.length) parts.push(el('h2', {}, 'Ops on the host, and why'), table([
    ['op', r => r.name || r.op, null, 'long'], ['reason', r => r.reason, null, 'long'],
    ['multiplications', r => r.products, null, 'num']], partition.host_ops,
    op => here().layers.findIndex(layer => op.name && layer.nodes.includes(op.name)), 'host-table'));
  return parts;
}

function roofline() {
  const s = here(), p = s.perf, dots = s.layers.map((l, i) => [l, i]).filter(([l]) => l.us && l.products && l.moved);
  if (!p || !dots.length) return note('no layer with an estimate, multiplications and traffic');
  // The roofs: the rates with which the estimate computes the roofline of all layers.
  const micro = p.microseconds / p.cycles, peak = Math.max(...dots.map(([l]) => l.mac_utilisation ?
    l.products / l.us / l.mac_utilisation : 0));
  const rate = p.roofline.ddr_cycles ? p.ddr_lower_bound_bytes / (p.roofline.ddr_cycles * micro) : 1;
  const xs = dots.map(([l]) => l.products / l.moved), ys = dots.map(([l]) => l.products / l.us);
  const low = v => Math.floor(Math.log10(v)), x0 = low(Math.min(...xs)), x1 = low(Math.max(...xs, peak / rate)) + 1;
  const y0 = low(Math.min(...ys)), y1 = low(peak) + 1, X = v => 70 + 880 * (Math.log10(v) - x0) / (x1 - x0);
  const Y = v => 330 - 300 * (Math.log10(v) - y0) / (y1 - y0), parts = [];
  for (let e = x0; e <= x1; ++e) parts.push(el('line', {x1: X(10 ** e), x2: X(10 ** e), y1: 30, y2: 330,
    stroke: '#8883'}),
    el('text', {x: X(10 ** e), y: 348, 'text-anchor': 'middle'}, e < -2 || e > 3 ? '1e' + e : 10 ** e));
  for (let e = y0; e <= y1; ++e) parts.push(el('line', {y1: Y(10 ** e), y2: Y(10 ** e), x1: 70, x2: 950,
    stroke: '#8883'}),
    el('text', {x: 62, y: Y(10 ** e) + 4, 'text-anchor': 'end'}, '1e' + (e - 3)));
  const knee = peak / rate, left = Math.max(10 ** x0, 10 ** y0 / rate);
  parts.push(el('path', {d: `M${X(left)} ${Y(left * rate)}L${X(knee)} ${Y(peak)}L${X(10 ** x1)} ${Y(peak)}`,
    fill: 'none',
    stroke: 'currentColor', 'stroke-width': 2}));
  for (const [l, i] of dots) parts.push(el('circle', {cx: X(l.products / l.moved), cy: Y(l.products / l.us),
    'data-layer': i,
    r: 3 + 11 * Math.sqrt(l.us / p.microseconds), fill: `hsl(${hue(l.bound)} 60% 50% / .75)`, onclick: () => pick(i)},
    el('title', {}, `${l.name}: ${l.us.toFixed(2)} us, bound by ${l.bound}`)));
  parts.push(el('text', {x: 510, y: 368, 'text-anchor': 'middle'}, 'multiplications per byte of DDR traffic'),
    el('text', {x: 70, y: 18},
      '10⁹ multiplications a second; area: time; above the slope: loaded while earlier layers ran'));
  return el('div', {class: 'draw'}, el('svg', {viewBox: '0 0 980 380', role: 'img', 'aria-label': 'roofline',
    style: 'min-width:940px'},
    ...parts));
}

function performanceTab() {
  const s = here(), timed = s.layers.some(layer => layer.us !== null), most = Math.max(0,
    ...s.layers.map(l => l.us || 0));
  const time = v => v === null ? '–' : el('span', {}, el('span', {class: 'bar', style: `width:${60 * v / most}px`}),
    v.toFixed(2));
  const shares = s.time ? Object.entries(s.time.shares).sort((a, b) => b[1] - a[1]) : [];
  const bounds = s.time ? [s.time.how, ...shares.map(([name, share]) => name + ' ' + (100 * share).toFixed(1) + ' %')]
    .join(', ') : '';
  const none = s.perf ? 'No times per op: the host runs all ops.' :
    'No times: tessera report --measure 20 times this machine.';
  return [timed ? s.perf ? roofline() : null : note(none),
    bounds ? note('time: ' + bounds) : null,
    table([['layer', r => r.name, null, 'long'], ['on', r => r.on], ['us', r => r.us, time], ['bound by',
      r => r.bound],
    ['of MAC peak', r => r.mac_utilisation, v => v === null ? '–' : (100 * v).toFixed(1) + ' %', 'num'],
    ['multiplications', r => r.products, null, 'num'], ['bytes moved', r => r.moved, null, 'num'],
    ['× least', r => r.least ? r.moved / r.least : null, v => fixed(v, 2), 'num'], ['what', r => r.op, null, 'long']],
    s.layers, (row, index) => index, 'layers-table')].filter(Boolean);
}

function timelineTab() {
  const s = here(), events = s.trace || [];
  if (!events.length) return [note('No timeline: commands of this chip are not simulated.')];
  const end = events.reduce((most, e) => Math.max(most, e[3] + e[4]), 0), holder = el('div', {class: 'draw'});
  const draw = zoom => {
    const width = 1200 * zoom, X = t => 70 + (width - 90) * t / end, ticks = 8 * zoom;
    const arrow = el('path', {fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5});
    const parts = ['dma', 'compute'].map((name, q) => el('text', {x: 4, y: 58 + 70 * q}, name));
    for (let i = 0; i <= ticks; ++i) parts.push(
      el('line', {x1: X(end * i / ticks), x2: X(end * i / ticks), y1: 22, y2: 150, stroke: '#8883'}),
      el('text', {x: X(end * i / ticks), y: 14, 'text-anchor': i === ticks ? 'end' : 'middle'},
        (end * i / ticks).toFixed(1) + ' us'));
    for (const e of events) {
      const [queue, what, number, begin, long, id, wait, bound] = e, layer = layerRow(number), name = s.layers[layer] ?
        s.layers[layer].name : '';
      const bar = el('rect', {x: X(begin), y: 30 + 70 * queue, width: Math.max(0.4, X(long) - X(0)), height: 46,
        fill: `hsl(${hue(bound)} 55% 52%)`, 'data-layer': layer, onclick: () => pick(layer)}, el('title', {},
        `${what} ${name}: ${begin} us, ${long} us, ${bound}` + (wait >= 0 ?
          `; waits for ${events[wait][1]} ${(s.layers[layerRow(events[wait][2])] || {name: ''}).name}` : '')));
      bar.onmouseenter = () => { const from = events[wait]; arrow.setAttribute('d', from ?
        `M${X(from[3] + from[4])} ${from[0] ? 100 : 76}L${X(begin)} ${queue ? 100 : 76}` : ''); };
      parts.push(bar);
    }
    holder.replaceChildren(el('svg', {viewBox: `0 0 ${width} 156`,
      style: `width:${100 * zoom}%;min-width:${900 * zoom}px`,
      role: 'img', 'aria-label': 'timeline'}, ...parts, arrow));
    if (picked !== null) pick(picked);
  };
  draw(1);
  const host = s.perf.host, away = host ? host.microseconds + host.hand_over_microseconds : 0;
  const range = el('input', {type: 'range', min: 1, max: 24, value: 1, 'aria-label': 'zoom',
    onchange: event => draw(Number(event.target.value))});
  return [el('div', {class: 'tools'}, el('label', {}, 'zoom ', range), ...Object.keys(s.perf.time_cycles).map(bound =>
    el('span', {}, el('span', {class: 'bar', style: `width:12px;background:hsl(${hue(bound)} 55% 52%)`}), bound))),
    away ? note(`This is ${s.chip} alone: ${fixed(s.perf.microseconds, 1)} us. The host takes another ` +
      `${fixed(host.microseconds, 1)} us and handing over ${fixed(host.hand_over_microseconds, 1)} us, together ` +
      `${(100 * away / (away + s.perf.microseconds)).toFixed(0)} % of a run; they are not drawn.`) : null,
    holder].filter(Boolean);
}

// Time from left to right, addresses upwards, one colour per layer.
function memoryDrawing(what, memory) {
  const s = here(), parts = [], end = Math.max(...['local', 'workspace'].flatMap(key =>
    s.memory[key].rectangles).map(r => r[2]), 0) || 1; // the same for both memories
  const X = t => 70 + 1190 * t / end, Y = byte => 400 - 380 * byte / memory.bytes;
  for (let i = 0; i <= 8; ++i) parts.push(
    el('line', {x1: X(end * i / 8), x2: X(end * i / 8), y1: 20, y2: 404, stroke: '#8883'}),
    el('text', {x: X(end * i / 8), y: 420, 'text-anchor': i === 8 ? 'end' : 'middle'},
      (end * i / 8).toFixed(end < 20 ? 2 : 0) + ' us'));
  for (let i = 0; i <= (memory.banks || 4); ++i) {
    const byte = memory.bytes * i / (memory.banks || 4);
    parts.push(el('line', {x1: 70, x2: 1260, y1: Y(byte), y2: Y(byte), stroke: '#8885'}),
      el('text', {x: 64, y: Y(byte) + 4, 'text-anchor': 'end'}, bytes(Math.round(byte))));
  }
  for (const [layer, from, to, low, high] of memory.rectangles) {
    const row = layerRow(layer), name = row >= 0 ? s.layers[row].name : '';
    parts.push(el('rect', {x: X(from), y: Y(high), width: Math.max(0.5, X(to) - X(from)), height: Y(low) - Y(high),
      fill: `hsl(${layer * 137 % 360} 55% 60%)`, stroke: '#5558', 'stroke-width': 0.4, 'data-layer': row,
      onclick: () => pick(row)}, el('title', {},
      `${name}: ${high - low} bytes at ${low}, ${from} to ${to} us`)));
  }
  return el('div', {class: 'draw'}, el('svg', {viewBox: '0 0 1280 430', role: 'img', 'aria-label': what}, ...parts));
}

function memoryTab() {
  const s = here(), parts = [];
  for (const [title, key] of [['Local memory per lane', 'local'], ['Intermediate results in DDR', 'workspace']]) {
    const memory = s.memory && s.memory[key];
    if (!memory || !memory.rectangles.length) continue;
    parts.push(el('h2', {}, `${title}: ${bytes(memory.peak_bytes)} of ${bytes(memory.bytes)} in use at once`),
      memoryDrawing(title, memory));
  }
  if (parts.length) {
    const held = {};
    for (const key of ['local', 'workspace']) for (const [layer, , , low, high] of s.memory[key].rectangles)
      ((held[layer] ||= {layer, local: 0, workspace: 0})[key] = Math.max(held[layer][key], high - low));
    parts.push(el('h2', {}, 'Largest value of each layer'), table([['', r => '', (v, r) => el('span', {class: 'bar',
      style: `width:12px;background:hsl(${r.layer * 137 % 360} 55% 60%)`})],
      ['layer', r => (s.layers[layerRow(r.layer)] || {name: ''}).name, null, 'long'],
      ['bytes per lane', r => r.local, null, 'num'], ['bytes of DDR', r => r.workspace, null, 'num']],
    Object.values(held), r => layerRow(r.layer), 'memory-table'));
  }
  return parts.concat([el('h2', {}, 'Workspaces'), table([['memory', r => r.memory], ['bytes', r => r.bytes, null,
    'num'],
    ['lower bound', r => r.lower_bound, null, 'num']], s.workspaces)]);
}

function adviceTab() {
  const costs = model().advice.filter(each => each.microseconds !== null), several = model().stages.length > 1;
  return model().advice.length ? [note(`${model().advice.length} findings, each with its maximum cost` +
    (costs.length ? '' : ', where that is known')), ...model().advice.map(each => {
    const at = each.stage === null ? stage : each.stage, its = model().stages[at];
    const layer = its.layers.findIndex(l => each.layer && l.name === each.layer);
    const go = () => { if (at !== stage) choose(which, at); pick(layer); };
    const item = el('div', {class: 'card advice', ...(layer >= 0 ? {tabindex: 0, onclick: go,
      ...(at === stage ? {'data-layer': layer} : {})} : {})},
    el('b', {}, each.code + (each.layer ? ', ' + each.layer : '') +
      (several && each.stage !== null ? ' (' + titleOf(its) + ')' : '')),
    el('p', {}, each.text), el('p', {class: 'soft'}, each.microseconds === null ? 'cost unknown' :
      `costs ${fixed(each.microseconds, 1)} us at most` + (its.time && its.time.us ?
      `, ${(100 * each.microseconds / its.time.us).toFixed(1)} % of a run` : '')),
    el('p', {}, 'try: ', el('code', {}, each.command)), el('p', {class: 'soft'}, 'see ' + each.page));
    item.onkeydown = event => { if (event.key === 'Enter' && layer >= 0) go(); };
    return item;
  })] : [note('No findings.')];
}

// For several models, or several sizes and chips in one file.
function comparisonTab() {
  const stages = choices.map(([i, j]) => models[i].stages[j]), time = s => s.time ? s.time.us : null;
  const count = ([i, j]) => models[i].advice.filter(each => each.stage === j || each.stage === null).length;
  const kind = s => s.time ? s.time.how.split(',')[0] : null, kinds = new Set(stages.map(kind).filter(Boolean));
  const all = [['time, us', stages.map(time)], ['this time is', stages.map(kind)],
    ['DDR traffic, bytes', stages.map(s => s.perf ? s.perf.ddr_moved_bytes : null)],
    ['layers', stages.map(s => s.layers.length)], ['advice', choices.map(count)]];
  if (models.length > 1) all.unshift(['file, bytes', choices.map(([i]) => models[i].bytes)]);
  const rows = all.map(([name, values]) => ({name, values}));
  const show = v => v === null ? '–' : Number.isInteger(v) || typeof v === 'string' ? v : v.toFixed(2);
  const columns = choices.map(([, , text], at) => [text, r => r.values[at], show, 'num']);
  const names = [...new Set(stages.flatMap(s => s.layers.map(l => l.name)))];
  const sum = (s, name) => s.layers.filter(l => l.name === name && l.us !== null).reduce((us, l) =>
    (us || 0) + l.us, null);
  const layers = names.map(name => ({name, values: stages.map(s => sum(s, name))}))
    .filter(row => row.values.some(v => v !== null));
  const differ = r => kinds.size > 1 || r.values[0] === null || r.values.at(-1) === null ? null :
    r.values.at(-1) - r.values[0];
  return [table([['', r => r.name], ...columns], rows, null, 'compared-totals'),
    kinds.size > 1 ? note('Measured and estimated times are not comparable: no differences are shown.') : null,
    el('h2', {}, 'Layers, us'), table([['layer', r => r.name, null, 'long'], ...columns,
      ['last − first', differ, v => fixed(v, 2), 'num']], layers,
    row => here().layers.findIndex(layer => layer.name === row.name), 'compared-table')].filter(Boolean);
}

const TABS = {Overview: overview, Graph: graph, Accuracy: accuracyTab, Partition: partitionTab,
  Performance: performanceTab,
  Timeline: timelineTab, Memory: memoryTab, Advice: adviceTab, ...(choices.length > 1 ?
    {Comparison: comparisonTab} : {})};
function show(name) {
  for (const [each, draw] of Object.entries(TABS)) {
    const section = document.getElementById('tab-' + each), is = each === name;
    section.hidden = !is;
    document.getElementById('to-' + each).setAttribute('aria-selected', is);
    document.getElementById('to-' + each).tabIndex = is ? 0 : -1;
    if (is) document.getElementById('to-' + each).scrollIntoView({block: 'nearest', inline: 'center'});
    if (is && !section.dataset.drawn) { section.replaceChildren(...draw().filter(Boolean)); section.dataset.drawn = 1; }
  }
  history.replaceState(null, '', '#' + name);
  if (picked !== null) pick(picked);
}
function choose(of, at) {
  which = of;
  stage = at;
  document.querySelector('#choice select').value = choices.findIndex(([i, j]) => i === of && j === at);
  restart();
}
function restart() {
  for (const section of document.querySelectorAll('section')) delete section.dataset.drawn;
  followers.clear();
  pick(null);
  show(decodeURIComponent(location.hash.slice(1)) in TABS ? decodeURIComponent(location.hash.slice(1)) : 'Overview');
}
if (choices.length > 1) document.getElementById('choice').append(el('select', {'aria-label': 'model',
  onchange: event => choose(...choices[event.target.value])}, ...choices.map(([, , text], at) =>
    el('option', {value: at}, text))));
for (const name of Object.keys(TABS)) {
  document.querySelector('nav').append(el('button', {id: 'to-' + name, role: 'tab', 'aria-controls': 'tab-' + name,
    onclick: () => show(name)}, name));
  document.querySelector('main').append(el('section', {id: 'tab-' + name, role: 'tabpanel',
    'aria-labelledby': 'to-' + name}));
}
document.querySelector('nav').onkeydown = event => {
  const names = Object.keys(TABS), at = names.findIndex(name => document.activeElement.id === 'to-' + name);
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (at < 0 || !step) return;
  const next = names[(at + step + names.length) % names.length];
  show(next);
  document.getElementById('to-' + next).focus();
};
restart();
if (location.search === '?all') for (const [name, draw] of Object.entries(TABS)) {
  const section = document.getElementById('tab-' + name);
  section.replaceChildren(...draw().filter(Boolean));
  section.hidden = false;
}
