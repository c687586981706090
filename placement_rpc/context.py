# SPDX-License-Identifier: Apache-2.0
"""The context of a call: the caller, the end user, the deadline and the caller's release."""

import contextlib
import contextvars
import time
from typing import NamedTuple

from oslo_context import context as oslo_context

from placement_rpc import exception
from placement_rpc.versions import releases

# What a policy rule can compare a caller with.
_ROLES = ("roles", "service_roles")
_IDENTITY = (
    "user_id", "project_id", "system_scope", "domain_id", "user_domain_id", "project_domain_id",
    "service_user_id", "service_user_domain_id", "service_project_id",
    "service_project_domain_id")
_TEXTS = (*_IDENTITY, "request_id", "global_request_id", "rule", "reason")
_WIRE_FIELDS = (*_TEXTS, *_ROLES, "is_admin_project", "deadline", "manifest")
_MAX_VERSIONS = 200
# Letters of a user, a project or a reason in an event.
_MAX_NAME = 255
# Seconds since the epoch. A larger number is not a deadline, but an error of the client.
_MAX_DEADLINE = 1e12


class Cause(NamedTuple):
    """Who makes a change, and why, as its events say it."""

    #: dict of user_id and project_id; None if the caller has neither
    initiator: dict | None = None
    #: what the caller says about the change; None for nothing
    reason: str | None = None


# Of the call that this thread works on; see initiated_by().
_cause: contextvars.ContextVar[Cause | None] = contextvars.ContextVar("cause", default=None)


class RequestContext(oslo_context.RequestContext):
    """The context of one call.

    :param deadline: float, seconds since the epoch after which the caller no longer waits; None
        for no deadline. Both ends need synchronised clocks.
    :param manifest: the versions of objects that the caller reads: the version of the contract
        that it was made for, or a dict of object name to version; None for this release
    :param database: :class:`placement_rpc.db.api.Database` that the call works on, on the server
    :param rule: str, the policy rule that allows an end user's call through the HTTP facade; the
        service checks it again. None for a call that a service makes for itself
    :param reason: str, why the caller makes a change, for its events; None for nothing
    :param kwargs: see :class:`oslo_context.context.RequestContext`

    Further attributes never travel: ``database`` on the server, and on both ends ``receiver``,
    the versions of objects that the other end reads if they are not this release's. A token does
    not travel either, since a context reaches logs and queues.
    """

    def __init__(self, deadline=None, manifest=None, database=None, rule=None, reason=None,
                 **kwargs):
        kwargs.setdefault("overwrite", False)
        super().__init__(**kwargs)
        self.deadline = deadline
        self.manifest = manifest
        self.rule = rule
        self.reason = reason
        self.database = database
        # The connection and the outbox of the open transaction, if there is one, and the handling
        # of compute nodes.
        self.transaction = self.nodes = None
        self.release = releases.CURRENT
        # On the client, the release of the service, if it is known.
        self.service_release = None
        self.receiver = None

    @classmethod
    def of(cls, context):
        """Return a new context of the same caller and request.

        It has all that a policy rule can ask for, so that the service decides as the facade does.

        :param context: :class:`oslo_context.context.RequestContext`
        """
        values = {name: getattr(context, name) for name in (
            *_IDENTITY, *_ROLES, "request_id", "global_request_id", "is_admin_project")}
        # A context of another library has neither of these two.
        return cls(**values, **{
            name: getattr(context, name, None) for name in ("rule", "reason")})

    def to_dict(self):
        """Return the fields that travel with a message: JSON types, only those that are set."""
        values = ((name, getattr(self, name)) for name in _WIRE_FIELDS)
        return {name: value for name, value in values if value not in (None, []) and (
            # Of almost all callers.
            name != "is_admin_project" or not value)}

    def credentials(self):
        """Return what policy rules can compare the caller with, as OpenStack Placement has it."""
        values = {name: getattr(self, name) for name in _IDENTITY}
        return values | {name: getattr(self, name) or [] for name in _ROLES} | {
            "is_admin_project": self.is_admin_project}

    @classmethod
    def from_dict(cls, values, **kwargs):
        """Rebuild the context of a message; fields that this release does not know are dropped.

        :raises InvalidInput: if a field has a wrong type
        """
        if not isinstance(values, dict):
            raise exception.InvalidInput(what="context", reason="it is not a mapping")
        _check(values)
        known = {name: values[name] for name in _WIRE_FIELDS if name in values}
        context = cls(**known, **kwargs)
        context.receiver = versions_of(context.manifest)
        return context

    def knows(self, contract_version):
        """Return whether the caller is known to be of a version of the contract, or a later one.

        :param contract_version: str, like ``1.3``
        """
        return self.manifest is None or (isinstance(self.manifest, str) and releases.number(
            self.manifest) >= releases.number(contract_version))

    @property
    def initiator(self):
        """dict of user_id and project_id, as events name the caller; None if it has neither"""
        if self.user_id is None and self.project_id is None:
            return None
        return {"user_id": self.user_id and self.user_id[:_MAX_NAME],
                "project_id": self.project_id and self.project_id[:_MAX_NAME]}

    @property
    def cause(self):
        """:class:`Cause` of the changes that the caller makes"""
        reason = "".join(each if each.isprintable() else " " for each in (
            self.reason or "")[:_MAX_NAME]).strip()
        return Cause(self.initiator, reason or None)

    def check_deadline(self):
        """Check the deadline of this call; see :func:`check_deadline`."""
        check_deadline(self.deadline)


