# SPDX-License-Identifier: Apache-2.0
"""The table of routes: address, method, first microversion, policy rule and schemas.

The application and the OpenAPI document are built from it. A later microversion adds a line for a
new address or method, and an entry in ``body``, ``query`` or ``answer`` for a new shape.
"""

import dataclasses

from placement_rpc.http import microversion
from placement_rpc.http.resources import (
    aggregates,
    allocation_candidates,
    allocations,
    events,
    explanations,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    summaries,
    traits,
    usages,
)
from placement_rpc.http.spelling import POOLS, PROVIDERS, Spelling
from placement_rpc.policies import aggregate as aggregate_rules
from placement_rpc.policies import allocation as allocation_rules
from placement_rpc.policies import allocation_candidate as candidate_rules
from placement_rpc.policies import event as event_rules
from placement_rpc.policies import inventory as inventory_rules
from placement_rpc.policies import reshaper as reshaper_rules
from placement_rpc.policies import resource_class as class_rules
from placement_rpc.policies import resource_provider as provider_rules
from placement_rpc.policies import summary as summary_rules
from placement_rpc.policies import trait as trait_rules
from placement_rpc.policies import usage as usage_rules
from placement_rpc.schemas import aggregate, allocation, event, inventory, summary, trait
from placement_rpc.schemas import allocation_candidate as candidate
from placement_rpc.schemas import reshaper as reshapes
from placement_rpc.schemas import resource_class as classes
from placement_rpc.schemas import resource_provider as provider

# The microversions, a tuple of int each: V[4] is 1.4.
V = tuple((1, minor) for minor in range(microversion.MAX[1] + 1))


@dataclasses.dataclass(frozen=True)
class Route:
    """One method of one address.

    :param method: str
    :param path: str, with the variable parts in braces
    :param handler: callable of a :class:`placement_rpc.http.call.Call` that returns an
        :class:`placement_rpc.http.call.Answer`
    :param rule: str, the policy rule; None if no token is needed
    :param since: tuple of int, the first microversion that has it
    :param before: tuple of int, the first that has another in its place; None for none
    :param body: dict of microversion to the JSON schema of the body from that version on
    :param query: the same for the query parameters, whose values are all text
    :param status: int, of a successful answer
    :param confirms: bool, whether 204 answers a request for what is there already
    :param locates: bool, whether the answer has a location; one of status 201 always has
    :param provider_first: bool, whether the provider in the address is looked for, and 404
        answered, before a body that is not valid is refused
    :param answer: the same for the answer; None for an answer without a body
    :param variant: str, the query parameter without a value that selects this route among those
        with the same method and path
    :param spelling: :class:`placement_rpc.http.spelling.Spelling`
    :param owner: callable of a :class:`placement_rpc.http.facade.Facade`, the variable parts of
        the address, the :class:`placement_rpc.http.queries.Query`, and the body before it is
        validated, that returns an object with the project_id and the user_id to which the rule can
        refer, or None; None if the route is about no single consumer or project
    :param next_owner: the same of the owner that a request gives something to, for whom the rule
        has to hold too; None if there is no other
    """

    method: str
    path: str
    handler: object
    rule: str | None = None
    since: tuple = V[0]
    before: tuple | None = None
    body: dict | None = None
    query: dict | None = None
    status: int = 200
    confirms: bool = False
    locates: bool = False
    provider_first: bool = False
    answer: dict | None = None
    variant: str | None = None
    spelling: Spelling = PROVIDERS
    owner: object = None
    next_owner: object = None


_ALL = "/resource_providers"
_ONE = "/resource_providers/{uuid}"
_CONSUMER = "/allocations/{consumer_uuid}"
_CLASS = "/resource_classes/{name}"

