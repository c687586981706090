# SPDX-License-Identifier: Apache-2.0
"""Correct what an audit found, unless it has changed since.

Each correction names the entity tag at which the consumer was read, or the generation of the
provider. One that has changed is left as it is, since what the audit found may no longer be so.
Every event of a correction has the reason.
"""

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import idempotency, providers
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.claims import ClaimChange, ReleaseChange, request_of_claim
from placement_rpc.accounting.idempotency import Request
from placement_rpc.audit.findings import Finding
from placement_rpc.context import RequestContext, initiated_by
from placement_rpc.db.api import Database
from placement_rpc.objects.claim import Claim

# Corrections in one transaction.
_AT_ONCE = 100
_CHANGED = (exception.PreconditionFailed, exception.ConsumerConflict, exception.ConsumerNotFound,
            exception.ConcurrentUpdate, exception.ProviderNotFound)


class Corrections:
    """Makes the corrections of one audit.

    :param database: the store
    :param settle: callable of a list of pending requests that returns their outcomes
    """

    def __init__(self, database: Database,
                 settle: Callable[[Sequence[PendingRequest]], list[Outcome]]):
        self._database, self._settle = database, settle
        #: The ids of its requests begin with this.
        self.request_id = f"audit-{uuid.uuid4().hex[:12]}"
        #: How many corrections were begun: of the last of them, the outcome may not be known.
        self.begun = 0

    def make(self, findings: Iterable[Finding]) -> Iterator[tuple[Finding, str, bool]]:
        """Make the corrections of findings that have one.

        :returns: generator of each finding, what became of it, and whether it was corrected
        """
        numbered = enumerate(findings)
        while batch := list(itertools.islice(numbered, _AT_ONCE)):
            self.begun += len(batch)
            yield from self._make_batch(batch)

    def _make_batch(self, batch: list[tuple[int, Finding]]) -> Iterator[tuple[Finding, str, bool]]:
        pending = {number: self._pending(number, finding) for number, finding in batch
                   if finding.correction != "delete"}
        outcomes = dict(zip(pending, self._settle(list(pending.values())), strict=True)) if (
            pending) else {}
        for number, finding in batch:
            error = outcomes[number].error if number in outcomes else self._deleted(
                number, finding)
            yield finding, *_outcome(error)

    def _context(self, finding: Finding) -> RequestContext:
        return RequestContext(database=self._database, reason=f"audit: {finding.detail}")

    def _pending(self, number: int, finding: Finding) -> PendingRequest:
        """Return the request that corrects the allocations of a consumer."""
        request_id, its = f"{self.request_id}-{number}", finding.consumer or {}
        with initiated_by(self._context(finding)):
            if finding.correction == "release":
                request = Request.of(
                    request_id, "release_allocations", {"uuid": finding.uuid, "at": None})
                return ReleaseChange(request, finding.uuid, tags=[its["tag"]])
            claim = Claim(
                consumer_uuid=finding.uuid, project_id=its["project_id"],
                user_id=its["user_id"], consumer_tags=[its["tag"]], allocations=finding.wanted)
            return ClaimChange(request_of_claim(request_id, claim), claim)

    def _deleted(self, number: int, finding: Finding) -> Exception | None:
        """Delete a provider and all below it, in one transaction; return the error, if any."""
        request = Request.of(
            f"{self.request_id}-{number}", "audit_delete", {"uuid": finding.uuid})

        def change(tx: Any, outbox: Any) -> None:
            for provider_uuid, generation in finding.providers:
                providers.delete(tx, outbox, provider_uuid, generation)

        context = self._context(finding)
        try:
            with initiated_by(context):
                idempotency.run_once(context, request, change)
        except exception.PlacementException as error:
            return error
        return None


def _outcome(error: Exception | None) -> tuple[str, bool]:
    """Return what became of a correction, and whether it was made.

    :raises PlacementException: if the store cannot be reached, or writes are refused for now
    """
    if error is None:
        return "corrected", True
    if isinstance(error, _CHANGED):
        return f"left as it is, since it has changed: {error.text}", False
    if isinstance(error, exception.StoreBusy):
        return f"not done, try again: {error.text}", False
    if not isinstance(error, exception.PlacementException) or error.retryable:
        raise error
    return f"not possible: {error.text}", False
