# SPDX-License-Identifier: Apache-2.0
"""The commands of ``placement-rpc`` that query a running service."""

import itertools
import time

from placement_rpc import api, exception
from placement_rpc.cmd import output, silence
from placement_rpc.objects import codec

_PAGE = 1000
_PREFIX = "placement-rpc-"
_NO_PROVIDERS = ("There are no providers with inventory yet: compute services report theirs, "
                 "'openstack resource-provider create' makes one, and 'make demo' a cloud of 120.")
_NO_INVENTORY = ("These providers have no inventory: 'openstack resource-provider set inventory' "
                 "declares it.")


def call(client, options):
    """Run the command that the options name.

    :param client: :class:`placement_rpc.api.PlacementAPI`
    :param options: the parsed arguments
    """
    {"ping": _ping, "providers": _providers, "usages": _usages,
     "services": _services, "top": _top}[options.command](client, options)


def run(options, conf, url):
    """Call the service over the bus.

    :param options: the parsed arguments
    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param url: str, the transport URL
    :returns: int, the exit code
    """
    with api.PlacementAPI(conf=conf, transport_url=url) as client:
        # 'top' runs for longer than a call takes: only its first call is explained.
        first = _reach if options.command == "top" else call
        with silence.explained("placement-rpc", conf, url, options.timeout):
            first(client, options)
        if options.command == "top":
            call(client, options)
    return 0


def _reach(client, options):
    client.ping(None, timeout=options.timeout)


def _ping(client, options):
    began = time.monotonic()
    answer = client.ping(None, timeout=options.timeout)
    answer["milliseconds"] = round((time.monotonic() - began) * 1000, 1)
    del answer["time"]
    output.show([answer], ["host", "pid", "version", "rpc_version", "milliseconds"],
                options.format)


def _providers(client, options):
    found = client.list_providers(
        None, name=options.name, limit=options.limit, timeout=options.timeout)
    output.show([codec.plain(each) for each in found.objects], ["uuid", "name", "generation"],
                options.format,
                empty=f"No provider is named {options.name}." if options.name else _NO_PROVIDERS)


def _usages(client, options):
    if options.provider and options.limit:
        raise exception.InvalidInput(
            what="--limit", reason="it limits the list of all providers; these are named")
    rows = []
    for name, uuid, usages in _of_some(client, options) if options.provider else (
            itertools.islice(usages_of_all(
                client, options.timeout, min(options.limit or _PAGE, _PAGE)), options.limit)):
        for resource_class, used, capacity in usages:
            rows.append({"provider": name, "uuid": uuid, "resource_class": resource_class,
                         "used": used, "capacity": capacity, "percent": percent(used, capacity)})
    rows.sort(key=lambda row: (row["provider"], row["resource_class"]))
    output.show(rows, ["provider", "resource_class", "used", "capacity", "percent"],
                options.format, empty=_NO_INVENTORY if options.provider else _NO_PROVIDERS)


def percent(used, capacity):
    """Return the percentage of a capacity that is used, a float.

    None if something is used and the capacity is 0, for example since all of it is reserved.
    """
    if not capacity:
        return None if used else 0.0
    return round(100 * used / capacity, 1)


def _of_some(client, options):
    """Yield name, uuid and usages of the providers that the options name."""
    for wanted in options.provider:
        provider = client.get_provider(None, wanted, timeout=options.timeout)
        usages = client.get_usages(None, provider.uuid, timeout=options.timeout)
        yield provider.name, provider.uuid, [
            (usage.resource_class, usage.used, usage.capacity) for usage in usages.objects]


def usages_of_all(client, timeout, page=_PAGE):
    """Yield name, uuid and usages of all providers, of which a call returns a page.

    :param client: :class:`placement_rpc.api.PlacementAPI`
    :param timeout: float, seconds for each call
    :param page: int, providers
    """
    for provider in client.all_provider_summaries(None, page=page, timeout=timeout):
        yield provider.name, provider.uuid, [
            (name, inventory["used"], inventory["capacity"])
            for name, inventory in provider.inventories.items()]


def _services(client, options):
    found = client.get_versions(None, timeout=options.timeout)
    rows = [codec.plain(each) for each in found.objects]
    columns = ["binary", "host", "worker", "version", "rpc_version", "last_seen_at", "alive"]
    if output.style_of(options.format) == "table":
        # All of it would not fit into 80 columns.
        rows = [{**row, "process": f"{row['binary'].removeprefix(_PREFIX)}.{row['worker']}"}
                for row in rows]
        columns = ["process", "host", "version", "last_seen_at", "alive"]
    output.show(rows, columns, options.format,
                empty="No process has reported itself to this database yet.")


def _top(client, options):
    # Only this command draws a screen.
    from placement_rpc.cmd import top

    top.run(client, options)
