"""`fabricheck acceptance close`, `verify`, `repeat`: one folder, and what is changed in it."""

import json
import shutil
import subprocess

import pytest
from agreed_nodes import SYSTEM, WAIVER, Machine

from fabricheck.core.errors import InvalidFile
from fabricheck.judge.acceptance import manifest

NAMESPACE = "fabricheck-acceptance"


def keygen(path):
    """Make a key without a passphrase; return the private one's file."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(scope="module")
def closed(tmp_path_factory, command):
    """A record of two nodes, one waived, that the centre signed; and its key."""
    folder = tmp_path_factory.mktemp("closed")
    machine = Machine(folder)
    machine.job({"node1": 1400.0, "node2": 700.0})
    key = keygen(folder / "centre")
    public = (folder / "centre.pub").read_text().strip()
    signers = [
        {"name": "centre", "role": "the centre", "key": public},
        {"name": "vendor", "role": "the vendor"},
    ]
    both = [{**WAIVER, "node": "node2", "criterion": name} for name in ("set-smoke", "memory")]
    file = machine.agree(nodes="node[1-2]", signers=signers, waivers=both)
    words = ["acceptance", "close", file, "--results", machine.results]
    command(*words, "--output", folder / "record", "--sign", f"centre={key}")
    return folder


@pytest.fixture
def record(closed, tmp_path):
    """A copy of the record, to change."""
    return shutil.copytree(closed / "record", tmp_path / "record")


def manifest_anew(record):
    """Write the manifest of what is there, as who changed something would."""
    (record / manifest.NAME).write_text(manifest.text(record))


def sign_anew(record, key):
    """Sign the manifest with a key, in place of the centre."""
    path = record / manifest.NAME
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(path)]
    (record / f"{manifest.NAME}.centre.sig").unlink()
    subprocess.run(command, check=True)
    (record / f"{manifest.NAME}.sig").rename(record / f"{manifest.NAME}.centre.sig")


def unsigned(record):
    """Take the signature away, and the key from the agreement."""
    (record / f"{manifest.NAME}.centre.sig").unlink()


def test_a_record_is_verified_and_says_what_is_in_it(closed, command):
    record = closed / "record"
    verified = command("acceptance", "verify", record, json=True).json
    assert [(each["state"], each["signer"]) for each in verified["signatures"]] == [
        ("good", "centre")
    ]
    assert verified["otherwise"] == [] and verified["of_record"] == {}
    assert verified["accepted"] and verified["compared_page"]
    # Anybody can check the digests.
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "--strict", manifest.NAME], cwd=record, check=True
    )
    names = {path.name for path in record.iterdir()}
    assert names >= {"acceptance.yaml", "record.json", "table.csv", "limits", "results", "site"}
    assert (record / "software" / "0.host.sha256").read_text() == f"{'5' * 64}  stream\n"
    inventory = json.loads((record / "inventories" / "node1.json").read_text())
    assert inventory["devices"][0]["unique_id"] == "node1-gpu0"
    assert (record / "limits" / "stream.yaml").is_file()
    page = (record / "acceptance.html").read_text()
    assert page.index("Signatures") < page.index("node2: waived")
    assert page.count("accepts no machine") == 1


def test_each_changed_file_is_named(record, command, wording):
    files = [path for path in sorted(record.rglob("*")) if path.is_file()]
    listed = [path for path in files if not path.name.startswith(manifest.NAME)]
    assert len(listed) > 40
    before = {path: path.read_bytes() for path in listed}
    for path, content in before.items():
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if content else b"x")
    changed = manifest.compare(record).changed
    assert set(changed) == {str(path.relative_to(record)) for path in listed}
    for path, content in before.items():
        if path.name != "table.csv":
            path.write_bytes(content)
    verified = command("acceptance", "verify", record, json=True, code=15).json
    assert verified["changed"] == ["table.csv"]
    # After the files comes the fingerprint of a key, which is new in each run.
    wording(command("acceptance", "verify", record, code=15).stdout.splitlines()[:4])


def test_missing_and_further_files_and_links_are_named(record, command):
    (record / "table.csv").unlink()
    (record / "results" / "more.json").write_text("{}")
    (record / "link").symlink_to(record / "limits")
    verified = command("acceptance", "verify", record, json=True, code=15).json
    assert verified["missing"] == ["table.csv"]
    assert verified["extra"] == ["results/more.json"]
    assert verified["odd"] == ["link"]


def test_a_manifest_that_is_replaced_is_not_the_signed_one(record, command, wording):
    (record / "table.csv").write_text("node,criterion\n")
    manifest_anew(record)
    verified = command("acceptance", "verify", record, json=True, code=16).json
    assert [each["state"] for each in verified["signatures"]] == ["other-file"]
    assert verified["unsigned"] == ["centre"]
    # Judged again, the table is not that of the record.
    assert verified["of_record"] == {"table": "table.csv"}
    wording(command("acceptance", "verify", record, code=16).stdout)


def test_a_line_of_the_manifest_that_is_no_digest_is_named_by_its_number(command, tmp_path):
    (tmp_path / manifest.NAME).write_text(f"{'0' * 64}  table.csv\ntable.csv\n")
    ended = command("acceptance", "verify", tmp_path, code=InvalidFile.exit_code)
    assert "line 2 is not a digest" in ended.stderr


def test_a_signature_by_another_key_is_none_of_the_centre(record, command, tmp_path, closed):
    other = keygen(tmp_path / "other")
    (record / "table.csv").write_text("node,criterion\n")
    manifest_anew(record)
    sign_anew(record, other)
    ended = command("acceptance", "verify", record, code=16)
    assert "which neither the agreement nor --key names" in ended.words
    # Who has the key of the centre compares with that, whatever the agreement in the folder says.
    text = (record / "acceptance.yaml").read_text()
    public = (tmp_path / "other.pub").read_text().strip()
    theirs = (closed / "centre.pub").read_text().strip()
    (record / "acceptance.yaml").write_text(text.replace(theirs, public))
    manifest_anew(record)
    sign_anew(record, other)
    ended = command("acceptance", "verify", record, "--key", closed / "centre.pub", code=16)
    assert "Not signed by centre.pub." in ended.words
    agreement = closed / "acceptance.yaml"
    ended = command("acceptance", "verify", record, "--agreement", agreement, code=15)
    assert "The agreement in the folder is not the one in" in ended.words


def test_a_missing_signature_is_told(record, command):
    (record / f"{manifest.NAME}.centre.sig").unlink()
    assert "Not signed by centre." in command("acceptance", "verify", record, code=16).words


def test_a_record_that_says_more_than_its_documents_is_judged_otherwise(record, command):
    path = record / "record.json"
    content = json.loads(path.read_text())
    for cell in content["nodes"][1]["cells"]:
        cell |= {"outcome": "met", "first_missed": False}
    path.write_text(json.dumps(content))
    manifest_anew(record)
    verified = command("acceptance", "verify", record, json=True, code=16).json
    (first, *_) = [each for each in verified["otherwise"] if each["node"] == "node2"]
    assert (first["what"], first["closed"].split(",")[0]) == ("set-smoke", "met")
    assert first["again"].startswith("waived")


def test_another_agreement_of_the_same_title_is_named(record, command):
    path = record / "record.json"
    content = json.loads(path.read_text())
    content["agreement"]["may_fail_at_first"] += 1
    path.write_text(json.dumps(content))
    manifest_anew(record)
    verified = command("acceptance", "verify", record, json=True, code=16).json
    assert "agreement" in [each["what"] for each in verified["otherwise"] if not each["node"]]


def test_limits_that_were_changed_with_their_manifest_are_judged_otherwise(record, command):
    path = record / "limits" / "stream.yaml"
    text = path.read_text()
    assert "[1400, -0.05, null, GB/s]" in text
    path.write_text(text.replace("[1400, -0.05, null, GB/s]", "[1300, -0.05, null, GB/s]"))
    manifest_anew(record)
    verified = command("acceptance", "verify", record, json=True, code=16).json
    assert "limits" in {each["what"] for each in verified["otherwise"]}
    (of_set,) = [
        each
        for each in verified["otherwise"]
        if (each["node"], each["what"]) == ("node1", "set-smoke")
    ]
    assert of_set["closed"].startswith("met") and of_set["again"].startswith("open")
    assert verified["limits"] == ["stream.yaml"]


def test_a_document_that_was_changed_with_its_manifest_is_judged_otherwise(record, command):
    (path,) = record.glob("results/0/every-node/1/node1/output/**/result.json")
    path.write_text(path.read_text().replace("1400.0", "1500.0"))
    manifest_anew(record)
    verified = command("acceptance", "verify", record, json=True, code=16).json
    assert {each["node"] for each in verified["otherwise"]} >= {"node1"}


def test_a_record_of_an_older_commit_is_verified_by_today(record, command, tmp_path):
    path = record / "record.json"
    content = json.loads(path.read_text())
    content |= {"checkout": "0000000", "by": "0.0.1"}
    path.write_text(json.dumps(content))
    (record / "acceptance.html").write_text("a page of another version")
    manifest_anew(record)
    unsigned(record)
    text = (record / "acceptance.yaml").read_text()
    verified = command("acceptance", "verify", record, json=True, code=16).json
    assert (verified["otherwise"], verified["of_record"]) == ([], {})
    assert not verified["compared_page"]
    assert "key" in text


def test_the_commands_build_what_was_measured_with(closed, command):
    printed = command("acceptance", "repeat", closed / "record").stdout
    assert "git worktree add ../fabricheck-0a1b2c3d4e5f 0a1b2c3d4e5f\n" in printed
    assert f"reframe --system={SYSTEM} --mode=smoke -r\n" in printed
    assert "sha256sum -c " in printed
    assert f"fabricheck acceptance verify {closed / 'record'}\n" in printed


def test_of_a_record_without_a_session_that_counts_no_commit_is_built(command, tmp_path):
    machine = Machine(tmp_path)
    machine.job({"node1": 1400.0}, commit="ffffffff")
    file = machine.agree(nodes="node1", commit="this-checkout")
    output = tmp_path / "record"
    words = ["acceptance", "close", file, "--results", machine.results, "--output", output]
    assert "To sign as centre: ssh-keygen -Y sign" in command(*words, code=13).words
    assert "Nobody signed it" in command("acceptance", "verify", output).words
    printed = command("acceptance", "repeat", output).stdout
    assert "No session counts" in printed and "git worktree" not in printed


def test_what_cannot_be_closed_is_one_sentence(closed, command, tmp_path, wording):
    file, results = closed / "acceptance.yaml", closed / "results"
    words = ["acceptance", "close", file, "--results", results, "--output"]
    wording(command(*words, closed / "record", code=2).stderr.replace(str(closed), "CLOSED"))
    new = tmp_path / "new"
    wording(command(*words, new, "--sign", "nobody=key", code=2).stderr)
    assert not new.exists()
    ended = command(*words, new, "--sign", f"centre={tmp_path / 'none'}", code=3)
    wording(ended.stderr)
    wording(command("acceptance", "verify", results, code=3).stderr.replace(str(closed), "CLOSED"))
