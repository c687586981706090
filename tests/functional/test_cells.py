# SPDX-License-Identifier: Apache-2.0
"""Two services as one: each call goes to the cell that has what it names."""

import inspect
import pathlib
import time
import unittest.mock
from concurrent import futures

import fixtures

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.cells import CellsAPI
from placement_rpc.cells.cell import ask
from placement_rpc.cells.locations import Memory
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.functional.cells_case import CellsCase

# What only one cell can answer; CellsAPI.cell has its client.
_OF_ONE_CELL = {
    "explain", "get_event_positions", "get_versions", "list_events", "object_action",
    "object_backport_versions", "object_class_action_versions", "ping", "sync_compute_node",
    "verify_index"}


class MethodsTest(base.TestCase):

    def test_it_has_the_same_calls(self):
        """The others are those that only one cell can answer."""
        theirs = {name: function for name, function in inspect.getmembers(
            api.PlacementAPI, inspect.isfunction) if not name.startswith("_")}
        ours = dict(inspect.getmembers(CellsAPI, inspect.isfunction))
        self.assertEqual(_OF_ONE_CELL, set(theirs) - set(ours))
        for name in set(ours) & set(theirs):
            self.assertEqual(inspect.signature(theirs[name]), inspect.signature(ours[name]), name)


class ConfigurationTest(base.TestCase):

    def conf(self, *lines):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "placement-rpc.conf")
        path.write_text("\n".join(lines))
        return configuration.new_config(config_files=[str(path)])

    def test_cells_are_configured(self):
        rack = base.new_uuid()
        with CellsAPI(self.conf(
                "[placement_client]", "cells = north, south",
                "[cell:north]", "transport_url = rabbit://north/", "region = upper",
                f"aggregates = {rack.upper()}",
                "[cell:south]", "transport_url = rabbit://south/")) as cells:
            self.assertEqual(
                [("north", "upper", {rack}), ("south", None, set())],
                [(cell.name, cell.region, cell.aggregates) for cell in cells.cells])
            self.assertIs(cells.cells[0].api, cells.cell("north"))
            self.assertEqual(("north",), tuple(
                each.name for each in cells.only(aggregate=rack.upper()).cells))
            error = self.assertRaises(exception.InvalidInput, cells.only, region="middle")
            self.assertIn("middle", error.text)

    def test_what_is_missing_is_named(self):
        for lines, words in (
                ((), "cells"), (("[placement_client]", "cells = a"), "[cell:a]"),
                (("[placement_client]", "cells = a, a", "[cell:a]", "transport_url = rabbit://a/"),
                 "a more than once")):
            error = self.assertRaises(exception.InvalidInput, CellsAPI, self.conf(*lines))
            self.assertIn(words, error.text)


