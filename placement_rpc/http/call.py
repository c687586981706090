# SPDX-License-Identifier: Apache-2.0
"""One request, as the resources see it, and their answer to it."""

import dataclasses

from placement_rpc import exception
from placement_rpc.api import as_uuid, canonical
from placement_rpc.http import preconditions
from placement_rpc.http.errors import AddressNotFound


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What a resource answers.

    :param status: int
    :param body: JSON values; None for no body
    :param location: str, the path of what was made
    :param etag: str
    :param is_fixed: bool, whether an equal ``etag`` means an equal body, whoever else changes what
    :param position: int, of the events, that the body is true at
    :param stream: iterable of bytes in place of a body
    :param content_type: str, of the stream
    """

    status: int = 200
    body: object = None
    location: str | None = None
    etag: str | None = None
    is_fixed: bool = False
    position: int | None = None
    stream: object = None
    content_type: str = "application/json"


NO_CONTENT = Answer(204)


class Call:
    """One request: checked, allowed, and not answered yet.

    ``api`` is the :class:`placement_rpc.api.PlacementAPI`; ``version`` the microversion, a tuple
    of int; ``spelling`` the :class:`placement_rpc.http.spelling.Spelling` of its address;
    ``path`` the values of the address, ``query`` the parameters, ``body`` the JSON value;
    ``conf`` the ``api`` group; ``follower`` who waits for events.
    """

    __slots__ = ("_expected", "_if_match", "_req", "api", "body", "conf", "context",
                 "follower", "path", "query", "spelling", "version")

    def __init__(self, req, facade, route, path, query, body):
        self._req = req
        # The generation that If-Match names, once a resource asked for it.
        self._expected = None
        self._if_match = preconditions.tags(req.get_header("If-Match"))
        self.api, self.conf, self.follower = facade.api, facade.conf.api, facade.follower
        self.context, self.version = req.context.caller, req.context.version
        self.spelling = route.spelling
        self.path, self.query, self.body = path, query, body

    def header(self, name):
        """:returns: str; None where it is not given"""
        return self._req.get_header(name)

    @property
    def request_id(self):
        """str, by which the same change again is known, and its events; the answer's own where the
        client has none"""
        return self._req.get_header("Idempotency-Key") or self._req.context.request_id

    @property
    def prefix(self):
        """str, the path below which the application is"""
        return self._req.root_path

    @property
    def is_conditional(self):
        """bool, whether the state is named at which to make the change"""
        return self._if_match is not None

    def is_about_condition(self, error):
        """:returns: bool, whether an error says that what If-Match names is not current"""
        return self._expected is not None and error.kwargs.get("given") == self._expected

    def uuid(self):
        """The uuid in the address, in the one spelling.

        :raises AddressNotFound: when it is none: there is nothing there
        """
        try:
            return as_uuid("uuid", self.path["uuid"])
        except exception.InvalidInput:
            raise AddressNotFound() from None

    def class_name(self, name="resource_class"):
        """The name of a class in the address, in today's spelling.

        :raises AddressNotFound: when it can be no class's
        """
        try:
            return canonical(self.path[name])
        except exception.InvalidInput:
            raise AddressNotFound() from None

    def generation(self, uuid, given=None):
        """The generation at which a provider may be changed.

        :param uuid: str, the provider's
        :param given: int, the one in the body; None for none
        :returns: int; None for whatever it is
        :raises PreconditionRequired: :raises PreconditionFailed: :raises ConcurrentUpdate:
        """
        wanted = self._if_match
        if wanted is None:
            if self.spelling.needs_etag and self._req.method == "PUT":
                raise exception.PreconditionRequired()
            return given
        found = preconditions.generations(wanted, uuid)
        if found is None:
            return given
        self._expected = found[0]
        if len(found) > 1 or given not in (None, found[0]):
            current = self.api.get_provider(self.context, uuid).generation
            if current not in found:
                raise preconditions.failed()
            if given not in (None, current):
                raise exception.ConcurrentUpdate(provider=uuid, current=current, given=given)
            self._expected = current
            return current
        return found[0]

    def wants(self, media_type, other):
        """:returns: bool, whether the client names a media type, and prefers it to another"""
        accept = self._req.get_header("Accept") or ""
        return media_type in accept and self._req.client_prefers(
            (other, media_type)) == media_type

    def consumer_generation(self, uuid, consumer):
        """As :meth:`generation`, of a consumer, who has no generation in any body.

        :param consumer: :class:`placement_rpc.objects.consumer.Consumer`; None for one that holds
            nothing
        """
        if self._req.get_header("If-None-Match") == preconditions.ANY:
            # Only one that holds nothing yet.
            self._expected = 0
            return 0
        self.check_current(None if consumer is None else preconditions.tag(
            uuid, consumer.generation))
        if self._if_match is None:
            return None
        self._expected = consumer.generation
        return consumer.generation

    def refuse_condition(self):
        """:raises PreconditionFailed: where a state is named of what has none"""
        if self._if_match not in (None, preconditions.ANY):
            raise preconditions.failed("this resource has no ETag")

    def check_current(self, etag):
        """Compare what If-Match names.

        :param etag: str; None where there is nothing yet
        :raises PreconditionFailed: when it is not the current state
        """
        wanted = self._if_match
        if wanted is not None and (
                etag is None or (wanted != preconditions.ANY and etag not in wanted)):
            raise preconditions.failed()

    def position(self):
        """int, of the newest event: whatever is read from now on has it in it; None where the
        service can not tell"""
        try:
            return self.api.get_event_positions(self.context).last
        except (exception.ServiceTooOld, exception.UnsupportedCall):
            # A release upgrade is under way: an older service has no such call yet.
            return None
