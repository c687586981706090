# SPDX-License-Identifier: Apache-2.0
"""The errors of the service, the same over RPC, in process and over HTTP.

Every error has a ``code`` that never changes, an HTTP status, and ``retryable``: whether the same
call, with the same request id, may succeed later.

An error is built from keyword arguments only. They fill its message and travel with it, so that a
client rebuilds the same error from its code (:func:`from_code`) and a program can read
``error.kwargs["free"]`` instead of parsing a sentence.
"""

import string


class PlacementException(Exception):
    """Base of all expected errors.

    :param kwargs: values for the message; JSON types only, since they travel over the bus
    """

    code = "placement.error"
    http_status = 500
    retryable = False
    message = "The placement service failed"

    def __init__(self, **kwargs):
        # No positional arguments: oslo.messaging rebuilds an error from args and kwargs.
        super().__init__()
        self.kwargs = kwargs

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"{type(self).__name__}({self.text!r})"

    @property
    def text(self):
        """The message, without the traceback that oslo.messaging appends to the text of errors"""
        return fill(self.message, self.kwargs)

    def __reduce__(self):
        return from_code, (self.code, self.kwargs)


def fill(message, values):
    """Fill a message.

    :param message: str, with names in braces
    :param values: dict of name to value
    """
    return _Template(message).format(**values)


class _Template(string.Formatter):
    """Fill a message; the name of a value that an older or newer sender left out stays visible."""

    def __init__(self, template):
        self._template = template

    def format(self, **kwargs):
        return self.vformat(self._template, (), kwargs)

    def get_value(self, key, args, kwargs):
        return kwargs.get(key, f"<{key}>")


# -- the caller's input -----------------------------------------------------------------

class InvalidInput(PlacementException, ValueError):
    """The input is malformed: a wrong type, not a uuid, an amount of zero.

    It is a :class:`ValueError` too, which the fields of versioned objects raise for a wrong value.
    """

    code = "placement.input.invalid"
    http_status = 400
    message = "Invalid {what}: {reason}"


class ClientClosed(InvalidInput):
    """The client was closed, or belongs to another process."""

    code = "placement.client.closed"
    message = "This PlacementAPI cannot be used: {reason}"


class InvalidInventory(InvalidInput):
    code = "placement.inventory.invalid"
    message = "Invalid inventory of {resource_class}: {reason}"


class ResourceClassNotFound(InvalidInput):
    code = "placement.resource_class.not_found"
    http_status = 404
    message = "No such resource class {resource_class}."


class BatchTooLarge(InvalidInput):
    code = "placement.input.batch_too_large"
    http_status = 413
    message = "A {what} can have at most {limit} entries, and this one has {size}; split it up"


class MessageTooLarge(InvalidInput):
    """A call, a cast or an HTTP request exceeds a limit of ``[messages]``."""

    code = "placement.input.too_large"
    http_status = 413
    message = "A message can have at most {limit} {unit}; send a smaller one or split it up"


class AnswerTooLarge(PlacementException):
    """An answer exceeds a limit of ``[messages]``; a change that it reports was made."""

    code = "placement.answer.too_large"
    message = (
        "The answer to {method} would have more than {limit} {unit}; ask for a part of it"
    )


class TraitNotFound(InvalidInput):
    code = "placement.trait.not_found"
    http_status = 404
    message = "No such trait(s): {traits}."


class TraitStandard(InvalidInput):
    code = "placement.trait.standard"
    message = "{trait} is a standard trait, which cannot be created or deleted"


class ParentNotFound(InvalidInput):
    code = "placement.resource_provider.parent_not_found"
    message = "parent provider UUID does not exist: {parent}"


class TreeLoop(InvalidInput):
    """A provider cannot be moved below itself."""

    code = "placement.resource_provider.loop"
    message = (
        "creating loop in the provider tree is not allowed. Resource provider {provider} cannot "
        "be moved below {parent}: it would be its own ancestor"
    )


class ParentFixed(InvalidInput):
    """The caller's microversion can give a provider a parent, and not take or change it."""

    code = "placement.resource_provider.parent_fixed"
    message = "The parent of resource provider {provider} cannot be changed"


