# SPDX-License-Identifier: Apache-2.0
"""What travels between releases: releases, contract, pins."""
