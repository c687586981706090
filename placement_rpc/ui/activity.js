// SPDX-License-Identifier: Apache-2.0
// What the last minute brought, and how full the fleet was since the page was opened.

const MINUTE = 60;
const LONGEST = 3600;

const KINDS = {
  "allocation.create": "claims", "allocation.update": "claims", "allocation.delete": "releases",
  "allocation.claim.refused": "refused",
};

/** Counts events by the second in which they arrived. */
export class Activity {
  #seconds = new Map();

  add(events, now = Date.now()) {
    const second = Math.floor(now / 1000);
    let counts = this.#seconds.get(second);
    if (counts === undefined) this.#seconds.set(second, counts = { events: 0, claims: 0, releases: 0, refused: 0 });
    for (const { event_type: type } of events) {
      counts.events += 1;
      if (type in KINDS) counts[KINDS[type]] += 1;
    }
  }

  /** Return the sums of the last minute. */
  minute(now = Date.now()) {
    const oldest = Math.floor(now / 1000) - MINUTE;
    const sums = { events: 0, claims: 0, releases: 0, refused: 0 };
    for (const [second, counts] of this.#seconds) {
      if (second < oldest) this.#seconds.delete(second);
      else for (const name in sums) sums[name] += counts[name];
    }
    return sums;
  }
}

/** The used share of each class, second by second. */
export class History {
  times = [];
  series = new Map();

  /** @param {Map} sums as Fleet.sums returns it */
  add(sums, now = Date.now()) {
    for (const name of sums.keys()) {
      if (!this.series.has(name)) this.series.set(name, Array(this.times.length).fill(null));
    }
    this.times.push(now / 1000);
    for (const [name, values] of this.series) {
      const sum = sums.get(name);
      values.push(sum && sum.capacity > 0 ? (100 * sum.used) / sum.capacity : null);
    }
    if (this.times.length > LONGEST) {
      this.times.shift();
      for (const values of this.series.values()) values.shift();
    }
  }
}