class RequestTooComplex(InvalidInput):
    """A search for candidates would take too long."""

    code = "placement.candidates.too_complex"
    message = "The request for candidates is too complex: {reason}; ask for fewer groups"


class IncompatibleObjectVersion(InvalidInput):
    code = "placement.object.incompatible_version"
    message = (
        "Version {version} of object {name} is not supported; the newest supported version is "
        "{supported}"
    )


class RequestIdReused(InvalidInput):
    """The request id was used before with another body, so one of the two calls is a mistake."""

    code = "placement.request.id_reused"
    http_status = 409
    message = (
        "Request id {request_id} was already used for another {method} request; use a new id"
    )


class SeveralCells(InvalidInput):
    """A change names what is in several cells, each of which has a store of its own."""

    code = "placement.cell.several"
    message = (
        "{what} spans the cells {cells}, and a change is made in one: nothing was sent; split it "
        "up or choose providers of one cell"
    )


class PreconditionRequired(InvalidInput):
    """A change of a resource pool must name the state that the caller read, and does not."""

    code = "placement.precondition.required"
    http_status = 428
    message = "A change of this resource requires an If-Match header with the ETag that was read"


class PreconditionFailed(PlacementException):
    """The state that the caller read is not current: read again and decide again."""

    code = "placement.precondition.failed"
    http_status = 412
    message = "{reason}"


class Forbidden(PlacementException):
    code = "placement.forbidden"
    http_status = 403
    message = "Policy does not allow {rule} to be performed."


# -- missing resources ------------------------------------------------------------------

class NotFound(PlacementException):
    code = "placement.not_found"
    http_status = 404
    message = "Not found"


class ProviderNotFound(NotFound):
    code = "placement.resource_provider.not_found"
    message = "No resource provider with uuid {provider} found"


class InventoryNotFound(NotFound):
    code = "placement.inventory.not_found"
    message = "Resource provider {provider} has no inventory of {resource_class}"


class ConsumerNotFound(NotFound):
    code = "placement.consumer.not_found"
    message = "Consumer {consumer} has no allocations"


class ComputeNodeNotFound(NotFound):
    code = "placement.compute_node.not_found"
    message = "No such compute node: {node}"


class RequestNotFound(NotFound):
    """No outcome is stored for the id: it never arrived, is being processed, or was pruned."""

    code = "placement.request.not_found"
    message = (
        "No outcome is stored for request {request_id}: it never arrived, is being processed, or "
        "was pruned"
    )


class EventsPruned(NotFound):
    """The requested events are no longer kept: list the state, and follow from its position."""

    code = "placement.events.pruned"
    http_status = 410
    message = (
        "Events after position {after} were requested, but the oldest that is kept is {oldest}; "
        "list the current state and follow from its position"
    )


# -- conflicts --------------------------------------------------------------------------

class Conflict(PlacementException):
    code = "placement.conflict"
    http_status = 409
    message = "Conflict"


#: Bases of the errors after which a request is known to have changed nothing.
REFUSALS = (NotFound, Conflict, InvalidInput)


class ConcurrentUpdate(Conflict):
    """The caller's generation is not current: read again and decide again."""

    code = "placement.concurrent_update"
    message = (
        "Resource provider's generation already changed. Please update the generation and try "
        "again. (resource provider generation conflict: {provider} is at generation {current}, "
        "not at {given})"
    )


class ProviderExists(Conflict):
    code = "placement.resource_provider.exists"
    message = "Conflicting resource provider uuid: {provider} already exists"


class NameInUse(Conflict):
    code = "placement.duplicate_name"
    message = "Conflicting resource provider name: {name} already exists"


class ProviderInUse(Conflict):
    code = "placement.resource_provider.inuse"
    message = (
        "Unable to delete resource provider {provider}: Resource provider has allocations."
    )


class ProviderIsParent(Conflict):
    code = "placement.resource_provider.cannot_delete_parent"
    message = (
        "Unable to delete parent resource provider {provider}: It has child resource providers."
    )


