// SPDX-License-Identifier: Apache-2.0
// The start: login, loading, navigation, and what all pages share.

import { Activity, History } from "./activity.js";
import * as ask from "./ask.js";
import { h, problem, throttled, whole } from "./dom.js";
import { Feed } from "./feed.js";
import { Fleet } from "./fleet.js";
import * as live from "./live.js";
import { showLogin } from "./login.js";
import * as overview from "./overview.js";
import * as providers from "./providers.js";
import { settings } from "./service.js";
import { switchedBy } from "./theme.js";
import * as usage from "./usage.js";

const PAGES = { overview, providers, live, ask, usage };
// Events that are kept for the page Live, which shows those from before it was opened too.
const RECENT = 2000;
// Milliseconds before everything is read again, longer each time until the connection is live.
const PAUSES = [500, 2000, 8000, 30000];
const element = (id) => document.getElementById(id);

/** What the pages share: service, fleet, activity, history; `changes` tells of new data. */
class App {
  fleet = new Fleet();
  activity = new Activity();
  history = new History();
  recent = [];
  changes = new EventTarget();
  #page = null;
  #feed = null;
  #begun = 0;
  #timer = null;
  #again = null;
  #reloads = 0;

  constructor(kind) {
    this.kind = kind;
    this.tell = throttled(250, () => this.changes.dispatchEvent(new Event("change")));
    window.addEventListener("hashchange", () => this.#go(true));
    element("leave").addEventListener("click", () => this.leave(""));
  }

  /** Show the login; everything that was read is forgotten. */
  leave(reason) {
    this.#stop();
    this.#close();
    this.service = null;
    element("leave").hidden = true;
    element("pages").replaceChildren();
    showLogin(element("content"), this.kind, reason, (service) => this.enter(service));
  }

  async enter(service) {
    this.service = service;
    this.activity = new Activity();
    this.history = new History();
    this.recent = [];
    element("leave").hidden = false;
    element("leave").textContent = service.who ? `Log out ${service.who}` : "Log out";
    await this.load();
  }

  /** Read the fleet and follow its events, at the start and whenever that is the only right way. */
  async load() {
    this.#stop();
    const begun = ++this.#begun;
    const fleet = new Fleet();
    const note = h("p", { role: "status" }, "Reading the providers ...");
    const progress = h("progress", { "aria-label": "Reading" });
    // A page that does not depend on the fleet, such as a form that is half filled, stays.
    if (!this.#keepsPage()) element("content").replaceChildren(note, progress);
    this.denied = null;
    try {
      await fleet.load(this.service, (count) => { note.textContent = `Reading the providers ... ${whole(count)}`; });
    } catch (error) {
      if (begun !== this.#begun) return;
      if (error.status === 401) return this.leave("The token is not valid any more. Log in again.");
      if (error.status !== 403) return this.#retry(error);
      this.denied = error;
    }
    if (begun !== this.#begun) return;
    this.fleet = fleet;
    this.history.add(fleet.sums());
    fleet.addEventListener("stale", () => this.#loadSoon());
    if (!this.denied) this.#follow();
    this.#timer = setInterval(() => this.history.add(this.fleet.sums()), 1000);
    if (!this.#keepsPage()) this.#go();
  }

  #keepsPage() {
    return !this.denied && Boolean(PAGES[this.#page?.name]?.outlivesFleet);
  }

  /** Read everything again after a pause: once for all that asks for it meanwhile. */
  #loadSoon() {
    const pause = PAUSES[Math.min(this.#reloads, PAUSES.length - 1)];
    this.#again ??= setTimeout(() => {
      this.#reloads += 1;
      this.load();
    }, pause);
  }

  #retry(error) {
    const again = h("button", { type: "button", class: "primary", click: () => this.load() }, "Try again");
    element("content").replaceChildren(problem(error), again);
  }

  #follow() {
    const { fleet } = this;
    this.#feed = new Feed(this.service, fleet.position);
    this.#feed.addEventListener("events", ({ detail }) => {
      fleet.apply(detail);
      this.activity.add(detail);
      this.recent = [...this.recent, ...detail].slice(-RECENT);
      this.changes.dispatchEvent(new CustomEvent("events", { detail }));
      this.tell();
    });
    this.#feed.addEventListener("state", () => this.#connection());
    this.#feed.start();
  }

  #connection() {
    const { state, error } = this.#feed;
    const texts = { live: "Live", lost: "Connection lost, trying again", ended: "Not live", connecting: "Connecting" };
    const shown = element("connection");
    shown.dataset.state = state;
    shown.textContent = texts[state] ?? "";
    shown.title = error ? error.message : "";
    if (state === "live") this.#reloads = 0;
    if (state !== "ended") return;
    if (error.status === 401) this.leave("The token is not valid any more. Log in again.");
    // Events that were not read are deleted, or the store is another: only reading again is right.
    else if (error.status === 410 || error.status === 400) this.#loadSoon();
    else if (error.status === 403) shown.textContent = "Not live: these rights do not allow events";
  }

  #stop() {
    this.#begun += 1;
    this.#feed?.stop();
    this.#feed = null;
    clearInterval(this.#timer);
    clearTimeout(this.#again);
    this.#again = null;
    if (!this.#keepsPage()) this.#close();
    element("connection").textContent = "";
    delete element("connection").dataset.state;
  }

  #close() {
    const page = this.#page;
    this.#page = null;
    if (page) (page.handle.close ?? page.handle)();
  }

  /** Show the page that the address names; `byUser` is whether a link or a key asked for it. */
  #go(byUser = false) {
    if (!this.service || (!this.#feed && !this.denied)) return;
    const [wanted, ...rest] = location.hash.slice(1).split("/");
    const name = Object.hasOwn(PAGES, wanted) ? wanted : "overview";
    const argument = decoded(rest.join("/"));
    if (this.#page?.name === name && this.#page.handle.go) {
      this.#page.handle.go(argument);
      return;
    }
    this.#close();
    showPages(element("pages"), name);
    document.title = `${PAGES[name].title} - placement_rpc`;
    const content = element("content");
    content.replaceChildren(...(this.denied ? [h("p", { class: "notice", role: "alert" }, `Not everything can be shown with these rights. ${this.denied.message}`)] : []));
    this.#page = { name, handle: PAGES[name].show(content, this, argument) };
    // A screen reader goes on with the page, and the next Tab is in it.
    if (byUser) content.focus();
  }
}

/** Show the links to the pages, and which of them is shown. */
function showPages(list, current) {
  if (list.children.length === 0) {
    list.append(...Object.entries(PAGES).map(([each, page]) => h("a", { href: `#${each}` }, page.title)));
  }
  for (const link of list.children) {
    if (link.hash === `#${current}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Return a part of an address; one that cannot be read is taken as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function start() {
  try {
    const { login, release } = await settings();
    document.querySelector(".brand").title = `placement_rpc ${release}`;
    new App(login).leave("");
  } catch (error) {
    element("content").replaceChildren(
      problem(error),
      h("button", { type: "button", class: "primary", click: () => start() }, "Try again"));
  }
}

switchedBy(element("theme"));
start();
