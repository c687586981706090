# SPDX-License-Identifier: Apache-2.0
"""The interface of a plugin of ``openstack``: its names, its option and its client.

No module of this package imports a part of the service, since the host of the command line client
may have neither oslo.messaging nor a database.
"""

import re

from keystoneauth1 import adapter, noauth
from osc_lib import exceptions, utils

import placement_rpc
from placement_rpc.osc import client

API_NAME = "placement_rpc"
API_VERSION_OPTION = "os_placement_rpc_api_version"
API_VERSIONS = tuple(f"1.{minor}" for minor in range(40))
DEFAULT_API_VERSION = API_VERSIONS[-1]
# Of requests that do not need a later one, so that they are answered by services of all releases.
_USUAL = 4
SERVICE_TYPE = "placement"

# Read by a server without keystone; a server behind keystone ignores it.
_ROLES_WITHOUT_KEYSTONE = {"X-Roles": "admin"}


def build_option_parser(parser):
    """Add the global option of the plugin.

    :param parser: :class:`argparse.ArgumentParser` of ``openstack``
    :returns: the same
    """
    parser.add_argument(
        "--os-placement-rpc-api-version", metavar="X.Y",
        default=utils.env("OS_PLACEMENT_RPC_API_VERSION", default=DEFAULT_API_VERSION),
        help="newest microversion that the commands for resource providers, resource pools, "
             "resource classes and traits may use; each request has the oldest that it needs, "
             f"from 1.{_USUAL} on, default={DEFAULT_API_VERSION} (Env: "
             "OS_PLACEMENT_RPC_API_VERSION)")
    return parser


def make_client(manager):
    """Return the client that commands find as ``client_manager.placement_rpc``.

    :param manager: :class:`osc_lib.clientmanager.ClientManager`, authenticated
    :returns: :class:`placement_rpc.osc.client.Client`
    """
    newest = manager._api_version[API_NAME]
    if not re.fullmatch("[0-9]+[.][0-9]+", newest, re.ASCII):
        raise exceptions.CommandError(
            f"{newest!r} is not a version of the API, such as {DEFAULT_API_VERSION}")
    usual = min(_USUAL, int(newest.partition(".")[2]))
    without_keystone = isinstance(manager.session.auth, noauth.NoAuth)
    return client.Client(adapter.Adapter(
        session=manager.session, service_type=SERVICE_TYPE,
        interface=manager.interface, region_name=manager.region_name,
        endpoint_override=manager.sdk_connection.config.get_endpoint(SERVICE_TYPE),
        additional_headers=_ROLES_WITHOUT_KEYSTONE if without_keystone else None,
        default_microversion=f"1.{usual}", raise_exc=False,
        client_name="placement-rpc", client_version=placement_rpc.__version__), newest)
