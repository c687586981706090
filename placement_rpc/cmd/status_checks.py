# SPDX-License-Identifier: Apache-2.0
"""The checks of ``placement-rpc-status upgrade check``."""

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from placement_rpc import exception, policy
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import config_sources, errors, outbox_reconcile, state_file
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import schema_version
from placement_rpc.service import logs
from placement_rpc.upgrade import contraction_check, gate, startup_check, status


def _result(code, sentences):
    return upgradecheck.Result(code, "; ".join(sentences)) if sentences else (
        upgradecheck.Result(upgradecheck.Code.SUCCESS))


class Checks(upgradecheck.UpgradeCommands):
    """The checks. A failure blocks the next step of an upgrade; a warning names remaining work.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`, not parsed yet
    :param state_dir: str, the state directory; None for the configured one
    :param args: list of str, the arguments of the program; None for those of this process
    """

    def __init__(self, conf, state_dir=None, args=None):
        self._conf = conf
        self._state_dir = state_dir
        self._args = args
        self._database = None

    def check(self):
        """Run all checks; return the worst :class:`oslo_upgradecheck.upgradecheck.Code`.

        :raises StoreUnavailable: if the database cannot be reached
        """
        logs.setup(self._conf)
        with errors.quietly(self._args):
            state_file.configure(self._conf, self._state_dir)
            self._database = db.Database(self._conf)
            try:
                return super().check()
            finally:
                self._database.close()

    def _schema(self):
        found, needed = schema_version.current(self._database), schema_version.newest()
        return _result(upgradecheck.Code.FAILURE, [] if found and found >= needed else [
            f"the schema is at {found or 'nothing'}, but this release needs {needed}: run "
            "'placement-rpc-manage db sync'"])

    def _ready(self):
        """Return whether the tables exist that the other checks read."""
        return (schema_version.current(self._database) or "") >= schema_version.newest()

    def _services(self):
        if not self._ready():
            return _not_yet()
        return _result(upgradecheck.Code.FAILURE, [
            f"{gate.name(row)} is too old to run alongside this release: upgrade or stop it"
            for row in startup_check.too_old(
                self._database, self._conf.conductor.service_down_time)])

    def _gate(self):
        if not self._ready():
            return _not_yet()
        return _result(upgradecheck.Code.WARNING, [
            f"{gate.name(row)} keeps the gate closed: compute nodes are not migrated while it is "
            "alive"
            for row in gate.InventoryGate(self._conf, self._database).holders()])

    def _calls(self):
        if not self._ready():
            return _not_yet()
        calls = status.status(self._database, self._conf).calls
        return _result(upgradecheck.Code.WARNING, [
            f"calls of contract {calls['contract']} (traits, trees, types of consumers) are "
            f"refused while {name} is alive" for name in calls["held_by"]])

    def _nodes(self):
        if not self._ready():
            return _not_yet()
        nodes = status.status(self._database, self._conf).compute_nodes
        left = nodes["nodes"] - nodes["migrated"]
        return _result(upgradecheck.Code.WARNING, [
            f"{left} of {nodes['nodes']} compute nodes are not migrated: run "
            "'placement-rpc-manage db online_data_migrations'"] if left else [])

    def _pins(self):
        if not self._ready():
            return _not_yet()
        found = status.status(self._database, self._conf)
        pinned = [f"{each['binary']} {each['worker']} on {each['host']} is pinned to "
                  f"{each['pin']}" for each in found.services
                  if each["alive"] and each["pin"] not in (None, "auto")]
        return _result(upgradecheck.Code.WARNING, pinned + [
            f"{number} unpublished events are at {payload}"
            for payload, number in status.outdated(found.waiting_payloads).items()])

    def _contraction(self):
        if not self._ready() or schema_version.is_contracted(self._database):
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        found = contraction_check.obstacles(self._database, self._conf)
        return upgradecheck.Result(
            upgradecheck.Code.SUCCESS,
            "not possible yet: " + "; ".join(found) if found else
            "possible: 'placement-rpc-manage db contract'")

    def _broker(self):
        """Try TLS as this release makes it, which verifies more than earlier releases did.

        A service that is called over HTTP only needs no broker, and names none.
        """
        if self._conf.get_location("transport_url").location in (
                cfg.Locations.opt_default, cfg.Locations.set_default):
            return upgradecheck.Result(
                upgradecheck.Code.SUCCESS, "not checked: no transport_url is configured")
        try:
            broker = Broker.of(self._conf)
        except exception.InvalidInput as error:
            return _result(upgradecheck.Code.FAILURE, [str(error)])
        refused, absent = [], []
        for node in broker.nodes if broker else ():
            try:
                problem = broker.tls_problem(node)
            except OSError as error:
                absent.append(f"{node.address} cannot be reached: {error}")
            else:
                if problem:
                    refused.append(f"{node.address}: {problem.trouble}; {problem.remedy}")
        if refused and broker.tls.checks_names:
            return _result(upgradecheck.Code.FAILURE, refused + absent)
        return _result(upgradecheck.Code.WARNING, refused + absent)

    def _stream(self):
        """Compare the end of the stream with the store, which may have lost what was published."""
        if not self._ready():
            return _not_yet()
        try:
            found = outbox_reconcile.difference(self._database, self._conf)
        except (exception.ServiceUnavailable, exception.InvalidInput) as error:
            # The check of the broker's connections reports it, where it is a fault.
            return upgradecheck.Result(upgradecheck.Code.SUCCESS, f"not compared: {error}")
        return _result(upgradecheck.Code.FAILURE, [
            f"no events are published, since the store has lost changes: {found}; see "
            "'placement-rpc-manage outbox reconcile'"] if found else [])

    def _policy(self):
        try:
            policy.Enforcer(self._conf)
        except exception.InvalidInput as error:
            return _result(upgradecheck.Code.FAILURE, [str(error)])
        return _result(upgradecheck.Code.SUCCESS, [])

    _upgrade_checks = (
        ("Schema", _schema),
        ("Services alongside this release", _services),
        ("Gate of the compute nodes' migration", _gate),
        ("Calls that every live service must know", _calls),
        ("Compute nodes in inventories", _nodes),
        ("Pins and payloads", _pins),
        ("Contraction of the schema", _contraction),
        ("Connections to the broker", _broker),
        ("Events of the stream", _stream),
        ("Policy file", _policy),
    )


def _not_yet():
    return upgradecheck.Result(
        upgradecheck.Code.WARNING, "this can be checked when the schema is up to date")


def run(options, args):
    """Run the checks; return the exit code.

    :param options: the parsed arguments
    :param args: list of str, the arguments of the program; None for those of this process
    """
    conf = configuration.unparsed()
    upgradecheck.register_cli_options(conf, Checks(conf, options.state_dir, args))
    configuration.parse(conf, [
        *config_sources.arguments(options), "upgrade", "check",
        *(["--json"] if options.json else [])])
    # oslo.upgradecheck reads its option --json from this global.
    upgradecheck.CONF = conf
    return int(conf.command.action_fn())
