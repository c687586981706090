# SPDX-License-Identifier: Apache-2.0
"""The one tree of errors, the same over RPC, in process and over HTTP.

Every error has a ``code`` that never changes, the HTTP status it stands for, and
``retryable``: whether the very same call, with the same request id, may succeed later.

An error is built from keyword arguments alone. They fill its message and travel with it, so
that a client rebuilds the same error from its code (:func:`from_code`) and a program can read
``error.kwargs["free"]`` instead of parsing a sentence.
"""

import string


class PlacementException(Exception):
    """Base of all expected errors.

    :param kwargs: values for the message; JSON types only, since they travel over the bus.
    """

    code = "placement.error"
    http_status = 500
    retryable = False
    message = "The placement service failed"

    def __init__(self, **kwargs):
        # No positional arguments: the bus library rebuilds an error from args and kwargs.
        super().__init__()
        self.kwargs = kwargs

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"{type(self).__name__}({self.text!r})"

    @property
    def text(self):
        """The message alone, without the trace text that the bus library puts behind it."""
        return _Template(self.message).format(**self.kwargs)

    def __reduce__(self):
        return from_code, (self.code, self.kwargs)


class _Template(string.Formatter):
    """Fills a message; a value that a newer or older sender left out stays visible."""

    def __init__(self, template):
        self._template = template

    def format(self, **kwargs):
        return self.vformat(self._template, (), kwargs)

    def get_value(self, key, args, kwargs):
        return kwargs.get(key, f"<{key}>")


# -- the caller's input -----------------------------------------------------------------

class InvalidInput(PlacementException, ValueError):
    """What was sent can not mean anything: wrong type, malformed uuid, amount of zero.

    A :class:`ValueError` too, since versioned objects raise one where a field refuses a value.
    """

    code = "placement.input.invalid"
    http_status = 400
    message = "Invalid {what}: {reason}"


class InvalidInventory(InvalidInput):
    code = "placement.inventory.invalid"
    message = "Invalid inventory of {resource_class}: {reason}"


class ResourceClassNotFound(InvalidInput):
    code = "placement.resource_class.not_found"
    http_status = 404
    message = "No such resource class: {resource_class}"


class BatchTooLarge(InvalidInput):
    code = "placement.input.batch_too_large"
    http_status = 413
    message = "A {what} holds at most {limit} entries, and this one has {size}"


class IncompatibleObjectVersion(InvalidInput):
    code = "placement.object.incompatible_version"
    message = "Version {version} of {name} is not supported here; {supported} is the newest"


class RequestIdReused(InvalidInput):
    """The same request id came with another body: refused, since one of them is a mistake."""

    code = "placement.request.id_reused"
    http_status = 409
    message = "Request id {request_id} was already used for another {method} request"


class PreconditionRequired(InvalidInput):
    """A resource pool is changed at the state that the caller read, and it did not say which."""

    code = "placement.precondition.required"
    http_status = 428
    message = "A change of this resource needs an If-Match header with the ETag that was read"


class PreconditionFailed(PlacementException):
    """What the caller read is not the current state any more: read again and decide anew."""

    code = "placement.precondition.failed"
    http_status = 412
    message = "{reason}"


class Forbidden(PlacementException):
    code = "placement.forbidden"
    http_status = 403
    message = "The policy {rule} does not allow it"


# -- what is not there ------------------------------------------------------------------

class NotFound(PlacementException):
    code = "placement.not_found"
    http_status = 404
    message = "Not found"


class ProviderNotFound(NotFound):
    code = "placement.resource_provider.not_found"
    message = "No such resource provider: {provider}"


class InventoryNotFound(NotFound):
    code = "placement.inventory.not_found"
    message = "Resource provider {provider} has no inventory of {resource_class}"


class ConsumerNotFound(NotFound):
    code = "placement.consumer.not_found"
    message = "Consumer {consumer} holds no allocations"


class ComputeNodeNotFound(NotFound):
    code = "placement.compute_node.not_found"
    message = "No such compute node: {node}"


class RequestNotFound(NotFound):
    """No outcome is kept for the id: it never arrived, is still under way, or was pruned."""

    code = "placement.request.not_found"
    message = "No outcome is known for request {request_id}"


class EventsPruned(NotFound):
    """Events were asked for that are not kept any more: list anew, and follow from there."""

    code = "placement.events.pruned"
    http_status = 410
    message = "Events after position {after} were asked for; the oldest that is kept is {oldest}"


# -- what is in the way -----------------------------------------------------------------

class Conflict(PlacementException):
    code = "placement.conflict"
    http_status = 409
    message = "Conflict"


class ConcurrentUpdate(Conflict):
    """The caller's generation is not the current one: read again and decide anew."""

    code = "placement.concurrent_update"
    message = "Resource provider {provider} is at generation {current}, not at {given}"


class ProviderExists(Conflict):
    code = "placement.resource_provider.exists"
    message = "Resource provider {provider} exists already"


class NameInUse(Conflict):
    code = "placement.duplicate_name"
    message = "Another resource provider is named {name}"


