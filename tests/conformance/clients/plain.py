# SPDX-License-Identifier: Apache-2.0
"""What a client returned, as JSON types."""

# What nova keeps of a provider.
_PROVIDER = ("name", "parent_uuid", "generation", "inventory", "traits", "aggregates")


def plain(value):
    """Return a value as JSON types."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "get_provider_uuids"):
        return {uuid: {name: plain(getattr(value.data(uuid), name)) for name in _PROVIDER}
                for uuid in value.get_provider_uuids()}
    if hasattr(value, "to_dict"):
        return plain(_known(value.to_dict()))
    if hasattr(value, "status_code"):
        return value.status_code
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def _known(resource):
    """Return what a resource of openstacksdk says of itself, without what it says of its cloud."""
    return {name: value for name, value in resource.items() if name != "location"}
