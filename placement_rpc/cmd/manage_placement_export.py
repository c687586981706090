# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement export``: write the store to a database of Placement."""

from placement_rpc.cmd import moving_output, placement_url
from placement_rpc.moving import exporting, own_store

_COLUMNS = ["kind", "read", "created", "changed", "deleted"]


def run(database, options, _conf):
    def sizes():
        with own_store.opened(database) as store:
            return store.sizes()

    with moving_output.Findings(options.format) as findings:
        with moving_output.progress(
                sizes, "run the export again to complete it") as advance:
            done = exporting.export(
                database, placement_url.address_of(options, "to").url, options.batch,
                options.finish, findings.add, advance)
        findings.show([{"kind": kind, **counts._asdict()} for kind, counts in done.items()],
                      _COLUMNS)
    return 0
