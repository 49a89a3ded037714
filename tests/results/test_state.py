"""What the state before and after a run tells of it, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import factories
from fabricheck.core import vocabulary
from fabricheck.results import log_lines, state
from fabricheck.results.causes import When, sentence_of, with_causes
from fabricheck.results.document import load, parse


def document(before=(), after=None, others=None, **changes):
    """Build a document of two H200 with a state; it must satisfy the schema."""
    first = [*before, *[factories.device_state(index) for index in range(len(before), 2)]]
    last = first if after is None else after
    built = factories.on_h200(state=factories.state(first, last, others), **changes)
    return parse(json.dumps(built))


def device(index=0, **changes):
    """Build a device's state in which members of its members are replaced."""
    built = factories.device_state(index)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(built[name], dict)
        built[name] = built[name] | value if both else value
    return built


def said(causes):
    """Return causes as sentences."""
    return [sentence_of(one) for one in causes]


def test_quiet_state_has_no_cause():
    quiet = document()
    assert not state.disturbances(quiet)
    assert not state.slowdowns(quiet)
    assert not state.errors(quiet, "uncorrected memory error")
    assert state.host_use(quiet).busy_cores == 0.1


def test_document_without_a_state_has_no_cause():
    older = factories.document()
    assert not state.disturbances(older)
    assert not state.slowdowns(older)
    assert not state.errors(older, "uncorrected memory error")
    assert state.host_use(older) is None


def test_process_is_named_once_with_all_its_devices_and_when(wording):
    busy = factories.process()
    before = [device(0), device(1, processes=[busy])]
    after = [device(0, processes=[busy]), device(1, processes=[busy])]
    (use,) = state.uses(document(before, after))
    assert (use.pid, [each.index for each in use.devices]) == (4711, [0, 1])
    assert use.when == When.BEFORE | When.AFTER
    wording(said([use]))


def test_process_counts_on_the_devices_that_take_part():
    built = document([device(0), device(1, processes=[factories.process()])])
    assert not state.uses(built, {0})
    assert state.uses(built, {1})


def test_process_of_which_nothing_is_shown_has_its_number(wording):
    hidden = factories.process(user=None, command=None)
    built = document([device(0, processes=[hidden])], [device(0), device(1)])
    (use,) = state.uses(built)
    assert (use.pid, use.user, use.command, use.when) == (4711, None, None, When.BEFORE)
    wording(said([use]))


def test_what_a_user_calls_a_process_controls_no_terminal():
    """ReFrame prints these sentences when a check fails."""
    name, shown = "a\x1b]0;b\x07\nc", "a\\x1b]0;b\\x07\\nc"
    found = document([device(0, processes=[factories.process(command=name)])])
    assert f"rocess 4711 ({shown} of user ada) used device 0" in said(state.disturbances(found))[0]
    others = factories.host_use(15.8, loops=1)
    others["processes"][0]["command"] = name
    (sentence,) = said(state.disturbances(document(others=others)))
    assert f"{shown} of user root" in sentence and "\x1b" not in sentence


def test_busy_host_is_told_with_who_it_is(wording):
    built = document(others=factories.host_use(15.8, loops=5))
    (busy,) = state.disturbances(built)
    assert (busy.share, len(busy.processes)) == (pytest.approx(15.8 / 16), 5)
    wording(said([busy]))


def test_most_of_it_is_said_where_it_is_known(wording):
    (busy,) = state.disturbances(document(others=factories.host_use(2.1, loops=2)))
    assert (busy.busy_cores, len(busy.processes)) == (2.1, 2)
    wording(said([busy]))


@pytest.mark.parametrize(
    ("busy", "cores", "found"),
    [(1.0, 2, False), (1.1, 2, True), (3.2, 64, False), (3.3, 64, True), (1.1, None, True)],
)
def test_host_is_busy_beyond_one_core_and_a_share(busy, cores, found):
    built = document(others=factories.host_use(busy))
    built["state"]["after"]["host"]["cores"] = cores
    assert (state.busy_host(built) is not None) == found


def test_hypervisor_that_takes_time_is_a_cause(wording):
    (stolen,) = state.disturbances(document(others=factories.host_use(0.2, stolen=0.4)))
    assert (stolen.stolen_cores, stolen.busy) == (0.4, False)
    wording(said([stolen]))
    assert not state.disturbances(document(others=factories.host_use(0.2, stolen=0.1)))


