# SPDX-License-Identifier: Apache-2.0
"""What the server's methods share: the store, the candidates, and the gates."""

import functools
import logging
import types
from typing import Any

from oslo_config import cfg

from placement_rpc import exception
from placement_rpc.accounting import (
    reads,
)
from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.inventories import BelowUse
from placement_rpc.accounting.project_usages import UsageReader
from placement_rpc.accounting.provider_lists import ProviderLists
from placement_rpc.candidates.search import get_search
from placement_rpc.context import RequestContext
from placement_rpc.db.api import Database
from placement_rpc.objects.claim import (
    Claim,
    ClaimList,
    ClaimResult,
    ClaimResultList,
)
from placement_rpc.objects.reshape import ReshapeResult
from placement_rpc.rpc.endpoint import (
    Endpoint,
    as_bool,
    as_uuid,
)
from placement_rpc.telemetry.cut_answers import CutAnswers
from placement_rpc.telemetry.metrics import Metrics
from placement_rpc.upgrade.gate import InventoryGate, LiveReleases
from placement_rpc.versions import contract, pins, releases
from placement_rpc.versions.seen_clients import SeenClients

LOG = logging.getLogger(__name__)

# The contract whose callers may set a capacity below what is used.
_BELOW_USE_SINCE = "1.3"


class ManagerBase(Endpoint):
    """Base of the classes whose methods answer calls.

    :param conf: made by :mod:`placement_rpc.conf`
    :param database: the store; its owner closes it
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database) -> None:
        self.conf = conf
        self.database = database
        # An operator may pin it to an older release.
        self.release = pins.fixed(conf.upgrade_levels.placement) or releases.CURRENT
        self.metrics = Metrics(conf.metrics.slow_call)
        self.cut_answers = CutAnswers(self.metrics)
        limit = conf.claims.max_settled_together
        self.group_commit = GroupCommit(
            database, limit, observe_batch_size=self.metrics.settled)
        self._group_commits: dict[str | None, GroupCommit] = {
            contract.CLAIMS: self.group_commit,
            contract.FLEET: GroupCommit(database, limit, method="set_inventory")}
        self.candidates = get_search(conf, database)
        self.project_usages = UsageReader(database.reader)
        self.provider_lists = ProviderLists(database)
        self.gate = InventoryGate(conf, database)
        self._live_releases = LiveReleases(conf, database)
        # What it stores is read by processes of the release that it is pinned to, or of any that
        # is alive.
        database.versions = self._stored_versions
        self.seen_clients = SeenClients()

    @functools.cached_property
    def policy(self) -> Any:
        """:class:`placement_rpc.policy.Enforcer`, for calls that come through the HTTP facade."""
        from placement_rpc import policy
        return policy.Enforcer(self.conf)

    def check_policy(self, context: RequestContext, method: str, arguments: dict) -> None:
        from placement_rpc import policy
        call = contract.CALLS[method]
        read = None
        if call.consumer:
            read = functools.partial(self._owner, arguments.get(call.consumer))
        elif call.project:
            read = functools.partial(
                types.SimpleNamespace, project_id=arguments.get(call.project), user_id=None)
        try:
            enforcer = self.policy
        except exception.InvalidInput as error:
            LOG.error("Calls through the HTTP facade are refused: %s", error)
            raise exception.ServiceUnavailable(
                reason="the policy file of a conductor cannot be used") from None
        enforcer.check_call(context, method, read and policy.Target(read))

    def _owner(self, consumer: Any) -> Any:
        """Return an object with the project_id and the user_id of a consumer, or None.

        :param consumer: its uuid, or a claim, which names the owner of a consumer that has no
            allocations yet; a list of several claims has no single owner
        """
        if isinstance(consumer, ClaimList):
            claims = consumer.value("objects", [])
            if len(claims) != 1:
                return None
            consumer, = claims
        if not isinstance(consumer, Claim):
            return reads.consumer_owner(self.database, as_uuid("consumer_uuid", consumer))
        consumer.check_owner()
        return reads.consumer_owner(self.database, consumer.consumer_uuid) or consumer

    def _stored_versions(self):
        if self.release is not releases.CURRENT:
            return self.release.versions
        return self._live_releases.stored_versions()

    def check_everywhere(self, what: str, contract_version: str) -> None:
        self._live_releases.check(what, contract_version)

    def below_use(self, context: RequestContext, allow: bool | None) -> BelowUse:
        """Return whether a change may set a capacity below what is used (DESIGN rule 12).

        :param allow: what the call says; None is True for callers of contract 1.3, of a service
            that is not pinned to an older release
        """
        if as_bool("allow_below_use", allow) is None:
            allow = context.knows(_BELOW_USE_SINCE) and (
                self.release.number >= releases.number(_BELOW_USE_SINCE))
        if not allow:
            return False
        try:
            self.check_everywhere("a capacity below what is used", _BELOW_USE_SINCE)
        except exception.UpgradeInProgress as error:
            # Raised only by a change that needs it.
            return error
        return True

    def settle(self, queue: str | None, pending: list) -> list:
        return self._group_commits[queue].settle(pending)

    @staticmethod
    def answer(outcome: Any) -> Any:
        result = Endpoint.answer(outcome)
        if isinstance(result, (ClaimResultList, ReshapeResult)):
            return result.of_settled(outcome)
        return ClaimResult.of_settled(outcome) if isinstance(result, ClaimResult) else result

    def settle_claim(self, change: PendingRequest) -> Any:
        """Settle one change of allocations together with those of other calls."""
        outcome, = self.group_commit.settle([change])
        return self.answer(outcome)
