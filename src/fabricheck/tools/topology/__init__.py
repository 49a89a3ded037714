"""The topology of a node: what its drivers or texts of tools tell, compared with a node model."""

from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.drafting import write_draft
from fabricheck.tools.topology.recording import Runtime, record
from fabricheck.tools.topology.reported import Reported, merge
from fabricheck.tools.topology.texts import parse_files, parse_text

__all__ = [
    "Reported",
    "Runtime",
    "compare",
    "merge",
    "parse_files",
    "parse_text",
    "record",
    "write_draft",
]