def test_one_tick_in_a_short_interval_is_no_theft():
    # 10 ms of 0.04 s are a quarter of a core, and more than 1 % of 16.
    tick = factories.host_use(0.2, seconds=0.04, stolen=0.25)
    built = document()
    built["state"] = {"before": factories.snapshot(others=tick), "after": None}
    assert not state.disturbances(built)


def test_interval_over_the_run_decides_and_not_the_moment_before_it():
    built = document()
    built["state"]["before"]["host"]["others"] = factories.host_use(15, seconds=0.04)
    assert not state.disturbances(built)


def test_short_intervals_count_where_none_covers_the_run(wording):
    built = document(others=factories.host_use(15, seconds=0.04))
    assert state.busy_host(built).when == When.AFTER
    built["state"]["after"] = None
    built["state"]["before"]["host"]["others"] = factories.host_use(15, seconds=0.04)
    assert state.busy_host(built).when == When.BEFORE
    wording(said(state.disturbances(built)))


@pytest.mark.parametrize(("rise", "found"), [(0.1, False), (0.11, True)])
def test_throttling_counts_beyond_one_percent_of_the_run(rise, found):
    before = [device(0, throttled_s={"power": 7.0}), device(1)]
    after = [device(0, throttled_s={"power": 7.0 + rise}), device(1)]
    assert bool(state.throttled(document(before, after))) == found


def test_throttling_is_told_with_reason_time_and_the_clock_of_the_snapshot_that_shows_it(wording):
    before = [device(0, throttled_s={"power": 7.0}), device(1)]
    # The clock of a device that idles after the run is no cause.
    idle = [device(0, throttled_s={"power": 9.5}, clock_mhz=345), device(1)]
    slow = [device(0, throttled_s={"power": 9.5}, throttle=["power"], clock_mhz=1310), device(1)]
    for last, clock in ((idle, None), (slow, 1310)):
        (throttled,) = state.throttled(document(before, last))
        assert (throttled.reasons, throttled.seconds) == (("power",), 2.5)
        assert throttled.clock_mhz == clock
        wording(said([throttled]))


def test_reason_in_a_snapshot_is_throttling_without_any_counter(wording):
    hot = device(0, throttle=["thermal"], throttled_s=None, clock_mhz=1310)
    built = document([hot, device(1)])
    built["state"]["after"] = None
    (throttled,) = state.throttled(built)
    assert (throttled.reasons, throttled.seconds) == (("thermal",), None)
    assert (throttled.clock_mhz, throttled.when) == (1310, When.BEFORE)
    wording(said([throttled]))
    assert not state.throttled(built, {1})


def test_errors_are_what_is_new(wording):
    before = [device(0, memory_errors={"corrected": 3, "uncorrected": 1}, pcie={"replays": 9})]
    after = [
        device(0, memory_errors={"corrected": 5, "uncorrected": 2}, pcie={"replays": 21}),
        device(1),
    ]
    built = document(before, after)
    new = {"corrected memory error": 2, "uncorrected memory error": 1, "PCIe replay": 12}
    for what, number in new.items():
        (errors,) = state.errors(built, what)
        assert (errors.device.index, errors.number) == (0, number)
        wording(said([errors]))


def test_errors_of_memory_controllers_are_those_of_the_host(wording):
    built = document()
    for when, uncorrected in (("before", 1), ("after", 3)):
        built["state"][when]["host"]["memory_errors"] = [
            {"controller": "mc0 (F19h_M30h)", "corrected": 7, "uncorrected": 0},
            {"controller": "mc8 (MI200)", "corrected": 0, "uncorrected": uncorrected},
        ]
    (errors,) = state.errors(built, "uncorrected memory error")
    assert (errors.number, errors.weighs) == (2, "uncorrected")
    wording(said([errors]))
    assert not state.errors(built, "uncorrected memory error", {0, 1}) and not state.causes(built)
    built["state"]["after"]["host"]["memory_errors"][0]["corrected"] = 8
    (errors,) = state.causes(built)
    assert (errors.number, errors.weighs) == (1, "corrected")
    wording(said([errors]))
    built["state"]["before"]["host"]["memory_errors"] = None
    assert not state.errors(built, "uncorrected memory error")


