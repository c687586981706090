# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-conductor``: the worker processes that answer calls."""

import sys

from oslo_log import log

from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import errors
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration
from placement_rpc.service import conductor, private_files
from placement_rpc.upgrade import startup_check
from placement_rpc.versions import pins


@errors.one_line_errors(conductor.BINARY)
@private_files.owner_only()
def main(args=None):
    conf = configuration.new_config(
        sys.argv[1:] if args is None else args, prog=conductor.BINARY)
    log.setup(conf, configuration.PROJECT)
    # Checked before the workers start, so that an error is reported once and not by each worker.
    database = db.Database(conf)
    try:
        migration.check(database)
        startup_check.check(conf, database)
    finally:
        database.close()
    for option in (conf.upgrade_levels.placement, conf.notifications.payload_pin):
        pins.fixed(option or pins.AUTO)
    Broker.of(conf)
    conductor.run_conductor(conf)
    return 0


if __name__ == "__main__":
    sys.exit(main())
