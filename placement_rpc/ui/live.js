// SPDX-License-Identifier: Apache-2.0
// Live: events as they happen, filtered by type, provider and project.

import { amounts, clock, counted, field, h, select, throttled, whole } from "./dom.js";

const MOST_ROWS = 300;
const TYPES = [
  ["", "All"], ["allocation", "Allocations"], ["allocation.claim.refused", "Refused claims"],
  ["inventory", "Inventories"], ["resource_provider", "Providers, traits and aggregates"],
  ["consumer", "Owners of consumers"], ["resource_class", "Resource classes"], ["trait", "Traits"]];

export const title = "Live";

/** Show the page; returns what ends it. */
export function show(content, app) {
  if (app.denied) {
    content.append(h("h1", {}, title));
    return () => {};
  }
  const page = new Live(content, app);
  const add = ({ detail }) => page.add(detail);
  app.changes.addEventListener("events", add);
  page.fill();
  return () => app.changes.removeEventListener("events", add);
}

/** Return the uuids of the providers that an event is about. */
export function providersOf({ payload }) {
  if (payload.provider_uuid) return [payload.provider_uuid];
  if (payload.providers) return payload.providers.map((each) => each.provider_uuid);
  return Object.keys(payload.allocations ?? {});
}

/** Return what an event says, in a few words. */
export function summary({ event_type: type, payload }, nameOf) {
  if (type === "allocation.claim.refused") return payload.error.message;
  if (payload.providers) {
    return payload.providers.map(({ provider_uuid: uuid, before, after }) => {
      const [from, to] = [amounts(before), amounts(after)];
      return `${nameOf(uuid)}: ${from && to && from !== to ? `${from} \u2192 ${to}` : to || `${from} released`}`;
    }).join("; ");
  }
  if (payload.inventories) {
    return `${nameOf(payload.provider_uuid)}: ${payload.inventories.map(({ resource_class: name, after }) => (after ? `${name} ${whole(after.total)}` : `${name} removed`)).join(", ")}`;
  }
  if (type.startsWith("resource_provider.aggregate")) return `${nameOf(payload.provider_uuid)}: ${payload.aggregates.join(", ")}`;
  if (type === "resource_provider.traits.update") return `${nameOf(payload.provider_uuid)}: ${payload.after.join(", ") || "none"}`;
  return payload.name ?? (payload.provider_uuid ? nameOf(payload.provider_uuid) : "");
}

class Live {
  #waiting = [];
  // While paused: how many events came since, and the position of the last one before.
  #held = 0;
  #pausedAt = null;

  constructor(content, app) {
    this.app = app;
    const refill = throttled(150, () => this.fill());
    this.type = select(TYPES, { id: "filter-type", change: refill });
    this.provider = h("input", { id: "filter-provider", type: "search", autocomplete: "off", placeholder: "name or uuid", input: refill });
    this.project = h("input", { id: "filter-project", type: "search", autocomplete: "off", input: refill });
    this.button = h("button", { type: "button", id: "pause", "aria-pressed": "false", click: () => this.pause() }, "Pause");
    this.list = h("ol", { class: "events", id: "events", "aria-label": "Events, the newest first" });
    this.note = h("p", { class: "quiet", role: "status", id: "events-note" });
    this.draw = throttled(200, () => this.flush());
    content.append(
      h("h1", {}, title),
      h("section", { class: "panel", "aria-label": "Events" },
        h("div", { class: "form" }, field("Type", this.type), field("Provider", this.provider), field("Project", this.project), this.button),
        this.note, this.list));
  }

  matches(event) {
    if (!`${event.event_type}.`.startsWith(this.type.value && `${this.type.value}.`)) return false;
    const provider = this.provider.value.trim().toLowerCase();
    if (provider && !providersOf(event).some((uuid) => uuid.startsWith(provider) || this.app.fleet.name(uuid).toLowerCase().includes(provider))) return false;
    const project = this.project.value.trim();
    return !project || (event.payload.project_id ?? "").includes(project);
  }

  /** Show the events that were kept and match. */
  fill() {
    this.#waiting = [];
    const last = this.#pausedAt ?? Infinity;
    const found = this.app.recent.filter((event) => event.position <= last && this.matches(event));
    this.list.replaceChildren(...found.slice(-MOST_ROWS).reverse().map((event) => this.row(event)));
    this.tell();
  }

  add(events) {
    if (this.#pausedAt !== null) this.#held += events.length;
    // Of a burst only the newest are ever seen.
    else this.#waiting = [...this.#waiting, ...events.filter((event) => this.matches(event))].slice(-MOST_ROWS);
    this.draw();
  }

  flush() {
    const rows = this.#waiting.map((event) => this.row(event)).reverse();
    this.#waiting = [];
    this.list.prepend(...rows);
    while (this.list.children.length > MOST_ROWS) this.list.lastChild.remove();
    this.tell();
  }

  tell() {
    if (this.#pausedAt !== null) this.note.textContent = `Paused; ${counted(this.#held, "event waits", "events wait")}.`;
    else this.note.textContent = this.list.children.length ? `${counted(this.list.children.length, "event")}, the newest first` : "No event yet. Each change appears here when it is committed.";
  }

  pause() {
    const isPaused = this.#pausedAt === null;
    this.flush();
    this.#pausedAt = isPaused ? this.app.recent.at(-1)?.position ?? 0 : null;
    this.#held = 0;
    this.button.setAttribute("aria-pressed", String(isPaused));
    this.button.textContent = isPaused ? "Go on" : "Pause";
    if (isPaused) this.tell();
    else this.fill();
  }

  row(event) {
    const text = h("pre");
    const kind = event.event_type.endsWith("refused") ? "code type-refused" : "code";
    const item = h("details", {
      toggle: () => { text.textContent = item.open ? JSON.stringify(event, null, 2) : ""; },
    }, h("summary", {},
      h("span", { class: "quiet" }, clock(event.occurred_at)), h("span", { class: "quiet" }, `#${event.position}`),
      h("span", { class: kind }, event.event_type),
      h("span", {}, summary(event, (uuid) => this.app.fleet.name(uuid)))), text);
    return h("li", {}, item);
  }
}
