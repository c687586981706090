// SPDX-License-Identifier: Apache-2.0
// Elements, numbers and times. Text never becomes elements: everything is made by createElement.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element; attributes that are functions are listeners, and null ones are left out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an element of SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a labelled input or select. */
export function field(label, control) {
  return h("label", {}, label, control);
}

/** Return a select with options, each a value or a pair of value and text. */
export function select(values, attributes, chosen) {
  const element = h("select", attributes);
  setOptions(element, values, chosen);
  return element;
}

/** Give a select other options; what was chosen stays if it is among them. */
export function setOptions(element, values, chosen = element.value) {
  const pairs = values.map((each) => (Array.isArray(each) ? each : [each, each]));
  element.replaceChildren(...pairs.map(([value, text]) => h("option", { value }, text)));
  element.value = pairs.some(([value]) => value === chosen) ? chosen : pairs[0]?.[0] ?? "";
}

/** Return a table; columns whose name begins with "#" have numbers. */
export function table(caption, columns, rows) {
  const kind = columns.map((name) => (name.startsWith("#") ? "number" : null));
  return h("div", { class: "scroll" }, h("table", {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, columns.map((name, at) => h(
      "th", { scope: "col", class: kind[at] }, name.replace("#", ""))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h(
      "td", { class: kind[at] }, cell instanceof Node ? cell : String(cell ?? ""))))))));
}

/** Return a bar of what is used and reserved of a total, with the words for a screen reader. */
export function bar(used, reserved, total, label, warns = true) {
  const part = (value) => (total > 0 ? Math.min(100, (100 * value) / total) : 0);
  const full = warns && total > 0 && used + reserved >= total * 0.95;
  return svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: "all", width: 100, height: 10 }),
    svg("rect", { class: full ? "full" : "used", width: part(used), height: 10 }),
    svg("rect", { class: "reserved", x: part(used), width: Math.min(part(reserved), 100 - part(used)), height: 10 }));
}

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const DECIMALS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export const whole = (value) => WHOLE.format(value);
export const short = (value) => (Math.abs(value) < 10000 ? WHOLE.format(value) : SHORT.format(value));
export const decimals = (value) => DECIMALS.format(value);

/** Return a number with what it counts, such as "1 event" and "2 events". */
export function counted(number, one, several = `${one}s`) {
  return `${whole(number)} ${number === 1 ? one : several}`;
}

/** Return a share as text, such as "12 %". */
export function percent(part, all) {
  return all > 0 ? `${Math.round((100 * part) / all)} %` : "-";
}

/** Return the time of day of an ISO 8601 text. */
export function clock(text) {
  return new Date(text).toLocaleTimeString("en-GB");
}

/** Return amounts by resource class, as in "VCPU 2, MEMORY_MB 4,096". */
export function amounts(found) {
  return Object.entries(found).map(([name, amount]) => `${name} ${whole(amount)}`).join(", ");
}

/** Return an element that says why something cannot be shown. */
export function problem(error) {
  return h("p", { class: "failure", role: "alert" }, error.message);
}

/** Replace what an element shows if that has changed; the keyboard stays where it was. */
export function refresh(element, ...children) {
  const shown = h("div", {}, ...children);
  const now = [...element.childNodes];
  const same = now.length === shown.childNodes.length
    && now.every((node, at) => node.isEqualNode(shown.childNodes[at]));
  if (same) return;
  const link = element.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  element.replaceChildren(...shown.childNodes);
  if (link) element.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
}

/** Return a function that runs another at most once in some milliseconds, and at the end. */
export function throttled(milliseconds, run) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => { timer = null; run(); }, milliseconds);
  };
}
