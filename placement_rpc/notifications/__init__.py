# SPDX-License-Identifier: Apache-2.0
"""Publishing of events from the outbox, and listening to them."""
