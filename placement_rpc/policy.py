# SPDX-License-Identifier: Apache-2.0
"""Authorization of HTTP callers, by oslo.policy."""

import collections.abc
import graphlib
import logging
import os
import pathlib
import threading
import time

from oslo_policy import policy

from placement_rpc import exception, policies
from placement_rpc.versions import contract

LOG = logging.getLogger(__name__)
# oslo.policy checks its files and the signatures of its checks on each call, which takes as long
# as reading a provider. Decisions are therefore cached: a changed policy file takes effect within
# this many seconds.
_CACHE_TIME = 1.0
_CACHE_SIZE = 1000


class Target(collections.abc.Mapping):
    """What a rule about consumers can compare a caller with: the owner of a consumer.

    A rule refers to it as ``%(project_id)s`` and ``%(user_id)s``. Most rules do not, so the owner
    is read when one does. Where there is no single owner (the events of all projects, the
    allocations of a provider, a consumer without allocations), such a check fails.

    :param read: callable that returns an object with project_id and user_id, or None; without it
        there is no owner
    :ivar was_read: bool, whether a rule has referred to it
    """

    def __init__(self, read=None):
        self._read = read
        self._values = None
        self.was_read = False

    def _owner(self):
        if self._values is None:
            self.was_read = True
            owner = self._read() if self._read else None
            self._values = {} if owner is None else {
                "project_id": owner.project_id, "user_id": owner.user_id}
        return self._values

    def __getitem__(self, name):
        return self._owner()[name]

    def __iter__(self):
        return iter(self._owner())

    def __len__(self):
        return len(self._owner())


class _Cycle(ValueError):
    """Rules refer to themselves. They may come from several files."""


def _refuse_cycles(rules):
    """Check that no rule refers to itself, directly or through others: it would decide nothing.

    oslo.policy finds some of them, and only warns.

    :param rules: :class:`oslo_policy.policy.Rules`
    :raises _Cycle: if one does
    """
    try:
        # The default rule, if there is one, decides in place of a rule that does not exist.
        graphlib.TopologicalSorter({
            name: {each if each in rules else rules.default_rule for each in _referred_to(check)}
            for name, check in rules.items()}).prepare()
    except graphlib.CycleError as error:
        raise _Cycle(f"these rules refer to themselves: {', '.join(sorted({*error.args[1]}))}"
                         ) from None


def _referred_to(check):
    """Yield the names of the rules that a check refers to."""
    if isinstance(check, policy.RuleCheck):
        yield check.match
    for part in getattr(check, "rules", ()):
        yield from _referred_to(part)
    if isinstance(check, policy.NotCheck):
        yield from _referred_to(check.rule)


