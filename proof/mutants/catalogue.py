"""The mutants: slips as they happen, in each room that judges."""

from __future__ import annotations

from proof.mutants.drawn import DRAWN
from proof.mutants.mutant import Mutant

#: Tests that several mutants name.
_PARTS = ("rfm/test_parts.py",)
_RELATIVE = ("rfm/test_relative.py", "limits/test_limits.py")
_LIMITS = ("limits/test_limits.py",)
_RUN_MATCH = ("rfm/test_run_match.py",)
_DOCUMENT = ("results/test_document.py",)
_STATE = ("results/test_state.py", "verdict/test_verdict_state.py")
_VERDICT = ("verdict/test_verdict_rules.py", "verdict/test_verdict_orders.py")
_NODES = ("verdict/test_verdict_nodes.py", "verdict/test_verdict_rules.py")
_PROVISIONAL = ("verdict/test_verdict_provisional.py",)
_EVIDENCE = ("verdict/test_verdict_evidence.py",)
_WHOLE = ("verdict/test_verdict_documents.py", "verdict/test_verdict_command.py")
_ENTRIES = ("rfm/test_references.py",)
_RULES = ("references/test_rules.py",)
_ORIGIN = ("references/test_provenance.py",)
_STATED = ("references/test_references_command.py", "calibration/test_sets.py")
_TOPOLOGY = ("topology/test_topology_compare.py",)
_COMPARE = ("comparison/test_judging.py", "comparison/test_compare_sessions.py")
_GATHER = ("calibration/test_gathering.py",)
_STEPS = ("rfm/test_steps.py::test_a_step_over_several_nodes_has_as_many_tasks_on_each",)


def _session(test: str) -> tuple[str]:
    """Name a test that lets ReFrame judge a stand-in."""
    return (f"rfm/test_silent_passes.py::{test}",)


METRICS = (
    Mutant("the best of a metric's series is taken for the worst", "rfm/metrics.py",
           '(self.reduce == "worst") == (chosen[0]["better"] == "higher")',
           '(self.reduce == "worst") != (chosen[0]["better"] == "higher")', _PARTS),
    Mutant("the mean is taken for the median", "rfm/metrics.py",
           "statistics.median(medians)", "statistics.fmean(medians)", _PARTS),
    Mutant("the median of the others has the member itself", "rfm/relative.py",
           "rest = [other for other in members if other is not member]", "rest = list(members)",
           _RELATIVE),
    Mutant("the other direction of a cable is one of the others", "rfm/relative.py",
           "rest = over_other_cables or rest", "rest = rest", _RELATIVE),
    Mutant("of alike latencies the shortest is behind", "rfm/relative.py",
           'if better == "higher" else (others, value)',
           'if better == "higher" else (value, others)', _RELATIVE),
    Mutant("of several ways the one in which a member is most behind counts", "rfm/relative.py",
           "percents.append(max(by_way))", "percents.append(min(by_way))", _RELATIVE),
    Mutant("pairs over several links have the limit of direct ones", "results/series.py",
           "if not direct:", "if unit is None:", _LIMITS),
    Mutant("a collective is compared with its widest link", "rfm/base.py",
           "link = min(node.peer_peak_gbs(*pair)", "link = max(node.peer_peak_gbs(*pair)",
           _LIMITS),
    Mutant("a rule replaces the reference that a file states", "rfm/metric_limits.py",
           "        if entries.required(stated):\n",
           "        if entries.required(stated) and metric.rule is None:\n", _LIMITS),
    Mutant("a metric without a value is met", "rfm/base.py",
           "        if lost:\n", "        if lost and not judged:\n",
           _session("test_a_declared_metric_without_a_value")),
    Mutant("a session without a judgement ends well", "rfm/guard.py",
           '("skip_sanity_check", "skip_performance_check")', '("skip_sanity_check",)',
           ("rfm/test_choice_of_checks.py::test_a_session_that_judges_nothing_is_refused",)),
    Mutant("a session whose checks were all skipped ends well", "rfm/started_session.py",
           "        if not ended.ran:\n", "        if ended.ran is None:\n",
           _session("test_every_test_case_skipped")),
)  # fmt: skip

