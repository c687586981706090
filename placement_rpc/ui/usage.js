// SPDX-License-Identifier: Apache-2.0
// Usage: resource-hours by project and class, from the events.

import { bars } from "./charts.js";
import { decimals, field, h, problem, select, setOptions, table, whole } from "./dom.js";
import { UsageAccount } from "./hours.js";

const PAGE = 1000;
const MOST_BARS = 12;
const HOUR = 3600000;
const PERIODS = [["", "all events that are kept"], [String(HOUR), "the last hour"], [String(24 * HOUR), "the last 24 hours"], [String(7 * 24 * HOUR), "the last 7 days"], [String(30 * 24 * HOUR), "the last 30 days"]];

export const title = "Usage";

/** Show the page; returns what ends it. */
export function show(content, app) {
  const page = new Usage(content, app);
  const add = ({ detail }) => page.follow(detail);
  app.changes.addEventListener("events", add);
  const timer = setInterval(() => page.draw(), 2000);
  page.read();
  return () => {
    app.changes.removeEventListener("events", add);
    clearInterval(timer);
    page.close();
  };
}

class Usage {
  constructor(content, app) {
    this.app = app;
    this.chart = null;
    this.abort = null;
    this.account = null;
    this.period = select(PERIODS, { id: "period", change: () => this.read() });
    this.choice = h("select", { id: "usage-class", change: () => this.draw() });
    this.note = h("p", { role: "status", id: "usage-note", class: "quiet" });
    this.progress = h("progress", { "aria-label": "Reading the events", hidden: true });
    this.picture = h("div", { id: "usage-chart", role: "img", "aria-label": "Resource-hours by project; the table has the numbers" });
    this.table = h("div", { id: "usage-table" });
    content.append(
      h("h1", {}, title),
      h("section", { class: "panel", "aria-label": "Resource-hours" },
        h("div", { class: "form" }, field("Period", this.period), field("Chart of", this.choice)),
        this.note, this.progress, this.picture),
      h("section", { class: "panel", "aria-label": "Resource-hours as a table" }, this.table));
  }

  close() {
    this.abort?.abort();
    this.chart?.close();
  }

  /** Read all events from the oldest that is kept. */
  async read() {
    this.abort?.abort();
    const { signal } = this.abort = new AbortController();
    const account = this.account = new UsageAccount(this.period.value ? Date.now() - Number(this.period.value) : -Infinity);
    this.pending = [];
    this.progress.hidden = false;
    try {
      await this.readPages(account, signal);
    } catch (error) {
      if (error.name !== "AbortError" && !signal.aborted) this.note.replaceChildren(problem(error));
      return;
    } finally {
      if (!signal.aborted) this.progress.hidden = true;
    }
    for (const event of this.pending) account.apply(event);
    this.pending = null;
    this.draw();
  }

  async readPages(account, signal) {
    let position = null;
    for (;;) {
      const after = position === null ? "" : `&after=${position}`;
      const answer = await this.app.service.send(`events?limit=${PAGE}${after}`, { signal });
      const events = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
      for (const event of events) account.apply(event);
      position = Number(answer.headers.get("placement-position"));
      const last = this.app.fleet.position;
      this.progress.max = Math.max(last, position, 1);
      this.progress.value = position;
      this.note.textContent = `Reading the events: ${whole(position)} of ${whole(Math.max(last, position))}`;
      if (events.length === 0) return;
    }
  }

  follow(events) {
    if (this.pending) this.pending.push(...events);
    else for (const event of events) this.account.apply(event);
  }

  draw() {
    if (this.pending || !this.account) return;
    const lines = this.account.lines(Date.now());
    const names = [...new Set(lines.map(([, name]) => name))].sort();
    if (this.names !== names.join()) {
      this.names = names.join();
      setOptions(this.choice, names, this.choice.value || "VCPU");
    }
    this.note.textContent = this.account.position === null ? "There is no event yet."
      : this.account.complete ? `From all events up to #${whole(this.account.position)}.`
        : "Not complete: events from before the period are deleted, and no snapshot of that time is there.";
    this.table.replaceChildren(table("Resource-hours: the amount times the hours for which it was held", ["Project", "Class", "#Resource-hours", "#Held now"], lines.map(
      ([project, name, hours, held]) => [project, name, decimals(hours), whole(held)])));
    this.drawChart(lines.filter(([, name]) => name === this.choice.value).sort(([, , a], [, , b]) => b - a).slice(0, MOST_BARS));
  }

  drawChart(lines) {
    const projects = lines.map(([project]) => project);
    const hours = lines.map(([, , each]) => each);
    const key = `${this.choice.value} ${projects}`;
    if (this.chart && this.shown === key) {
      this.chart.set([projects.map((_, at) => at), hours]);
      return;
    }
    this.chart?.close();
    this.chart = lines.length ? bars(this.picture, `${this.choice.value} hours`, projects.map((each) => (each.length > 14 ? `${each.slice(0, 12)}\u2026` : each)), hours) : null;
    this.shown = key;
  }
}
