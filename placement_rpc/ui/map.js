// SPDX-License-Identifier: Apache-2.0
// The fleet as a map: a cell for each provider, coloured by how full a class of it is.

import { h, percent } from "./dom.js";
import { fullness } from "./fleet.js";
import { isDark, whileShown } from "./theme.js";

// From light to dark, so the order needs no hue. Full is what differs most from the background.
const LIGHT_TO_DARK = ["#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#482878", "#440154"];
const NONE = "#9aa3af";
const OVER = "#e11d2e";

/** Return the colours from empty to full, for the current theme. */
export function scale() {
  return isDark() ? LIGHT_TO_DARK.toReversed() : LIGHT_TO_DARK;
}

function colourOf(share, colours) {
  if (share === null) return NONE;
  if (share > 1) return OVER;
  return colours[Math.min(colours.length - 1, Math.floor(share * colours.length))];
}

/** Return what the colours mean. */
export function legend() {
  const canvas = h("canvas", { width: LIGHT_TO_DARK.length * 12, height: 12, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const draw = () => scale().forEach((colour, at) => {
    context.fillStyle = colour;
    context.fillRect(at * 12, 0, 12, 12);
  });
  draw();
  whileShown(canvas, draw);
  return h("div", { class: "legend" }, "empty", canvas, "full; grey: none of the class; red: over capacity");
}

/** A canvas with a cell for each provider; dispatches "select" with a uuid. */
export class FleetMap extends EventTarget {
  #cells = [];
  #at = -1;
  #frame = null;

  constructor(fleet) {
    super();
    this.fleet = fleet;
    this.class = null;
    this.label = h("p", { id: "map-cell", "aria-live": "polite", class: "quiet" }, "\u00a0");
    this.canvas = h("canvas", {
      class: "map", id: "map", tabindex: 0, role: "application", "aria-describedby": "map-cell",
      "aria-label": "Map of the fleet: arrow keys move between providers, Enter shows one",
      mousemove: (event) => this.#point(this.#hit(event)), click: (event) => this.#choose(this.#hit(event)),
      keydown: (event) => this.#key(event),
    });
    this.element = h("div", {}, this.canvas, this.label);
    this.resized = new ResizeObserver(() => this.redraw());
    this.resized.observe(this.element);
    whileShown(this.canvas, () => this.redraw());
  }

  close() {
    this.resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** Take the providers in a new order, after some came or went. */
  arrange() {
    this.#cells = this.fleet.ordered().map(([provider]) => provider);
    this.redraw();
  }

  /** Draw soon: once for all changes until the next frame. */
  redraw() {
    this.#frame ??= requestAnimationFrame(() => { this.#frame = null; this.#draw(); });
  }

  #measure() {
    const width = Math.max(200, this.element.clientWidth);
    const count = Math.max(1, this.#cells.length);
    // About a third as high as it is wide, with cells from 4 to 26 pixels.
    this.size = Math.max(4, Math.min(26, Math.floor(Math.sqrt((width * width * 0.3) / count))));
    this.columns = Math.max(1, Math.floor(width / this.size));
    return [width, Math.ceil(count / this.columns) * this.size];
  }

  #draw() {
    const [width, height] = this.#measure();
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const gap = this.size > 6 ? 1 : 0.5;
    // By colour, since setting the colour costs more than a cell.
    const [byColour, colours] = [new Map(), scale()];
    this.#cells.forEach((provider, at) => {
      const colour = colourOf(fullness(provider, this.class), colours);
      if (!byColour.has(colour)) byColour.set(colour, []);
      byColour.get(colour).push(at);
    });
    for (const [colour, cells] of byColour) {
      context.fillStyle = colour;
      for (const at of cells) {
        context.fillRect((at % this.columns) * this.size, Math.floor(at / this.columns) * this.size, this.size - gap, this.size - gap);
      }
    }
    if (this.#at >= 0) this.#outline(context);
    this.canvas.dataset.cells = this.#cells.length;
  }

  #outline(context) {
    context.lineWidth = 2;
    context.strokeStyle = getComputedStyle(document.body).color;
    context.strokeRect((this.#at % this.columns) * this.size, Math.floor(this.#at / this.columns) * this.size, this.size, this.size);
  }

  #hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.size);
    const at = Math.floor((event.clientY - box.top) / this.size) * this.columns + column;
    return column < this.columns && at < this.#cells.length ? at : -1;
  }

  #point(at) {
    if (at < 0 || at === this.#at || at >= this.#cells.length) return;
    this.#at = at;
    const provider = this.#cells[at];
    const inventory = provider.inventories[this.class];
    // With bdi, a name that is written from right to left does not move the numbers after it.
    this.label.replaceChildren(h("bdi", {}, provider.name), inventory
      ? `: ${inventory.used} of ${inventory.capacity} ${this.class} used (${percent(inventory.used, inventory.capacity)})`
      : `: no ${this.class ?? "inventory"}`);
    this.redraw();
  }

  /** Put the mark on a provider. */
  mark(uuid) {
    this.#point(this.#cells.findIndex((each) => each.uuid === uuid));
  }

  #choose(at) {
    if (at >= 0) this.dispatchEvent(new CustomEvent("select", { detail: this.#cells[at].uuid }));
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    if (event.key in steps) this.#point(Math.max(0, Math.min(this.#cells.length - 1, this.#at + steps[event.key])));
    else if (event.key === "Enter") this.#choose(this.#at);
    else return;
    event.preventDefault();
  }
}