BELIEF = (
    Mutant("a value above the physical bound is believed", "rfm/base.py",
           "self._refuse(document, [*faults, *beyond], doubts)",
           "self._refuse(document, faults, doubts)",
           _session("test_a_program_that_does_it_wrong_fails_the_check[above-physics]")),
    Mutant("each pair is bound by the widest link class", "rfm/acceptance.py",
           "peak = sum(node.peer_peak_gbs(*pair) for pair in pairs)",
           "peak = sum(max(map(max, node.direct_peaks_gbs)) for _ in pairs)",
           ("rfm/test_simulated_sessions.py::test_a_pair_is_bound_by_its_widest_path",)),
    Mutant("one wrong word is no wrong data", "rfm/acceptance.py",
           'if verification["errors"]:', 'if verification["errors"] > 1:', _RUN_MATCH),
    Mutant("what was verified in part counts as verified", "rfm/acceptance.py",
           "if checked < least:", "if not checked:", _RUN_MATCH),
    Mutant("the tolerance between both clocks is doubled", "rfm/acceptance.py",
           "CLOCKS_DIFFER = 1.1\n", "CLOCKS_DIFFER = 1.2\n", _RUN_MATCH),
    Mutant("a run with injected faults counts as a measurement", "rfm/acceptance.py",
           'if document["faults_injected"]:',
           'if document["faults_injected"] and not document["complete"]:', _RUN_MATCH),
    Mutant("a run with another runtime is believed", "rfm/acceptance.py",
           "if ran_with != runtime:", "if not runtime:", _RUN_MATCH),
    Mutant("two ranks on one device are well placed", "rfm/findings.py",
           "if others and not shared:", "if others and shared:", ("rfm/test_binding.py",)),
)  # fmt: skip

SESSIONS = (
    Mutant("a pair has its share of the least used link", "node/contention.py",
           "return max(uses[hop]", "return min(uses[hop]", ("rfm/test_relative.py",)),
    Mutant("of single messages the median of the pairs counts", "rfm/nodes.py",
           "longest = max(time for time in times if time is not None)",
           "longest = statistics.median(time for time in times if time is not None)",
           ("rfm/test_nodes.py::test_the_longest_of_the_single_messages_of_all_pairs_counts",)),
    Mutant("what is measured again counts in the median of the NICs", "rfm/nodes.py",
           'if measured_round["phase"] != 1:', 'if measured_round["phase"] < 1:',
           ("rfm/test_nodes.py::test_what_is_measured_again_is_not_in_the_median_of_the_nics",)),
    Mutant("each node has the tasks of all", "schedulers/slurm.py",
           "--ntasks-per-node={tasks // number}", "--ntasks-per-node={tasks}", _STEPS),
    Mutant("of several nodes a task alone on its node has one core", "schedulers/slurm.py",
           "if tasks == number:", "if tasks == 1:", _STEPS),
    Mutant("two sessions measure a node at once", "rfm/node_lock.py",
           "_held_machine(fcntl.LOCK_EX, wait)", "_held_machine(fcntl.LOCK_SH, wait)",
           ("rfm/test_node_lock.py::test_a_session_waits_no_longer_than_the_user_wants",)),
    Mutant("one of the features that imply a check is enough", "site/partitions.py",
           "any(features.issuperset(", "any(features.intersection(",
           ("rfm/test_session_checks.py::test_no_check_vanishes_from_a_shipped_site",)),
    Mutant("OSU's launches that compare data are not marked", "rfm/benchmarks.py",
           "verifies=verifies,", "verifies=False,", ("rfm/test_pairs_of_checks.py",)),
    Mutant("half a line is left where a long log is cut", "results/archive.py",
           'tail.partition(b"\\n")[2]', "tail",
           ("first_hour/test_first_hour.py::test_a_long_log_is_cut_between_lines",)),
)  # fmt: skip

RESULTS = (
    Mutant("noisy series count as fine", "results/series.py",
           'return series["noisy"] and series["regime"] == "memory"',
           'return series["noisy"] and series["regime"] == "cache"', (*_RUN_MATCH, *_DOCUMENT)),
    Mutant("a good outcome needs no data that was verified", "results/document.py",
           'if not series["verification"]["bytes_checked"]:',
           'if series["verification"]["bytes_checked"] < 0:', _DOCUMENT),
    Mutant("a stated median may be 1 % from its samples", "results/document.py",
           "TOLERANCE = 1e-6", "TOLERANCE = 1e-2", _DOCUMENT),
    Mutant("a good outcome may have wrong words", "results/document.py",
           "    if errors:", "    if errors > 1:", _DOCUMENT),
    Mutant("an interval of 90 % is taken for one of 95 %", "core/statistics.py",
           "if 2 * one_in * below > 2**n:", "if one_in * below > 2**n:",
           ("results/test_statistics.py",)),
    Mutant("the throttled share of a run is taken for seconds", "results/state.py",
           "if seconds > THROTTLED_SHARE * length]", "if seconds > THROTTLED_SHARE]", _STATE),
    Mutant("a link's counter that was reset takes errors away", "results/state.py",
           "else max(after - before, 0)", "else after - before", _STATE),
    Mutant("a process on another device excuses a slow metric", "results/state.py",
           'if devices is not None and state["index"] not in devices', "if False", _STATE),
    Mutant("the devices at the ends of a transfer take no part in it", "results/state.py",
           '{*each["device_set"], each["source"]["device"], each["destination"]["device"]}',
           '{*each["device_set"]}', _STATE),
)  # fmt: skip

