"""Files that are written whole, all of them or none."""

import stat

import pytest

from fabricheck.core.errors import NotFoundError
from fabricheck.core.whole_files import replaced, write_all, write_whole
from full_disk import files_of_at_most


def replaced_by(path, content):
    with replaced(path) as out:
        out.write(content)


def test_files_are_replaced_and_made(tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("before")
    old.chmod(0o640)
    write_all({old: "after µ", new: "new"})
    assert (old.read_text(encoding="utf-8"), new.read_text()) == ("after µ", "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [new, old]


def test_a_full_disk_leaves_all_as_it_was(tmp_path, wording):
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("one")
    second.write_text("two")
    with files_of_at_most(1000), pytest.raises(NotFoundError) as error:
        write_all({first: "new", second: "x" * 2000})
    wording(str(error.value))
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


def test_a_link_is_not_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    for write in (lambda: write_whole(link, "after"), lambda: replaced_by(link, b"after")):
        with pytest.raises(NotFoundError) as error:
            write()
        why = f"it is a symbolic link; name the file it leads to, {target}"
        assert str(error.value) == f"{link} cannot be written ({why})."
    assert link.is_symlink() and target.read_text() == "before"


def test_planted_links_of_the_names_that_were_used_are_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "verdict.json"
    victim.write_text("of the user")
    for suffix in (".partial", ".new"):
        (tmp_path / f"verdict.json{suffix}").symlink_to(victim)
    write_whole(path, "verdict")
    replaced_by(tmp_path / "other.csv", b"rows")
    assert not path.is_symlink() and path.read_text() == "verdict"
    assert victim.read_text() == "of the user"


def test_what_is_written_has_a_name_that_nobody_can_plant(tmp_path):
    names = set()
    for _ in range(2):
        with replaced(tmp_path / "file.csv") as out:
            names |= {path.name for path in tmp_path.glob(".file.csv.*")}
            out.write(b"rows")
    assert len(names) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]


def test_a_block_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "file.csv").write_text("before")
    with pytest.raises(ZeroDivisionError), replaced(tmp_path / "file.csv") as out:
        out.write(b"half")
        raise ZeroDivisionError
    assert (tmp_path / "file.csv").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1
