# SPDX-License-Identifier: Apache-2.0
"""The standard resource classes and traits of a store."""

from placement_rpc.db.queries import resource_classes, traits


def insert_missing(database, standard_classes, standard_traits):
    """Insert the standard resource classes and traits that the database lacks.

    Each conductor does it when it starts, since their libraries can be newer than at the last
    upgrade of the schema. Of several that do it at once, each finds or inserts all of them.

    :param standard_classes: dict of class name to id
    :param standard_traits: collection of names
    """
    database.write(lambda tx: resource_classes.insert_missing(tx, standard_classes))
    database.write(lambda tx: traits.insert_missing(tx, standard_traits))