VERDICT = (
    Mutant("PASS overrules DATA-FAIL", "judge/verdict/rules.py",
           "return min(statuses, key=STATUSES.index", "return max(statuses, key=STATUSES.index",
           _VERDICT),
    Mutant("UNSTABLE comes before PERF-FAIL", "judge/verdict/rules.py",
           '    "PERF-FAIL",\n    "UNSTABLE",\n', '    "UNSTABLE",\n    "PERF-FAIL",\n', _VERDICT),
    Mutant("wrong data beside a pass only varies", "judge/verdict/rules.py",
           'verification errors. Once is enough for the status.",\n        "DATA-FAIL",',
           'verification errors. Once is enough for the status.",\n        "UNSTABLE",', _VERDICT),
    Mutant("ReFrame's pass counts whatever the document says", "judge/verdict/attempts.py",
           "self.case.passed and not self.findings", "self.case.passed", _VERDICT),
    Mutant("what slowed a device itself excuses it", "judge/verdict/attempts.py",
           "others = state.disturbances(self.document, devices)",
           "others = state.causes(self.document, devices)", _STATE),
    Mutant("checks that only other nodes ran are not missed", "judge/verdict/node_facts.py",
           "if key not in self.outcomes and key[2] not in absent:",
           "if key in self.outcomes and key[2] not in absent:", _NODES),
    Mutant("a requested node without a result is omitted", "judge/verdict/judging.py",
           "missed = dict.fromkeys((*results.requested, *expected_nodes))",
           "missed = dict.fromkeys(expected_nodes)", _NODES),
    Mutant("a check that skips itself and ran before is a pass", "rfm/started_session.py",
           "sorted(skips & set(before.ran))", "()",
           _session("test_a_check_that_skips_itself_and_ran_before_is_missed")),
    Mutant("the set of one session is that of all", "judge/verdict/outcomes.py",
           "    if len(each) == 1:\n        return next", "    if each:\n        return next",
           _NODES),
    Mutant("one calibrated partition makes a pass of all a proven one",
           "judge/verdict/model.py",
           'if status == "PERF-FAIL" and len(provisional) < len(resting)',
           "if len(provisional) < len(resting)",
           _PROVISIONAL),
    Mutant("a provisional verdict drains", "judge/verdict/evidence.py",
           'if reason.rule == "reference" and run',
           'if reason.rule == "" and run', _EVIDENCE),
    Mutant("one failure is a contrast", "judge/verdict/evidence.py",
           "run.failures[way] < TIMES", "run.failures[way] < 1", _EVIDENCE),
    Mutant("nodes with another driver are a contrast", "judge/verdict/runs.py",
           'drivers=_known(document["versions"].get("driver") for document in ran)',
           'drivers=("any",)', _EVIDENCE),
    Mutant("many nodes that fail alike are accused", "judge/verdict/evidence.py",
           "if alike > max(1, FEW * len(cohort)):", "if alike > len(cohort):", _EVIDENCE),
    Mutant("a doubt does not make the line a comment", "report/scheduler.py",
           "if not drain.live:", "if not drain:", _EVIDENCE),
    Mutant("a full disk isolates a node", "judge/verdict/rules.py",
           'frozenset({"time-limit", "ended", "refused"})',
           'frozenset({"time-limit", "ended", "refused", "software"})', _EVIDENCE),
    Mutant("other devices are judged by limits", "judge/verdict/outcomes.py",
           "        return others[attempt.began]\n", "        return worst\n", _EVIDENCE),
    Mutant("nodes that passed hide one that failed", "judge/verdict/evidence.py",
           "EXIT_NODE_FAILED if statuses & FAILED", "EXIT_NODE_FAILED if statuses <= FAILED",
           _WHOLE),
    Mutant("the exit code of a verdict is lost", "cli/verdict.py",
           "return total.exit_code", "return 0", _WHOLE),
)  # fmt: skip

