// SPDX-License-Identifier: Apache-2.0
// Charts, drawn by uPlot (vendor/uplot), which the page has loaded.

import { clock } from "./dom.js";

const COLOURS = ["#3b82d6", "#d97706", "#2f9e62", "#c2417a", "#8b6fd8", "#0f9aa8", "#a16207", "#dc5045"];

export const colour = (at) => COLOURS[at % COLOURS.length];

function axis(more) {
  const line = { stroke: "#8888", width: 1 };
  // A function, since the theme may be another when it is drawn next.
  return { stroke: () => getComputedStyle(document.body).color, grid: line, ticks: line, ...more };
}

/** A chart in an element, as wide as it. */
class Chart {
  constructor(element, options, data) {
    const width = () => Math.max(200, element.clientWidth);
    this.plot = new uPlot({ width: width(), height: 220, legend: { live: false }, ...options }, data, element);
    this.resized = new ResizeObserver(() => this.plot.setSize({ width: width(), height: this.plot.height }));
    this.resized.observe(element);
  }

  set(data) {
    this.plot.setData(data);
  }

  close() {
    this.resized.disconnect();
    this.plot.destroy();
  }
}

/** Return a chart of shares in percent over time. */
export function shares(element, names, data) {
  return new Chart(element, {
    cursor: { drag: { x: false, y: false } },
    // A minute at least, so that the axis has whole seconds.
    scales: { x: { range: (_, first, last) => [Math.min(first, last - 60), last] }, y: { range: [0, 100] } },
    axes: [axis({ space: 90, values: (_, ticks) => ticks.map((tick) => clock(1000 * tick)) }), axis({ size: 60, values: (_, ticks) => ticks.map((tick) => `${tick} %`) })],
    series: [{}, ...names.map((label, at) => ({ label, stroke: colour(at), width: 2, points: { show: false } }))],
  }, data);
}

/** Return a chart of bars: one for each label. */
export function bars(element, label, labels, values) {
  return new Chart(element, {
    cursor: { show: false }, legend: { show: false },
    scales: { x: { time: false, range: [-0.6, labels.length - 0.4] }, y: { range: (_, low, high) => [0, high || 1] } },
    axes: [
      axis({ splits: () => labels.map((_, at) => at), values: () => labels, grid: { show: false }, rotate: labels.length > 6 ? -40 : 0, size: labels.length > 6 ? 90 : 40 }),
      axis({ size: 70 }),
    ],
    series: [{}, { label, stroke: colour(0), fill: colour(0), paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } }],
  }, [labels.map((_, at) => at), values]);
}
