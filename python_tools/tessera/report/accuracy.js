// SPDX-License-Identifier: Apache-2.0
// The part of a report's Accuracy tab below its table: errors by channel, and the ranges of calibration.
'use strict';

// One row per tensor, one column per group of channels; the colour is the error relative to the average channel.
function channelsDrawing(rows) {
  const known = rows.filter(row => row.whole && row.whole.channels && row.whole.channels.length);
  if (!known.length) return [];
  const most = Math.max(...known.flatMap(row => row.whole.channels)), wide = 20, tall = 18;
  const colour = v => `hsl(${Math.round(120 - 120 * Math.sqrt(v / most))} 65% 45%)`, parts = [];
  known.forEach((row, i) => {
    const y = 22 + i * tall, layer = layerOfTensor(row.tensor, row.name), go = () => { if (layer >= 0) pick(layer); };
    parts.push(el('text', {x: 214, y: y + 13, 'text-anchor': 'end', 'data-layer': layer, onclick: go},
      shorten(row.tensor, 30), el('title', {}, row.tensor)));
    row.whole.channels.forEach((v, at) => parts.push(el('rect', {x: 222 + at * wide, y: y + 1, width: wide - 1,
      height: tall - 2, fill: colour(v), 'data-layer': layer, onclick: go}, el('title', {},
      `${row.tensor}, channels group ${at + 1} of ${row.whole.channels.length}: ${exact(v)}`))));
  });
  parts.push(el('text', {x: 222, y: 14}, 'groups of neighbouring channels: the worst channel of each'));
  const worst = known.flatMap(row => row.whole.worst_channels.map(([channel, error]) => ({row, channel, error})))
    .sort((a, b) => b.error - a.error).slice(0, 40);
  return [el('h2', {}, 'Error by channel'), el('div', {class: 'draw'}, el('svg', {class: 'middle', viewBox:
    `0 0 ${230 + 32 * wide} ${26 + known.length * tall}`, role: 'img', 'aria-label': 'error by channel'}, ...parts)),
    el('h2', {}, 'Worst channels'), table([['tensor', r => r.row.tensor, null, 'long'],
      ['channel', r => r.channel, null, 'num'], ['error', r => r.error, exact, 'num']],
    worst, r => layerOfTensor(r.row.tensor, r.row.name),
    'channels-table')];
}

// The histogram of a tensor, and the range chosen by each method.
function rangeFigure(entry) {
  const most = Math.max(...entry.counts, 1), lines = Object.entries(entry.ranges), parts = [];
  const low = Math.min(entry.min, ...lines.map(([, r]) => r.low)), high = Math.max(entry.max,
    ...lines.map(([, r]) => r.high)), X = v => 20 + 760 * (v - low) / (high - low || 1);
  const Y = count => 190 - (count > 0 ? 20 + 150 * Math.log(1 + count) / Math.log(1 + most) : 0);
  const step = (entry.max - entry.min) / entry.counts.length;
  entry.counts.forEach((count, i) => { if (count > 0) parts.push(el('rect', {x: X(entry.min + i * step), y: Y(count),
    width: Math.max(1, X(entry.min + step) - X(entry.min) - 0.5), height: 190 - Y(count), fill: 'var(--mark)',
    opacity: 0.55}, el('title', {}, `${exact(entry.min + i * step)} to ${exact(entry.min + (i + 1) * step)}: ` +
    `${count} values`))); });
  lines.forEach(([method, r], at) => {
    const chosen = method === entry.chosen, colour = `hsl(${at * 71} 65% 48%)`;
    for (const v of r.low < 0 ? [r.low, r.high] : [r.high]) parts.push(el('line', {x1: X(v), x2: X(v), y1: 12 + 5 * at,
      y2: 194, stroke: colour, 'stroke-width': chosen ? 3 : 1.5, 'stroke-dasharray': chosen ? null : '5 3'},
    el('title', {}, `${method}: ${exact(r.low)} to ${exact(r.high)}`)));
  });
  for (let i = 0; i <= 4; ++i) {
    const v = low + (high - low) * i / 4;
    parts.push(el('text', {x: X(v), y: 210, 'text-anchor': i === 0 ? 'start' : i === 4 ? 'end' : 'middle'}, exact(v)));
  }
  const steps = entry.symmetric ? 254 : 255;
  return el('figure', {}, el('figcaption', {}, `${entry.name}: ${Math.round(entry.values)} values, log scale; ` +
    'the thick line is the chosen range'),
  el('div', {class: 'draw'}, el('svg', {class: 'middle', viewBox: '0 0 800 216', role: 'img',
    'aria-label': 'histogram of ' + entry.name},
    ...parts)), table([['', r => r.at, v => el('span', {class: 'bar',
      style: `width:12px;background:hsl(${v * 71} 65% 48%)`})], ['method', r => r.method, (v, r) => v + (r.chosen ?
      ' (chosen)' : '')], ['from', r => r.low, exact, 'num'], ['to', r => r.high, exact, 'num'], ['step', r => r.step,
      exact, 'num'], ['clipped', r => r.clipped, v => (100 * v).toFixed(4) + ' %', 'num']],
  lines.map(([method, r], at) => ({at, method, ...r, chosen: method === entry.chosen, step: (r.high - r.low) / steps})),
  null, 'ranges-table'));
}

function rangesDrawing() {
  const entries = model().histograms || [], holder = el('div', {});
  if (!entries.length) return [];
  const show = at => { holder.replaceChildren(rangeFigure(entries[at])); choose.value = at; };
  const choose = el('select', {'aria-label': 'tensor', onchange: event => {
    const at = Number(event.target.value), layer = layerOfTensor(entries[at].name, entries[at].name);
    show(at);
    if (layer >= 0) pick(layer);
  }}, ...entries.map((entry, at) => el('option', {value: at}, entry.name)));
  const follow = index => {
    const at = entries.findIndex(entry => entry.tensors.concat(entry.name).some(tensor =>
      layerOfTensor(tensor, tensor) === index));
    if (at >= 0) show(at);
  };
  followers.set('ranges', follow);
  show(0);
  if (picked !== null) follow(picked);
  return [el('h2', {}, 'Histograms of calibration, and the ranges of its methods'),
    el('div', {class: 'tools'}, el('label', {}, 'tensor ', choose)), holder];
}
