"""The scripts of an image: what a container starts with, and programs that run in one."""

import re
import shutil
import subprocess

import pytest

from fabricheck.core.checkout import ROOT
from fabricheck.node import available, load

HERE = ROOT / "ci/container"


@pytest.fixture
def image(tmp_path):
    """A checkout as an image has it: start.sh, and an env.sh that names its session."""
    folder = tmp_path / "image"
    (folder / "ci/container").mkdir(parents=True)
    shutil.copy(HERE / "start.sh", folder / "ci/container")
    (folder / "env.sh").write_text("export SOURCED=yes\n")
    return folder


def start(image, results, *command, **variables):
    return subprocess.run(
        [image / "ci/container/start.sh", *command],
        env={"PATH": "/usr/bin:/bin", "FABRICHECK_RESULTS": str(results), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_has_the_environment_and_its_exit_code_is_kept(image, tmp_path):
    ended = start(image, tmp_path / "new/results", "bash", "-c", "echo $SOURCED; pwd; exit 12")
    assert (ended.returncode, ended.stdout) == (12, f"yes\n{image}\n")
    assert (tmp_path / "new/results").is_dir()


def test_results_that_nobody_mounted_are_a_sentence(image):
    ended = start(image, "/proc/nowhere/results", "true")
    assert ended.returncode == 4
    assert re.fullmatch(
        r"start: user \d+ cannot write the results to /proc/nowhere/results: mount a folder of "
        r'this user there \(podman run --userns keep-id --volume "\$PWD/results:/results"\)\n',
        ended.stderr,
    )


@pytest.mark.parametrize(
    ("name", "space", "pod", "advice"),
    [
        ("3f2a9c0de1b2", "uts:[4026532612]", "", '--hostname "$(uname -n)"'),
        ("accept-x7k2p", "uts:[4026532612]", "10.0.0.1", "hostNetwork: true"),
        ("nid001", "uts:[4026532612]", "", None),
        ("3f2a9c0de1b2", "uts:[4026531838]", "", None),
        ("nid001", "uts:[4026531838]", "10.0.0.1", None),
    ],
)
def test_a_name_of_the_container_is_told(image, tmp_path, name, space, pod, advice):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool, answer in (("uname", name), ("readlink", space)):
        (tools / tool).write_text(f"#!/bin/sh\necho '{answer}'\n")
        (tools / tool).chmod(0o755)
    variables = {"PATH": f"{tools}:/usr/bin:/bin", "KUBERNETES_SERVICE_HOST": pod}
    ended = start(image, tmp_path / "results", "true", **variables)
    assert ended.returncode == 0
    said = ""
    if advice is not None:
        said = f"start: {name} is the name of this container, not of its machine, and results "
        said += f"will have it: {'give the pod' if pod else 'add'} {advice}\n"
    assert ended.stderr == said


@pytest.fixture
def programs(tmp_path):
    """A folder of programs, as in a container."""
    folder = tmp_path / "there"
    folder.mkdir()
    for name in ("stream", "memcpy"):
        (folder / name).write_text(f'#!/bin/sh\necho {name} in "$BOX" with $#: "$@"\nexit 5\n')
        (folder / name).chmod(0o755)
    return folder


def write(*arguments):
    command = [HERE / "programs.sh", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_each_program_is_started_by_the_prefix_with_its_words(programs, tmp_path):
    ended = write(tmp_path / "boxed", "env", "BOX=a box", programs)
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in (tmp_path / "boxed").iterdir()) == ["memcpy", "stream"]
    ran = subprocess.run(
        [tmp_path / "boxed/stream", "two words", "3"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (5, "stream in a box with 2: two words 3\n")


@pytest.mark.parametrize(
    ("prefix", "place", "said"),
    [
        (["no-such-command"], "/opt/bin", "there is no command 'no-such-command'"),
        (["env"], "bin", "'bin' is no absolute path, and is the folder of the programs in"),
        (["env"], "/nowhere", "'env' does not list /nowhere"),
        (["env"], "/proc/self/fd", "there are no programs in /proc/self/fd of the container"),
    ],
)
def test_a_prefix_without_programs_is_a_sentence(tmp_path, prefix, place, said):
    ended = write(tmp_path / "boxed", *prefix, place)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"programs.sh: {said}")
    assert not (tmp_path / "boxed").exists()


def test_the_definition_pins_its_base_and_names_the_lists_that_are_there():
    text = (HERE / "Containerfile").read_text()
    (base,) = re.findall(r"^ARG BASE=(.*)$", text, re.MULTILINE)
    # That of the jobs of the code, which somebody looked up.
    assert re.search(r"@(sha256:[0-9a-f]{64})$", base)[1] in (ROOT / ".gitlab-ci.yml").read_text()
    for line in re.findall(r"^COPY (?!--from)(?!\. )(.*) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert list(ROOT.glob(name)), name


def test_an_image_has_kernels_for_the_devices_of_every_node_model():
    definition = (HERE / "Containerfile").read_text()
    compiled = {
        stage: set(re.split("[;,]", names))
        for stage, names in re.findall(
            r"^FROM source AS built-(\w+)\nARG ARCHITECTURES=(\S+)$", definition, re.MULTILINE
        )
    }
    needed = {"rocm": set(), "cuda": set()}
    for name in available():
        node = load(name)
        runtime = "rocm" if node.vendor == "amd" else "cuda"
        needed[runtime].add(node.architecture.removeprefix("sm_"))
    assert needed["rocm"] <= compiled["rocm"]
    assert needed["cuda"] <= compiled["cuda"]
