// SPDX-License-Identifier: Apache-2.0
// A request for resources: from a form, and as a query, a body, and lines to copy.

import { address } from "./service.js";

const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const alternatives = (text) => words(text).map((word) => word.split("|").filter(Boolean)).filter((each) => each.length);

/** Return the group of a form's texts; :raises Error: if an amount cannot be read. */
export function parseGroup({ suffix = "", resources, required, forbidden, memberOf }) {
  const group = { suffix, resources: {}, required: alternatives(required), forbidden: words(forbidden), member_of: alternatives(memberOf) };
  for (const word of words(resources)) {
    const [, name, amount] = /^([A-Z0-9_]+)[:=]([1-9][0-9]*)$/.exec(word) ?? [];
    if (!name) throw new Error(`${word} is not a class and an amount, such as VCPU:2`);
    if (name in group.resources) throw new Error(`${name} is given twice in a group`);
    if (!Number.isSafeInteger(Number(amount))) throw new Error(`${amount} of ${name} is more than this page can ask for`);
    group.resources[name] = Number(amount);
  }
  return group;
}

/** Return the body for ?explain. */
export function explainBody(request, limit) {
  return { ...bodyOf(request), limit };
}

/** Return the body for ?headroom. */
export function headroomBody(request) {
  return { ...bodyOf(request), by: "class-limit" };
}

function bodyOf({ groups, policy }) {
  const shown = groups.map((group) => Object.fromEntries(Object.entries(group).filter(
    ([, value]) => (Array.isArray(value) ? value.length : typeof value === "string" ? value : Object.keys(value).length))));
  return { groups: shown, ...(policy ? { group_policy: policy } : {}) };
}

/** Return the address of the candidates of a request. */
export function candidatesPath({ groups, policy }, limit) {
  const query = [];
  for (const { suffix, resources, required, forbidden, member_of: memberOf } of groups) {
    const add = (name, value) => query.push(`${name}${encoded(suffix)}=${encoded(value)}`);
    const amounts = Object.entries(resources).map(([name, amount]) => `${name}:${amount}`);
    if (amounts.length) add("resources", amounts.join(","));
    for (const each of required) add("required", each.length > 1 ? `in:${each.join(",")}` : each[0]);
    for (const each of forbidden) add("required", `!${each}`);
    for (const each of memberOf) add("member_of", `in:${each.join(",")}`);
  }
  if (policy) query.push(`group_policy=${policy}`);
  if (limit) query.push(`limit=${limit}`);
  return `allocation_candidates?${query.join("&")}`;
}

/** Return a value as a part of a query; what is harmless there stays legible. */
function encoded(value) {
  return encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%3A", ":");
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Return the lines that ask the same with curl. */
export function curlLines(request, limit) {
  const headers = "-H \"x-auth-token: $OS_TOKEN\" -H 'openstack-api-version: placement 1.39'";
  const post = (question, body) => `curl ${headers} -H 'content-type: application/json' \\\n  -d ${quoted(JSON.stringify(body))} \\\n  ${quoted(address(`resource_providers?${question}`))}`;
  return [`curl ${headers} \\\n  ${quoted(address(candidatesPath(request, limit)))}`, post("explain", explainBody(request, limit)), post("headroom", headroomBody(request))].join("\n");
}

/** Return the lines that ask the same with the openstack client. */
export function openstackLines({ groups, policy }) {
  const options = [];
  const add = (option, value) => options.push(`--${option}${value.startsWith("-") ? "=" : " "}${/^[\w:=,.-]+$/.test(value) ? value : quoted(value)}`);
  for (const { suffix, resources, required, forbidden, member_of: memberOf } of groups) {
    if (suffix) add("group", suffix);
    for (const [name, amount] of Object.entries(resources)) add("resource", `${name}=${amount}`);
    for (const each of required) add("required", each.join(","));
    for (const each of forbidden) add("forbidden", each);
    for (const each of memberOf) add("member-of", each.join(","));
  }
  if (policy) add("group-policy", policy);
  const text = options.join(" ");
  return [`openstack resource-provider explain ${text}`, `openstack resource-provider explain --funnel ${text}`, `openstack resource-provider headroom ${text}`].join("\n");
}

/** Return the lines that ask the same over the bus, in Python. */
export function pythonLines({ groups, policy }) {
  const value = (each) => JSON.stringify(each).replaceAll(/([:,])(?=\S)/g, "$1 ");
  const group = (each) => `    CandidateGroup(${Object.entries(each).filter(([, found]) => found && (typeof found !== "object" || Object.keys(found).length)).map(([name, found]) => `${name}=${value(found)}`).join(", ")}),`;
  return [
    "from placement_rpc.api import CandidateGroup, CandidatesRequest, PlacementAPI", "",
    "api = PlacementAPI(transport_url=\"rabbit://user:password@host/\")",
    "wanted = CandidatesRequest(groups=[", ...groups.map(group), `]${policy ? `, group_policy=${value(policy)}` : ""})`,
    "api.get_allocation_candidates(context, wanted)", "api.explain(context, wanted, funnel=True)", "api.get_headroom(context, wanted)"].join("\n");
}
