# SPDX-License-Identifier: Apache-2.0
"""Who calls, on whose behalf, and until when the answer is wanted."""

import time

from oslo_context import context as oslo_context

from placement_rpc import exception
from placement_rpc.versions import releases

_WIRE_FIELDS = ("user_id", "project_id", "roles", "system_scope", "request_id",
                "global_request_id", "deadline", "manifest", "rule")
_MOST_VERSIONS = 200
_TEXTS = ("user_id", "project_id", "system_scope", "request_id", "global_request_id", "rule")
# Seconds; what is beyond is no deadline of anybody's.
_END_OF_TIME = 1e12


class RequestContext(oslo_context.RequestContext):
    """The context of one call.

    :param deadline: float, seconds since the epoch after which the caller no longer waits; None
        for no deadline. Both ends need synchronised clocks.
    :param manifest: what the caller reads: the version of the contract that it was made for, or
        a dict of object name to version; None for this release
    :param rule: str, the policy's rule that lets the person make the call, where it comes through
        the HTTP facade; the service checks it once more. None for a service's own call
    :param kwargs: see :class:`oslo_context.context.RequestContext`

    What is on it beside is never sent: on the server ``database``, the store that the call works
    on, and on both ends ``receiver``, the versions of objects that the other end knows, where
    those are not this release's. Neither is a token: a context reaches logs and queues.
    """

    def __init__(self, deadline=None, manifest=None, database=None, rule=None, **kwargs):
        kwargs.setdefault("overwrite", False)
        super().__init__(**kwargs)
        self.deadline = deadline
        self.manifest = manifest
        self.rule = rule
        self.database = database
        # The connection and the outbox of the request's transaction, while there is one, and
        # how compute nodes are dealt with.
        self.transaction = self.nodes = None
        self.release = releases.CURRENT
        # On the client, of which release the service is, so far as that is known.
        self.service_release = None
        self.receiver = None

    def to_dict(self):
        """What travels with a message: JSON types, and only what is set."""
        values = ((name, getattr(self, name)) for name in _WIRE_FIELDS)
        return {name: value for name, value in values if value not in (None, [])}

    @classmethod
    def from_dict(cls, values, **kwargs):
        """Rebuild the context of a message; what this release does not know is dropped."""
        if not isinstance(values, dict):
            raise exception.InvalidInput(what="context", reason="it is not a mapping")
        _check(values)
        known = {name: values[name] for name in _WIRE_FIELDS if name in values}
        context = cls(**known, **kwargs)
        context.receiver = versions_of(context.manifest)
        return context

    def check_deadline(self):
        """:raises RequestExpired: when the caller has stopped waiting (DESIGN rule 5)"""
        if self.deadline is not None and time.time() > self.deadline:
            raise exception.RequestExpired(late=round(time.time() - self.deadline, 3))


def _check(values):
    """:raises InvalidInput: when a field of a message's context is not what it has to be"""
    deadline = values.get("deadline")
    if deadline is not None and not (
            type(deadline) in (int, float) and abs(deadline) < _END_OF_TIME):
        raise exception.InvalidInput(what="deadline", reason="it is no time")
    for name in _TEXTS:
        if not isinstance(values.get(name), (str, type(None))):
            raise exception.InvalidInput(what=name, reason="it is not text")
    roles = values.get("roles") or []
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise exception.InvalidInput(what="roles", reason="it is not a list of text")


def versions_of(manifest):
    """What somebody reads.

    :param manifest: str, version of the contract; or dict of object name to version; or None
    :returns: dict of object name to version; None for those of this release
    :raises InvalidInput: for anything else
    """
    if isinstance(manifest, dict):
        if len(manifest) > _MOST_VERSIONS or not all(
                isinstance(name, str) and releases.is_version(version)
                for name, version in manifest.items()):
            raise exception.InvalidInput(
                what="manifest", reason="it does not map objects to their versions")
        return manifest
    if manifest is None:
        return None
    if not releases.is_version(manifest):
        raise exception.InvalidInput(what="manifest", reason="it is no version of the contract")
    release = releases.of_contract(manifest)
    # Whoever is newer reads what this release says; whoever is older than all never was.
    return None if release in (None, releases.CURRENT) else release.versions
