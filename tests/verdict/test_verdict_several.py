"""Results of several nodes: their own subject, which blames none of the nodes."""

from __future__ import annotations

import factories
from fabricheck.judge.verdict import evidence
from fabricheck.report import scheduler
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes, now, write
from session_builder import SessionBuilder, failed, good_case, judge, missed, rules

ALONE = good_case("stream_local", node="node1")
BOTH = {
    "scheduler": "squeue",
    "job_nodelist": ["node1", "node2"],
    "tags": ["E17", "network"],
    "display_name": "mpi_nodes",
}


def of_nodes(case):
    return good_case("mpi_nodes") | case | BOTH


def measured(*hosts):
    """Return a document of one rank on each of some nodes."""
    ranks = [
        {
            "rank": number,
            "host": host,
            "cores": [0],
            "numa_domain": 0,
            "memory_domain": 0,
            "visible_devices": [0],
            "device": 0,
        }
        for number, host in enumerate(hosts)
    ]
    host = factories.document()["host"] | {"scheduler_node": hosts[0]}
    versions = factories.document()["versions"] | {"mpi": "an MPI"}
    return factories.document(host=host, ranks=ranks, versions=versions)


def test_a_slow_pair_of_nodes_drains_no_node(tmp_path):
    found = (
        SessionBuilder(tmp_path, command="reframe -r -t 'network|full'")
        .add(ALONE, factories.document())
        .add(of_nodes(missed("bandwidth_worst")), measured("node1", "node2"))
        .verdicts()
    )
    assert {node: one.status for node, one in found.items()} == {
        "node1": "PASS",
        "node[1-2]": "PERF-FAIL",
    }
    # Neither lacks the checks of the other.
    assert not any(one.checks.missing for one in found.values())
    total = evidence.session_verdict("run-0", found.values())
    assert total.exit_code == 12
    assert found["node[1-2]"].drain is None
    assert [row.node for row in total.nodes] == ["node1"]
    assert [row.node for row in total.networks] == ["node[1-2]"]


def test_traffic_beside_that_of_a_rank_is_a_caveat(tmp_path, wording):
    document = measured("node1", "node2")
    shares = {"cxi0": 1.0, "cxi2": 0.08}
    for rank in document["ranks"]:
        rank["network"] = {
            "nics": [{"name": name, "part": part} for name, part in shares.items()][
                : rank["rank"] + 1
            ],
            "transport": "nic",
            "provider": "cxi",
            "place": None,
        }
    found = SessionBuilder(tmp_path).add(of_nodes({}), document).verdict()
    assert found.status == "PASS"
    wording(one for one in found.caveats if "cxi" in one)


def test_a_network_of_which_nothing_is_proven_is_run_again_and_no_node(tmp_path, wording):
    lost = of_nodes(failed("sanity", "Messages did not leave it", error="SettingError"))
    found = SessionBuilder(tmp_path).add(lost, measured("node1", "node2")).verdicts()
    (one,) = found.values()
    assert (one.node, one.status, rules(one)) == ("node[1-2]", "INCOMPLETE", {"setting"})
    wording(scheduler.to_run_again(evidence.session_verdict("run-0", [one])))


def test_a_document_of_other_nodes_than_its_job_is_refused(tmp_path):
    found = SessionBuilder(tmp_path).add(of_nodes({}), measured("node1", "node3")).verdicts()
    assert rules(found["node[1-2]"]) == {"no-document"}


def test_the_network_of_a_job_that_left_nothing_is_incomplete(tmp_path, wording):
    job = tmp_path / "every-node" / "7"
    for node in ("node1", "node2"):
        SessionBuilder(job / node).passed(node=node).write()
    said = "The session of the network was stopped because its time had passed."
    nodes = {name: RequestedNode(results=name) for name in ("node1", "node2")}
    network = RequestedNode(results="network", how_ended=said)
    write(
        job / "nodes.json",
        RequestedNodes(partition=None, started=now(), nodes=nodes, network=network),
    )
    found = judge(job)
    assert {node: one.status for node, one in found.items()} == {
        "node1": "PASS",
        "node2": "PASS",
        "node[1-2]": "INCOMPLETE",
    }
    (reason,) = found["node[1-2]"].reasons
    assert said in reason.sentence
    wording(reason.sentence)


def test_a_killed_session_of_the_network_is_of_its_set_and_not_of_that_of_the_nodes(tmp_path):
    job = tmp_path / "every-node" / "7"
    within = "network/stage/20260102T030405-17/h200/x2/cuda/mpi_nodes/result.json"
    factories.write(job / within, measured("node1", "node2"))
    nodes = {name: RequestedNode(results=name) for name in ("node1", "node2")}
    requested = RequestedNodes(
        partition=None,
        chosen=("-t", "smoke"),
        started=now(),
        nodes=nodes,
        network=RequestedNode(results="network"),
    )
    write(job / "nodes.json", requested)
    found = judge(job)["node[1-2]"]
    assert found.set == "network"
    assert "p2p_engine" not in found.checks.missing


BAD = 2


def rounds(nodes=8):
    """Return rounds of nodes with two NICs each, of which node3's second is at half its rate."""

    def rate(nic, one, other):
        slow = nic == 1 and BAD in (one, other)
        return round((12.0 if slow else 24.0) * (1 + 0.001 * ((one + 3 * other) % 5)), 4)

    def measured(phase, pairs):
        way = [[rate(nic, *pair) for nic in (0, 1)] for pair in pairs]
        none = [[] for _ in pairs]
        columns = {"out": way, "back": way, "together_out": way, "together_back": way}
        return {"phase": phase, "distance": None, "seconds": 0.1, "pairs": pairs, **columns,
                "both": none, "latency": none}  # fmt: skip

    every = []
    for turn in range(nodes - 1):
        ring = [0, *(1 + (turn + place) % (nodes - 1) for place in range(nodes - 1))]
        pairs = [sorted((ring[place], ring[-1 - place])) for place in range(nodes // 2)]
        every.append(measured(1, pairs))
    again = [measured(2, [sorted((BAD, good))]) for good in (0, 1, 3, 4, 5)]
    return {
        "bytes": 1 << 20,
        "messages": 16,
        "repetitions": 3,
        "memory": "device",
        "planned": len(every),
        "bytes_checked": 1 << 20,
        "nodes": [
            {
                "node": f"node{number + 1}",
                "ranks": [2 * number, 2 * number + 1],
                "nics": [{"name": name, "place": None} for name in ("cxi0", "cxi1")],
            }
            for number in range(nodes)
        ],
        "rounds": every + again,
        "suspects": [{"node": BAD, "nic": 1}],
        "low_pairs": [],
        "left_out": [],
        "failed": [],
        "wrong": [],
    }


def test_only_what_rounds_name_is_a_reason_of_a_node(tmp_path):
    names = [f"node{number}" for number in range(1, 9)]
    document = measured(*(name for name in names for _ in range(2))) | {"rounds": rounds()}
    case = of_nodes(missed("named", unit="count")) | {"job_nodelist": names}
    found = (
        SessionBuilder(tmp_path, command="reframe -r -t 'network|full'")
        .add(ALONE, factories.document())
        .add(case, document)
        .verdicts()
    )
    assert found.keys() == {"node1", "node3", "node[1-8]"}
    assert rules(found["node3"]) == rules(found["node[1-8]"]) == {"network"}
    total = evidence.session_verdict("run-0", found.values())
    (line,) = scheduler.drain_lines(total.nodes)
    assert line.startswith("scontrol update NodeName=node3 State=DRAIN ") and "cxi1" in line