class ProviderInUse(Conflict):
    code = "placement.resource_provider.inuse"
    message = "Resource provider {provider} has allocations and can not be deleted"


class InventoryExists(Conflict):
    code = "placement.inventory.exists"
    message = "Resource provider {provider} has an inventory of {resource_class} already"


class InventoryInUse(Conflict):
    code = "placement.inventory.inuse"
    message = (
        "The inventory of {resource_class} on resource provider {provider} can not be removed: "
        "{used} are allocated"
    )


class CapacityConflict(Conflict):
    """An inventory may not shrink below what is allocated from it."""

    code = "placement.inventory.capacity_conflict"
    message = (
        "The inventory of {resource_class} on resource provider {provider} can not shrink to a "
        "capacity of {capacity}: {used} are allocated"
    )


class ConsumerConflict(Conflict):
    code = "placement.consumer.conflict"
    message = "Consumer {consumer}: {reason}"


class ComputeNodeExists(Conflict):
    code = "placement.compute_node.exists"
    message = "Compute node {node} exists already"


class ResourceClassExists(Conflict):
    code = "placement.resource_class.exists"
    message = "Resource class {resource_class} exists already"


class ResourceClassInUse(Conflict):
    code = "placement.resource_class.inuse"
    message = "Resource class {resource_class} is used by inventories or allocations"


class ResourceClassStandard(InvalidInput):
    code = "placement.resource_class.standard"
    http_status = 400
    message = "Resource class {resource_class} is a standard one and can not be changed"


# -- claims -----------------------------------------------------------------------------

class ClaimRefused(Conflict):
    """Base of the reasons for which a well-formed claim does not fit."""

    code = "placement.claim.refused"
    message = "The claim was refused"


class CapacityExceeded(ClaimRefused):
    code = "placement.claim.capacity_exceeded"
    message = (
        "Resource provider {provider} can not give {requested} of {resource_class}: "
        "{free} of a capacity of {capacity} are free"
    )


class ConstraintsViolated(ClaimRefused):
    code = "placement.claim.constraints_violated"
    message = (
        "Resource provider {provider} can not give {requested} of {resource_class}: {reason}"
    )


class NoCandidates(ClaimRefused):
    code = "placement.claim.no_candidates"
    message = "No resource provider has room for {resources}"


# -- time, transport, service -----------------------------------------------------------

class RequestExpired(PlacementException):
    """The server got to the call after its deadline, and changed nothing."""

    code = "placement.request.expired"
    http_status = 503
    message = "The request was {late} s past its deadline when it was reached; nothing was done"


class DeadlineExceeded(PlacementException):
    """The client's deadline passed without an answer.

    The outcome is unknown: ask for it with ``get_request_result``, or make the call again with
    the same request id.
    """

    code = "placement.client.deadline_exceeded"
    http_status = 504
    retryable = True
    message = (
        "No answer to {method} within {seconds} s ({reason}); the outcome of request {request_id} "
        "is unknown"
    )


class ServiceUnavailable(PlacementException):
    """Nobody listens on the bus, or the bus is away."""

    code = "placement.service.unavailable"
    http_status = 503
    retryable = True
    message = "The placement service can not be reached: {reason}"


class StoreUnavailable(PlacementException):
    """The service lost its database; nothing is known to be done."""

    code = "placement.store.unavailable"
    http_status = 503
    retryable = True
    message = "The store can not be reached: {reason}"


class StoreBusy(PlacementException):
    """Concurrent writers kept colliding; nothing was done."""

    code = "placement.store.busy"
    http_status = 503
    retryable = True
    message = "The store was too busy for {method}: gave up after {attempts} attempts"


class SchemaOutdated(PlacementException):
    code = "placement.store.schema_outdated"
    message = (
        "The database schema is at {current}, and this release needs {needed}: "
        "run 'placement-rpc-manage db sync'"
    )


class UnsupportedCall(PlacementException):
    """The server does not know the method, its arguments or the contract's version."""

    code = "placement.rpc.unsupported"
    http_status = 400
    message = "{reason}"


class ServiceTooOld(PlacementException):
    """Something was asked for that a service which is alive does not know yet."""

    code = "placement.service.too_old"
    http_status = 503
    message = "{what} needs version {needed} of the contract, and {who} is at {found}"


class RemoteFailure(PlacementException):
    """A defect on the server's side. Its log has the trace under ``incident``."""

    code = "placement.internal"
    message = "The service failed on {method}; its log has the details under {incident}"


def _tree(base):
    yield base
    for child in base.__subclasses__():
        yield from _tree(child)


def from_code(code, kwargs):
    """Rebuild an error from what travelled.

    :param code: str, the ``code`` of the error
    :param kwargs: dict, the values it was built from
    :returns: a :class:`PlacementException`; of the base class where the code is unknown, as
        it is when the other side is newer.
    """
    for cls in _tree(PlacementException):
        if cls.code == code:
            return cls(**kwargs)
    error = PlacementException(**kwargs)
    error.code = code
    error.message = f"{code}: " + " ".join(f"{key}={{{key}}}" for key in kwargs)
    return error
