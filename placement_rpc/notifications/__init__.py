# SPDX-License-Identifier: Apache-2.0
"""Events on their way from the outbox to whoever listens."""