REFERENCES = (
    Mutant("an upper limit requires nothing", "references/entries.py",
           "for bound in entry[1:3])", "for bound in entry[1:2])", _ENTRIES),
    Mutant("a calibration that requires nothing takes a limit away", "references/stated.py",
           "return has_table or requires(entry) or not requires(plain)", "return True", _STATED),
    Mutant("reference files that changed are not read again", "references/stated.py",
           "tuple((file, file.stat().st_mtime_ns) for file in files)", "tuple(files)", _STATED),
    Mutant("references of a set come before a partition's own", "references/stated.py",
           "for key in (partition, named, ANY) if", "for key in (named, partition, ANY) if",
           _STATED),
    Mutant("another partition's record comes before the own one", "references/stated.py",
           "given |= {name: (entry, record) for name, (entry, _) in record.entries(check).items()}",
           "given = {\n                name: (entry, record) for name, (entry, _) in "
           "record.entries(check).items()\n            } | given",
           ("calibration/test_transfer_and_noise.py",)),
    Mutant("a simulated record is a calibration of the machine", "references/calibrated.py",
           'return (record.partition, record.clock) == (partition, "measured")',
           "return record.partition == partition", _PROVISIONAL),
    Mutant("lower and upper limit of a collective are exchanged", "references/rules.py",
           "Rule((round(allowed_us, 3), None, factor - 1, unit), why)",
           "Rule((round(allowed_us, 3), factor - 1, None, unit), why)", _RULES),
    Mutant("a published value of another system is a reference", "references/entries.py",
           "if system != origin.system:", "if system is None:", _ORIGIN),
    Mutant("a published TB/s is 1024 GB/s", "references/published.py",
           '"TB/s": ("GB/s", 1e3)', '"TB/s": ("GB/s", 1024.0)', _ORIGIN),
)  # fmt: skip

OTHERS = (
    Mutant("a link class is taken for another", "tools/topology/comparison.py",
           "differs, seen = expected != links,", "differs, seen = bool(expected) != bool(links),",
           _TOPOLOGY),
    Mutant("a rotated NUMA map is accepted", "tools/topology/comparison.py",
           "if domain != device.domain:",
           "if domain not in {one.domain for one in model.devices}:", _TOPOLOGY),
    Mutant("one of its cores makes a device near to all", "tools/topology/comparison.py",
           "if expected <= listed:", "if expected & listed:",
           _TOPOLOGY),
    Mutant("the smaller floor of both sides counts", "judge/comparison/judging.py",
           "least = max(a.floor, b.floor)", "least = min(a.floor, b.floor)", _COMPARE),
    Mutant("a repetition that failed hides behind one that passed", "judge/comparison/compare.py",
           "(row for row in rows if not _good(row))", "(row for row in rows if _good(row))",
           _COMPARE),
    Mutant("an impossible value hides among repetitions", "judge/calibration/gathering.py",
           "next((value for value in values if value.impossible), None)",
           "values[0] if all(value.impossible for value in values) else None", _GATHER),
    Mutant("a longer latency is a tighter reference", "judge/calibration/changes.py",
           "farther = before - after if lower else after - before", "farther = before - after",
           ("calibration/test_nothing_loosened.py",)),
    Mutant("medians alone decide a claim", "papers/claims/kinds.py",
           "slow = number.low <= least if sure", "slow = number.value <= least if sure",
           ("papers/test_claim_rules.py",)),
    Mutant("the number of a switch is taken for that of its group", "judge/fabric/fit.py",
           "elif near[\"group\"] != far[\"group\"]", "elif near[\"switch\"] != far[\"switch\"]",
           ("fabric/test_attribution.py",)),
    Mutant("copies from a device are those to it", "judge/diagnosis/components.py",
           "return resource.source == ends[0]", "return resource.destination == ends[0]",
           ("diagnosis/test_components.py",)),
    Mutant("what was simulated in part is called only simulated", "judge/coverage.py",
           'and clocks == {"simulated"}', 'and "simulated" in clocks', ("cli/test_coverage.py",)),
)  # fmt: skip

MUTANTS = (*METRICS, *BELIEF, *SESSIONS, *RESULTS, *VERDICT, *REFERENCES, *OTHERS, *DRAWN)
