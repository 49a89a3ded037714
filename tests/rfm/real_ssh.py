"""Servers of ssh on addresses of this machine, each a host of its own, with keys of a test.

It needs no root, and nothing outside a folder. Every host has a lock of its own, as machines have:
a stand-in gives each address one in place of that of the kernel, which all of them share.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

#: Debian's place, which is not on the PATH of a user.
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")

NEEDED = pytest.mark.skipif(
    SSHD is None or shutil.which("rsync") is None,
    reason="openssh-server and rsync are not installed here (ci/debian-test.txt)",
)

#: Options of a server.
SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 500
SetEnv PYTHONPATH={folder} TMPDIR={folder}/folders FABRICHECK_WAIT_MINUTES=30
"""

#: Options of every client.
CLIENT = """
Host *
 Port {port}
 IdentityFile {folder}/key
 IdentitiesOnly yes
 UserKnownHostsFile /dev/null
 StrictHostKeyChecking no
 LogLevel ERROR
"""

#: The lock of an address.
LOCKS = """
import os
if "SSH_CONNECTION" in os.environ:
    from fabricheck.rfm import node_lock
    address = os.environ["SSH_CONNECTION"].split()[2]
    file = os.path.join(os.path.dirname(__file__), "lock-" + address)
    node_lock.open_of_the_machine = lambda: os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
"""


@dataclass
class Hosts:
    """Hosts node1, node2 and so on, of which some have a server that runs."""

    folder: Path
    port: int
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The configuration of ssh that reaches them."""
        return self.folder / "config"

    @property
    def folders(self) -> Path:
        """Where the hosts have the folders of checks."""
        return self.folder / "folders"

    def lock(self, node: str) -> Path:
        """The file that stands in for the lock of a host."""
        return self.folder / f"lock-{address_of(node)}"

    def start(self, node: str) -> None:
        """Start the server of a host."""
        config = self.folder / f"{node}.conf"
        config.write_text(
            SERVER.format(port=self.port, address=address_of(node), folder=self.folder)
        )
        self.servers[node] = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", config], stderr=(self.folder / f"{node}.log").open("wb")
        )
        ends = time.monotonic() + 30
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((address_of(node), self.port), 1),
            ):
                return
            log = (self.folder / f"{node}.log").read_text()
            assert self.servers[node].poll() is None and time.monotonic() < ends, log
            time.sleep(0.05)

    def lose(self, node: str) -> None:
        """End the server of a host and all that it started at once, as a power failure does."""
        server = self.servers.pop(node)
        # Before what it started, so that nothing new is started.
        server.send_signal(signal.SIGSTOP)
        for process in _descendants(server.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        server.kill()
        server.wait()


def address_of(node: str) -> str:
    """Return the address of a host."""
    return f"127.0.1.{node.removeprefix('node')}"


def _descendants(process: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
    of_host = [process]
    for known in of_host:
        of_host += [child for child, parent in parents.items() if parent == known]
    return of_host[1:]


@contextlib.contextmanager
def started(folder: Path, nodes: int, without: tuple[str, ...] = ()) -> Iterator[Hosts]:
    """Start the servers of some hosts, and end them.

    :param without: hosts that do not run.
    """
    with socket.socket() as free:
        free.bind(("127.0.1.1", 0))
        hosts = Hosts(folder, free.getsockname()[1])
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("key", "host"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    names = [f"node{number}" for number in range(1, nodes + 1)]
    hosts.config.write_text(
        "".join(f"Host {name}\n HostName {address_of(name)}\n" for name in names)
        + CLIENT.format(port=hosts.port, folder=folder)
    )
    hosts.folders.mkdir()
    (folder / "sitecustomize.py").write_text(LOCKS)
    try:
        for name in names:
            if name not in without:
                hosts.start(name)
        yield hosts
    finally:
        for name in list(hosts.servers):
            hosts.lose(name)


if __name__ == "__main__":
    # python real_ssh.py FOLDER NODES: until it is interrupted.
    with (
        started(Path(sys.argv[1]), int(sys.argv[2])) as _hosts,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(_hosts.config, flush=True)
        signal.pause()