class TraitExists(Conflict):
    code = "placement.trait.exists"
    message = "Trait {trait} already exists"


class TraitInUse(Conflict):
    code = "placement.trait.inuse"
    message = "The trait {trait} is in use by a resource provider."


class InventoryExists(Conflict):
    code = "placement.inventory.exists"
    message = "Resource provider {provider} already has an inventory of {resource_class}"


class InventoryInUse(Conflict):
    """Something is allocated from an inventory that would be removed.

    If there are several such inventories, ``resource_class`` lists their classes, and ``used`` the
    amounts in the same order, as text.
    """

    code = "placement.inventory.inuse"
    message = (
        "The inventory of {resource_class} on resource provider {provider} cannot be removed: "
        "{used} are allocated"
    )


class CapacityConflict(Conflict):
    """The capacity of an inventory would fall below the allocated amount."""

    code = "placement.inventory.capacity_conflict"
    message = (
        "The inventory of {resource_class} on resource provider {provider} cannot shrink to a "
        "capacity of {capacity}: {used} are allocated"
    )


class ConsumerConflict(Conflict):
    code = "placement.consumer.conflict"
    message = "Consumer {consumer}: {reason}"


class ComputeNodeExists(Conflict):
    code = "placement.compute_node.exists"
    message = "Compute node {node} already exists"


class ComputeNodeConflict(Conflict):
    """A node contradicts another one, or cannot be changed in this way."""

    code = "placement.compute_node.conflict"
    message = "Compute node {node}: {reason}"


class ResourceClassExists(Conflict):
    code = "placement.resource_class.exists"
    message = "Conflicting resource class already exists: {resource_class}"


class ResourceClassInUse(Conflict):
    code = "placement.resource_class.inuse"
    message = (
        "Error in delete resource class: Cannot delete resource class {resource_class}. Class is "
        "in use in inventory."
    )


class ResourceClassStandard(InvalidInput):
    code = "placement.resource_class.standard"
    http_status = 400
    message = (
        "{resource_class} is a standard resource class, which cannot be created, renamed or "
        "deleted"
    )


# -- claims -----------------------------------------------------------------------------

class ClaimRefused(Conflict):
    """Base of the reasons why a well-formed claim does not fit.

    Events of type ``allocation.claim.refused`` carry these texts, which are recorded in the golden
    messages of earlier releases and stay as they are.
    """

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
    """The server took the call up after its deadline and changed nothing."""

    code = "placement.request.expired"
    http_status = 503
    message = "The request was taken up {late} s after its deadline; nothing was changed"


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
        "is unknown: repeat it with the same id"
    )


class ReadTimedOut(DeadlineExceeded):
    """The client's deadline passed without an answer to a call that changes nothing."""

    code = "placement.client.read_timed_out"
    http_status = 503
    message = "No answer to {method} within {seconds} s ({reason})"


class ServiceUnavailable(PlacementException):
    """The broker cannot be reached, no service consumes from it, or the service is not ready.

    A service is not ready to search for candidates while its index is being built.
    """

    code = "placement.service.unavailable"
    http_status = 503
    retryable = True
    message = "The placement service is not available: {reason}"


class ServiceOverloaded(ServiceUnavailable):
    """A client has more calls waiting than can be answered in time; nothing was done.

    ``retry_after`` is the number of seconds after which the call may succeed. ``PlacementAPI``
    waits for them within the deadline of the call, and sends it again.
    """

    code = "placement.service.overloaded"
    message = "The placement service is overloaded: {reason}; try again in {retry_after} s"


class CellUnreachable(PlacementException):
    """Cells did not answer, and what the call needs may be in them."""

    code = "placement.cell.unreachable"
    http_status = 503
    retryable = True
    message = "The answer to {method} needs the cells {cells}, which cannot be reached: {reason}"


class StoreUnavailable(PlacementException):
    """The service lost its database; whether the change was committed may be unknown."""

    code = "placement.store.unavailable"
    http_status = 503
    retryable = True
    message = "The database cannot be reached: {reason}"