class ProviderTest(CellsCase):

    def test_a_call_goes_to_the_cell_of_its_provider(self):
        for name, uuid in self.nodes.items():
            for client in (self.api, self.make_api()):
                self.assertEqual(uuid, client.get_provider(None, uuid).uuid)
                self.assertEqual([self.racks[name]], client.get_aggregates(None, uuid).aggregates)
            self.assertEqual(uuid, self.services[name].api.get_provider(None, uuid).uuid)

    def test_a_new_provider_needs_a_cell_or_a_parent(self):
        error = self.assertRaises(
            exception.InvalidInput, self.api.create_provider, None, "a root")
        self.assertIn("north, south", error.text)
        child = self.api.create_provider(
            None, "a child", parent_provider_uuid=self.nodes["south"]).uuid
        self.assertEqual(child, self.services["south"].api.get_provider(None, child).uuid)

    def test_one_that_is_nowhere(self):
        self.assertRaises(exception.ProviderNotFound, self.api.get_usages, None, base.new_uuid())
        self.assertRaises(exception.InvalidInput, self.api.get_usages, None, ["no uuid"])

    def test_a_list_begins_after_one_that_has_moved(self):
        uuid = self.nodes["north"]
        self.services["north"].api.delete_provider(None, uuid)
        self.services["south"].api.create_provider(None, "moved", uuid)
        everything = [each.uuid for each in self.api.only(cell="south").list_providers(
            None).objects]
        self.assertEqual(everything[everything.index(uuid) + 1:], [
            each.uuid for each in self.api.list_providers(None, marker=uuid).objects])

    def test_a_limit_that_is_none_is_refused(self):
        for make in (self.api.list_providers, self.api.list_traits, self.api.resource_class_list,
                     self.api.list_consumers, self.api.list_provider_summaries):
            self.assertRaises(exception.InvalidInput, make, None, limit=0)

    def test_one_that_has_moved_is_found_again(self):
        uuid = self.nodes["north"]
        self.services["north"].api.delete_provider(None, uuid)
        self.services["south"].api.create_provider(None, "moved", uuid)
        self.assertEqual("moved", self.api.get_provider(None, uuid).name)

    def test_a_tree_that_has_moved_is_found_again(self):
        root, child, grandchild = self.nodes["north"], base.new_uuid(), base.new_uuid()
        for uuid, parent in ((child, root), (grandchild, child)):
            self.api.create_provider(None, f"node {uuid}", uuid, parent_provider_uuid=parent)
        for uuid in (grandchild, child, root):
            self.services["north"].api.delete_provider(None, uuid)
        there = self.services["south"].api
        there.create_provider(None, "moved", root)
        there.set_inventory(None, root, [base.inventory("VCPU", 8)])
        added = self.api.create_provider(
            None, "added", child, parent_provider_uuid=root.upper()).uuid
        there.create_provider(None, "moved grandchild", grandchild, parent_provider_uuid=child)
        there.set_inventory(None, grandchild, [base.inventory("DISK_GB", 8)])
        self.assertEqual(child, added)
        # One of them is known to have moved, and the other one is not.
        claim = base.claim({root: {"VCPU": 1}, grandchild: {"DISK_GB": 1}})
        self.api.claim_allocations(None, claim)
        self.assertEqual(claim.allocations, self.held("south", claim.consumer_uuid))

    def test_a_deletion_is_repeated_by_a_client_that_remembers_nothing(self):
        uuid, request_id = self.nodes["north"], api.new_request_id()
        self.api.delete_provider(None, uuid, request_id=request_id)
        self.make_api().delete_provider(None, uuid, request_id=request_id)
        self.assertRaises(exception.ProviderNotFound, self.api.delete_provider, None, uuid)

    def test_lists_have_all_cells(self):
        everything = self.api.list_providers(None)
        self.assertEqual(set(self.nodes.values()), {each.uuid for each in everything.objects})
        page = self.api.list_providers(None, limit=1)
        self.assertEqual((1, True), (len(page.objects), page.more))
        rest = self.api.list_providers(None, limit=1, marker=page.objects[0].uuid)
        self.assertEqual(set(self.nodes.values()),
                         {page.objects[0].uuid, rest.objects[0].uuid})
        self.assertFalse(rest.more)
        only = self.api.list_providers(None, member_of=[[self.racks["south"]]])
        self.assertEqual([self.nodes["south"]], [each.uuid for each in only.objects])

    def test_summaries_are_paged_in_the_order_of_uuids(self):
        for _ in range(3):
            for cell in self.services:
                self.provider(cell)
        uuids = [each.uuid for each in self.api.all_provider_summaries(None, page=2)]
        self.assertEqual(8, len(uuids))
        self.assertEqual(sorted(uuids), uuids)


    def test_a_consumer_in_several_cells_is_in_one_page(self):
        for _ in range(5):
            consumer = base.new_uuid()
            for cell, service in self.services.items():
                service.api.claim_allocations(None, self.claim(cell, consumer=consumer))
        for page in (1, 3, 4):
            found = [each.uuid for each in self.api.all_consumers(None, page=page)]
            self.assertEqual((10, 5), (len(found), len(set(found))))
            self.assertEqual(sorted(found), found)
        # A consumer counts once.
        self.assertEqual(4, len(self.api.list_consumers(None, limit=2).objects))

    def test_a_wrong_object_is_named_as_by_one_service(self):
        for make in (
                lambda one: one.get_by_request(None, {"x": 1}),
                lambda one: one.get_allocation_candidates(None, {"x": 1}),
                lambda one: one.claim_allocations(None, {"x": 1}),
                lambda one: one.claim_batch(None, [{"x": 1}]),
                lambda one: one.claim_by_request(None, api.ResourceRequest(), {"x": 1})):
            self.assertEqual(*(
                str(self.assertRaises(exception.InvalidInput, make, one)).partition(":")[0]
                for one in (self.services["north"].api, self.api)))

    def test_bad_input_is_refused_as_by_one_service(self):
        service = self.services["north"].api
        for make in (
                lambda one: one.reshape(None, [{"x": 1}]), lambda one: one.reshape(None, None),
                lambda one: one.list_providers(None, member_of=5),
                lambda one: one.list_providers(None, member_of=[5]),
                lambda one: one.list_providers(None, member_of=[[{}]]),
                lambda one: one.list_traits(None, limit="a"),
                lambda one: one.list_traits(None, limit=0),
                lambda one: one.get_allocation_candidates(None, {"x": 1}),
                lambda one: one.get_by_request(None, api.CandidatesRequest())):
            errors = [self.assertRaises(exception.InvalidInput, make, one)
                      for one in (service, self.api)]
            self.assertEqual(errors[0].code, errors[1].code)
        closed = self.make_api()
        for cell in closed.fleet:
            # The services are used further.
            self.patch(cell.api, "close", lambda: None)
        closed.close()
        self.assertRaises(exception.ClientClosed, closed.list_traits, None)


