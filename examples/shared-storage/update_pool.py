#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep the DISK_GB inventory of a shared storage pool equal to the real size of its mount.

The service knows what servers allocate from the pool, but neither that the share was enlarged nor
that other programs fill it. This script, run regularly, reports both: ``total`` is the size of the
mount, and ``reserved`` the space in use beyond the allocations. It writes nothing if nothing has
changed. It needs Python only, and keystoneauth1 to sign in with a password.
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
    """The pool could not be updated; the text is for the operator."""


class Refused(Failed):
    """The service answered with an error."""

    def __init__(self, status, message, retry_after=None):
        super().__init__(message)
        self.status = status
        #: Seconds after which the request may succeed; None if the service does not say.
        self.retry_after = retry_after


class Placement:
    """A client of the service's HTTP API.

    :param endpoint: str, its URL
    :param token: str
    :param dry_run: bool, whether to skip all writes
    :param certificates: str, file of the trusted authorities; None for the system's
    """

    def __init__(self, endpoint, token, dry_run=False, certificates=None):
        self.endpoint, self.token, self.dry_run = endpoint.rstrip("/"), token, dry_run
        self.certificates = certificates

    def read(self, path):
        """Return the document at a path; None if it does not exist."""
        try:
            return self._call("GET", path)
        except Refused as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise

    def write(self, method, path, body, state=None):
        """Send a change, unless it is a dry run; ``state`` is the ETag that was read."""
        if not self.dry_run:
            self._call(method, path, body, state)

    def _call(self, method, path, body=None, state=None):
        """Make a request, and repeat it if the service refuses it because it has too many."""
        left = ATTEMPTS
        while True:
            left -= 1
            try:
                return self._ask(method, path, body, state)
            except Refused as refused:
                if not left or refused.retry_after is None:
                    raise
                time.sleep(min(refused.retry_after, TIMEOUT))

    def _ask(self, method, path, body, state):
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
                pause = answer.getheader("Retry-After", "")
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"no answer from {self.endpoint}: {error}") from error
        except ValueError:
            # Without the text of the error, which would show the token.
            raise Failed(f"{self.endpoint} or the token is malformed") from None
        if status >= http.client.MULTIPLE_CHOICES:
            raise Refused(status, f"{method} {path} was answered {status}: {_detail(content)}",
                          int(pause) if pause.isascii() and pause.isdigit() else None)
        try:
            return json.loads(content) if content else None
        except ValueError:
            raise Failed(f"the answer of {self.endpoint} is not JSON: check that it is the "
                         "address of the placement service") from None

    def _connection(self):
        address = urllib.parse.urlsplit(self.endpoint)
        where = {"host": address.hostname, "port": address.port, "timeout": TIMEOUT}
        if address.scheme == "http":
            return http.client.HTTPConnection(**where), address.path
        return http.client.HTTPSConnection(**where, context=ssl.create_default_context(
            cafile=self.certificates)), address.path


def _detail(content):
    """Return the detail of an error; proxies and middleware answer in other formats."""
    try:
        text = json.loads(content)["errors"][0]["detail"]
    except (ValueError, LookupError, TypeError):
        text = content.decode(errors="replace")[:200]
    return " ".join(text.split())


