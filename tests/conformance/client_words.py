# SPDX-License-Identifier: Apache-2.0
"""What programs of OpenStack look for in Placement's errors, and requests that lead to it.

Found in the code of their releases. A program that looks only at statuses is not listed:
:mod:`tests.conformance.test_like_upstream` compares these for every request.
"""

from typing import NamedTuple

from tests.conformance.case import Case

_PROVIDER = "/resource_providers/<full>"
_NOBODY = "/resource_providers/<missing>"
_CONSUMER = "/allocations/<owned>"
_USED = {"resource_provider_generation": 2, "inventories": {}}
_OLD = {"resource_provider_generation": 77}
_CLAIM = {"allocations": {"<leaf>": {"resources": {"VGPU": 1}}}, "project_id": "<project>",
          "user_id": "<user>"}


class Match(NamedTuple):
    """What one program looks for.

    :ivar program: its name, and the releases that look for it
    :ivar looks_for: regular expression for the text of the answer; None if it is the code
    :ivar code: str; None if the program does not look at it
    :ivar case: :class:`tests.conformance.case.Case`, the request
    """

    program: str
    looks_for: str | None
    code: str | None
    case: Case


def _of(program, looks_for, code, *requests):
    for name, request, version, body in requests:
        yield Match(program, looks_for, code, Case(
            f"{program}: {name}", request, version=version, headers={"x-roles": "admin,service"},
            **({} if body is None else {"body": body})))


_IN_USE = r"Inventory for (.+) on resource provider (.+) in use"
_CONCURRENT = "placement.concurrent_update"

MATCHES = (
    *_of("nova up to Stein, cyborg, mogan", _IN_USE, None,
         ("set inventories", f"PUT {_PROVIDER}/inventories", "1.0", _USED),
         ("set inventories with 1.26", f"PUT {_PROVIDER}/inventories", "1.26", _USED),
         ("delete inventories", f"DELETE {_PROVIDER}/inventories", "1.5", None),
         ("delete an inventory", f"DELETE {_PROVIDER}/inventories/VCPU", "1.0", None)),
    *_of("nova from Train on", None, "placement.inventory.inuse",
         ("set inventories", f"PUT {_PROVIDER}/inventories", "1.26", _USED)),
    *_of("nova, zun", "Conflicting resource provider name:", None,
         ("a node of the name of another", "POST /resource_providers", "1.20", {
             "name": "full <full>", "uuid": "<missing>"})),
    *_of("nova, zun", "^(?s:(?!.*Conflicting resource provider name:))", None,
         ("a node that another process has created", "POST /resource_providers", "1.20", {
             "name": "full <full>", "uuid": "<full>"})),
    *_of("nova from Stein on", "consumer generation conflict", _CONCURRENT,
         ("claim for a consumer that has changed", f"PUT {_CONSUMER}", "1.36", {
             **_CLAIM, "consumer_generation": None}),
         ("put for one that has changed", f"PUT {_CONSUMER}", "1.28", {
             **_CLAIM, "consumer_generation": 5}),
         ("move from one that has changed", "POST /allocations", "1.28", {
             "<owned>": {**_CLAIM, "consumer_generation": 5}})),
    *_of("nova", None, _CONCURRENT,
         ("reshape with an old generation", "POST /reshaper", "1.30", {
             "inventories": {"<root>": {**_OLD, "inventories": {}}}, "allocations": {}})),
    *_of("neutron-lib, blazar, openstack4j", None, _CONCURRENT,
         ("set inventories with an old generation", f"PUT {_PROVIDER}/inventories", "1.29", {
             **_OLD, "inventories": {"VCPU": {"total": 10}}}),
         ("change one with an old generation", f"PUT {_PROVIDER}/inventories/VCPU", "1.37", {
             **_OLD, "total": 10}),
         ("set traits with an old generation", f"PUT {_PROVIDER}/traits", "1.37", {
             **_OLD, "traits": []}),
         ("change the allocations of a port", f"PUT {_CONSUMER}", "1.37", {
             **_CLAIM, "consumer_generation": 5})),
    *_of("neutron, neutron-lib", "No resource provider with uuid", None,
         ("delete inventories of none", f"DELETE {_NOBODY}/inventories", "1.37", None),
         ("delete an inventory of none", f"DELETE {_NOBODY}/inventories/VCPU", "1.37", None),
         ("get an inventory of none", f"GET {_NOBODY}/inventories/VCPU", "1.37", None),
         ("get an inventory of none with 1.1", f"GET {_NOBODY}/inventories/VCPU", "1.1", None)),
    *_of("neutron, neutron-lib", "No inventory of class", None,
         ("delete an inventory", f"DELETE {_PROVIDER}/inventories/VGPU", "1.37", None),
         ("get an inventory", f"GET {_PROVIDER}/inventories/VGPU", "1.37", None),
         ("get an inventory of no class", f"GET {_PROVIDER}/inventories/NOTHING", "1.37", None),
         ("get an inventory with 1.1", f"GET {_PROVIDER}/inventories/IPV4_ADDRESS", "1.1", None)),
    *_of("neutron", "re-parenting a provider is not currently allowed", None,
         ("move an agent", "PUT /resource_providers/<child>", "1.20", {
             "name": "child <child>", "parent_provider_uuid": "<root>"})),
    *_of("osc-placement", "Resource provider has allocations", None,
         ("delete a provider", "DELETE /resource_providers/<leaf>", "1.0", None)),
    *_of("openstack4j", None, "placement.resource_provider.inuse",
         ("delete a provider", "DELETE /resource_providers/<leaf>", "1.39", None)),
    *_of("openstack4j", None, "placement.duplicate_name",
         ("create a provider", "POST /resource_providers", "1.39", {"name": "full <full>"})),
    # It shows the detail of the first error.
    *_of("watcher", r'"errors".*"detail"', None,
         ("read none", f"GET {_NOBODY}", "1.0", None),
         ("candidates of no class", "GET /allocation_candidates?resources=NOTHING:1", "1.29",
          None)),
)
