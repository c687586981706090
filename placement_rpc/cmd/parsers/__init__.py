# SPDX-License-Identifier: Apache-2.0
"""The arguments of the commands of ``placement-rpc-manage``.

Help, completion and the manual pages are made from them. None of these modules imports what a
command needs: its default ``run`` names the function that runs it, as ``module.function``, and the
module is imported from :mod:`placement_rpc.cmd` when the command runs.
"""
