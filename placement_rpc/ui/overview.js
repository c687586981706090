// SPDX-License-Identifier: Apache-2.0
// Overview: capacity by class, its history, the fullest providers, aggregates, the last minute.

import { shares } from "./charts.js";
import { bar, counted, field, h, percent, problem, refresh, setOptions, short, table, whole } from "./dom.js";
import { fullness } from "./fleet.js";

const MOST = 10;
const ORDER = new Intl.Collator("en", { numeric: true });

export const title = "Overview";

/** Show the page; returns what ends it. */
export function show(content, app) {
  if (app.denied) return showProject(content, app);
  const page = new Overview(content, app);
  // Not with each event: of a large fleet everything is summed again.
  const timer = setInterval(() => page.update(), 1000);
  page.update();
  return () => {
    clearInterval(timer);
    page.chart?.close();
  };
}

/** Show what a project uses, which its readers may know, to those who may not see providers. */
function showProject(content, { service }) {
  const usage = h("section", { class: "panel", id: "project", "aria-label": "What the project uses" });
  content.append(h("h1", {}, title), usage);
  if (service.projectId === null) {
    usage.append(h("p", {}, "Log in with a name and a project to see what the project uses."));
  } else {
    service.get(`usages?project_id=${encodeURIComponent(service.projectId)}`).then(
      ({ usages }) => usage.append(usagesTable(service.project, usages)), (error) => usage.append(problem(error)));
  }
  return () => {};
}

function usagesTable(project, usages) {
  const rows = Object.entries(usages).flatMap(([type, { consumer_count: consumers, ...amounts }]) => Object.entries(amounts).map(
    ([name, amount]) => [type, whole(consumers), name, whole(amount)]));
  return rows.length === 0 ? h("p", {}, `The project ${project} uses nothing.`)
    : table(`What the project ${project} uses`, ["Type of consumers", "#Consumers", "Class", "#Used"], rows);
}

class Overview {
  constructor(content, app) {
    this.app = app;
    this.chart = null;
    this.figures = h("dl", { class: "figures", id: "figures" });
    this.classes = h("div", { id: "classes" });
    this.history = h("div", { id: "history" });
    this.fullest = h("div", { id: "fullest" });
    this.aggregates = h("div", { id: "aggregates" });
    this.choice = h("select", { id: "fullest-class", change: () => this.update() });
    content.append(
      h("h1", {}, title),
      h("section", { class: "panel wide", "aria-label": "The last minute" }, this.figures),
      h("div", { class: "grid" },
        h("section", { class: "panel", "aria-labelledby": "classes-title" }, h("h2", { id: "classes-title" }, "Capacity"), this.classes),
        h("section", { class: "panel", "aria-labelledby": "history-title" }, h("h2", { id: "history-title" }, "Used, since this page was opened"), this.history),
        h("section", { class: "panel", "aria-labelledby": "fullest-title" }, h("h2", { id: "fullest-title" }, "Fullest providers"), h("div", { class: "form" }, field("Resource class", this.choice)), this.fullest),
        h("section", { class: "panel", "aria-labelledby": "aggregates-title" }, h("h2", { id: "aggregates-title" }, "Aggregates"), this.aggregates)));
  }

  update() {
    const sums = this.app.fleet.sums();
    this.showFigures();
    this.showClasses(sums);
    this.showHistory([...sums.keys()]);
    this.showFullest([...sums.keys()]);
    this.showAggregates();
  }

  showFigures() {
    const minute = this.app.activity.minute();
    const figures = [
      ["Providers", whole(this.app.fleet.providers.size)], ["Claims in the last minute", whole(minute.claims)],
      ["Releases", whole(minute.releases)], ["Refused claims", whole(minute.refused)],
      ["Events per second", (minute.events / 60).toFixed(1)]];
    this.figures.replaceChildren(...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }

  showClasses(sums) {
    const rows = [...sums].map(([name, { capacity, used, reserved }]) => [
      name, bar(used, reserved, capacity + reserved, `${name}: ${percent(used, capacity)} used`),
      short(used), short(capacity), short(reserved), percent(used, capacity)]);
    refresh(this.classes, rows.length
      ? table("Capacity is total less reserved, times the allocation ratio.", ["Class", "", "#Used", "#Capacity", "#Reserved", "#Share"], rows)
      : h("p", {}, "No provider has an inventory yet. ", h("code", {}, "make demo"), " fills a fleet; ", h("code", {}, "openstack resource-provider create"), " makes one provider."));
  }

  showHistory(names) {
    const { times, series } = this.app.history;
    const shown = names.filter((name) => series.has(name)).slice(0, 8);
    if (shown.length === 0 || times.length < 2) return;
    const data = [times, ...shown.map((name) => series.get(name))];
    const key = shown.join();
    if (this.chart && this.shown === key) {
      this.chart.set(data);
      return;
    }
    this.chart?.close();
    this.shown = key;
    this.chart = shares(this.history, shown, data);
  }

  showFullest(names) {
    const options = names.join();
    if (this.options !== options) {
      this.options = options;
      setOptions(this.choice, names);
    }
    const name = this.choice.value;
    const found = [...this.app.fleet.providers.values()].filter((each) => each.inventories[name])
      .map((each) => [each, fullness(each, name)]).sort(([one, a], [other, b]) => b - a || ORDER.compare(one.name, other.name)).slice(0, MOST);
    refresh(this.fullest, table(`The fullest by ${name || "a class"}`, ["Provider", "", "#Used", "#Capacity"], found.map(([each]) => {
      const { used, capacity } = each.inventories[name];
      return [h("a", { href: `#providers/${each.uuid}` }, each.name), bar(used, 0, capacity, percent(used, capacity)), short(used), short(capacity)];
    })));
  }

  showAggregates() {
    const members = new Map();
    for (const provider of this.app.fleet.providers.values()) {
      for (const uuid of provider.aggregates) {
        if (!members.has(uuid)) members.set(uuid, []);
        members.get(uuid).push(provider);
      }
    }
    const largest = [...members].sort(([, a], [, b]) => b.length - a.length).slice(0, MOST);
    refresh(this.aggregates, largest.length === 0 ? h("p", { class: "quiet" }, "No provider is in an aggregate.")
      : table(`${counted(members.size, "aggregate")}, the largest first`, ["Aggregate", "#Providers", "Used"], largest.map(([uuid, all]) => [
        h("code", {}, uuid), whole(all.length),
        [...this.app.fleet.sums(all)].slice(0, 4).map(([name, { used, capacity }]) => `${name} ${percent(used, capacity)}`).join(", ")])));
  }
}