class NamesTest(CellsCase):

    def test_a_new_name_that_another_class_has_is_refused(self):
        for name in ("CUSTOM_GOLD", "CUSTOM_SILVER"):
            self.services["north"].api.resource_class_create(None, name)
        self.services["south"].api.resource_class_create(None, "CUSTOM_GOLD")
        self.assertRaises(exception.ResourceClassExists, self.api.resource_class_rename, None,
                          "CUSTOM_GOLD", "CUSTOM_SILVER")

    def test_a_rename_of_which_a_part_is_done_is_completed(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.services["north"].api.resource_class_rename(None, "CUSTOM_GOLD", "CUSTOM_SILVER")
        self.api.resource_class_rename(None, "CUSTOM_GOLD", "CUSTOM_SILVER")
        self.services["south"].api.resource_class_get(None, "CUSTOM_SILVER")
        self.assertRaises(exception.ResourceClassNotFound, self.api.resource_class_rename, None,
                          "CUSTOM_GOLD", "CUSTOM_SILVER")

    def test_names_are_made_in_every_cell(self):
        self.api.create_trait(None, "CUSTOM_FAST")
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        for service in self.services.values():
            self.assertEqual(["CUSTOM_FAST"], [each.name for each in service.api.list_traits(
                None, prefix="CUSTOM_").objects])
            service.api.resource_class_get(None, "CUSTOM_GOLD")
        self.assertRaises(exception.TraitExists, self.api.create_trait, None, "CUSTOM_FAST")
        self.api.resource_class_delete(None, "CUSTOM_GOLD")
        self.assertRaises(exception.ResourceClassNotFound, self.api.resource_class_get, None,
                          "CUSTOM_GOLD")

    def test_what_one_cell_lacks_is_added(self):
        self.services["south"].api.create_trait(None, "CUSTOM_FAST")
        self.services["south"].api.resource_class_create(None, "CUSTOM_GOLD")
        # The other cell does not know the class, and has none of it.
        self.assertEqual([], self.api.get_by_request(None, api.ResourceRequest(
            resources={"CUSTOM_GOLD": 1})).objects)
        self.assertEqual("CUSTOM_GOLD", self.api.resource_class_get(None, "CUSTOM_GOLD").name)
        self.api.create_trait(None, "CUSTOM_FAST")
        self.services["north"].api.delete_trait(None, "CUSTOM_FAST")

    def test_lists_have_each_name_once(self):
        names = [each.name for each in self.api.list_traits(None).objects]
        self.assertEqual(sorted(set(names)), names)
        service = self.services["north"].api
        self.assertEqual([each.name for each in service.list_traits(None).objects], names[:1000])
        self.assertEqual(names[1:3], [each.name for each in self.api.list_traits(
            None, marker=names[0], limit=2).objects])


class UnreachableTest(CellsCase):
    """The cell ``south`` does not answer."""

    # Longer than the other one takes on a busy machine.
    cell_timeout = 1.5

    def test_the_others_go_on(self):
        client = self.make_api()
        self.lose("south")
        wanted = api.ResourceRequest(resources={"VCPU": 1})
        for _ in range(2):
            self.assertEqual([self.nodes["north"]], [
                each.uuid for each in client.get_by_request(None, wanted).objects])
        self.assertEqual(1, self.log.output.count("Cell south is left out"))
        claimed = client.claim_by_request(None, wanted, base.claim(None, consumer_generation=0))
        client.claim_allocations(None, self.claim("north", consumer_generation=0))
        client.get_allocations(None, claimed.consumer_uuid)
        client.release_allocations(None, claimed.consumer_uuid)
        pinged = client.ping_cells(None)
        self.assertIn("pid", pinged["north"])
        self.assertIsInstance(pinged["south"], exception.ReadTimedOut)

    def test_what_may_be_there_is_not_decided_without_it(self):
        client = self.make_api()
        self.lose("south")
        for make in (
                lambda: client.get_provider(None, base.new_uuid(), timeout=1),
                lambda: client.get_project_usages(None, "project", timeout=1),
                lambda: client.list_providers(None, timeout=1),
                lambda: client.create_trait(None, "CUSTOM_FAST", timeout=1),
                lambda: client.get_allocations(None, base.new_uuid(), timeout=1),
                # It may have allocations there.
                lambda: client.claim_allocations(None, self.claim("north"), timeout=1)):
            error = self.assertRaises(exception.CellUnreachable, make)
            self.assertEqual(("south", True), (error.kwargs["cells"], error.retryable))

    def test_that_there_is_no_room_is_not_decided_without_it(self):
        client = self.make_api()
        self.lose("south")
        wanted = api.ResourceRequest(resources={"VCPU": 9})
        # The second time it is left out.
        for _ in range(2):
            error = self.assertRaises(
                exception.CellUnreachable, client.claim_by_request, None, wanted,
                base.claim(None, consumer_generation=0))
            self.assertEqual("south", error.kwargs["cells"])
        self.assertEqual(1, self.log.output.count("Cell south is left out"))

    def test_what_only_it_may_know_is_not_unknown(self):
        client = self.make_api()
        self.lose("south")
        wanted = api.ResourceRequest(resources={"CUSTOM_GOLD": 1})
        for make in (
                lambda: client.get_by_request(None, wanted),
                lambda: client.get_allocation_candidates(None, api.CandidatesRequest(
                    groups=[api.CandidateGroup(resources={"CUSTOM_GOLD": 1})])),
                lambda: client.claim_by_request(
                    None, wanted, base.claim(None, consumer_generation=0))):
            error = self.assertRaises(exception.CellUnreachable, make)
            self.assertEqual("south", error.kwargs["cells"])

    def test_its_claims_in_a_batch_have_an_unknown_outcome(self):
        self.lose("south")
        accepted, unknown = self.api.claim_batch(None, [
            self.claim(cell, consumer_generation=0) for cell in self.services], timeout=2)
        self.assertEqual([self.nodes["north"]], list(accepted.generations))
        self.assertIsInstance(unknown, exception.DeadlineExceeded)

    def test_claims_of_a_batch_that_need_no_answer_of_it_are_made(self):
        self.lose("south")
        for request_id in None, base.new_uuid():
            claims = [self.claim("north", consumer_generation=0), self.claim("north"),
                      self.claim("north", consumer_generation=0),
                      base.claim({base.new_uuid(): {"VCPU": 1}}, consumer_generation=0)]
            outcomes = self.api.claim_batch(None, claims, timeout=6, request_id=request_id)
            self.assertEqual([None, exception.CellUnreachable, None, exception.CellUnreachable], [
                type(each) if isinstance(each, Exception) else None for each in outcomes])

    def test_a_cast_goes_to_the_cell_that_is_remembered(self):
        claim = self.claim("north")
        self.api.claim_allocations(None, claim)
        # As if it were of a cast that is not settled yet.
        self.services["north"].api.release_allocations(None, claim.consumer_uuid)
        self.lose("south")
        request_id = self.api.release_allocations(None, claim.consumer_uuid, cast=True)
        result = self.services["north"].api.get_request_result(None, request_id)
        self.assertRaises(exception.ConsumerNotFound, result.result)

    def test_a_consumer_that_was_there_is_looked_for_elsewhere(self):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, self.claim("south", consumer=consumer))
        self.services["south"].api.release_allocations(None, consumer)
        self.services["north"].api.claim_allocations(None, self.claim("north", consumer=consumer))
        self.lose("south")
        self.assertEqual({self.nodes["north"]: {"VCPU": 1}},
                         self.api.get_allocations(None, consumer).by_provider())

    def test_a_consumer_is_looked_for_elsewhere_if_its_cell_is_late(self):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, self.claim("south", consumer=consumer))
        late = [True]

        def expired(make):
            if late:
                late.pop()
                raise exception.RequestExpired(late=0.1)
            return make()

        self.intercept("south", "get_allocations", expired)
        self.assertEqual({self.nodes["south"]: {"VCPU": 1}},
                         self.api.get_allocations(None, consumer).by_provider())
        self.assertEqual([], late)

    def test_it_is_asked_again(self):
        client = self.make_api()
        wanted = api.ResourceRequest(resources={"VCPU": 1})
        faults = iter(["lost"] * 1000)
        caller = placement_fixtures.FaultyCaller(self.services["south"].api, faults)
        with caller:
            self.assertEqual(1, len(client.get_by_request(None, wanted).objects))
        base.wait_until(lambda: len(client.get_by_request(None, wanted).objects) == 2)