class StoreBusy(PlacementException):
    """Every attempt conflicted with concurrent writers; nothing was changed."""

    code = "placement.store.busy"
    http_status = 503
    retryable = True
    message = (
        "The database was too busy for {method}: {attempts} attempts conflicted with concurrent "
        "writers; try again later"
    )


class StoreHeld(PlacementException):
    """All changes are refused while an operator fills the store with the data of another one."""

    code = "placement.store.held"
    http_status = 503
    retryable = True
    message = "The store is held and accepts no changes: {reason}"


class ImportRefused(Conflict):
    """An import would not bring over another store's data, but destroy what is here."""

    code = "placement.import.refused"
    message = "The import is refused: {reason}"


class ImportOvertaken(Conflict):
    """A later import has begun, and goes on where this one stopped."""

    code = "placement.import.overtaken"
    message = "Another import has begun meanwhile, and this one has ended"


class SchemaOutdated(PlacementException):
    code = "placement.store.schema_outdated"
    message = (
        "The database schema is at {current}, but this release needs {needed}: "
        "run 'placement-rpc-manage db sync'"
    )


class SchemaLater(PlacementException):
    code = "placement.store.schema_later"
    message = (
        "The database schema is that of a later release ({current}): change it with the programs "
        "of that release"
    )


# -- moving from and to OpenStack Placement ----------------------------------------------

class NotPlacementDatabase(PlacementException):
    """The database is not one of OpenStack Placement, or of a revision that is not known."""

    code = "placement.move.unknown_database"
    message = "The database of OpenStack Placement cannot be used: {reason}"


class StreamOutOfOrder(PlacementException):
    """Rows of a store did not come in ascending order of keys, so that they cannot be compared."""

    code = "placement.move.out_of_order"
    message = "The {kind} of a store are not in order: {key} came after {last}"


class ExportRefused(PlacementException):
    """An export would overwrite what others have written."""

    code = "placement.move.export_refused"
    message = "The database of OpenStack Placement is not exported to: {reason}"


class NotExportable(PlacementException):
    """OpenStack Placement's database cannot hold a row of the store."""

    code = "placement.move.not_exportable"
    message = "The {kind} {key} cannot be written to OpenStack Placement's database: {reason}"


# -- calls and releases -------------------------------------------------------------------

class UnsupportedCall(PlacementException):
    """The server does not know the method, its arguments or the contract's version."""

    code = "placement.rpc.unsupported"
    http_status = 400
    message = "{reason}"


class ServiceTooOld(PlacementException):
    """The call needs a newer version of the contract than a live service has."""

    code = "placement.service.too_old"
    http_status = 503
    message = "{what} needs version {needed} of the contract, but {who} is at {found}"


class UpgradeInProgress(PlacementException):
    """A live service of an older release would misread or undo what the call changes."""

    code = "placement.service.upgrade_in_progress"
    http_status = 503
    message = (
        "{what} needs contract {needed} on every service, and is refused while older ones run: "
        "{who}"
    )


class RemoteFailure(PlacementException):
    """An unexpected exception in the service, whose log has the traceback under ``incident``."""

    code = "placement.internal"
    message = (
        "The service failed on {method}; its log has the details under incident {incident}"
    )


def _tree(base):
    yield base
    for child in base.__subclasses__():
        yield from _tree(child)


def unknown_outcome(refusal):
    """Return the error of a call that was refused, and of which a part may be done all the same.

    :param refusal: a :class:`PlacementException`, whose ``retry_after`` the error keeps
    :returns: :class:`ServiceUnavailable`
    """
    return ServiceUnavailable(reason=refusal.text, **{
        name: value for name, value in refusal.kwargs.items() if name == "retry_after"})


def from_code(code, kwargs):
    """Rebuild an error from its wire format.

    :param code: str, the ``code`` of the error
    :param kwargs: dict, the values it was built from
    :returns: a :class:`PlacementException`; of the base class if the code is unknown, which
        happens if the other end is newer
    """
    for cls in _tree(PlacementException):
        if cls.code == code:
            return cls(**kwargs)
    error = PlacementException(**kwargs)
    error.code = code
    error.message = f"{code}: " + " ".join(f"{key}={{{key}}}" for key in kwargs)
    return error
