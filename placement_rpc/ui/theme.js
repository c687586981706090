// SPDX-License-Identifier: Apache-2.0
// The theme: light, dark, or that of the system. Styles follow it by themselves, pictures do not.

const THEMES = ["system", "light", "dark"];
const SYSTEM = window.matchMedia("(prefers-color-scheme: dark)");
const changes = new EventTarget();

/** Return whether the page is dark now. */
export function isDark() {
  const { classList } = document.documentElement;
  return classList.contains("dark") || (SYSTEM.matches && !classList.contains("light"));
}

/** Run a function whenever the theme has changed, for as long as an element is in the page. */
export function whileShown(element, run) {
  const change = () => {
    if (element.isConnected) run();
    else changes.removeEventListener("change", change);
  };
  changes.addEventListener("change", change);
}

/** Let a button go through the themes. */
export function switchedBy(button) {
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % THEMES.length;
    document.documentElement.classList.remove(...THEMES);
    document.documentElement.classList.add(THEMES[at]);
    button.textContent = `Theme: ${THEMES[at]}`;
    changes.dispatchEvent(new Event("change"));
  });
}

SYSTEM.addEventListener("change", () => changes.dispatchEvent(new Event("change")));