class SlowTest(CellsCase):
    """Cells that answer, and more questions than one could wait for together."""

    cell_timeout = 1.0

    def test_each_question_has_its_time(self):
        for service in self.services.values():
            ask = service.api.get_allocations

            def slowly(*arguments, ask=ask, **named):
                time.sleep(0.15)
                return ask(*arguments, **named)

            self.patch(service.api, "get_allocations", slowly)
        claims = [self.claim("north") for _ in range(8)]
        self.assertEqual([1] * 8, [each.consumer_generation for each in self.api.claim_batch(
            None, claims)])


class LateAnswerTest(base.TestCase):

    def test_an_answer_at_the_last_moment_counts(self):
        """A cell of which neither the answer nor its lack is known would count as empty."""
        done = futures.Future()

        class Late(futures.Future):
            """Its result comes when all have been waited for."""

            def done(self):
                if not super().done():
                    self.set_result("late")
                return super().done()

        cells = [unittest.mock.Mock(**{"submit.return_value": each}) for each in (done, Late())]
        done.set_result("in time")
        answers = ask(cells, None, 0.0)
        self.assertEqual(["in time", "late"], list(answers.found.values()))


class MemoryTest(base.TestCase):

    def test_the_oldest_is_forgotten(self):
        memory, uuids = Memory(most=2), [base.new_uuid() for _ in range(3)]
        for uuid in uuids:
            memory.put([uuid], "a cell")
        self.assertEqual([None, "a cell", "a cell"], [memory.get(uuid) for uuid in uuids])
        self.assertEqual((True, False), (memory.forget(uuids[1]), memory.forget(uuids[1])))
