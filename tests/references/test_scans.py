"""References of scans: at the largest size those of the checks of one size."""

from __future__ import annotations

from fabricheck.references.entries import requires
from fabricheck.references.published import OWN_FOLDER
from fabricheck.references.stated import References

#: Checks over sizes, and those whose metrics theirs are at the largest size.
SCANS = {
    "p2p_scan": ("p2p_engine", "p2p_kernel"),
    "managed_scan_zero_copy": ("managed_zero_copy",),
    "managed_scan_migration": ("managed_migration",),
}
#: Of scans there too few sessions tell, where one does.
REPORT_ONLY = ("h200:x1", "h200:x2", "h200:x4", "h200:x8")


def of_scans(found: References) -> list[tuple[str, str, str, list]]:
    return [one for one in found.all_entries() if one[0] in SCANS]


def otherwise(found: References) -> set[tuple[str, str, str]]:
    """Name what scans require otherwise than the checks of one size do."""
    return {
        (check, key, metric)
        for check, key, metric, entry in of_scans(found)
        if key not in REPORT_ONLY
        and not any(found.entries(one, key).get(f"{metric}_worst") == entry for one in SCANS[check])
    }


def test_scans_require_what_the_checks_of_one_size_do():
    found = References(OWN_FOLDER)
    assert {check for check, *_, entry in of_scans(found) if requires(entry)} == SCANS.keys()
    assert otherwise(found) == set()
    table = found.tables["p2p_scan"]
    table["lumi"] = table["lumi"] | {"write_links2": [76, -0.2, None, "GB/s"]}
    assert otherwise(found) == {("p2p_scan", "lumi", "write_links2")}


def test_scans_of_h200_are_report_only_and_say_why():
    found = References(OWN_FOLDER)
    here = [one for one in of_scans(found) if one[1] in REPORT_ONLY]
    assert {(check, key) for check, key, *_ in here} == {
        *(("managed_scan_migration", key) for key in REPORT_ONLY),
        *(("p2p_scan", key) for key in REPORT_ONLY[1:]),
    }
    assert not any(requires(entry) for *_, entry in here)
    origins = [found.origin(*one[:3]) for one in here]
    assert {(origin.kind, origin.why is None) for origin in origins} == {
        ("report only", False),
        ("calibration", True),
    }