class Enforcer:
    """Decide by the rules in :mod:`placement_rpc.policies` and the operator's policy file.

    If the file becomes one that cannot be used, or is removed, the rules that it had before stay
    in force.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :raises InvalidInput: if the file cannot be used
    """

    def __init__(self, conf):
        # Dict of a tuple of rule and caller to a tuple of the decision and when it expires.
        self._decisions = {}
        self._conf = conf
        self._lock = threading.Lock()
        # One that reads the files, whose rules change while it does, and one that decides.
        self._reader = self._enforcer = self._rules = None
        self._path, self._problem, self._read_at = None, "", 0.0
        # It would warn at each start if the policy file, which is optional, does not exist.
        logging.getLogger("oslo_policy").setLevel(logging.WARNING)
        try:
            self._read()
        except Exception as error:
            raise exception.InvalidInput(
                what="[oslo_policy] policy_file", reason=self._unusable(error)) from error

    def _read(self):
        """Read the files of the policy if they have changed."""
        reader, self._reader = self._reader or self._new(), None
        self._path = self._path or self._conf.find_file(reader.policy_file)
        # oslo.policy has the defaults in place of a file that it cannot read.
        if self._path and not (os.path.isfile(self._path) and os.access(self._path, os.R_OK)):
            raise OSError("it is no file that can be read")
        reader.load_rules()
        if reader.rules is not self._rules:
            _refuse_cycles(reader.rules)
            enforcer, self._rules = self._new(), reader.rules
            enforcer.set_rules(dict(reader.rules))
            self._enforcer = enforcer
        # Not kept after an error: one file may have been read before another failed.
        self._reader = reader

    def _new(self):
        enforcer = policy.Enforcer(self._conf)
        # The deprecated defaults are Placement's, and on the operator's demand only.
        enforcer.suppress_deprecation_warnings = True
        enforcer.register_defaults(policies.list_rules())
        return enforcer

    def _unusable(self, error):
        if isinstance(error, _Cycle):
            return f"the rules of all files of the policy cannot be used together: {error}"
        # oslo.policy does not check the kind of what it has parsed.
        reason = "it has to map the names of rules to texts" if isinstance(
            error, (AttributeError, TypeError)) else " ".join(str(error).split())[:500]
        return f"{self._unusable_path()} cannot be used: {reason}"

    def _unusable_path(self):
        """Return the path of the first file that oslo.policy does not parse."""
        paths = [self._path] if self._path else []
        for name in self._conf.oslo_policy.policy_dirs:
            directory = self._conf.find_file(name)
            if directory:
                paths += sorted(pathlib.Path(directory).glob("[!.]*"))
        for path in paths:
            try:
                with open(path) as file:
                    policy.Rules.load(file.read())
            except Exception:
                return path
        return self._conf.oslo_policy.policy_file

    def _current(self):
        """Return the :class:`oslo_policy.policy.Enforcer` with the rules that are in force."""
        with self._lock:
            if self._problem and time.monotonic() < self._read_at + _CACHE_TIME:
                return self._enforcer
            self._read_at = time.monotonic()
            try:
                self._read()
                self._problem = ""
            except Exception as error:
                problem = self._unusable(error)
                if problem != self._problem:
                    LOG.error("The rules that were read before stay in force: %s", problem)
                self._problem = problem
            return self._enforcer

    def authorize(self, context, rule, target=None):
        """Check one rule.

        A rule about what belongs to no project, such as a provider, compares the caller with
        itself, as all rules of OpenStack Placement do: ``project_id:%(project_id)s`` admits each
        caller that has a project.

        :param context: :class:`placement_rpc.context.RequestContext`
        :param rule: str, a rule's name
        :param target: :class:`Target` of a request about one consumer or project; None for others
        :raises Forbidden: if the rule does not allow the caller
        """
        credentials = context.credentials()
        key = rule, tuple(map(repr, credentials.values()))
        allowed, until = self._decisions.get(key, (False, 0))
        now = time.monotonic()
        if until < now:
            if target is None:
                target = Target() if rule in policies.OF_CONSUMERS else {
                    name: credentials[name] for name in ("project_id", "user_id")}
            allowed = self._decide(credentials, rule, target)
            # A decision that depends on the owner is not that of the next call.
            if not (isinstance(target, Target) and target.was_read):
                if len(self._decisions) >= _CACHE_SIZE:
                    self._decisions = {}
                self._decisions[key] = allowed, now + _CACHE_TIME
        if not allowed:
            raise exception.Forbidden(rule=rule)

    def _decide(self, credentials, rule, target):
        try:
            return self._current().authorize(rule, target, credentials, do_raise=False)
        except policy.InvalidScope:
            # All rules have project scope, so a system-scoped token is allowed nothing.
            return False

    def check_call(self, context, method, target=None):
        """Check a call that was made through the HTTP facade of another process again.

        :param method: str, the RPC method
        :param target: as of :meth:`authorize`
        :raises Forbidden: if the rule that the facade named is not one of the method's rules, or
            does not allow the caller
        """
        if context.rule not in contract.CALLS[method].rules:
            raise exception.Forbidden(rule=str(context.rule)[:64])
        self.authorize(context, context.rule, target)
