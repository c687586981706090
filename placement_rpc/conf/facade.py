# SPDX-License-Identifier: Apache-2.0
"""The configuration of the HTTP facade: a service's, and which pages may read its answers.

It is not a part of :mod:`placement_rpc.conf.service`, since importing oslo.middleware takes a
fifth of a second, and brings what only web applications need.
"""

from oslo_middleware import cors

from placement_rpc.conf import PROJECT, parse, service

# OpenStack Placement's defaults, and the headers that are additions to its API.
_CORS_DEFAULTS = {
    "allow_headers": [
        "X-Auth-Token", "X-Openstack-Request-Id", "X-Identity-Status", "X-Roles",
        "X-Service-Catalog", "X-User-Id", "X-Tenant-Id", "OpenStack-API-Version",
        "If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID"],
    "expose_headers": [
        "X-Auth-Token", "X-Openstack-Request-Id", "X-Subject-Token", "X-Service-Token",
        "OpenStack-API-Version", "ETag", "Location", "Placement-Position", "Retry-After"],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}


def new_config(args=(), config_files=None, prog=PROJECT, **overrides):
    """Make the configuration of a facade; see :func:`placement_rpc.conf.new_config`."""
    return parse(register(service.unparsed()), args, config_files, prog, **overrides)


def register(conf):
    """Add the options of a facade to the configuration of a service.

    Registering them a second time changes nothing.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :returns: ``conf``
    """
    if "cors" not in conf:
        conf.register_opts(cors.CORS_OPTS, group="cors")
        for name, value in _CORS_DEFAULTS.items():
            conf.set_default(name, value, group="cors")
    return conf


def set_sample_defaults():
    """Set the defaults of all libraries, for ``oslo-config-generator``."""
    service.set_sample_defaults()
    cors.set_defaults(**_CORS_DEFAULTS)
