"""Files that are written whole, all of them or none."""

import stat

import pytest

from fabricheck.core.errors import NotFoundError
from fabricheck.core.whole_files import write_all, write_whole
from full_disk import files_of_at_most


def test_files_are_replaced_and_made(tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("before")
    old.chmod(0o640)
    write_all({old: "after µ", new: "new"})
    assert (old.read_text(encoding="utf-8"), new.read_text()) == ("after µ", "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [new, old]


def test_a_full_disk_leaves_all_as_it_was(tmp_path):
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("one")
    second.write_text("two")
    with files_of_at_most(1000), pytest.raises(NotFoundError) as error:
        write_all({first: "new", second: "x" * 2000})
    assert str(error.value) == f"{second} cannot be written (File too large)."
    assert (first.read_text(), second.read_text()) == ("one", "two")
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_what_is_no_file_is_not_replaced(tmp_path):
    first = tmp_path / "first.txt"
    first.write_text("one")
    (tmp_path / "second.txt").mkdir()
    with pytest.raises(
        NotFoundError, match=r"second\.txt cannot be written \(it is not a regular file\)"
    ):
        write_all({first: "new", tmp_path / "second.txt": ""})
    assert first.read_text() == "one"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "target").write_text("before")
    link = tmp_path / "link"
    link.symlink_to("target")
    write_whole(link, "after")
    assert link.is_symlink() and (tmp_path / "target").read_text() == "after"