def test_a_narrow_pcie_link_is_named(wording):
    narrow = device(1, pcie={"width": 8})
    built = document([device(0), narrow], [device(0), narrow])
    (link,) = state.causes(built)
    assert (link.device.index, link.width, link.most) == (1, 8, 16)
    wording(said([link]))
    assert not state.slowdowns(built, {0})
    unknown = device(1, pcie={"width": 8, "width_max": None})
    assert not state.causes(document([device(0), unknown], [device(0), unknown]))


def test_counter_that_went_down_tells_nothing():
    before = [device(0, memory_errors={"corrected": 3, "uncorrected": 4}, pcie={"replays": 9},
                     throttled_s={"power": 9.0})]  # fmt: skip
    assert not state.slowdowns(document(before, [device(0), device(1)]))
    assert not state.errors(document(before, [device(0), device(1)]), "uncorrected memory error")


def test_counter_that_is_not_known_tells_nothing():
    unknown = device(0, memory_errors=None, pcie=None, links=None, throttled_s=None, throttle=None)
    unknown["processes"] = None
    counted = device(0, memory_errors={"corrected": 3, "uncorrected": 4}, pcie={"replays": 9})
    for first, last in ((unknown, counted), (counted, unknown)):
        built = document([first, device(1)], [last, device(1)])
        assert not state.slowdowns(built)
        assert not state.disturbances(built)
        assert not state.errors(built, "uncorrected memory error")


def test_links_that_went_down_and_their_errors_are_named(wording):
    errors = {"nvlink-replay": {"1": 2}, "nvlink-crc": {}}
    more = {"nvlink-replay": {"0": 4, "1": 2}, "nvlink-crc": {"0": 1, "3": 2}}
    before = device(0, links=factories.links(down=[2]), link_errors=errors)
    after = device(0, links=factories.links(down=[1, 2]), link_errors=more)
    built = document([before, device(1)], [after, device(1)])
    down, replays, crc = state.slowdowns(built)
    assert down.links == (1,)
    assert [(each.number, each.links) for each in (replays, crc)] == [(4, (0,)), (3, (0, 3))]
    wording(said([down, replays, crc]))


def test_link_counter_that_stands_is_no_cause():
    standing = {"nvlink-replay": {"4": 12}, "xgmi-uncorrected": {"all": 3}}
    before, after = ([device(0, link_errors=standing), device(1)] for _ in range(2))
    assert not state.causes(document(before, after))


def test_kind_of_link_error_that_only_one_snapshot_has_tells_nothing():
    first, last = {"nvlink-replay": {}}, {"nvlink-replay": {}, "xgmi-uncorrected": {"all": 3}}
    for before, after in ((first, last), (last, first), (None, last), (last, None)):
        built = document(
            [device(0, link_errors=before), device(1)], [device(0, link_errors=after), device(1)]
        )
        assert not state.causes(built)


def test_one_counter_for_all_links_names_no_link(wording):
    before, after = ({"xgmi-corrected": {"all": number}} for number in (3, 10))
    built = document(
        [device(0, link_errors=before), device(1)], [device(0, link_errors=after), device(1)]
    )
    (errors,) = state.causes(built)
    assert (errors.number, errors.links) == (7, ())
    wording(said([errors]))


def test_counters_that_went_back_are_named(wording):
    before = device(0, link_errors={"nvlink-replay": {"4": 9}}, memory_errors={"corrected": 3})
    after = device(0, link_errors={"nvlink-replay": {}}, memory_errors={"corrected": 1})
    built = document([before, device(1)], [after, device(1)])
    (back,) = state.causes(built)
    assert (back.device.index, len(back.whats)) == (0, 2)
    wording(said([back]))
    assert not state.slowdowns(built)


def test_counter_of_a_link_that_went_down_did_not_go_back():
    before = device(0, link_errors={"nvlink-replay": {"4": 9}})
    after = device(0, link_errors={"nvlink-replay": {}}, links=factories.links(down=[4]))
    built = document([before, device(1)], [after, device(1)])
    (down,) = state.causes(built)
    assert (down.device.index, down.links) == (0, (4,))


def test_errors_of_a_link_whose_counter_was_reset_are_not_told():
    replays = {"0": 9, "1": 2}, {"0": 1, "1": 3}
    before, after = (
        [device(0, link_errors={"nvlink-replay": each}), device(1)] for each in replays
    )
    [told] = state.link_errors(document(before, after))
    assert (told.number, told.links) == (1, (1,))


def test_nothing_is_new_of_a_run_that_was_killed():
    built = document([device(0, memory_errors={"uncorrected": 4})])
    built["state"]["after"] = None
    assert not state.slowdowns(built)
    assert not state.errors(built, "uncorrected memory error")


