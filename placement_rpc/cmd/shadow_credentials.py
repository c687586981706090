# SPDX-License-Identifier: Apache-2.0
"""Credentials for services behind keystone, and for those without it."""

import os

from placement_rpc.cmd.errors import ExtraMissing

# Of services without keystone: Placement's and this service's development authentication.
_WITHOUT_KEYSTONE = {"X-Auth-Token": "admin", "X-Roles": "admin"}


def of_cloud(name):
    """Return the credentials of a cloud, as :class:`placement_service.Credentials`.

    :param name: str, a cloud of ``clouds.yaml``; None for the environment variables ``OS_*``
    :raises ValueError: if there are none, or they are incomplete
    :raises ExtraMissing: if the libraries that read them are not installed
    """
    if name is None and not any(variable.startswith("OS_") for variable in os.environ):
        raise ValueError(
            "there are no credentials: name a cloud of clouds.yaml with --os-cloud, or set the "
            "variables OS_*, for services without keystone OS_AUTH_TYPE=none")
    if name is None and os.environ.get("OS_AUTH_TYPE") == "none":
        return WithoutKeystone()
    try:
        from keystoneauth1 import exceptions, noauth
        from openstack import config
        from openstack import exceptions as errors
    except ImportError as error:
        raise ExtraMissing(f"{error.name} is not installed; credentials need the extra 'osc': "
                           "pip install 'placement-rpc[osc]'") from None
    try:
        region = config.OpenStackConfig(app_name="placement-rpc-manage").get_one(cloud=name)
        session = region.get_session()
    except (errors.SDKException, exceptions.ClientException, ValueError, TypeError) as error:
        raise ValueError(f"the credentials are not complete: {error}") from error
    if isinstance(session.auth, noauth.NoAuth):
        return WithoutKeystone()
    return OfKeystone(session)


class WithoutKeystone:
    """A user with the role admin of services that run without keystone."""

    verify: bool | str = True
    cert = None

    def headers(self):
        return dict(_WITHOUT_KEYSTONE)

    def renew(self):
        """Do nothing: there is no token that could expire."""


class OfKeystone:
    """A user of keystone, whose token is renewed before it expires.

    :param session: :class:`keystoneauth1.session.Session`
    """

    def __init__(self, session):
        self._session = session
        self.verify, self.cert = session.verify, session.cert

    def headers(self):
        """Return the headers of a request.

        :raises ConnectionError: if keystone gives no token
        """
        from keystoneauth1 import exceptions
        try:
            return self._session.get_auth_headers() or {}
        except exceptions.ClientException as error:
            raise ConnectionError(f"keystone gives no token: {error}") from error

    def renew(self):
        self._session.invalidate()
