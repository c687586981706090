// SPDX-License-Identifier: Apache-2.0
// The login: a name for development, or what keystone asks for.

import { field, h } from "./dom.js";
import { logIn, Service } from "./service.js";

/**
 * Show the form; calls enter(service) once the service accepts what was given.
 *
 * @param {string} kind as the service's settings say: "name" or "keystone"
 * @param {string} reason why a login is needed again, or empty
 */
export function showLogin(content, kind, reason, enter) {
  const message = h("p", { id: "login-message", role: "alert", class: reason ? "failure" : null }, reason);
  const tell = (error) => {
    message.className = "failure";
    message.textContent = error.message;
  };
  const forms = kind === "name" ? [nameForm(tell, enter)] : keystoneForms(tell, enter);
  content.replaceChildren(h("div", { class: "login panel" }, h("h1", {}, "Log in"), message, ...forms));
  content.querySelector("input").focus();
}

/** Return a form that enters with the login that its function returns. */
function loginForm(elements, login, tell, enter) {
  const button = h("button", { class: "primary", type: "submit" }, "Log in");
  return h("form", {
    async submit(event) {
      event.preventDefault();
      button.disabled = true;
      try {
        const service = new Service(await login());
        // Any address that needs a token tells whether this one is valid; 403 means that it is.
        await service.get("resource_classes").catch((error) => { if (error.status !== 403) throw error; });
        enter(service);
      } catch (error) {
        tell(error);
      } finally {
        button.disabled = false;
      }
    },
  }, ...elements, button);
}

function nameForm(tell, enter) {
  const name = h("input", { name: "user", autocomplete: "username", required: true, value: "admin" });
  const elements = [h("p", { class: "quiet" }, "This service is for development: the name admin may do everything."), field("Name, or name:project", name)];
  return loginForm(elements, async () => {
    const [user, project] = name.value.trim().split(":");
    return { token: name.value.trim(), user, project: project ?? user, project_id: project ?? user };
  }, tell, enter);
}

function keystoneForms(tell, enter) {
  const input = (name, more) => h("input", { name, autocomplete: "off", ...more });
  const user = input("user", { autocomplete: "username", required: true });
  const password = input("password", { type: "password", autocomplete: "current-password", required: true });
  const more = { project: input("project"), user_domain: input("user_domain", { placeholder: "Default" }), project_domain: input("project_domain", { placeholder: "Default" }) };
  const token = input("token", { type: "password", required: true });
  const logInByPassword = async () => {
    const secret = password.value;
    password.value = "";
    const filled = Object.entries(more).map(([name, each]) => [name, each.value]).filter(([, value]) => value);
    return logIn({ user: user.value, password: secret, ...Object.fromEntries(filled) });
  };
  const logInByToken = async () => {
    const given = token.value.trim();
    token.value = "";
    return { token: given };
  };
  return [
    loginForm([
      field("User", user), field("Password", password), field("Project", more.project),
      field("Domain of the user", more.user_domain), field("Domain of the project", more.project_domain)], logInByPassword, tell, enter),
    h("details", {}, h("summary", {}, "With a token"), loginForm([
      // Browsers look for the name that belongs to a secret.
      input("name-of-token", { autocomplete: "username", hidden: true, "aria-label": "User" }), field("Token", token)], logInByToken, tell, enter))];
}
