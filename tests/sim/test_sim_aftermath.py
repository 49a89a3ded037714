"""What `aftermath` does after a simulated program: it does not look at the machine."""

from __future__ import annotations

import subprocess

from fabricheck.results.document import load

QUICK = ("stream", "--devices", "0", "--kernels", "copy")


def aftermath(programs, ran, code):
    done = subprocess.run(
        [str(programs / "aftermath"), "--exit-code", str(code), "--document", str(ran.output),
         "--errors", "/dev/null"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_machine_is_not_that_of_an_aborted_simulation(run, programs):
    ran = run(*QUICK, "--inject-fault", "abort")
    aftermath(programs, ran, 134)
    found = load(ran.output.with_name("result.json.partial"))
    assert "state" not in found and found["outcome"]["status"] == "running"
    assert found["aftermath"] == {
        "exit_code": 134,
        "runtime_log": [],
        "pci_functions": None,
        "kernel_log": None,
        "absent": [
            {"item": "pci_functions", "why": "the node is simulated"},
            {"item": "kernel_log", "why": "the node is simulated"},
        ],
    }


def test_a_finished_simulation_has_none_whatever_its_launcher_ends_with(run, programs):
    ran = run(*QUICK, "--inject-fault", "flip-bit:8:3")
    before = ran.output.read_bytes()
    aftermath(programs, ran, 0)  # as smpirun ends
    assert ran.code == 5 and ran.output.read_bytes() == before
