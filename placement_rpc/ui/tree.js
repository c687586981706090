// SPDX-License-Identifier: Apache-2.0
// A tree of providers that draws only the rows that can be seen.

import { h } from "./dom.js";

const HEIGHT = 26;

/** Dispatches "select" with the uuid of the row that was chosen. */
export class Tree extends EventTarget {
  #rows = [];
  #closed = new Set();
  #selected = null;

  /** @param {function(object): string} share what a row says at its end */
  constructor(fleet, share) {
    super();
    this.fleet = fleet;
    this.share = share;
    this.filter = "";
    this.space = h("div", { class: "space", role: "presentation" });
    this.element = h("div", {
      class: "tree", id: "tree", role: "tree", tabindex: 0, "aria-label": "Resource providers",
      scroll: () => this.#draw(), keydown: (event) => this.#key(event), click: (event) => this.#click(event),
    }, this.space);
  }

  /** Find the rows again, after the fleet or the filter has changed. */
  update() {
    const wanted = this.filter.trim().toLowerCase();
    const rows = [];
    const visit = (provider, depth, number, siblings) => {
      const at = rows.length;
      const children = this.fleet.children(provider.uuid);
      rows.push({ provider, depth, number, siblings, has: children.length > 0 });
      const matches = !wanted || provider.name.toLowerCase().includes(wanted) || provider.uuid.startsWith(wanted);
      let below = false;
      // A filter looks into closed branches too.
      if (wanted || !this.#closed.has(provider.uuid)) {
        children.forEach((child, each) => { below = visit(child, depth + 1, each + 1, children.length) || below; });
      }
      if (!matches && !below) rows.length = at;
      return matches || below;
    };
    const roots = this.fleet.children(null);
    roots.forEach((root, each) => visit(root, 0, each + 1, roots.length));
    this.#rows = rows;
    this.space.style.height = `${rows.length * HEIGHT}px`;
    this.#draw();
    return rows.length;
  }

  /** Mark a provider and bring its row into view. */
  reveal(uuid) {
    this.#selected = uuid;
    for (let each = this.fleet.providers.get(uuid); each; each = this.fleet.providers.get(each.parent)) {
      if (each.uuid !== uuid) this.#closed.delete(each.uuid);
    }
    this.update();
    const at = this.#at();
    const { scrollTop, clientHeight } = this.element;
    if (at >= 0 && (at * HEIGHT < scrollTop || (at + 1) * HEIGHT > scrollTop + clientHeight)) {
      this.element.scrollTop = Math.max(0, at * HEIGHT - clientHeight / 2);
    }
    this.#draw();
  }

  #at() {
    return this.#rows.findIndex((row) => row.provider.uuid === this.#selected);
  }

  #draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / HEIGHT) - 5);
    const count = Math.ceil((this.element.clientHeight || 460) / HEIGHT) + 10;
    const rows = this.#rows.slice(first, first + count);
    this.space.replaceChildren(...rows.map((row, at) => this.#row(row, first + at)));
    if (rows.some((row) => row.provider.uuid === this.#selected)) {
      this.element.setAttribute("aria-activedescendant", `row-${this.#selected}`);
    } else this.element.removeAttribute("aria-activedescendant");
  }

  #row({ provider, depth, number, siblings, has }, at) {
    const isOpen = has ? this.filter !== "" || !this.#closed.has(provider.uuid) : null;
    const row = h("div", {
      class: "row", role: "treeitem", id: `row-${provider.uuid}`, "data-uuid": provider.uuid,
      "aria-level": depth + 1, "aria-posinset": number, "aria-setsize": siblings,
      "aria-expanded": isOpen === null ? null : String(isOpen),
      "aria-selected": String(provider.uuid === this.#selected),
    },
    h("span", { class: "mark", "aria-hidden": "true" }, has ? (isOpen ? "\u25be" : "\u25b8") : ""),
    h("span", { class: "name" }, provider.name), h("span", { class: "share" }, this.share(provider)));
    row.style.top = `${at * HEIGHT}px`;
    row.style.paddingLeft = `${8 + 18 * depth}px`;
    return row;
  }

  #select(at) {
    const row = this.#rows[Math.max(0, Math.min(at, this.#rows.length - 1))];
    if (row) this.dispatchEvent(new CustomEvent("select", { detail: row.provider.uuid }));
  }

  #toggle(uuid, open) {
    if (open) this.#closed.delete(uuid);
    else this.#closed.add(uuid);
    this.update();
  }

  #click(event) {
    const row = event.target.closest(".row");
    if (row === null) return;
    const { uuid } = row.dataset;
    if (event.target.classList.contains("mark") && row.hasAttribute("aria-expanded")) this.#toggle(uuid, this.#closed.has(uuid));
    else this.#select(this.#rows.findIndex((each) => each.provider.uuid === uuid));
  }

  #key(event) {
    const at = this.#at();
    const row = this.#rows[at];
    const page = Math.floor(this.element.clientHeight / HEIGHT);
    const moves = { ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), Home: 0, End: this.#rows.length - 1, PageDown: at + page, PageUp: at - page };
    if (event.key in moves) this.#select(moves[event.key]);
    else if (row?.has && event.key === "ArrowRight") this.#toggle(row.provider.uuid, true);
    else if (row?.has && !this.#closed.has(row.provider.uuid) && event.key === "ArrowLeft") this.#toggle(row.provider.uuid, false);
    else if (row?.provider.parent && event.key === "ArrowLeft") this.#select(this.#rows.findIndex((each) => each.provider.uuid === row.provider.parent));
    else return;
    event.preventDefault();
  }
}
