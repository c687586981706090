# SPDX-License-Identifier: Apache-2.0
"""Whether a person may do what they ask for, by oslo.policy."""

import logging
import time

from oslo_policy import policy

from placement_rpc import exception, policies
from placement_rpc.versions import contract

# oslo.policy looks at its files and at the signatures of its checks each time, which takes as long
# as to read a provider: an operator's change is known a second later.
_KNOWN_FOR = 1.0
_MOST_KNOWN = 1000


class Enforcer:
    """Decides by the rules in code and by the operator's policy file.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """

    def __init__(self, conf):
        # Tuple of a rule and who asks, to tuple of whether and until when that is known.
        self._decided = {}
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(policies.list_rules())
        # It would say at each start that a file, which nobody needs, is not there.
        logging.getLogger("oslo_policy").setLevel(logging.WARNING)

    def authorize(self, context, rule):
        """Check one rule.

        :param context: :class:`placement_rpc.context.RequestContext`
        :param rule: str, a rule's name
        :raises Forbidden: when it does not let them
        """
        key = (rule, context.user_id, context.project_id, context.system_scope,
               *(context.roles or ()))
        allowed, until = self._decided.get(key, (False, 0))
        now = time.monotonic()
        if until < now:
            allowed = self._decide(context, rule)
            if len(self._decided) >= _MOST_KNOWN:
                self._decided = {}
            self._decided[key] = allowed, now + _KNOWN_FOR
        if not allowed:
            raise exception.Forbidden(rule=rule)

    def _decide(self, context, rule):
        who = {"user_id": context.user_id, "project_id": context.project_id,
               "roles": context.roles or [], "system_scope": context.system_scope}
        try:
            return self._enforcer.authorize(
                rule, {"project_id": context.project_id}, who, do_raise=False)
        except policy.InvalidScope:
            # Tokens of the whole system are for no rule of ours.
            return False

    def check_call(self, context, method):
        """Check a call that somebody makes through the HTTP facade, once more.

        :param method: str, the RPC method
        :raises Forbidden: when the rule that the facade names is none of the method's, or does
            not let them
        """
        if context.rule not in contract.CALLS[method].rules:
            raise exception.Forbidden(rule=str(context.rule)[:64])
        self.authorize(context, context.rule)