_PROVIDERS = (
    Route("GET", _ALL, providers.listed, provider_rules.LIST,
          answer={V[0]: provider.PROVIDERS, V[14]: provider.PROVIDERS_1_14},
          query={V[0]: provider.LIST_1_0, V[3]: provider.LIST_1_3, V[4]: provider.LIST_1_4,
                 V[14]: provider.LIST_1_14, V[18]: provider.LIST_1_18}),
    Route("POST", _ALL, providers.created, provider_rules.CREATE, status=201, before=V[20],
          body={V[0]: provider.CREATE, V[14]: provider.CREATE_1_14}),
    Route("POST", _ALL, providers.created_and_shown, provider_rules.CREATE, since=V[20],
          body={V[20]: provider.CREATE_1_14}, answer={V[20]: provider.PROVIDER_1_14},
          locates=True),
    Route("POST", _ALL, providers.requested, provider_rules.LIST, variant="request",
          body={V[0]: provider.REQUEST}, answer={V[0]: provider.PROVIDERS}),
    Route("POST", _ALL, explanations.explained, provider_rules.EXPLAIN, variant="explain",
          body={V[0]: provider.EXPLAIN}, answer={V[0]: provider.EXPLAINED}),
    Route("POST", _ALL, explanations.headroom, provider_rules.HEADROOM, variant="headroom",
          body={V[0]: provider.HEADROOM}, answer={V[0]: provider.HEADROOM_FOUND}),
    Route("GET", _ONE, providers.shown, provider_rules.SHOW,
          answer={V[0]: provider.PROVIDER, V[14]: provider.PROVIDER_1_14}),
    Route("PUT", _ONE, providers.updated, provider_rules.UPDATE, provider_first=True,
          body={V[0]: provider.UPDATE, V[14]: provider.UPDATE_1_14},
          answer={V[0]: provider.PROVIDER, V[14]: provider.PROVIDER_1_14}),
    Route("DELETE", _ONE, providers.deleted, provider_rules.DELETE, status=204),
    Route("GET", f"{_ONE}/inventories", inventories.listed, inventory_rules.LIST,
          answer={V[0]: inventory.INVENTORIES}),
    Route("POST", f"{_ONE}/inventories", inventories.added, inventory_rules.CREATE, status=201,
          provider_first=True,
          body={V[0]: inventory.ADD}, answer={V[0]: inventory.INVENTORY}),
    Route("PUT", f"{_ONE}/inventories", inventories.replaced, inventory_rules.UPDATE,
          provider_first=True,
          body={V[0]: inventory.REPLACE}, answer={V[0]: inventory.INVENTORIES}),
    Route("DELETE", f"{_ONE}/inventories", inventories.cleared, inventory_rules.DELETE,
          since=V[5], status=204),
    Route("GET", f"{_ONE}/inventories/{{resource_class}}", inventories.shown,
          inventory_rules.SHOW, answer={V[0]: inventory.INVENTORY}),
    Route("PUT", f"{_ONE}/inventories/{{resource_class}}", inventories.updated,
          inventory_rules.UPDATE, body={V[0]: inventory.UPDATE}, provider_first=True,
          answer={V[0]: inventory.INVENTORY}),
    Route("DELETE", f"{_ONE}/inventories/{{resource_class}}", inventories.deleted,
          inventory_rules.DELETE, status=204),
    Route("GET", f"{_ONE}/usages", usages.shown, usage_rules.SHOW,
          answer={V[0]: inventory.USAGES}),
    Route("GET", f"{_ONE}/aggregates", aggregates.shown, aggregate_rules.LIST, since=V[1],
          answer={V[1]: aggregate.AGGREGATES, V[19]: aggregate.AGGREGATES_1_19}),
    Route("PUT", f"{_ONE}/aggregates", aggregates.replaced, aggregate_rules.UPDATE, since=V[1],
          body={V[1]: aggregate.REPLACE, V[19]: aggregate.REPLACE_1_19}, provider_first=True,
          answer={V[1]: aggregate.AGGREGATES, V[19]: aggregate.AGGREGATES_1_19}),
    Route("GET", f"{_ONE}/traits", traits.of_provider, trait_rules.OF_PROVIDER, since=V[6],
          answer={V[6]: trait.OF_PROVIDER}),
    Route("PUT", f"{_ONE}/traits", traits.replaced, trait_rules.SET, since=V[6],
          body={V[6]: trait.SET}, answer={V[6]: trait.OF_PROVIDER}),
    Route("DELETE", f"{_ONE}/traits", traits.cleared, trait_rules.CLEAR, since=V[6], status=204),
    Route("GET", f"{_ONE}/allocations", allocations.of_provider, allocation_rules.OF_PROVIDER,
          answer={V[0]: allocation.OF_PROVIDER, V[28]: allocation.OF_PROVIDER_1_28}),
)

