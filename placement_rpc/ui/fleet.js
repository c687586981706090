// SPDX-License-Identifier: Apache-2.0
// All providers, read once in pages and kept current by events.

// A larger one counts as this.
const MOST = 2n ** 63n - 1n;

/** Return the capacity of an inventory: exact in the decimal digits of the ratio, as the service's. */
export function capacity({ total, reserved, allocation_ratio: ratio }) {
  const [digits, exponent] = String(ratio).split("e");
  const [whole, part = ""] = digits.split(".");
  const power = Number(exponent ?? 0) - part.length;
  const scaled = BigInt(whole + part) * BigInt(total - reserved);
  const exact = power < 0 ? scaled / 10n ** BigInt(-power) : scaled * 10n ** BigInt(power);
  return Math.max(0, Number(exact < MOST ? exact : MOST));
}

const SETTINGS = ["total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"];
// After these nothing but reading everything again is right.
const RELOAD = new Set(["resource_class.update", "store.import", "outbox.reconciled"]);

/** The providers by uuid; dispatches "change" after events and "stale" if it must be read again. */
export class Fleet extends EventTarget {
  #children = null;

  constructor() {
    super();
    this.providers = new Map();
    this.position = 0;
  }

  /** Read everything; call the function with the number read so far after each page. */
  async load(service, onPage = () => {}) {
    let first = null;
    for await (const { entries, position } of service.pages("provider_summaries", "provider_summaries")) {
      // Events after the first page are applied to what later pages have, by their generations.
      first ??= position;
      for (const entry of entries) this.#add(entry, entry.generation);
      onPage(this.providers.size);
    }
    this.position = first;
  }

  #add(entry, loaded) {
    this.providers.set(entry.uuid, {
      uuid: entry.uuid, name: entry.name, parent: entry.parent_provider_uuid, generation: entry.generation,
      inventories: entry.inventories, traits: entry.traits, aggregates: entry.aggregates,
      // Events up to this generation are included. Several events of a change share a generation,
      // so this one stays as it was read.
      loaded,
    });
    this.#children = null;
  }

  /** Apply events, each once and in their order. */
  apply(events) {
    for (const event of events) this.#apply(event);
    this.dispatchEvent(new Event("change"));
  }

  #apply({ event_type: type, payload, position }) {
    this.position = position;
    if (RELOAD.has(type)) this.dispatchEvent(new Event("stale"));
    else if (type === "resource_provider.create") {
      this.#add({
        uuid: payload.provider_uuid, name: payload.name, generation: payload.generation,
        parent_provider_uuid: payload.parent_provider_uuid, inventories: {}, traits: [], aggregates: [],
      }, -1);
    } else if (type === "resource_provider.delete") {
      this.providers.delete(payload.provider_uuid);
      this.#children = null;
    } else if (type.startsWith("allocation.") && payload.providers) {
      for (const each of payload.providers) this.#change(each, (provider) => use(provider, each));
    } else if (payload.provider_uuid) {
      this.#change(payload, (provider) => this.#update(provider, type, payload));
    }
  }

  #change(payload, make) {
    const provider = this.providers.get(payload.provider_uuid);
    if (provider === undefined || payload.generation <= provider.loaded) return;
    make(provider);
    provider.generation = payload.generation;
  }

  #update(provider, type, payload) {
    if (type === "resource_provider.update") {
      provider.name = payload.name;
      provider.parent = payload.parent_provider_uuid;
      this.#children = null;
    } else if (type === "resource_provider.traits.update") {
      provider.traits = payload.after;
    } else if (type === "resource_provider.aggregate.associate") {
      provider.aggregates = [...new Set([...provider.aggregates, ...payload.aggregates])];
    } else if (type === "resource_provider.aggregate.disassociate") {
      provider.aggregates = provider.aggregates.filter((each) => !payload.aggregates.includes(each));
    } else if (payload.inventories) {
      for (const change of payload.inventories) equip(provider, change);
    }
  }

  /** Return the children of a provider, or the roots (null), ordered by name. */
  children(uuid) {
    if (this.#children === null) {
      this.#children = new Map();
      for (const provider of this.providers.values()) {
        const parent = this.providers.has(provider.parent) ? provider.parent : null;
        if (!this.#children.has(parent)) this.#children.set(parent, []);
        this.#children.get(parent).push(provider);
      }
      const order = new Intl.Collator("en", { numeric: true });
      for (const list of this.#children.values()) list.sort((a, b) => order.compare(a.name, b.name));
    }
    return this.#children.get(uuid) ?? [];
  }

  /** Return all providers in the order of their trees, as pairs of provider and depth. */
  ordered() {
    const found = [];
    const add = (provider, depth) => {
      found.push([provider, depth]);
      for (const child of this.children(provider.uuid)) add(child, depth + 1);
    };
    for (const root of this.children(null)) add(root, 0);
    return found;
  }

  /** Return the sums of some providers: a Map of class to reserved, capacity and used. */
  sums(providers = this.providers.values()) {
    const sums = new Map();
    for (const { inventories } of providers) {
      for (const name in inventories) {
        const inventory = inventories[name];
        let sum = sums.get(name);
        if (sum === undefined) sums.set(name, sum = { reserved: 0, capacity: 0, used: 0 });
        sum.reserved += inventory.reserved;
        sum.capacity += inventory.capacity;
        sum.used += inventory.used;
      }
    }
    return new Map([...sums].sort(byImportance));
  }

  /** Return the name of a provider, or the uuid of one that is not known. */
  name(uuid) {
    return this.providers.get(uuid)?.name ?? uuid;
  }
}

const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

function byImportance([one], [other]) {
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return rank(one) - rank(other) || one.localeCompare(other);
}

function use(provider, { before, after }) {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const inventory = provider.inventories[name];
    if (inventory) inventory.used += (after[name] ?? 0) - (before[name] ?? 0);
  }
}

function equip(provider, { resource_class: name, after }) {
  if (after === null) {
    delete provider.inventories[name];
    return;
  }
  const inventory = provider.inventories[name] ??= { used: 0 };
  for (const key of SETTINGS) inventory[key] = after[key];
  inventory.capacity = capacity(inventory);
}

/** Return how full a provider is: the used share of a class, null if it has none of it. */
export function fullness(provider, name) {
  const inventory = provider.inventories[name];
  if (!inventory) return null;
  return inventory.capacity > 0 ? inventory.used / inventory.capacity : Number(inventory.used > 0);
}
