// SPDX-License-Identifier: Apache-2.0
// Providers: a map of the fleet, a tree that can be searched, and all about one provider.

import { amounts, bar, counted, field, h, percent, problem, setOptions, table, throttled, whole } from "./dom.js";
import { fullness } from "./fleet.js";
import { FleetMap, legend } from "./map.js";
import { Tree } from "./tree.js";

const MOST = 100;
// The largest amount that there is: no limit.
const MOST_UNITS = 2147483647;

export const title = "Providers";

/** Show the page; returns what ends it. */
export function show(content, app, uuid) {
  if (app.denied) {
    content.append(h("h1", {}, title));
    return { close() {}, go() {} };
  }
  const page = new Providers(content, app);
  const update = () => page.update();
  app.changes.addEventListener("change", update);
  page.update();
  page.select(uuid || null);
  return {
    close() {
      app.changes.removeEventListener("change", update);
      page.close();
    },
    go: (other) => page.select(other || null),
  };
}

class Providers {
  constructor(content, app) {
    this.app = app;
    this.selected = null;
    this.consumers = null;
    this.search = h("input", { type: "search", id: "search", autocomplete: "off", placeholder: "name or uuid", input: throttled(120, () => this.find()) });
    this.choice = h("select", { id: "map-class", change: () => this.recolour() });
    this.count = h("p", { class: "quiet", role: "status", id: "found" });
    this.map = new FleetMap(app.fleet);
    this.tree = new Tree(app.fleet, (provider) => this.share(provider));
    this.details = h("div", { id: "details" });
    for (const part of [this.map, this.tree]) part.addEventListener("select", ({ detail }) => { location.hash = `#providers/${detail}`; });
    this.readConsumers = throttled(500, () => this.read());
    content.append(
      h("h1", {}, title),
      h("section", { class: "panel", "aria-labelledby": "map-title" },
        h("h2", { id: "map-title" }, "Map of the fleet"),
        h("div", { class: "form" }, field("Coloured by", this.choice), legend()), this.map.element),
      h("div", { class: "split" },
        h("section", { class: "panel", "aria-labelledby": "tree-title" }, h("h2", { id: "tree-title" }, "Trees"),
          h("div", { class: "form" }, field("Search", this.search), this.count), this.tree.element),
        h("section", { class: "panel", "aria-label": "The chosen provider" }, this.details)));
  }

  close() {
    this.map.close();
    this.selected = null;
  }

  update() {
    const names = [...this.app.fleet.sums().keys()];
    if (this.options !== names.join()) {
      this.options = names.join();
      setOptions(this.choice, names);
    }
    this.map.class = this.choice.value || null;
    this.map.arrange();
    this.find();
    this.refresh();
  }

  find() {
    this.tree.filter = this.search.value;
    const found = this.tree.update();
    this.count.textContent = this.search.value
      ? `${whole(found)} of ${whole(this.app.fleet.providers.size)}` : counted(this.app.fleet.providers.size, "provider");
  }

  recolour() {
    this.map.class = this.choice.value;
    this.map.redraw();
    this.tree.update();
  }

  share(provider) {
    const share = fullness(provider, this.choice.value);
    return share === null ? "" : percent(share, 1);
  }

  select(uuid) {
    this.selected = uuid;
    this.consumers = null;
    this.shown = null;
    if (uuid !== null) {
      this.tree.reveal(uuid);
      this.map.mark(uuid);
    }
    this.refresh();
  }

  /** Show the chosen provider again if it has changed. */
  refresh() {
    const provider = this.app.fleet.providers.get(this.selected);
    if (!provider) {
      this.shown = null;
      this.details.replaceChildren(h("h2", {}, "No provider is chosen"), h("p", { class: "quiet" },
        this.selected === null ? "Choose one in the map or in the tree." : `There is no provider ${this.selected}.`));
      return;
    }
    if (this.shown === `${provider.uuid} ${provider.generation}`) return;
    this.shown = `${provider.uuid} ${provider.generation}`;
    this.draw(provider);
    this.readConsumers();
  }

  draw(provider) {
    const { fleet } = this.app;
    const link = (each) => h("li", {}, h("a", { href: `#providers/${each.uuid}` }, each.name));
    const chips = (values) => (values.length ? h("ul", { class: "chips" }, values.map((value) => (value instanceof Node ? value : h("li", {}, value)))) : h("p", { class: "quiet" }, "None"));
    const parent = fleet.providers.get(provider.parent);
    const rows = Object.entries(provider.inventories).map(([name, each]) => [
      name, bar(each.used, each.reserved, each.capacity + each.reserved, `${percent(each.used, each.capacity)} used`),
      whole(each.used), whole(each.capacity), whole(each.total), whole(each.reserved), each.allocation_ratio,
      units(each)]);
    this.holders = h("div", { id: "holders" }, this.consumers ?? h("p", { class: "quiet" }, "Reading ..."));
    this.details.replaceChildren(
      h("h2", {}, provider.name),
      h("p", { class: "quiet" }, h("code", {}, provider.uuid), ` at generation ${provider.generation}`),
      rows.length ? table("Inventories", ["Class", "", "#Used", "#Capacity", "#Total", "#Reserved", "#Ratio", "#Amounts"], rows) : h("p", {}, "It has no inventory."),
      ...(parent ? [h("h3", {}, "Parent"), chips([link(parent)])] : []),
      ...(fleet.children(provider.uuid).length ? [h("h3", {}, "Children"), chips(fleet.children(provider.uuid).map(link))] : []),
      h("h3", {}, "Traits"), chips(provider.traits),
      h("h3", {}, "Aggregates"), chips(provider.aggregates),
      h("h3", {}, "Consumers"), this.holders);
  }

  async read() {
    const uuid = this.selected;
    if (uuid === null) return;
    let found;
    try {
      const body = await this.app.service.get(`consumers?resource_provider=${uuid}&limit=${MOST}`);
      found = consumersTable(body, uuid);
    } catch (error) {
      found = problem(error);
    }
    // Another one may have been chosen meanwhile.
    if (uuid !== this.selected) return;
    this.consumers = found;
    this.holders?.replaceChildren(found);
  }
}

/** Return which amounts an inventory accepts. */
function units({ min_unit: least, max_unit: most, step_size: step }) {
  const upTo = most === MOST_UNITS ? "" : ` to ${whole(most)}`;
  return least === 1 && step === 1 && !upTo ? "any" : `${whole(least)}${upTo || " or more"}${step === 1 ? "" : ` by ${whole(step)}`}`;
}

function consumersTable({ consumers, next }, uuid) {
  if (consumers.length === 0) return h("p", { class: "quiet" }, "Nothing is allocated here.");
  const note = next ? `The first ${MOST} consumers` : counted(consumers.length, "consumer");
  return table(note, ["Consumer", "Type", "Project", "Amounts"], consumers.map((each) => [
    h("code", {}, each.uuid), each.consumer_type ?? "", each.project_id,
    amounts(each.allocations[uuid] ?? {})]));
}
