"""Drawn slips that no test saw which was chosen for them, each with the test that sees it since."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

DRAWN = (
    Mutant(
        "all but a simulated node get a platform for their build",
        "rfm/build.py",
        "if self.simulated:",
        "if not self.simulated:",
        ("rfm/test_parts.py::test_a_build_writes_the_platform_of_a_simulated_node_alone",),
    ),
    Mutant(
        "a metric that has a direction is left out of a quiet session",
        "results/soaks.py",
        "if metric.value is None or metric.better is None or metric.noise is None:",
        "if metric.value is None or metric.better is not None or metric.noise is None:",
        (
            "drift/test_soak_command.py::test_a_quiet_session_leaves_the_metrics_that_have_a_direction_and_a_noise",
        ),
    ),
    Mutant(
        "what failed more often than it must is excused by its last pass",
        "judge/verdict/outcomes.py",
        "broken = any(times >= TIMES for times in failures(since).values())",
        "broken = any(times is TIMES for times in failures(since).values())",
        (
            "verdict/test_verdict_evidence.py::test_what_failed_after_its_last_pass_again_and_again_is_not_excused_by_it",
        ),
    ),
    Mutant(
        "a tool's version is a commit of ours",
        "judge/verdict/provenance.py",
        'if document["program"]["commit"] != UNKNOWN]',
        'if document["program"]["commit"] is not UNKNOWN]',
        ("verdict/test_verdict_documents.py::test_the_version_of_a_tool_is_none_of_ours",),
    ),
    Mutant(
        "every series but those of NUMA domains has domains as terms",
        "results/series_rows.py",
        "if self.experiment == OF_DOMAINS:",
        "if not self.experiment == OF_DOMAINS:",
        (
            "comparison/test_compare_sessions.py::test_numa_domains_are_terms_only_where_they_are_measured",
        ),
    ),
    Mutant(
        "a check that never got a node is with no node",
        "results/rows.py",
        "{name for name in names if name is not None} for where",
        "{name for name in names if name is None} for where",
        ("results/test_many_nodes.py::test_a_check_that_never_got_a_node_is_with_the_only_one",),
    ),
    Mutant(
        "a check of the network is missing on each node where it did not run",
        "judge/verdict/judging.py",
        'several = BETWEEN_NODES in case.experiments or is_several(case.node or "")',
        'several = BETWEEN_NODES in case.experiments and is_several(case.node or "")',
        (
            "verdict/test_verdict_rules.py::test_a_check_of_the_network_that_ran_on_one_node_is_missing_on_no_other",
        ),
    ),
    Mutant(
        "sessions behind one that no job started do not count",
        "judge/acceptance/sessions.py",
        "(0.0, 0, 0)\n            continue",
        "(0.0, 0, 0)\n            break",
        (
            "acceptance/test_acceptance_status.py::test_a_session_outside_of_jobs_counts_with_those_of_jobs",
        ),
    ),
    Mutant(
        "the first stage of an allocation is skipped",
        "run/every_node/driver.py",
        "if stage == 0:",
        "if stage < 0:",
        ("every_node/test_every_node_driver.py",),
    ),
    Mutant(
        "a ground of an experiment counts in sets that do not have it",
        "judge/verdict/grounds.py",
        "if in_sets is not None and in_sets.isdisjoint(ground.experiments):",
        "if in_sets is None and in_sets.isdisjoint(ground.experiments):",
        ("verdict/test_grounds.py",),
    ),
    Mutant(
        "one skipped check is in the plural",
        "judge/verdict/caveats.py",
        "{'was' if skipped == 1 else 'were'} skipped.",
        "{'was' if skipped == 0 else 'were'} skipped.",
        ("snapshots",),
    ),
    Mutant(
        "ranks have devices where they have no buffers on them",
        "rfm/ranks.py",
        'return self.rank_devices[:ranks] if self.buffers == "device" else ()',
        'return self.rank_devices[:ranks] if self.buffers > "device" else ()',
        (
            "rfm/test_pairs_of_checks.py::test_ranks_have_devices_where_their_buffers_are_on_devices",
        ),
    ),
    Mutant(
        "a verdict without a start is in front of all others",
        "judge/verdict/history.py",
        "dated += [(verdict.start or asked, verdict) for verdict in verdicts]",
        "dated += [(verdict.start and asked, verdict) for verdict in verdicts]",
        (
            "export/test_export_files.py::test_a_node_whose_last_verdict_has_no_start_keeps_when_its_sessions_began_and_passed",
        ),
    ),
    Mutant(
        "idle power is compared at a clock that nobody read",
        "results/energy.py",
        'if (clock := device["clock_mhz"]) is not None and clock > 0',
        'if (clock := device["clock_mhz"]) is not None and clock >= 0',
        ("results/test_energy.py::test_whether_idle_power_is_of_the_same_clock",),
    ),
    Mutant(
        "a device whose memory has a peak counts as one without",
        "judge/verdict/caveats.py",
        "has_peak = node is not None and node.devices[0].memory_peak_gbs is not None",
        "has_peak = node is not None and node.devices[0].memory_peak_gbs is None",
        ("node/test_products.py::test_a_verdict_says_which_limits_an_unknown_device_lacks",),
    ),
    Mutant(
        "fewer places than ranks are filled",
        "rfm/launchers.py",
        "if len(self.hosts) != job.num_tasks:",
        "if len(self.hosts) < job.num_tasks:",
        ("rfm/test_launchers.py::test_smpirun_is_not_started_without_a_place_for_each_rank",),
    ),
    Mutant(
        "of many nodes the spread is that of ratios",
        "judge/fleet/outliers.py",
        "spread = NORMAL * _float((known - _float(known.median())).abs().median())",
        "spread = NORMAL * _float((known / _float(known.median())).abs().median())",
        ("fleet/test_outliers.py::test_of_many_nodes_and_noisy_metrics_none_stands_out",),
    ),
    Mutant(
        "what a check printed counts before its document where it failed",
        "results/session.py",
        "return chain(output, stage) if entry.result in PASSED else chain(stage, output)",
        "return chain(output, stage) if not entry.result in PASSED else chain(stage, output)",
        (
            "results/test_sessions.py::test_of_a_check_that_passed_the_document_in_the_output_counts",
        ),
    ),
    Mutant(
        "a soak has the clock of the rounds without one",
        "judge/acceptance/soak.py",
        "clocks = {each.clock for each in soak.rounds if each.clock is not None}",
        "clocks = {each.clock for each in soak.rounds if each.clock is None}",
        ("acceptance/test_acceptance_status.py::test_hours_of_soak_are_those_of_its_record",),
    ),
    Mutant(
        "messages of the host's memory have a link of devices",
        "rfm/ranks.py",
        'if self.node is None or self.buffers == "host":',
        'if self.node is None or self.buffers > "host":',
        (
            "rfm/test_pairs_of_checks.py::test_messages_of_the_host_s_memory_have_no_link_of_devices",
        ),
    ),
    Mutant(
        "a mark is in the folder of the session, and not in the one that was meant",
        "results/marking.py",
        "is_relative = bool(text) and not Path(text).is_absolute()",
        "is_relative = bool(text) or not Path(text).is_absolute()",
        ("results/test_marks.py::test_the_mark_is_in_the_folder_that_was_meant",),
    ),
    Mutant(
        "an exchanged device is taken for the one before it",
        "judge/acceptance/soak.py",
        "if new and device.unique_id and device.unique_id != new and device.pci_address:",
        "if not new and device.unique_id and device.unique_id != new and device.pci_address:",
        ("acceptance/test_acceptance_status.py::test_hours_of_soak_are_those_of_its_record",),
    ),
    Mutant(
        "a collective of one device has no number of ranks",
        "results/series_rows.py",
        "return len(self.ranks or self.devices) or None",
        "return len(self.ranks or self.devices) and None",
        ("report/test_node_figures.py::test_collectives_say_that_there_is_no_rccl",),
    ),
    Mutant(
        "one way to compare members is several ways",
        "rfm/relative.py",
        "if len(ways) > 1:",
        "if len(ways) > 0:",
        ("rfm/test_relative.py::test_all_ways_together_are_compared_where_there_are_several",),
    ),
    Mutant(
        "the first line of a check's answer is its list of modules",
        "run/every_node/staging.py",
        "loaded = json.loads(done.out.splitlines()[-1])",
        "loaded = json.loads(done.out.splitlines()[- 0])",
        ("every_node/test_staging.py::test_what_python_says_first_is_no_list_of_modules",),
    ),
    Mutant(
        "the first stage of an allocation has no checks of its own",
        "run/every_node/driver.py",
        "if stage == 0:",
        "if stage == -1:",
        ("every_node/test_every_node_driver.py",),
    ),
    Mutant(
        "this machine has more than a minute to describe itself",
        "tools/topology/inventory.py",
        "return ask(folder, 60)",
        "return ask(folder, 61)",
        ("topology/test_topology_compare.py::test_this_machine_has_a_minute_to_describe_itself",),
    ),
    Mutant(
        "a list of plain values is spread over the lines of a draft",
        "tools/topology/drafting.py",
        "plain = not any(isinstance(value, dict | list) for value in values)",
        "plain =  any(isinstance(value, dict | list) for value in values)",
        ("topology/test_topology_compare.py::test_a_list_of_plain_values_is_a_line_of_a_draft",),
    ),
    Mutant(
        "a rate has slack where something without a peak may limit it",
        "judge/diagnosis/transfers.py",
        "name: slack + (0.0 if _may_limit(name, transfer, routes) else beyond)",
        "name: slack + (0.0 if not _may_limit(name, transfer, routes) else beyond)",
        (
            "diagnosis/test_transfers.py::test_a_rate_far_below_its_narrowest_peak_is_limited_by_what_has_no_peak",
        ),
    ),
    Mutant(
        "a calibration takes negative values",
        "judge/calibration/gathering.py",
        "if not math.isfinite(self.value) or self.value <= 0:",
        "if not math.isfinite(self.value) or self.value == 0:",
        ("calibration/test_values.py::test_only_a_count_may_be_no_more_than_zero",),
    ),
    Mutant(
        "after a change no node is better",
        "judge/fleet/findings.py",
        'worse, better = (nodes.filter(pl.col("good") == was)["node"] for was in (True, False))',
        'worse, better = (nodes.filter(pl.col("good") == was)["node"] for was in (True, True))',
        (
            "fleet/test_fleet_command.py::test_before_and_after_tell_what_is_worse_better_gone_and_new",
        ),
    ),
    Mutant(
        "a document from before a node changed contradicts a diagnosis",
        "judge/diagnosis/diagnose.py",
        "shown = session.documents.keys() & (missed | repeated)",
        "shown = session.documents.keys() << (missed | repeated)",
        (
            "diagnosis/test_changed_meanwhile.py::test_what_was_measured_before_a_node_changed_contradicts_nothing",
        ),
    ),
    Mutant(
        "the time since a look that has just been is a second",
        "tools/look.py",
        "return max(0.0, (now - then).total_seconds())",
        "return max( 1.0, (now - then).total_seconds())",
        (
            "nics/test_health.py::test_the_time_since_a_look_before_is_what_passed_and_never_less_than_none",
        ),
    ),
    Mutant(
        "groups are looked for among too few nodes",
        "judge/fleet/outliers.py",
        "FEWEST_OF_GROUPS = 4 * LEAST_RARE",
        "FEWEST_OF_GROUPS = 4 ^ LEAST_RARE",
        ("fleet/test_outliers.py::test_groups_are_looked_for_in_twelve_nodes_and_more",),
    ),
    Mutant(
        "the kernel's log is looked at where there is none",
        "tools/look.py",
        'if description.get("kernel_log") is not None:',
        'if not description.get("kernel_log") is not None:',
        ("nics/test_health.py::test_a_fault_is_named_stays_and_would_drain",),
    ),
    Mutant(
        "the search takes the second component away before there is one",
        "judge/diagnosis/search.py",
        "if len(best.losses) < 2:",
        "if len(best.losses) >= 2:",
        (
            "diagnosis/test_search.py::test_a_component_that_two_others_make_unnecessary_is_none_of_the_set",
        ),
    ),
    Mutant(
        "what limits transfers at once belongs to a device that two have",
        "judge/diagnosis/transfers.py",
        "if len(sources) == 1:",
        "if len(sources) == 2:",
        (
            "diagnosis/test_transfers.py::test_what_limits_transfers_at_once_together_is_of_the_device_that_all_have",
        ),
    ),
    Mutant(
        "a host that does not tell its cache has a byte of it",
        "tools/topology/host.py",
        '"last_level_cache_bytes": 0,',
        '"last_level_cache_bytes": 1,',
        (
            "topology/test_topology_record.py::test_a_run_that_fails_on_a_simulated_node_says_nothing_of_this_machine",
        ),
    ),
    Mutant(
        "what a node's tools see costs a link nothing",
        "judge/diagnosis/components.py",
        "return _A_PLACE * (len(changed - reported) - len(changed & reported))",
        "return _A_PLACE * (len(changed - reported) // len(changed & reported))",
        (
            "diagnosis/test_components.py::test_a_link_that_the_tools_of_the_node_see_is_supposed_to_be_gone_at_a_cost",
        ),
    ),
    Mutant(
        "a device is compared with itself",
        "tools/topology/reported.py",
        "for b in range(a + 1, first.count):",
        "for b in range(a + 0, first.count):",
        (
            "topology/test_topology_compare.py::test_tools_that_name_a_device_to_itself_otherwise_agree",
        ),
    ),
    Mutant(
        "the first component needs as large a gain as a further one",
        "judge/diagnosis/search.py",
        "of_components = bool(start.losses) and candidate.places is None",
        "of_components = bool(start.losses) or candidate.places is None",
        (
            "diagnosis/test_search.py::test_the_first_component_needs_a_smaller_gain_than_a_further_one",
        ),
    ),
    Mutant(
        "a rate is far below its peak only where it is at one value exactly",
        "judge/diagnosis/transfers.py",
        "far = beyond > -math.log(_LIMITED)",
        "far = beyond == -math.log(_LIMITED)",
        (
            "diagnosis/test_transfers.py::test_a_rate_far_below_its_narrowest_peak_is_limited_by_what_has_no_peak",
        ),
    ),
    Mutant(
        "a device without a link to the host ends a comparison",
        "judge/comparison/circumstances.py",
        '"PCIe lanes": pcie and pcie["width"],',
        '"PCIe lanes": pcie or pcie["width"],',
        (
            "comparison/test_states_compared.py::test_what_differs_in_the_state_of_node_and_devices_is_told_first",
        ),
    ),
    Mutant(
        "devices that do not tell their memory are those of another machine",
        "results/other_devices.py",
        "if assumed or memory_bytes is None:",
        "if assumed and memory_bytes is None:",
        (
            "verdict/test_verdict_evidence.py::test_devices_that_do_not_tell_their_memory_are_no_other_machine",
        ),
    ),
    Mutant(
        "sessions that do not count are none",
        "judge/acceptance/model.py",
        "\n    @property\n    def counts(self)",
        "    def counts(self)",
        ("acceptance/test_acceptance_status.py::test_what_does_not_count_leaves_the_node_open",),
    ),
    Mutant(
        "of several unreadable reports the one with the last words is named",
        "results/reading.py",
        "key=lambda problem: problem[0])",
        "key=lambda problem: problem[ 1])",
        ("results/test_sessions.py::test_of_two_unreadable_reports_the_later_one_is_named",),
    ),
    Mutant(
        "every exit code but that of a lost connection is one",
        "rfm/hosts.py",
        "if job.exitcode == ssh.NO_CONNECTION:",
        "if not job.exitcode == ssh.NO_CONNECTION:",
        (
            "rfm/test_reframe_internals.py::test_how_a_job_on_a_host_ended_is_known_by_its_exit_code",
        ),
    ),
    Mutant(
        "no job at a time is a limit",
        "rfm/distributed.py",
        "default=MOST_JOBS, least=1)",
        "default=MOST_JOBS, least= 0)",
        ("rfm/test_distributed.py::test_jobs_at_a_time_are_a_number_from_one_on",),
    ),
    Mutant(
        "factors of several components are not fitted together",
        "judge/diagnosis/search.py",
        "        if best.losses:\n            refined",
        "        if not best.losses:\n            refined",
        ("diagnosis/test_search.py::test_the_factors_of_a_set_are_fitted_together",),
    ),
    Mutant(
        "a further component is tried with the factor of the one before",
        "judge/diagnosis/search.py",
        "hypothesis.losses[-1]",
        "hypothesis.losses[~1]",
        (
            "diagnosis/test_search.py::test_a_small_loss_beside_a_large_one_is_named_by_its_own_factor",
        ),
    ),
    Mutant(
        "odds are no powers of ten",
        "judge/diagnosis/hypotheses.py",
        "/ 2 / math.log(10)",
        "/ 2 ** math.log(10)",
        (
            "diagnosis/test_search.py::test_a_likelihood_that_is_a_million_times_as_large_has_six_as_its_power_of_ten",
        ),
    ),
    Mutant(
        "two of two missed limits are not both",
        "judge/diagnosis/model.py",
        "self.misses == 2 else",
        "self.misses < 2 else",
        ("report/test_diagnosis.py::test_how_many_missed_limits_are_explained_is_in_words",),
    ),
    Mutant(
        "a record that is not there has the devices of this machine",
        "rfm/metric_limits.py",
        "if self.record is None or self.node is None:",
        "if self.record is None and self.node is None:",
        (
            "rfm/test_single_machine.py::test_a_machine_without_references_is_judged_by_the_floors_of_any_node",
        ),
    ),
    Mutant(
        "a domain tells where a NIC is though a device does",
        "tools/nic_comparison.py",
        "if not matching.knows_devices and _are",
        "if not matching.knows_devices or _are",
        (
            "nics/test_nics_of_a_machine.py::test_of_two_nics_at_a_device_neither_is_known_whatever_their_domain",
        ),
    ),
    Mutant(
        "links of several rates have one peak",
        "tools/topology/inventory.py",
        "if len(peaks) == 1",
        "if len(peaks) >= 1",
        (
            "topology/test_topology_compare.py::test_links_of_one_rate_have_a_peak_and_those_of_several_none",
        ),
    ),
    Mutant(
        "what is not known to have begun began before 1970",
        "results/reading.py",
        "default=0.0)",
        "default= -1.0)",
        ("results/test_killed.py::test_when_a_session_without_a_document_began_is_unknown",),
    ),
    Mutant(
        "root looks as any user does",
        "tools/look_begun.py",
        "if os.geteuid() == 0:",
        "if os.geteuid() == -1:",
        (
            "nics/test_health.py::test_a_look_lies_where_a_restart_forgets_it_and_its_user_may_write",
        ),
    ),
    Mutant(
        "another agreement of the same title is that of the record",
        "judge/acceptance/verifying.py",
        "record.agreement.title == again.agreement.title:",
        "record.agreement.title > again.agreement.title:",
        (
            "acceptance/test_acceptance_record.py::test_another_agreement_of_the_same_title_is_named",
        ),
    ),
    Mutant(
        "a program that is late is killed at once",
        "tools/runner.py",
        "(signal.SIGTERM, signal.SIGKILL)",
        "[]",
        ("tools/test_runner.py::test_a_program_that_is_late_may_end_in_order",),
    ),
    Mutant(
        "a job on a host has ended while it runs",
        "rfm/reframe_internals.py",
        "if original(scheduler, job):\n            for file",
        "if not original(scheduler, job):\n            for file",
        ("rfm/test_reframe_internals.py::test_what_a_job_on_a_host_wrote_stays_when_it_ends",),
    ),
    Mutant(
        "of fewer NICs at a place than are missing none is known",
        "tools/nic_matching.py",
        "len(able) > len(rivals) and not _are",
        "len(able) is not len(rivals) and not _are",
        (
            "nics/test_nics_of_a_machine.py::test_fewer_nics_of_a_domain_are_of_the_model_though_they_differ",
        ),
    ),
    Mutant(
        "an interface of Ethernet that is down is in an unknown state",
        "tools/nics.py",
        '"down" if state not in _NOT_DOWN',
        '"down" if not state not in _NOT_DOWN',
        ("nics/test_nics_of_a_machine.py::test_ethernet_is_listed_where_there_is_nothing_else",),
    ),
    Mutant(
        "the temperature of a device is that of most of its load",
        "results/soaks.py",
        'load["readings"]) // 2',
        'load["readings"]) // 3',
        ("drift/test_soak_trouble.py::test_a_device_is_as_warm_as_in_the_second_half_of_its_load",),
    ),
    Mutant(
        "ranks are bound by the option of another launcher",
        "rfm/network_benchmarks.py",
        "if name in binding:",
        "if not name in binding:",
        ("rfm/test_site_scripts.py::test_checks_of_the_network_have_two_nodes",),
    ),
    Mutant(
        "pairs at the same time are judged of one device a node",
        "rfm/network_benchmarks.py",
        "if len(self.node_devices) > 1:",
        "if not len(self.node_devices) > 1:",
        (
            "rfm/test_nodes.py::test_pairs_at_the_same_time_are_judged_where_a_node_has_several_devices",
        ),
    ),
)
