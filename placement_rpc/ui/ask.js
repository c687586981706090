// SPDX-License-Identifier: Apache-2.0
// Ask: where a request has room, why not elsewhere, and how many more such requests fit.

import { amounts, bar, field, h, problem, select, table, whole } from "./dom.js";
import { candidatesPath, curlLines, explainBody, headroomBody, openstackLines, parseGroup, pythonLines } from "./request.js";

const LIMIT = 20;

export const title = "Ask";
// Its answers are asked for; when the fleet is read again, a form that is half filled stays.
export const outlivesFleet = true;

/** Show the page; returns what ends it. */
export function show(content, app) {
  const page = new Ask(content, app);
  return () => page.abort?.abort();
}

class Ask {
  constructor(content, app) {
    this.app = app;
    this.abort = null;
    this.groups = h("div", { id: "groups" });
    this.policy = select([["", "not given"], "none", "isolate"], { name: "group_policy" });
    this.answer = h("div", { id: "answer", "aria-live": "polite" });
    this.add(false);
    content.append(
      h("h1", {}, title),
      h("form", { class: "panel", submit: (event) => { event.preventDefault(); this.ask(); } },
        h("p", { class: "quiet" }, "Amounts as VCPU:2, several separated by spaces; alternatives of traits and aggregates as A|B."),
        this.groups,
        h("div", { class: "form" }, field("Group policy", this.policy),
          h("button", { type: "button", id: "add-group", click: () => this.add(true) }, "Add a group"),
          h("button", { type: "submit", class: "primary" }, "Ask"))),
      this.answer);
  }

  /** Add the fields of a group; one with a suffix can be removed. */
  add(hasSuffix) {
    const number = this.groups.children.length;
    const input = (name, more) => h("input", { name: `${name}${number || ""}`, "data-part": name, autocomplete: "off", spellcheck: "false", size: 28, ...more });
    const set = h("fieldset", {}, h("legend", {}, hasSuffix ? "A group that one provider serves" : "The group without a suffix"),
      h("div", { class: "form" },
        ...(hasSuffix ? [field("Suffix", input("suffix", { value: `_${number}`, size: 8, required: true }))] : []),
        field("Resources", input("resources", { placeholder: "VCPU:2 MEMORY_MB:4096", value: hasSuffix ? "" : this.suggestion() })),
        field("Required traits", input("required")), field("Forbidden traits", input("forbidden")), field("In aggregates", input("memberOf")),
        ...(hasSuffix ? [h("button", { type: "button", click: () => set.remove() }, "Remove")] : [])));
    this.groups.append(set);
    return set;
  }

  suggestion() {
    const names = [...this.app.fleet.sums().keys()];
    return names.length ? `${names[0]}:1` : "VCPU:1";
  }

  /** Return the request of the form; :raises Error: if it cannot be read. */
  read() {
    const groups = [...this.groups.children].map((set) => parseGroup(Object.fromEntries(
      [...set.querySelectorAll("input")].map((each) => [each.dataset.part, each.value.trim()]))));
    const used = groups.filter((group) => group.suffix || [Object.keys(group.resources), group.required, group.forbidden, group.member_of].some((each) => each.length));
    if (!used.some((group) => Object.keys(group.resources).length)) throw new Error("Give at least one amount, such as VCPU:2");
    return { groups: used, policy: this.policy.value };
  }

  async ask() {
    this.abort?.abort();
    this.abort = new AbortController();
    let request;
    try {
      request = this.read();
    } catch (error) {
      this.answer.replaceChildren(problem(error));
      return;
    }
    const { service } = this.app;
    const { signal } = this.abort;
    const parts = [
      ["candidates", "Candidates", service.get(candidatesPath(request, LIMIT), signal), (found) => this.candidates(found)],
      ["headroom", "Headroom", service.ask("resource_providers?headroom", headroomBody(request), signal), headroom],
      ["funnel", "Why not elsewhere", service.ask("resource_providers?explain", explainBody(request, LIMIT), signal), (found) => explanation(found)],
    ].map(([id, name, answer, render]) => {
      const panel = h("section", { class: "panel", id, "aria-label": name, "aria-busy": "true" }, h("h2", {}, name));
      // Each question stands alone: the rights may suffice for one and not for another.
      answer.then(render, problem).then((shown) => {
        panel.append(shown);
        panel.removeAttribute("aria-busy");
      });
      return panel;
    });
    this.answer.replaceChildren(h("div", { class: "grid" }, ...parts, this.lines(request)));
  }

  candidates({ allocation_requests: requests }) {
    if (requests.length === 0) return h("p", { class: "notice" }, "No provider has room for this. The next panel says why.");
    const note = requests.length === LIMIT ? `The first ${LIMIT}` : `${requests.length} of ${requests.length}`;
    return table(note, ["#Number", "Allocations"], requests.map(({ allocations }, at) => [at + 1, h("div", {}, ...Object.entries(allocations).map(([uuid, { resources }]) => h("div", {},
      h("a", { href: `#providers/${uuid}` }, h("bdi", {}, this.app.fleet.name(uuid))), ": ",
      amounts(resources))))]));
  }

  lines(request) {
    const block = (name, text) => [
      h("h3", {}, name),
      h("pre", { tabindex: 0, "aria-label": `${name}, to copy` }, text),
      h("button", { type: "button", click: ({ target }) => copy(text, target), "aria-label": `Copy the lines of ${name}` }, "Copy")];
    return h("section", { class: "panel wide", id: "lines", "aria-label": "The same request elsewhere" }, h("h2", {}, "The same request elsewhere"),
      ...block("curl", curlLines(request, LIMIT)), ...block("openstack", openstackLines(request)), ...block("Python", pythonLines(request)));
  }
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Browsers allow it to pages over TLS or on this machine only.
    button.textContent = "Select and copy it by hand";
  }
}

function headroom({ count, at_most: most, exact, parts }) {
  const number = exact ? whole(count) : `${whole(count)} to ${whole(most)}`;
  return h("div", {}, h("dl", { class: "figures" }, h("div", {}, h("dt", {}, "So many more such requests fit"), h("dd", {}, number))),
    table("By each resource class alone", ["Class", "#Would fit", "#Left when all are placed"], parts.map((part) => [part.name, whole(part.count), whole(part.left)])));
}

function explanation({ funnel, resource_providers: providers }) {
  const all = Math.max(1, ...(funnel ?? []).map((step) => step.trees));
  const steps = table("How many providers and trees each rule leaves", ["Rule", "", "#Providers", "#Trees"], (funnel ?? []).map((step) => [
    `${step.group ? `${step.group}: ` : ""}${step.detail}`, bar(step.trees, 0, all, `${step.trees} of ${all} trees`, false), whole(step.providers), whole(step.trees)]));
  const lacking = providers.filter((each) => !each.fits);
  if (lacking.length === 0) return steps;
  return h("div", {}, steps, table("Providers or trees without room, the first ones", ["Provider", "Why"], lacking.map((each) => [
    h("a", { href: `#providers/${each.uuid}` }, each.name),
    each.reasons.map((reason) => `${reason.group ? `${reason.group}: ` : ""}${reason.resource_class ?? reason.rule}: ${reason.detail}`).join("; ")])));
}
