"""What is left out of texts and of JSON, and what is not."""

import json
import tarfile

import pytest

from fabricheck.run.first_hour import packing
from fabricheck.run.first_hour.secrets import MASK, Masks


@pytest.fixture
def masks(tmp_path, monkeypatch):
    """Those of a user alice with a home, some variables, and a password in .netrc."""
    home = tmp_path / "home" / "alice"
    home.mkdir(parents=True)
    (home / ".netrc").write_text("machine example.org login alice password in-netrc-1\n")
    monkeypatch.setenv("LOGNAME", "alice")
    variables = {
        "SITE_TOKEN": "of-a-variable",
        "SITE_AUTHORIZATION": "ApiKey long-word-of-a-header==",
        "QUOTED_PASSWORD": 'a"quoted\\one',
        "SHORT_SECRET": "hunter2",
        "A_TOKEN": "1",
        "HSA_XNACK": "1",
    }
    return Masks(variables, home)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("says of-a-variable twice: of-a-variable", f"says {MASK} twice: {MASK}"),
        ("a header long-word-of-a-header==", f"a header {MASK}"),
        ("from netrc: in-netrc-1", f"from netrc: {MASK}"),
        ("hunter2 hunter25", f"{MASK} hunter25"),
        ("key AKIAIOSFODNN7EXAMPLE of", f"key {MASK} of"),
        ("glpat-abcdefghij0123456789", MASK),
        ("git clone https://bob:sesame@example.org/x", f"git clone https://{MASK}@example.org/x"),
        ("Authorization: Bearer abcdef.ghijkl", f"Authorization: {MASK} {MASK}"),
        ("DB_PASSWORD=abc next", f"DB_PASSWORD={MASK} next"),
        ("tool --api-key abc next", f"tool --api-key {MASK} next"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----!", f"{MASK}!"),
        ("/scratch/alice/run /scratch/alice2", "/scratch/USER/run /scratch/alice2"),
    ],
)
def test_what_is_left_out_of_a_text(masks, text, left):
    assert masks.text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "HSA_XNACK=1",
        "local:sim-mi250x p2p 0-1",
        "1.2345 GB/s",
        "#SBATCH --nodes=1",
        "hash abcdef12",
    ],
)
def test_what_stays(masks, text):
    assert masks.text(text) == text


def test_the_home_is_not_named(masks, tmp_path):
    home = tmp_path / "home" / "alice"
    assert masks.text(f"{home}/run, {home}") == "~/run, ~"
    assert masks.text(f"{home}-of-another") != "~-of-another"


def test_json_stays_json(masks):
    value = {
        "user": "alice",
        "environment": {"DB_PASSWORD": 'in "quotes"', "HSA_XNACK": "1"},
        "arguments": ["tool", "--token", "x y", "--sizes", "1GiB", 'a"quoted\\one'],
        "numbers": [1, 1.5, None, True],
    }
    found = masks.json(value)
    assert found == {
        "user": "USER",
        "environment": {"DB_PASSWORD": MASK, "HSA_XNACK": "1"},
        "arguments": ["tool", "--token", MASK, "--sizes", "1GiB", MASK],
        "numbers": [1, 1.5, None, True],
    }
    # The same inside of a text that is JSON, where quotes are escaped.
    assert "quoted" not in masks.text(json.dumps({"a": 'a"quoted\\one'}))


def test_a_long_word_takes_no_longer_than_many_short_ones(masks):
    # Of a megabyte without a space, which took hours by an expression that was square in it.
    assert masks.text("a-" * 500_000) == "a-" * 500_000


def test_no_part_of_a_secret_is_left_where_a_long_log_is_cut(tmp_path, monkeypatch):
    secret, line = "begins-of-a-variable-ends", "of-a-line {} next\n"
    monkeypatch.setenv("SITE_TOKEN", secret)
    monkeypatch.setattr(packing, "MOST_BYTES", 1000)
    logs = tmp_path / "hour"
    logs.mkdir()
    # The two cuts fall on each character of a line.
    for more in range(len(line.format(secret))):
        ends = "x" * more + "\n"
        (logs / f"{more}.txt").write_text(ends + 50 * line.format(secret) + ends)
    packing.write(logs, tmp_path / "hour.tar.gz")
    with tarfile.open(tmp_path / "hour.tar.gz") as packed:
        texts = [packed.extractfile(one).read().decode() for one in packed]
    assert len(texts) == len(line.format(secret))
    for text in texts:
        assert " bytes left out]\n" in text and line.format(MASK) in text
        assert "begins" not in text and "ends" not in text