def check_deadline(deadline):
    """Refuse a call whose deadline has passed (DESIGN rule 5).

    :param deadline: float, seconds since the epoch; None for none
    :raises RequestExpired: if it has passed
    """
    if deadline is not None and time.time() > deadline:
        raise exception.RequestExpired(late=round(time.time() - deadline, 3))


@contextlib.contextmanager
def initiated_by(context):
    """Name the caller of a context in the events of all changes that are made in this block.

    So is the reason that the context has. A change may be settled by another thread, together
    with those of other callers: a request keeps the cause with which it was made.

    :param context: :class:`RequestContext`
    """
    token = _cause.set(context.cause)
    try:
        yield
    finally:
        _cause.reset(token)


def cause():
    """Return the :class:`Cause` of the call that this thread works on; empty if there is none."""
    return _cause.get() or Cause()


def _check(values):
    """Check the types of the fields of a message's context.

    :raises InvalidInput: if one is wrong
    """
    deadline = values.get("deadline")
    if deadline is not None and not (
            type(deadline) in (int, float) and abs(deadline) < _MAX_DEADLINE):
        raise exception.InvalidInput(
            what="deadline", reason="it is not a number of seconds since the epoch")
    for name in _TEXTS:
        if not isinstance(values.get(name), (str, type(None))):
            raise exception.InvalidInput(what=name, reason="it is not text")
    for name in _ROLES:
        roles = values.get(name) or []
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise exception.InvalidInput(what=name, reason="it is not a list of text")
    if not isinstance(values.get("is_admin_project"), (bool, type(None))):
        raise exception.InvalidInput(what="is_admin_project", reason="it is not true or false")


def wire_schema():
    """Return the JSON schema of a context as it travels; all fields may be missing.

    :returns: dict
    """
    texts, lists = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "properties": {
        **dict.fromkeys(_TEXTS, texts), **dict.fromkeys(_ROLES, lists),
        "is_admin_project": {"type": "boolean"},
        "deadline": {
            "type": "number", "description": "Seconds since the epoch after which the sender does "
                                             "not wait any more"},
        "manifest": {
            "description": "The versions of objects that the sender reads: a version of the "
                           "contract, or a mapping of the names of objects to versions",
            "type": ["string", "object"], "additionalProperties": {"type": "string"}}}}


def versions_of(manifest):
    """Return the versions of objects that a caller reads.

    :param manifest: str, version of the contract; or dict of object name to version; or None
    :returns: dict of object name to version; None for the versions of this release
    :raises InvalidInput: for anything else
    """
    if isinstance(manifest, dict):
        if len(manifest) > _MAX_VERSIONS or not all(
                isinstance(name, str) and releases.is_version(version)
                for name, version in manifest.items()):
            raise exception.InvalidInput(
                what="manifest", reason="it does not map objects to their versions")
        return manifest
    if manifest is None:
        return None
    if not releases.is_version(manifest):
        raise exception.InvalidInput(
            what="manifest", reason="it is not a version of the contract")
    release = releases.of_contract(manifest)
    # Newer callers read this release's objects; nothing older than the first release exists.
    return None if release in (None, releases.CURRENT) else release.versions
