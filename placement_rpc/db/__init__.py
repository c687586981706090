# SPDX-License-Identifier: Apache-2.0
"""SQL only: tables, migrations and set-based queries. Nothing here knows a rule or an object."""
