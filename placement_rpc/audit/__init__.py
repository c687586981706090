# SPDX-License-Identifier: Apache-2.0
"""Audits: what the store holds, compared with what nova knows."""
