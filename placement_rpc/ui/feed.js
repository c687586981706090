// SPDX-License-Identifier: Apache-2.0
// Events as they happen. EventSource cannot send a token, so the stream is read by fetch.

import { Failure } from "./service.js";

const SILENCE = 40000; // The service sends a comment after 15 seconds without an event.
const PAUSES = [500, 1000, 2000, 4000, 8000];

/** Parse blocks of server-sent events; call the function with type, id and data of each. */
export class Parser {
  #rest = "";

  /** @param {function(string, string, string)} take */
  constructor(take) {
    this.take = take;
  }

  add(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop();
    for (const block of blocks) {
      const found = { event: "message", id: null, data: null };
      for (const line of block.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 2);
      }
      this.take(found.event, found.id, found.data);
    }
  }
}

/**
 * Follows the events after a position, and goes on there when a connection is lost.
 *
 * Dispatches "events" with a list of events, and "state". States: connecting, live, lost (it tries
 * again by itself), ended (it does not: `error` says why).
 */
export class Feed extends EventTarget {
  #service;
  #abort = null;
  #pending = [];
  #timer = null;

  constructor(service, position) {
    super();
    this.#service = service;
    this.position = position;
    this.state = "connecting";
    this.error = null;
  }

  start() {
    this.#run();
    return this;
  }

  stop() {
    this.state = "stopped";
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  async #run() {
    let failures = 0;
    while (this.state !== "stopped") {
      let error = new Failure(0, "The connection was closed.");
      try {
        await this.#follow(() => { failures = 0; });
      } catch (caught) {
        error = caught;
      }
      if (this.state === "stopped") return;
      if ([400, 401, 403, 410].includes(error.status)) {
        this.#become("ended", error);
        return;
      }
      const pause = error.retryAfter ? 1000 * error.retryAfter : PAUSES[Math.min(failures, PAUSES.length - 1)];
      failures += 1;
      this.#become("lost", error);
      await new Promise((resolve) => { this.#timer = setTimeout(resolve, pause); });
    }
  }

  async #follow(onBegin) {
    this.#abort = new AbortController();
    const silent = () => this.#abort.abort();
    let timer = setTimeout(silent, SILENCE);
    try {
      const answer = await this.#service.send("events", {
        headers: { accept: "text/event-stream", "last-event-id": String(this.position) },
        signal: this.#abort.signal,
      });
      this.#become("live", null);
      onBegin();
      const parser = new Parser((type, id, data) => this.#take(type, id, data));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(silent, SILENCE);
        parser.add(value);
        this.#deliver();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take(type, id, data) {
    if (type === "error") throw new Failure(503, JSON.parse(data).detail);
    if (id !== null) this.position = Number(id);
    if (data !== null) this.#pending.push(JSON.parse(data));
  }

  #deliver() {
    const events = this.#pending;
    this.#pending = [];
    if (events.length) this.dispatchEvent(new CustomEvent("events", { detail: events }));
  }

  #become(state, error) {
    this.state = state;
    this.error = error;
    this.dispatchEvent(new Event("state"));
  }
}
