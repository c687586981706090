# SPDX-License-Identifier: Apache-2.0
"""Runs migrations on the connection that placement_rpc.db.migration hands over."""

from alembic import context

from placement_rpc.db import models


def _applied(step, **_):
    context.config.attributes["report"](step.up_revision_id)


context.configure(
    connection=context.config.attributes["connection"], target_metadata=models.metadata,
    render_as_batch=True, compare_type=True, on_version_apply=_applied)
with context.begin_transaction():
    context.run_migrations()
