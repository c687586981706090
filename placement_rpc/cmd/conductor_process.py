# SPDX-License-Identifier: Apache-2.0
"""The run of ``placement-rpc-conductor``."""

from oslo_policy import opts as policy_options

from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import config_sources, errors, state_file
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import schema_version
from placement_rpc.service import conductor, logs
from placement_rpc.upgrade import startup_check
from placement_rpc.versions import pins


def run(options, args):
    """Run the workers until a signal; return the exit code.

    :param options: the parsed arguments
    :param args: list of str, the arguments of the program; None for those of this process
    """
    conf = configuration.new_config(
        config_sources.arguments(options), prog=conductor.BINARY)
    if options.state_dir:
        state_file.configure(conf, options.state_dir)
    logs.setup(conf)
    # Checked before the workers start, so that an error is reported once and not by each worker.
    with errors.quietly(args):
        _check(conf)
    conductor.run_conductor(conf)
    return 0


def _check(conf):
    """Check the configuration, the database and the other processes.

    :raises PlacementException: if a worker could not run
    """
    database = db.Database(conf)
    try:
        schema_version.check(database)
        startup_check.check(conf, database)
    finally:
        database.close()
    for option in (conf.upgrade_levels.placement, conf.notifications.payload_pin):
        pins.fixed(option or pins.AUTO)
    Broker.of(conf)
    _check_policy(conf)


def _check_policy(conf):
    """Check the policy file. Only if there is one is oslo.policy loaded, which takes long."""
    for group, options in policy_options.list_opts():
        conf.register_opts(options, group)
    files = conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs
    if any(map(conf.find_file, files)):
        from placement_rpc import policy
        policy.Enforcer(conf)
