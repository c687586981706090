# SPDX-License-Identifier: Apache-2.0
"""A request as the resources see it, and the answer that they return."""

import dataclasses
import enum

from placement_rpc import exception
from placement_rpc.api import as_uuid, canonical
from placement_rpc.http import preconditions
from placement_rpc.http.streams import HAND_OVER

#: The media type of all answers but streams of events
JSON = "application/json"


class _Now(enum.Enum):
    NOW = enum.auto()


#: Last-Modified of content that has no time of its own: the time of the answer.
NOW = _Now.NOW


def newest(objects):
    """Return the time of the last change of several objects.

    :param objects: iterable of versioned objects with ``updated_at``
    :returns: str, UTC in ISO 8601; :data:`NOW` if there are none, or an older service does not
        tell it
    """
    return max((each.value("updated_at") or "" for each in objects), default="") or NOW


_PAGE = 1000


def all_pages(read):
    """Return the objects of all pages of a list that is ordered by name.

    :param read: callable of ``marker`` and ``limit`` that returns a list of versioned objects
    """
    found, page = [], read(marker=None, limit=_PAGE).objects
    while len(page) == _PAGE:
        found += page
        page = read(marker=page[-1].name, limit=_PAGE).objects
    return found + page


def provider_uuid(path):
    """Return the uuid of the provider in an address, in canonical spelling.

    :param path: dict of the variable parts of the address
    :raises ProviderNotFound: if it is not a uuid, so that nothing can exist there
    """
    try:
        return as_uuid("uuid", path["uuid"])
    except exception.InvalidInput:
        raise exception.ProviderNotFound(provider=path["uuid"][:80]) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a resource.

    :param status: int
    :param body: JSON values; None for no body
    :param location: str, the path of a created resource
    :param etag: str
    :param is_fixed: bool, whether an equal ``etag`` guarantees an equal body, so that
        If-None-Match can be answered with 304
    :param position: int, the position of the last event that the body is sure to include
    :param updated_at: str, UTC in ISO 8601, when the newest of what the body shows was changed;
        :data:`NOW` for what has no time; None for no ``last-modified``. An answer without a body
        has ``last-modified`` only if it has a time.
    :param stream: iterable of bytes, instead of a body
    :param content_type: str, media type of the stream
    """

    status: int = 200
    body: object = None
    location: str | None = None
    etag: str | None = None
    is_fixed: bool = False
    position: int | None = None
    updated_at: str | _Now | None = NOW
    stream: object = None
    content_type: str = JSON

    @property
    def is_json(self):
        """bool, whether it has JSON, as a body or as a stream"""
        return self.body is not None or (
            self.stream is not None and self.content_type == JSON)


NO_CONTENT = Answer(204)


class Call:
    """One validated and authorized request.

    :ivar api: :class:`placement_rpc.api.PlacementAPI`
    :ivar version: tuple of int, the microversion
    :ivar spelling: :class:`placement_rpc.http.spelling.Spelling` of its address
    :ivar path: dict of the variable parts of the address
    :ivar query: :class:`placement_rpc.http.queries.Query`
    :ivar body: JSON value; None for no body
    :ivar conf: the option group ``api``
    :ivar defaults: the option group ``placement``
    :ivar follower: :class:`placement_rpc.http.follower.Follower`, which waits for events
    :ivar streams: :class:`placement_rpc.http.streams.EventStreams`
    :ivar openapi: dict, the description of the API
    """

    __slots__ = ("_expected", "_if_match", "_req", "api", "body", "conf", "context",
                 "defaults", "follower", "openapi", "path", "query", "spelling", "streams",
                 "version")

    def __init__(self, req, facade, route, path, query, body):
        self._req = req
        # The generations that If-Match names, set when a resource asks for them.
        self._expected = ()
        self._if_match = preconditions.tags(req.get_header("If-Match"))
        self.api, self.conf, self.follower = facade.api, facade.conf.api, facade.follower
        self.defaults = facade.conf.placement
        self.streams = facade.streams
        self.openapi = facade.openapi
        self.context, self.version = req.context.caller, req.context.version
        self.spelling = route.spelling
        self.path, self.query, self.body = path, query, body

    def header(self, name):
        """Return a header of the request; None if it is missing."""
        return self._req.get_header(name)

    @property
    def request_id(self):
        """str, the id by which a repeated change is recognised, and which its events carry

        The client's Idempotency-Key, which may be in double quotes; without one, the request id of
        the answer.
        """
        key = self._req.get_header("Idempotency-Key")
        if key and len(key) > 2 and key[0] == key[-1] == '"':
            key = key[1:-1]
        return key or self._req.context.request_id

    @property
    def prefix(self):
        """str, the path under which the application is mounted"""
        return self._req.root_path

    @property
    def hand_over(self):
        """The server's callable that takes a stream out of its thread; None if it has none"""
        return self._req.env.get(HAND_OVER)

    @property
    def user(self):
        """str, the user that made the request, or its project if it names no user"""
        return self.context.user_id or self.context.project_id or ""

    def is_about_condition(self, error):
        """Return whether an error says that no state that If-Match names is current."""
        return error.kwargs.get("given") in self._expected and (
            error.kwargs.get("current") not in self._expected)

    def uuid(self):
        """Return the uuid in the address, in canonical spelling.

        :raises ProviderNotFound: if it is not a uuid, so that nothing can exist there
        """
        return provider_uuid(self.path)

    def class_name(self, name="resource_class"):
        """Return the class name in the address, in its current spelling.

        :raises ResourceClassNotFound: if it is not a valid class name
        """
        try:
            return canonical(self.path[name])
        except exception.InvalidInput:
            raise exception.ResourceClassNotFound(resource_class=self.path[name][:255]) from None

    def generation(self, uuid, given=None):
        """Return the generation that a provider must have for the change.

        The service compares it with the current one, after it has looked for the stored outcome
        of a repeated request.

        :param uuid: str, uuid of the provider
        :param given: int, the generation in the body; None for none. One that no provider can
            have is answered like any other that is not the current one.
        :returns: int; None if any generation will do
        :raises PreconditionRequired: if the address requires If-Match and there is none
        :raises PreconditionFailed: if no tag of If-Match is that of the provider, or the body has
            another generation than all of them and none is current
        :raises ConcurrentUpdate: if the body has another generation than all tags, and one of
            them is current
        """
        if given is not None:
            given = preconditions.given_generation(given)
        wanted = self._if_match
        if wanted is None:
            if self.spelling.needs_etag and self._req.method == "PUT":
                raise exception.PreconditionRequired()
            return given
        found = preconditions.generations(wanted, uuid)
        if found is None:
            return given
        self._expected = found
        if given in found or (given is None and len(found) == 1):
            return found[0] if given is None else given
        current = self.api.get_provider(self.context, uuid).generation
        if given is None:
            return current if current in found else found[0]
        # No generation is both.
        if current not in found:
            raise preconditions.failed()
        raise exception.ConcurrentUpdate(provider=uuid, current=current, given=given)

    def wants(self, media_type, other):
        """Return whether Accept names a media type and prefers it to another."""
        accept = self._req.get_header("Accept") or ""
        return media_type in accept and self._req.client_prefers(
            (other, media_type)) == media_type

    def expect_generation(self, generation):
        """Let a conflict with this generation of a consumer be a failed precondition (412).

        :param generation: int; None for no expectation
        :returns: the same
        """
        self._expected = () if generation is None else (generation,)
        return generation

    @property
    def must_be_new(self):
        """bool, whether the request has an If-None-Match header with ``*``"""
        return self._req.get_header("If-None-Match") == preconditions.ANY

    def consumer_tags(self, uuid):
        """Return the tags, of which a consumer must have one for the change.

        :returns: list of str; None if the request has no If-Match header
        :raises PreconditionFailed: if no tag of the header belongs to the consumer
        """
        return preconditions.consumer_tags(self._if_match, uuid)

    def refuse_condition(self):
        """Refuse If-Match on a resource without an ETag.

        :raises PreconditionFailed: if the header names a tag
        """
        if self._if_match not in (None, preconditions.ANY):
            raise preconditions.failed("this resource has no ETag")

    def check_exists(self, read, missing):
        """Check If-Match of a PUT that creates what does not exist yet, and that has no ETag.

        :param read: reads it; called without arguments
        :param missing: the error of what does not exist
        :raises PreconditionFailed: if the header is ``*`` and it does not exist, or names a tag
        """
        self.refuse_condition()
        if self._if_match is not None:
            try:
                read()
            except missing:
                raise preconditions.failed("it does not exist") from None

    def check_current(self, etag):
        """Check If-Match against the current state.

        :param etag: str, the current tag; None if the resource does not exist yet
        :raises PreconditionFailed: if the header does not name the current tag
        """
        wanted = self._if_match
        if wanted is not None and (
                etag is None or (wanted != preconditions.ANY and etag not in wanted)):
            raise preconditions.failed()

    def position(self):
        """Return the position of the newest event, which everything read from now on includes.

        :returns: int; None if the service does not know positions
        """
        try:
            # The facade asks for itself: a rule about a consumer's owner does not admit this.
            return self.api.get_event_positions(None).last
        except (exception.ServiceTooOld, exception.UnsupportedCall):
            # During a rolling upgrade, an older service does not have this call yet.
            return None
