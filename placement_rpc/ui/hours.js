// SPDX-License-Identifier: Apache-2.0
// Resource-hours from events alone, as placement_rpc/notifications/usage.py computes them.

const HOUR = 3600000;
const ALLOCATIONS = new Set(["allocation.create", "allocation.update", "allocation.delete", "allocation.exists"]);

/** Accounts for the amounts that were held from a moment on (milliseconds; -Infinity for always). */
export class UsageAccount {
  #holdings = new Map();
  #hours = new Map();
  #snapshot = null;
  #exists = 0;

  constructor(begin) {
    this.begin = begin;
    this.countsFrom = begin;
    this.position = null;
    this.asOf = null;
    this.complete = false;
  }

  /** Apply an event; one that was applied before changes nothing. */
  apply({ event_type: type, position, occurred_at: occurred, payload }) {
    if (this.position !== null && position <= this.position) return;
    if (position === 1) this.complete = true;
    // Events that are missing may have changed anything.
    else if (this.position !== null && position > this.position + 1) this.complete = false;
    this.position = position;
    const time = Date.parse(occurred);
    this.asOf = Math.max(time, this.asOf ?? time);
    if (type === "allocation.snapshot.begin") this.#beginSnapshot(time, payload);
    else if (type === "allocation.snapshot.end") this.#endSnapshot(payload);
    else if (type === "resource_class.update") this.#rename(time, payload);
    else if (type === "store.import") this.countsFrom = Math.max(this.begin, time);
    else if (ALLOCATIONS.has(type)) {
      this.#exists += Number(type === "allocation.exists");
      this.#allocate(time, payload);
    }
  }

  #beginSnapshot(time, { snapshot_id: id }) {
    if (this.complete || time > this.begin) return;
    this.#holdings.clear();
    this.#hours.clear();
    this.#exists = 0;
    this.#snapshot = id;
  }

  #endSnapshot({ snapshot_id: id, consumers }) {
    if (id === this.#snapshot && consumers === this.#exists) this.complete = true;
  }

  #rename(time, { previous_name: old, name }) {
    for (const holding of this.#holdings.values()) {
      if (!(old in holding.amounts)) continue;
      this.#accrue(this.#hours, holding, time);
      holding.since = Math.max(holding.since, time);
      holding.amounts[name] = holding.amounts[old];
      delete holding.amounts[old];
    }
  }

  #allocate(time, payload) {
    const consumer = payload.consumer_uuid;
    let holding = this.#holdings.get(consumer);
    if (holding === undefined) {
      // What it held before this event it has held since the account began.
      const before = amountsOf(payload, "before");
      holding = { project: payload.previous_project_id ?? payload.project_id, amounts: before, since: this.countsFrom };
      // Without a beginning there is nothing to count from but this event.
      if (holding.since === -Infinity) holding.since = time;
    }
    this.#accrue(this.#hours, holding, time);
    const amounts = amountsOf(payload, "after");
    if (Object.keys(amounts).length === 0) this.#holdings.delete(consumer);
    else this.#holdings.set(consumer, { project: payload.project_id, amounts, since: Math.max(holding.since, time) });
  }

  #accrue(hours, holding, until) {
    const length = until - Math.max(holding.since, this.begin);
    if (length <= 0) return;
    for (const [name, amount] of Object.entries(holding.amounts)) {
      const key = JSON.stringify([holding.project, name]);
      hours.set(key, (hours.get(key) ?? 0) + (amount * length) / HOUR);
    }
  }

  /** Return the lines at a moment: lists of project, class, resource-hours and the amount held. */
  lines(now) {
    const hours = new Map(this.#hours);
    const held = new Map();
    for (const holding of this.#holdings.values()) {
      this.#accrue(hours, holding, now);
      for (const [name, amount] of Object.entries(holding.amounts)) {
        const key = JSON.stringify([holding.project, name]);
        held.set(key, (held.get(key) ?? 0) + amount);
      }
    }
    const keys = [...new Set([...hours.keys(), ...held.keys()])].sort();
    return keys.map((key) => [...JSON.parse(key), hours.get(key) ?? 0, held.get(key) ?? 0]);
  }
}

/** Return one side of an event as the sums by class over its providers. */
function amountsOf(payload, side) {
  const found = {};
  for (const each of payload.providers) {
    for (const [name, amount] of Object.entries(each[side])) found[name] = (found[name] ?? 0) + amount;
  }
  return found;
}
