// SPDX-License-Identifier: Apache-2.0
// The public HTTP API of the origin that the page is from. The token is kept here only, in memory.

const ROOT = new URL("../", document.baseURI);
const MICROVERSION = "placement 1.39";
const PAGE = 1000;

/** An answer that is no success, or no answer (status 0). */
export class Failure extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Return the whole address of a path of the API, for people to copy. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), ROOT).href;
}

/** Return how a person logs in, and the release. */
export async function settings() {
  return (await request("ui/settings.json", {})).json();
}

/** Exchange a name and a password for a document with a token (keystone). */
export async function logIn(form) {
  const answer = await request("ui/auth", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(form),
  });
  return answer.json();
}

async function request(path, how) {
  let answer;
  try {
    answer = await fetch(new URL(path.replace(/^\//, ""), ROOT), { cache: "no-store", credentials: "omit", ...how });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "The service does not answer.");
  }
  if (!answer.ok) throw await failure(answer);
  return answer;
}

async function failure(answer) {
  let detail = answer.statusText;
  try {
    detail = (await answer.json()).errors[0].detail;
  } catch {
    // A proxy's answer need not be a document of ours: the status has to do.
  }
  const retryAfter = Number(answer.headers.get("retry-after")) || null;
  return new Failure(answer.status, `${answer.status}: ${detail}`, retryAfter);
}

/** The service as the owner of a token sees it. */
export class Service {
  #token;

  /** @param {object} login with token, and what keystone says of it: user, project, project_id */
  constructor(login) {
    this.#token = login.token;
    this.who = login.user ?? null;
    this.project = login.project ?? null;
    this.projectId = login.project_id ?? null;
  }

  /** Send a request; the answer is a success. */
  send(path, how = {}) {
    return request(path, {
      ...how,
      headers: { "x-auth-token": this.#token, "openstack-api-version": MICROVERSION, ...how.headers },
    });
  }

  async get(path, signal) {
    return (await this.send(path, { signal })).json();
  }

  /** Ask a question that has a body; it changes nothing. */
  async ask(path, body, signal) {
    const headers = { "content-type": "application/json" };
    return (await this.send(path, { method: "POST", headers, body: JSON.stringify(body), signal })).json();
  }

  /** Yield the pages of a list as pairs of entries and position of the last event. */
  async* pages(path, name, limit = PAGE) {
    let marker = null;
    do {
      const query = new URLSearchParams({ limit, ...(marker ? { marker } : {}) });
      const answer = await this.send(`${path}${path.includes("?") ? "&" : "?"}${query}`);
      const body = await answer.json();
      yield { entries: body[name], position: Number(answer.headers.get("placement-position")) };
      marker = body.next;
    } while (marker);
  }
}
