# SPDX-License-Identifier: Apache-2.0
"""Names in requests that no class and no trait can have, which therefore do not exist."""

from placement_rpc import exception
from placement_rpc.objects import class_names
from placement_rpc.objects.fields import is_trait_name

# How much of them an error quotes.
_QUOTED = 1000


def check_classes(names):
    """Check names of resource classes.

    :param names: iterable of str
    :raises ResourceClassNotFound: for the first that no class can have
    """
    for name in names:
        if not class_names.is_name(class_names.canonical(name)):
            raise exception.ResourceClassNotFound(resource_class=name[:255])


def check_traits(names):
    """Check names of traits.

    :param names: iterable of str
    :raises TraitNotFound: with all that no trait can have
    """
    missing = sorted({name for name in names if not is_trait_name(name)})
    if missing:
        raise exception.TraitNotFound(traits=", ".join(missing)[:_QUOTED])
