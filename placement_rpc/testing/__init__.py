# SPDX-License-Identifier: Apache-2.0
"""Public fixtures: a running service, and private brokers and databases (extra ``testing``)."""
