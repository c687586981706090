#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep the DISK_GB inventory of a shared storage pool equal to the real size and use of its mount.

The service knows what servers allocate from the pool, but not that the share was enlarged or that
something else fills it. Run periodically, this script sets ``total`` to the size of the mount, and
``reserved`` to the space that is used on it beyond what is allocated. If nothing has changed,
nothing is written. It needs only Python, and keystoneauth1 to sign in with a password.
"""

import argparse
import contextlib
import http.client
import json
import math
import os
import random
import re
import ssl
import sys
import time
import urllib.parse
import uuid

GIB = 1024 ** 3
RESOURCE_CLASS = "DISK_GB"
VERSION = "1.4"
TIMEOUT = 30
ATTEMPTS = 10
LONGEST_PAUSE = 2.0
SETTINGS = ("min_unit", "max_unit", "step_size", "allocation_ratio")


class Failed(Exception):
    """The pool could not be brought up to date; the message is for the operator."""


class Refused(Failed):
    """The service answered with an error of that HTTP status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Placement:
    """The service's HTTP API.

    :param endpoint: str, the URL of the service, including its path
    :param token: str
    :param dry_run: bool, do not write
    :param certificates: str, file of the authorities to trust, None for the system's
    """

    def __init__(self, endpoint, token, dry_run=False, certificates=None):
        self.endpoint, self.token, self.dry_run = endpoint.rstrip("/"), token, dry_run
        self.certificates = certificates

    def read(self, path):
        """Return the answer to a GET, or None if it is 404."""
        try:
            return self._call("GET", path)
        except Refused as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise

    def write(self, method, path, body, state=None):
        """Send a change, except in a dry run; ``state`` is the ETag of the state that was read."""
        if not self.dry_run:
            self._call(method, path, body, state)

    def _call(self, method, path, body=None, state=None):
        headers = {"X-Auth-Token": self.token, "Content-Type": "application/json",
                   "OpenStack-API-Version": f"placement {VERSION}"}
        if state:
            headers["If-Match"] = state
        content = None if body is None else json.dumps(body)
        try:
            connection, prefix = self._connection()
            with contextlib.closing(connection):
                connection.request(method, prefix + path, content, headers)
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
                self.state = answer.getheader("ETag")
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"no answer from {self.endpoint}: {error}") from error
        except ValueError:
            # The text of the error is left out, because it can contain the token.
            raise Failed(f"{self.endpoint} or the token is malformed") from None
        if status >= http.client.MULTIPLE_CHOICES:
            raise Refused(status, f"{method} {path} was answered {status}: {_detail(content)}")
        try:
            return json.loads(content) if content else None
        except ValueError:
            raise Failed(f"the server at {self.endpoint} is not the placement service") from None

    def _connection(self):
        address = urllib.parse.urlsplit(self.endpoint)
        where = {"host": address.hostname, "port": address.port, "timeout": TIMEOUT}
        if address.scheme == "http":
            return http.client.HTTPConnection(**where), address.path
        return http.client.HTTPSConnection(**where, context=ssl.create_default_context(
            cafile=self.certificates)), address.path


def _detail(content):
    """Return the message of an error; those of proxies and middleware have another format."""
    try:
        detail = json.loads(content)["errors"][0]["detail"]
    except (ValueError, LookupError, TypeError):
        detail = content.decode(errors="replace")[:200]
    return " ".join(detail.split())


