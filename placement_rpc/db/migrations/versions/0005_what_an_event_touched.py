# SPDX-License-Identifier: Apache-2.0
"""Events tell the candidate indexes what their change touched.

Revision: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def upgrade():
    # MariaDB commits each step: steps of an interrupted attempt are not repeated.
    columns = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("events")}
    if "touched" not in columns:
        op.add_column("events", sa.Column("touched", TEXT, nullable=True))
