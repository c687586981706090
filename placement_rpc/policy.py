# SPDX-License-Identifier: Apache-2.0
"""Authorization of HTTP callers, by oslo.policy."""

import logging
import time

from oslo_policy import policy

from placement_rpc import exception, policies
from placement_rpc.versions import contract

# oslo.policy checks its files and the signatures of its checks on each call, which takes as long
# as reading a provider. Decisions are therefore cached: a changed policy file takes effect within
# this many seconds.
_CACHE_TIME = 1.0
_CACHE_SIZE = 1000


class Enforcer:
    """Decide by the rules in :mod:`placement_rpc.policies` and the operator's policy file.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """

    def __init__(self, conf):
        # Dict of a tuple of rule and caller to a tuple of the decision and when it expires.
        self._decisions = {}
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(policies.list_rules())
        # It would warn at each start if the policy file, which is optional, does not exist.
        logging.getLogger("oslo_policy").setLevel(logging.WARNING)

    def authorize(self, context, rule):
        """Check one rule.

        :param context: :class:`placement_rpc.context.RequestContext`
        :param rule: str, a rule's name
        :raises Forbidden: if the rule does not allow the caller
        """
        key = (rule, context.user_id, context.project_id, context.system_scope,
               *(context.roles or ()))
        allowed, until = self._decisions.get(key, (False, 0))
        now = time.monotonic()
        if until < now:
            allowed = self._decide(context, rule)
            if len(self._decisions) >= _CACHE_SIZE:
                self._decisions = {}
            self._decisions[key] = allowed, now + _CACHE_TIME
        if not allowed:
            raise exception.Forbidden(rule=rule)

    def _decide(self, context, rule):
        credentials = {"user_id": context.user_id, "project_id": context.project_id,
                       "roles": context.roles or [], "system_scope": context.system_scope}
        try:
            return self._enforcer.authorize(
                rule, {"project_id": context.project_id}, credentials, do_raise=False)
        except policy.InvalidScope:
            # All rules have project scope, so a system-scoped token is allowed nothing.
            return False

    def check_call(self, context, method):
        """Check a call that was made through the HTTP facade of another process again.

        :param method: str, the RPC method
        :raises Forbidden: if the rule that the facade named is not one of the method's rules, or
            does not allow the caller
        """
        if context.rule not in contract.CALLS[method].rules:
            raise exception.Forbidden(rule=str(context.rule)[:64])
        self.authorize(context, context.rule)