_ALLOCATIONS = (
    Route("GET", _CONSUMER, allocations.of_consumer, allocation_rules.LIST,
          answer={V[0]: allocation.OF_CONSUMER, V[12]: allocation.OF_CONSUMER_1_12,
                  V[28]: allocation.OF_CONSUMER_1_28, V[38]: allocation.OF_CONSUMER_1_38},
          owner=allocations.owner),
    Route("PUT", _CONSUMER, allocations.claimed, allocation_rules.UPDATE, status=204,
          body={V[0]: allocation.CLAIM_1_0, V[8]: allocation.CLAIM_1_8,
                V[12]: allocation.CLAIM_1_12, V[28]: allocation.CLAIM_1_28,
                V[34]: allocation.CLAIM_1_34, V[38]: allocation.CLAIM_1_38},
          owner=allocations.future_owner, next_owner=allocations.named_owner),
    Route("POST", "/allocations", allocations.all_claimed, allocation_rules.MANAGE, since=V[13],
          status=204, body={V[13]: allocation.CLAIMS_1_13, V[28]: allocation.CLAIMS_1_28,
                            V[34]: allocation.CLAIMS_1_34, V[38]: allocation.CLAIMS_1_38}),
    Route("DELETE", _CONSUMER, allocations.released, allocation_rules.DELETE, status=204,
          owner=allocations.owner),
)

_CLASSES = (
    Route("GET", "/resource_classes", resource_classes.listed, class_rules.LIST, since=V[2],
          answer={V[2]: classes.RESOURCE_CLASSES}),
    Route("POST", "/resource_classes", resource_classes.created, class_rules.CREATE, since=V[2],
          status=201, body={V[2]: classes.NAMED}),
    Route("GET", _CLASS, resource_classes.shown, class_rules.SHOW, since=V[2],
          answer={V[2]: classes.RESOURCE_CLASS}),
    Route("PUT", _CLASS, resource_classes.renamed, class_rules.UPDATE, since=V[2], before=V[7],
          body={V[2]: classes.NAMED}, answer={V[2]: classes.RESOURCE_CLASS}),
    Route("PUT", _CLASS, resource_classes.confirmed, class_rules.UPDATE, since=V[7],
          status=201, confirms=True),
    Route("DELETE", _CLASS, resource_classes.deleted, class_rules.DELETE, since=V[2],
          status=204),
)

_TRAIT = "/traits/{name}"
_TRAITS = (
    Route("GET", "/traits", traits.listed, trait_rules.LIST, since=V[6],
          query={V[6]: trait.LIST}, answer={V[6]: trait.TRAITS}),
    Route("GET", _TRAIT, traits.shown, trait_rules.SHOW, since=V[6], status=204),
    Route("PUT", _TRAIT, traits.created, trait_rules.UPDATE, since=V[6], status=201,
          confirms=True),
    Route("DELETE", _TRAIT, traits.deleted, trait_rules.DELETE, since=V[6], status=204),
)


def _pool(route, **changes):
    """Return a route in the draft's spelling, which exists at every microversion."""
    return dataclasses.replace(
        route, path=route.path.replace("/resource_providers", "/resource_pools"), since=V[0],
        spelling=POOLS, **changes)


