"""The vendors' topology tools: parsers, and comparison with a node model."""

from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.detection import detect, parse_files, parse_text
from fabricheck.tools.topology.drafting import write_draft
from fabricheck.tools.topology.recording import Runtime, record
from fabricheck.tools.topology.reported import Reported, merge

__all__ = [
    "Reported",
    "Runtime",
    "compare",
    "detect",
    "merge",
    "parse_files",
    "parse_text",
    "record",
    "write_draft",
]
