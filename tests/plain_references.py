"""References of a check in the simplest form, for tests that change one of them."""

from __future__ import annotations

from typing import Any

from fabricheck.references.stated import References


def in_plain_form(found: References, check: str, *keys: str) -> dict[str, dict[str, Any]]:
    """Return the content of a file with a check: by partition or set its metrics, each by itself.

    :param keys: the partitions and sets; all without any.
    """
    return {
        check: {
            key: {
                metric: entry
                if (source := found.sources.get((check, key, metric))) is None
                else {"limit": entry, "source": source}
                for metric, entry in entries.items()
            }
            for key, entries in found.tables[check].items()
            if key in keys or not keys
        }
    }