def _pools():
    own = {
        ("GET", _ALL): {"answer": {V[0]: provider.POOLS}, "query": {V[0]: provider.LIST_1_4}},
        ("POST", _ALL): {"body": {V[0]: provider.CREATE}, "before": None},
        ("GET", _ONE): {"answer": {V[0]: provider.POOL}},
        ("PUT", _ONE): {"body": {V[0]: provider.UPDATE}, "status": 204, "answer": None},
        ("DELETE", _ONE): {},
        ("GET", f"{_ONE}/inventories"): {"answer": {V[0]: inventory.INVENTORIES_OF_POOL}},
        ("POST", f"{_ONE}/inventories"): {
            "body": {V[0]: inventory.ADD_TO_POOL}, "answer": None},
        ("GET", f"{_ONE}/inventories/{{resource_class}}"): {
            "answer": {V[0]: inventory.INVENTORY_OF_POOL}},
        ("PUT", f"{_ONE}/inventories/{{resource_class}}"): {
            "body": {V[0]: inventory.UPDATE_OF_POOL}, "status": 204, "answer": None},
        ("DELETE", f"{_ONE}/inventories/{{resource_class}}"): {},
        ("GET", f"{_ONE}/aggregates"): {"answer": {V[0]: aggregate.AGGREGATES}},
        ("PUT", f"{_ONE}/aggregates"): {
            "body": {V[0]: aggregate.REPLACE}, "status": 204, "answer": None},
        ("GET", f"{_ONE}/usages"): {"answer": {V[0]: inventory.USAGES_OF_POOL}},
    }
    return tuple(_pool(route, **own[route.method, route.path]) for route in _PROVIDERS
                 if (route.method, route.path) in own and route.variant is None
                 and route.handler is not providers.created_and_shown)


_USAGES = (
    Route("GET", "/usages", usages.of_types, usage_rules.OF_PROJECT, since=V[38],
          query={V[38]: inventory.USAGES_QUERY_1_38}, answer={V[38]: inventory.USAGES_OF_TYPES},
          owner=usages.project),
    Route("GET", "/usages", usages.of_project, usage_rules.OF_PROJECT, since=V[9], before=V[38],
          query={V[9]: inventory.USAGES_QUERY}, answer={V[9]: inventory.USAGES_OF_PROJECT},
          owner=usages.project),
)

_RESHAPER = (
    Route("POST", "/reshaper", reshaper.reshaped, reshaper_rules.RESHAPE, since=V[30], status=204,
          body={V[30]: reshapes.RESHAPE_1_30, V[34]: reshapes.RESHAPE_1_34,
                V[38]: reshapes.RESHAPE_1_38}),
)

_CANDIDATES = (
    Route("GET", "/allocation_candidates", allocation_candidates.listed, candidate_rules.LIST,
          since=V[10],
          query={V[10]: candidate.LIST_1_10, V[16]: candidate.LIST_1_16,
                 V[17]: candidate.LIST_1_17, V[21]: candidate.LIST_1_21,
                 V[25]: candidate.LIST_1_25, V[31]: candidate.LIST_1_31,
                 V[33]: candidate.LIST_1_33, V[35]: candidate.LIST_1_35,
                 V[36]: candidate.LIST_1_36},
          answer={V[10]: candidate.CANDIDATES_1_10, V[12]: candidate.CANDIDATES_1_12,
                  V[17]: candidate.CANDIDATES_1_17, V[29]: candidate.CANDIDATES_1_29,
                  V[34]: candidate.CANDIDATES_1_34}),
)

_SUMMARIES = (
    Route("GET", "/provider_summaries", summaries.providers, summary_rules.PROVIDERS,
          query={V[0]: summary.LIST_PROVIDERS}, answer={V[0]: summary.PROVIDERS}),
    Route("GET", "/consumers", summaries.consumers, summary_rules.CONSUMERS,
          query={V[0]: summary.LIST_CONSUMERS}, answer={V[0]: summary.CONSUMERS},
          owner=summaries.project),
)

ROUTES = (
    Route("GET", "/", root.versions, answer={V[0]: event.VERSIONS}),
    Route("GET", "/openapi.json", root.description, answer={V[0]: {"type": "object"}}),
    *_PROVIDERS, *_pools(), *_ALLOCATIONS, *_CLASSES, *_TRAITS, *_USAGES,
    *_RESHAPER, *_CANDIDATES, *_SUMMARIES,
    Route("GET", "/events", events.listed, event_rules.LIST, query={V[0]: event.LIST}),
)