def measure(path, allow_any_path=False):
    """Return the size of a mount and the used space on it.

    :param path: str, the mount point of the share
    :param allow_any_path: bool, accept a directory that is not a mount point
    :returns: two int, GiB: the size, rounded down, and the used space, rounded up, so that a pool
        never offers space that does not exist
    :raises Failed: if the path cannot be measured, is not a mount point, or is smaller than 1 GiB
    """
    try:
        if not allow_any_path and not os.path.ismount(path):
            # While a share is not mounted, its path is on the machine's own disk.
            raise Failed(f"{path} is not a mount point")
        size = os.statvfs(path)
    except OSError as error:
        raise Failed(f"{path} cannot be measured: {error.strerror}") from error
    total = size.f_blocks * size.f_frsize // GIB
    if not total:
        raise Failed(f"{path} holds less than 1 GiB, the unit of an inventory")
    # Blocks that only root may use are of no use to servers either.
    taken = max(0, size.f_blocks - size.f_bavail) * size.f_frsize
    return total, -(-taken // GIB)


def reserved_for(total, taken, used, minimum=0):
    """Return the space that is used by others than the pool's consumers; all in GiB.

    :param total: int, the size of the mount
    :param taken: int, the used space on it
    :param used: int, the amount that is allocated from the pool
    :param minimum: int, the least amount to reserve
    """
    # The service refuses an inventory without capacity (before version 1.26).
    return min(total - 1, max(0, min(taken, total) - used, minimum))


def same(old, new):
    """Return whether two values are equal; databases keep a ratio with seven digits."""
    return math.isclose(old, new, rel_tol=1e-6) if isinstance(old, float) else old == new


class Pool:
    """The resource provider of a shared storage, and the changes that were made to it.

    :param placement: :class:`Placement`
    :param options: arguments of the command line
    """

    def __init__(self, placement, options):
        self.placement, self.options = placement, options
        self.uuid, self.name = options.uuid, options.name
        self.created, self.aggregates, self.changes = False, [], {}
        self.inventory, self.used = {}, 0

    @property
    def capacity(self):
        """Total amount that can be allocated, in GiB."""
        return math.floor((self.inventory["total"] - self.inventory["reserved"])
                          * self.inventory.get("allocation_ratio", 1.0))

    @property
    def _imagined(self):
        """Whether the provider exists in this dry run only."""
        return self.created and self.placement.dry_run

    def update(self):
        """Bring everything up to date."""
        # First, so that no pool is created for a share that is not mounted.
        measure(self.options.path, self.options.allow_any_path)
        self._find_or_create()
        self._associate()
        self._update_inventory()

    def _find_or_create(self):
        found = self._find()
        if found is None:
            if not self.options.create:
                raise Failed(f"there is no provider {self.name or self.uuid}; --create creates it")
            found = self._create()
        if self.name not in (None, found["name"]):
            raise Failed(f"the provider {self.uuid} is called {found['name']}, not {self.name}")
        self.uuid, self.name = found["uuid"], found["name"]

    def _create(self):
        new = {"name": self.name, "uuid": self.uuid or str(uuid.uuid4())}
        try:
            self.placement.write("POST", "/resource_providers", new)
        except Refused as refused:
            # Another machine with the share may have created it meanwhile.
            found = self._find() if refused.status == http.client.CONFLICT else None
            if found is None:
                raise
            return found
        self.created = True
        return {**new, "uuid": self.uuid} if self.placement.dry_run else new

    def _find(self):
        if self.uuid:
            return self.placement.read(f"/resource_providers/{self.uuid}")
        query = urllib.parse.urlencode({"name": self.name})
        found = self.placement.read(f"/resource_providers?{query}") or {}
        return next(iter(found.get("resource_providers", ())), None)

    def _associate(self):
        """Add the aggregates of the options; other aggregates stay associated."""
        if not self.options.aggregate_uuid:
            return
        path = f"/resource_providers/{self.uuid}/aggregates"
        for attempt in range(ATTEMPTS):
            found = None if self._imagined else self.placement.read(path)
            present = found["aggregates"] if found else []
            self.aggregates = sorted(set(self.options.aggregate_uuid) - set(present))
            try:
                if self.aggregates:
                    self.placement.write(
                        "PUT", path, [*present, *self.aggregates], self.placement.state)
                return
            except Refused as refused:
                if refused.status not in (http.client.CONFLICT,
                                          http.client.PRECONDITION_FAILED):
                    raise
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.05 * 2 ** attempt)))
        raise Failed(f"others changed the aggregates {ATTEMPTS} times")

    def _update_inventory(self):
        generation, refused = None, None
        for attempt in range(ATTEMPTS):
            previous, (generation, present) = generation, self._state()
            if refused and previous == generation:
                # No other client has written: the inventory itself is refused.
                raise Failed("; ".join(filter(None, (str(refused), self.lack())))) from refused
            self._compare(present)
            if not self.changes:
                return
            try:
                self._write(generation, present)
                return
            except Refused as error:
                if error.status != http.client.CONFLICT:
                    raise
                refused = error
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.05 * 2 ** attempt)))
        raise Failed(f"others changed the provider {ATTEMPTS} times: {refused}") from refused

    def _state(self):
        """Return the generation, and the inventory or None; also read the used amount.

        The generation is that of the first answer. If the provider changes between the two
        answers, the service refuses the inventory that is computed from them.
        """
        if self._imagined:
            return 0, None
        listed, usages = (self.placement.read(f"/resource_providers/{self.uuid}/{each}")
                          for each in ("inventories", "usages"))
        if listed is None or usages is None:
            raise Failed(f"the provider {self.uuid} was deleted")
        self.used = usages["usages"].get(RESOURCE_CLASS, 0)
        return listed["resource_provider_generation"], listed["inventories"].get(RESOURCE_CLASS)

    def _compare(self, present):
        total, taken = measure(self.options.path, self.options.allow_any_path)
        self.inventory = {
            **(present or {}), "total": total,
            "reserved": reserved_for(total, taken, self.used, self.options.minimum_reserved)}
        for name in SETTINGS:
            if getattr(self.options, name) is not None:
                self.inventory[name] = getattr(self.options, name)
        present = present or {}
        self.changes = {name: [present.get(name), value]
                        for name, value in self.inventory.items()
                        if not same(present.get(name), value)}

    def _write(self, generation, present):
        body = {**self.inventory, "resource_provider_generation": generation}
        path = f"/resource_providers/{self.uuid}/inventories"
        if present is None:
            self.placement.write("POST", path, {**body, "resource_class": RESOURCE_CLASS})
        else:
            self.placement.write("PUT", f"{path}/{RESOURCE_CLASS}", body)

    def lack(self):
        """Return a warning if more is allocated than the capacity, or an empty str."""
        if self.capacity >= self.used:
            return ""
        return (f"{self.used} GiB are allocated of a capacity of {self.capacity} GiB: "
                "enlarge the share, or move servers away")

    def show(self, style, stream):
        """Print the changes in one line.

        :param style: str, ``text``, ``json`` or ``auto``: text for a terminal, JSON for a program
        :param stream: file to print to
        """
        if style == "json" or (style == "auto" and not stream.isatty()):
            print(json.dumps({
                "uuid": self.uuid, "name": self.name, "created": self.created,
                "aggregates_added": self.aggregates, "changes": self.changes,
                "inventory": self.inventory, "used": self.used,
                "dry_run": self.placement.dry_run}), file=stream)
            return
        shown = ["created"] * self.created + [f"aggregate {each}" for each in self.aggregates]
        shown += [f"{name} {new}" if old is None else f"{name} {old} -> {new}"
                  for name, (old, new) in self.changes.items()]
        dry = "not done, dry run: " if shown and self.placement.dry_run else ""
        print(f"{self.name} ({self.uuid or 'new'}): {dry}{', '.join(shown) or 'up to date'}",
              file=stream)