def measure(path, allow_any_path=False):
    """Return the size of a mounted file system and its used space.

    :param path: str, the mount point
    :param allow_any_path: bool, whether to accept a directory that is not a mount point
    :returns: tuple of two int in GiB: the size, rounded down, and the used space, rounded up, so
        that the pool never has more room than the share
    """
    try:
        if not allow_any_path and not os.path.ismount(path):
            # While a share is not mounted, its path shows the disk of this machine.
            raise Failed(f"{path} is not a mount point")
        size = os.statvfs(path)
    except OSError as error:
        raise Failed(f"{path} cannot be measured: {error.strerror}") from error
    total = size.f_blocks * size.f_frsize // GIB
    if not total:
        raise Failed(f"{path} has less than 1 GiB, the smallest inventory")
    # Blocks that only root may use are of no use to servers either.
    taken = max(0, size.f_blocks - size.f_bavail) * size.f_frsize
    return total, -(-taken // GIB)


def reserved_for(total, taken, used, minimum=0):
    """Return the space to reserve because it is not used by allocations; all values in GiB.

    :param total: int, the size of the mount
    :param taken: int, its used space
    :param used: int, the amount allocated from the pool
    :param minimum: int, the least amount to reserve
    """
    # Before microversion 1.26 the service refuses an inventory that is reserved as a whole.
    return min(total - 1, max(0, min(taken, total) - used, minimum))


def same(old, new):
    """Return whether two values are equal; databases store a ratio with seven digits."""
    return math.isclose(old, new, rel_tol=1e-6) if isinstance(old, float) else old == new


class Pool:
    """The resource provider of shared storage, and the changes that were made to it.

    :param placement: :class:`Placement`
    :param options: the parsed arguments
    """

    def __init__(self, placement, options):
        self.placement, self.options = placement, options
        self.uuid, self.name = options.uuid, options.name
        self.created, self.aggregates, self.changes = False, [], {}
        self.inventory, self.used = {}, 0

    @property
    def capacity(self):
        """int, the amount that can be allocated in all, in GiB"""
        return math.floor((self.inventory["total"] - self.inventory["reserved"])
                          * self.inventory.get("allocation_ratio", 1.0))

    @property
    def _is_missing(self):
        """bool, whether the provider does not exist because a dry run did not create it"""
        return self.created and self.placement.dry_run

    def update(self):
        """Update provider, aggregates and inventory."""
        # First, so that no pool is created for a share that is not mounted.
        measure(self.options.path, self.options.allow_any_path)
        self._find_or_create()
        self._associate()
        self._update_inventory()

    def _find_or_create(self):
        found = self._find()
        if found is None:
            if not self.options.create:
                raise Failed(f"there is no provider {self.name or self.uuid}; use --create to "
                             "create it")
            found = self._create()
        if self.name not in (None, found["name"]):
            raise Failed(f"the provider {self.uuid} is called {found['name']}, not {self.name}")
        self.uuid, self.name = found["uuid"], found["name"]

    def _create(self):
        new = {"name": self.name, "uuid": self.uuid or str(uuid.uuid4())}
        try:
            self.placement.write("POST", "/resource_providers", new)
        except Refused as refused:
            # Another machine with the share may have created it first.
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
        """Add the aggregates; those that the provider already has stay."""
        if not self.options.aggregate_uuid:
            return
        path = f"/resource_providers/{self.uuid}/aggregates"
        for attempt in range(ATTEMPTS):
            found = None if self._is_missing else self.placement.read(path)
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
                # There was no concurrent change, so the inventory itself is refused.
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
        """Return the generation and the inventory, None if there is none; read the usage too.

        The generation is that of the first answer, so that the service refuses the write if there
        is a change between the two answers.
        """
        if self._is_missing:
            return 0, None
        listed, usages = (self.placement.read(f"/resource_providers/{self.uuid}/{each}")
                          for each in ("inventories", "usages"))
        if listed is None or usages is None:
            raise Failed(f"the provider {self.uuid} has been deleted")
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
        """Return a warning if more is allocated than the capacity; otherwise an empty text."""
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
        changes = ["created"] * self.created + [f"aggregate {each}" for each in self.aggregates]
        changes += [f"{name} {new}" if old is None else f"{name} {old} -> {new}"
                    for name, (old, new) in self.changes.items()]
        dry = "not done, dry run: " if changes and self.placement.dry_run else ""
        print(f"{self.name} ({self.uuid or 'new'}): {dry}{', '.join(changes) or 'up to date'}",
              file=stream)


def sign_in(options):
    """Return the endpoint of the service and a token, both str.

    :param options: the parsed arguments
    :raises Failed: if signing in to keystone fails
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
        # keystoneauth1 raises exceptions of any class if a variable is missing.
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


def make_parser():
    parser = argparse.ArgumentParser(
        description="Keep the DISK_GB inventory of a shared storage pool equal to its mount.",
        epilog="Exit codes: 0 the inventory is up to date, 1 failed, 2 wrong arguments. Instead "
               "of --endpoint and --os-token the OS_* variables of a cloud may be set.")
    parser.add_argument("path", help="mount point of the share")
    parser.add_argument("--name", help="the provider's name")
    parser.add_argument("--uuid", type=_uuid, help="the provider's uuid")
    parser.add_argument("--create", action="store_true",
                        help="create the provider if it is missing")
    parser.add_argument("--aggregate-uuid", type=_uuid, action="append", metavar="UUID",
                        help="an aggregate of the hosts that use the share; can be repeated")
    for setting in SETTINGS:
        parser.add_argument(f"--{setting.replace('_', '-')}", metavar="NUMBER",
                            type=float if setting == "allocation_ratio" else _positive,
                            help=f"{setting} of the inventory (default: unchanged)")
    parser.add_argument("--minimum-reserved", type=_positive, default=0, metavar="GIB",
                        help="reserve at least this amount, even if other programs use less")
    parser.add_argument("--allow-any-path", action="store_true",
                        help="measure a directory that is not a mount point")
    parser.add_argument("--dry-run", action="store_true", help="only print the changes")
    parser.add_argument("--format", choices=("auto", "text", "json"), default="auto",
                        help="auto is text on a terminal and JSON elsewhere")
    parser.add_argument("--endpoint", default=os.environ.get("OS_ENDPOINT"), metavar="URL",
                        help="address of the service (default: OS_ENDPOINT)")
    parser.add_argument("--os-token", default=os.environ.get("OS_TOKEN"), metavar="TOKEN",
                        help="default: OS_TOKEN, which other users of the machine cannot see")
    return parser


def main(arguments=None):
    """Update the pool; return the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not (options.name or options.uuid):
        parser.error("give the provider with --name or --uuid")
    if options.create and not options.name:
        parser.error("--create needs --name")
    try:
        endpoint, token = sign_in(options)
        if not (endpoint and token):
            parser.error("give --endpoint and --os-token, or set OS_AUTH_URL")
        if not re.match("https?://[^/]", endpoint):
            parser.error(f"{endpoint} is not an http:// or https:// address")
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
