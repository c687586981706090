# SPDX-License-Identifier: Apache-2.0
"""Compatibility of releases on the bus: releases, contract, pins, seen clients."""