def sign_in(options):
    """Return the endpoint of the service and a token for it.

    :param options: arguments of the command line
    :returns: two str, endpoint and token
    :raises Failed: if signing in fails
    """
    if not os.environ.get("OS_AUTH_URL") or (options.endpoint and options.os_token):
        return options.endpoint, options.os_token
    try:
        from keystoneauth1 import loading, session
    except ImportError:
        raise Failed("keystoneauth1 is not installed: give --endpoint and --os-token") from None
    try:
        loader = loading.get_plugin_loader(os.environ.get("OS_AUTH_TYPE", "password"))
        values = {each.dest: os.environ.get(f"OS_{each.dest.upper()}")
                  for each in loader.get_options()}
        keystone = session.Session(auth=loader.load_from_options(**values),
                                   verify=os.environ.get("OS_CACERT") or True)
        endpoint = options.endpoint or keystone.get_endpoint(
            service_type="placement", interface=os.environ.get("OS_INTERFACE", "public"),
            region_name=os.environ.get("OS_REGION_NAME"))
        return endpoint, keystone.get_token()
    except Exception as error:
        # The library raises plain Python exceptions too, if a variable is missing.
        raise Failed(f"signing in failed: {error}") from error


def _positive(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def _uuid(text):
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None


def _parser():
    parser = argparse.ArgumentParser(
        description="Keep the DISK_GB inventory of a shared storage pool up to date.",
        epilog="Exit codes: 0 the inventory is up to date, 1 failed, 2 wrong arguments. Instead "
               "of --endpoint and --os-token the OS_* variables of a cloud may be set.")
    parser.add_argument("path", help="mount point of the share")
    parser.add_argument("--name", help="the provider's name")
    parser.add_argument("--uuid", type=_uuid, help="the provider's uuid")
    parser.add_argument("--create", action="store_true",
                        help="create the provider if it does not exist")
    parser.add_argument("--aggregate-uuid", type=_uuid, action="append", metavar="UUID",
                        help="aggregate of the hosts with the share; can be repeated")
    for setting in SETTINGS:
        parser.add_argument(f"--{setting.replace('_', '-')}", metavar="NUMBER",
                            type=float if setting == "allocation_ratio" else _positive,
                            help=f"{setting} of the inventory (default: not changed)")
    parser.add_argument("--minimum-reserved", type=_positive, default=0, metavar="GIB",
                        help="reserve this much even if others use less")
    parser.add_argument("--allow-any-path", action="store_true",
                        help="measure a directory that is not a mount point")
    parser.add_argument("--dry-run", action="store_true",
                        help="print the changes without making them")
    parser.add_argument("--format", choices=("auto", "text", "json"), default="auto",
                        help="default: text on a terminal, JSON otherwise")
    parser.add_argument("--endpoint", default=os.environ.get("OS_ENDPOINT"), metavar="URL",
                        help="URL of the service (default: OS_ENDPOINT)")
    parser.add_argument("--os-token", default=os.environ.get("OS_TOKEN"), metavar="TOKEN",
                        help="default: OS_TOKEN, which other users of the machine cannot see")
    return parser


def main(arguments=None):
    """:returns: int, the exit code"""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not (options.name or options.uuid):
        parser.error("--name or --uuid is required to select the provider")
    if options.create and not options.name:
        parser.error("--create needs --name")
    try:
        endpoint, token = sign_in(options)
        if not (endpoint and token):
            parser.error("either --endpoint and --os-token or OS_AUTH_URL is required")
        if not re.match("https?://[^/]", endpoint):
            parser.error(f"{endpoint} is not an HTTP URL")
        pool = Pool(Placement(endpoint, token, options.dry_run, os.environ.get("OS_CACERT")),
                    options)
        pool.update()
    except Failed as failed:
        print(f"update_pool: {failed}", file=sys.stderr)
        return 1
    pool.show(options.format, sys.stdout)
    if pool.lack():
        print(f"update_pool: {pool.lack()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
