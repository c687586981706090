# SPDX-License-Identifier: Apache-2.0
"""Scripts of what OpenStack's own clients of Placement do, run by the interpreter they are in.

Each public function of a module named in :data:`tests.conformance.transcripts.MODULES` is a
script. It takes a :class:`clients.script.Script`, and is run against OpenStack Placement and
against this service by :mod:`clients.program`. Nothing here imports this project.
"""
