# SPDX-License-Identifier: Apache-2.0
"""How the page at ``/ui/`` gets a token.

A strategy has ``kind``, by which the page selects its form, and ``answer``: a callable of the
request to ``/ui/auth`` that returns the document of a new token, or None.
"""


class DevelopmentLogin:
    """``noauth2``: a name is the token."""

    kind = "name"
    answer = None


def strategy(conf):
    """Return the login that belongs to ``[api] auth_strategy``."""
    if conf.api.auth_strategy == "noauth2":
        return DevelopmentLogin()
    # Imported here because keystoneauth1 comes with an extra, which noauth2 does not need.
    from placement_rpc.http import keystone_login
    return keystone_login.KeystoneLogin(conf)