def test_causes_follow_a_sentence(wording):
    hot = device(0, throttle=["power"], clock_mhz=1310)
    causes = state.slowdowns(document([hot, device(1)]))
    base = "Metric x: pair 0-1, devices 0 (0000:41:00.0) and 1 (0000:42:00.0) measured 71 GB/s."
    wording(with_causes(base, causes))
    full = with_causes("It is slow.", causes, addresses=True)
    assert full.startswith("It is slow; device 0 (0000:41:00.0) was")
    assert with_causes(base, []) == base


def test_same_cause_of_two_runs_is_one(wording):
    def causes(power, processes):
        before = [device(0, throttled_s={"power": 0}), device(1, processes=processes)]
        replays = {"replays": int(power)}
        after = [device(0, throttled_s={"power": power}, pcie=replays), device(1)]
        built = document(before, after)
        return [*state.throttled(built), *state.errors(built, "PCIe replay"), *state.uses(built)]

    first, second = causes(1.0, [factories.process()]), causes(3.0, [factories.process()])
    assert [one.key for one in first] == [one.key for one in second]
    wording(said(one.with_(other) for one, other in zip(first, second, strict=True)))


def test_devices_of_series_are_all_that_take_part():
    built = factories.on_h200(series=factories.pair_series())
    assert state.devices_of(built["series"][:1], built) == {0, 1}
    assert state.devices_of(factories.on_h200()["series"], built) == {0}
    ranks = [{"rank": 0, "device": 1}, {"rank": 1, "device": None}]
    of_ranks = factories.series(device=None, device_set=[], ranks=[0, 1])
    of_ranks["source"] = of_ranks["destination"] = factories.place("host-pageable", None)
    assert state.devices_of([of_ranks], factories.on_h200(ranks=ranks)) == {1}
    # Of a message the set need not have the other end.
    ends = {"source": factories.place(device=0), "destination": factories.place(device=1)}
    assert state.devices_of([factories.series(device_set=[0], **ends)], built) == {0, 1}


STATES = Path(__file__).parents[1] / "outputs" / "state"


def measured(name):
    """Load a document of two H200."""
    return load(STATES / f"h200-{name}.json")


def test_a_quiet_node_with_h200_has_no_cause():
    quiet = measured("healthy")
    assert state.causes(quiet) == []
    both = (quiet["state"]["before"], quiet["state"]["after"])
    assert all(one["seconds"] < 0.1 and len(one["devices"]) == 2 for one in both)


def test_another_process_on_h200_is_named(wording):
    wording(said(state.causes(measured("shared"))))


def test_loops_on_all_cores_beside_h200_are_named(wording):
    wording(said(state.causes(measured("busy"))))


def on_bus(before, after=None, **changes):
    """Build a document of two H200 whose PCI bus shows some functions; None of an older one."""
    built = factories.on_h200(**changes)
    for moment, functions in (("before", before), ("after", before if after is None else after)):
        if functions is not None:
            built["state"][moment]["host"]["pci_functions"] = functions
    return parse(json.dumps(built))


BOTH = [factories.pci_function(0x41), factories.pci_function(0x42)]


def addresses(functions):
    return [one["address"] for one in functions]


def test_an_accelerator_that_only_pci_shows_is_found():
    assert not state.undriven_functions(on_bus(BOTH))
    found = state.undriven_functions(on_bus([*BOTH, factories.pci_function(0x43, driver=None)]))
    assert addresses(found) == ["0000:43:00.0"]


