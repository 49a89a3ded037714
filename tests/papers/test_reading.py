"""What a plan can say of host-device copies: two operations, domains, variables."""

from __future__ import annotations

import pytest

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.node import load
from fabricheck.papers.fidelity import compare, evaluate, value_of
from fabricheck.papers.fidelity_plan import Read, read_plan
from fabricheck.tools.runner import ProgramFailed


def series(operation, median, *, device=0, domain=3, size=10**9):
    host = {"memory": "host-pageable", "device": None, "numa_domain": domain}
    end = {"memory": "device", "device": device, "numa_domain": None}
    source, destination = (host, end) if operation.startswith("h2d") else (end, host)
    return {
        "operation": operation,
        "device_set": [device],
        "role": "single",
        "source": source,
        "destination": destination,
        "bytes": size,
        "bytes_moved": size,
        "bytes_counted": "once",
        "unit": "GB/s",
        "median": median,
    }


def value(found, device=0, **read):
    asked = Read.model_validate({"run": "host", **read})
    return value_of({"host": {"series": found}}, asked, (device,), load("mi250x"))


def test_several_operations_are_one_after_the_other():
    found = [series("h2d-sync", 20.0), series("d2h-sync", 10.0)]
    both = {"operation": ["h2d-sync", "d2h-sync"]}
    assert value(found, **both, counts="once") == pytest.approx(2 / (1 / 20 + 1 / 10))
    assert value(found, **both, **{"as": "time"}) == pytest.approx(150e3)
    assert value(found, operation="h2d-sync", counts="once") == pytest.approx(20)
    with pytest.raises(InvalidInputError, match="has 0 series of operation d2h-sync"):
        value(found[:1], **both, counts="once")


def test_operations_may_be_of_several_runs(node):
    documents = {
        "down": {"series": [series("h2d-sync", 20.0)]},
        "up": {"series": [series("d2h-sync", 10.0)]},
    }
    read = {"run": ["down", "up"], "operation": ["h2d-sync", "d2h-sync"], "counts": "once"}
    found = value_of(documents, Read.model_validate(read), (0,), node)
    assert found == pytest.approx(2 / (1 / 20 + 1 / 10))
    with pytest.raises(InvalidInputError, match="The run 'down and up' has 0 series"):
        value_of(documents, Read.model_validate(read), (1,), node)


def test_host_memory_is_near_or_the_slowest_of_the_far_domains():
    found = [
        series("h2d", rate, domain=domain) for domain, rate in enumerate((27.0, 26.0, 28.5, 28.0))
    ]
    read = {"operation": "h2d", "counts": "once"}
    assert value(found, **read, domain="near") == pytest.approx(28)
    assert value(found, **read, domain="far") == pytest.approx(26)
    with pytest.raises(InvalidInputError, match="has 4 series of operation h2d at place 0"):
        value(found, **read)
    with pytest.raises(InvalidInputError, match="has 0 series"):
        value(found[3:], **read, domain="far")


def numa_statement(content):
    content["runs"]["numa"] = {"program": "memcpy", "arguments": "--domains each"}
    read = {"run": "numa", "operation": "h2d", "counts": "once"}
    content["statements"] = [
        {
            "title": "memory of another domain",
            "places": "0,4",
            "read": {**read, "domain": "far"},
            "against": {**read, "domain": "near"},
            "near": "paper-numa-nonlocal",
        }
    ]


@pytest.mark.parametrize(("far", "holds"), [(28.0, True), (27.0, True), (26.0, False)])
def test_a_statement_compares_with_another_reading(changed, node, documents, far, holds):
    plan = read_plan(changed(numa_statement), node)
    rates = [(0, 3, 28.0), (0, 0, 28.0), (4, 0, 28.0), (4, 1, far)]
    numa = [series("h2d", rate, device=device, domain=domain) for device, domain, rate in rates]
    [judged] = evaluate(plan, {**documents, "numa": {"series": numa}}).statements
    assert (judged.low, judged.high) == (0, pytest.approx(1 - far / 28))
    assert judged.holds == holds
    assert judged.published == "about 0" and judged.unit == "ratio"


def test_another_reading_is_of_places_and_a_ratio(changed, node):
    def of_a_ratio(content):
        numa_statement(content)
        content["statements"][0].update(ratio=["0", "4"], places=None)

    with pytest.raises(InvalidInputError, match="a statement with against requires places"):
        read_plan(changed(of_a_ratio), node)

    def of_a_bandwidth(content):
        numa_statement(content)
        content["statements"][0]["near"] = "paper-p2p-bw-hi"

    with pytest.raises(InvalidInputError, match="'paper-p2p-bw-hi' is not a ratio"):
        read_plan(changed(of_a_bandwidth), node)


def test_what_is_left_out_may_be_a_pattern(changed, node):
    def leave(pattern):
        return lambda content: content["left_out"].update({pattern: "several ranks"})

    plan = read_plan(changed(leave("jsc-a100-*")), node)
    assert len(plan.records.matching("epicure-lumi-multi8-*-rank?")) == 16
    with pytest.raises(NotFoundError, match=r"no record 'epicure-nothing-\*'"):
        read_plan(changed(leave("epicure-nothing-*")), node)
    with pytest.raises(InvalidInputError, match="kth-bw-01 must occur only once"):
        read_plan(changed(leave("kth-bw-01*")), node)


def test_a_run_has_its_variables(changed, node, fake, monkeypatch):
    monkeypatch.setenv("HSA_XNACK", "0")
    folder = fake('echo "HSA_XNACK is $HSA_XNACK." >&2; exit 4')

    def variables(content):
        content["runs"]["copies"]["environment"] = {"HSA_XNACK": "1"}

    with pytest.raises(ProgramFailed, match=r"'copies' of p2p .* exit code 4: HSA_XNACK is 1\."):
        compare(node, folder, changed(variables))