@pytest.mark.parametrize(
    ("other", "changes"),
    [
        (factories.pci_function(0x43, device="0x1eb8"), {}),  # another kind, as for a display
        (factories.pci_function(0x43, vendor="0x1002"), {}),
        (
            factories.pci_function(0x43),
            {"program": factories.document()["program"]},
        ),  # virtual devices
        (
            factories.pci_function(0x43),
            {"settings": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1", "concerns": "devices"}]},
        ),
    ],
)
def test_what_is_no_device_of_the_runtime_is_none_that_lacks(other, changes):
    assert not state.undriven_functions(on_bus([*BOTH, other], **changes))


def test_where_the_bus_is_unknown_nothing_lacks():
    assert not state.undriven_functions(on_bus(None))
    assert not state.lost_functions(on_bus(None))
    unfinished = on_bus(BOTH)
    unfinished["state"]["after"] = None
    assert not state.lost_functions(unfinished)


def test_without_any_device_all_of_the_vendor_lack():
    seen = factories.aftermath(pci_functions=BOTH)
    built = factories.on_h200(number=0, aftermath=seen, series=[], complete=False,
                              outcome=NO_DEVICE)  # fmt: skip
    del built["state"]
    assert state.undriven_functions(parse(json.dumps(built))) == BOTH


NO_DEVICE = {"exit_code": 3, "status": "unsupported", "message": "no device"}


def test_an_accelerator_that_pci_does_not_show_any_more_is_lost():
    assert not state.lost_functions(on_bus(BOTH))
    assert state.lost_functions(on_bus(BOTH, BOTH[:1])) == BOTH[1:]
    # The aftermath is the later one of both.
    later = on_bus(BOTH, aftermath=factories.aftermath(pci_functions=[]))
    assert state.lost_functions(later) == BOTH
    assert not state.lost_functions(on_bus(BOTH, aftermath=factories.aftermath()))


def line(text, kind="unclear", address=None, **row):
    return {"kind": kind, "pci_address": address, "text": text} | row


def logged(*lines):
    """Return the sentences on lines of the kernel's log on a node of two H200."""
    built = on_bus(BOTH, aftermath=factories.aftermath(kernel_log=list(lines)))
    return said(state.logged(built))


def test_what_a_log_says_has_its_device_its_meaning_and_the_action_of_the_vendor(wording):
    wording(
        logged(line("NVRM: Xid (PCI:0000:41:00): 48", "hardware", "0000:41:00.0", row="xid-48"))
    )
    wording(logged(line("[Hardware Error]: x", "hardware", row="mce")))
    wording(logged(line("NVRM: Xid (PCI:0019:01:00): 9999", "unclear", "0019:01:00.0")))


def test_lines_of_hardware_come_first_and_alike_ones_are_counted(wording):
    found = logged(
        line("first of 31", row="xid-restart-app"),
        line("off the bus", "hardware", row="xid-79"),
        line("second of 31", row="xid-restart-app"),
    )
    assert len(found) == 2
    wording(found)


def test_older_lines_on_hardware_stay_apart_though_they_have_no_row():
    assert len(logged(line("one", "hardware"), line("other", "hardware"))) == 2


def test_a_line_is_quoted_without_control_characters_and_cut():
    (found,) = logged(line("one\nscontrol x\x1b[2J\u202e" + 300 * "x", row="xid-other"))
    assert '"one scontrol x\\x1b[2J\\u202exxx' in found and "xxx..." in found
    assert len(found) < 400 and "\n" not in found


def test_what_a_runtime_wrote_is_told_and_nothing_without_an_aftermath():
    built = on_bus(BOTH, aftermath=factories.aftermath(runtime_log=[line("HW Exception")]))
    assert "HW Exception" in said(state.logged(built))[0]
    assert not state.logged(on_bus(BOTH, aftermath=factories.aftermath()))
    assert not state.logged(on_bus(BOTH))


def test_each_row_of_the_table_has_a_source_and_known_words():
    rows = log_lines.rows().values()
    assert {row.kind for row in rows} | {row.of_accelerator for row in rows} == {
        "hardware",
        "unclear",
    }
    for row in rows:
        assert row.source[1].startswith("https://")
        assert row.meaning or row.name == "xid-other"
        assert row.action is None or (row.vendor and row.action in vocabulary.LOG_ACTIONS)
        assert (row.action is None) == bool(row.looked_at)
        for _, url in (row.action_source, *row.looked_at):
            assert url.startswith("https://")
    assert len(log_lines.table()) == len(rows) + 2


RUNNING = {"exit_code": None, "status": "running", "message": None}


@pytest.mark.parametrize(
    ("port", "clause"),
    [
        (None, "the PCIe link of device 0 (0000:41:00.0) has 4 of 16 lanes"),
        (8, "the PCIe link of device 0 (0000:41:00.0) has 4 of 8 lanes"),
        (4, None),
    ],
)
def test_a_link_is_narrow_that_has_fewer_lanes_than_both_ends_support(port, clause):
    pcie = {"width": 4, "width_max_port": port}
    found = state.narrow_pcie(document([device(pcie=pcie)]))
    assert [one.clause() for one in found] == ([clause] if clause else [])
    assert [one.both_ends for one in found] == ([port is not None] if clause else [])
