"""What the vendors' tools say about a node: reading it, comparing it with a node model."""

from fabricheck.core.errors import GarbledOutput
from fabricheck.tools.topology.comparison import Comparison, compare
from fabricheck.tools.topology.detection import Detection, detect
from fabricheck.tools.topology.drafting import draft, write_draft
from fabricheck.tools.topology.parse import parse_files, parse_text
from fabricheck.tools.topology.recording import Question, Runtime, record
from fabricheck.tools.topology.reported import Reported, merge

__all__ = [
    "Comparison",
    "Detection",
    "GarbledOutput",
    "Question",
    "Reported",
    "Runtime",
    "compare",
    "detect",
    "draft",
    "merge",
    "parse_files",
    "parse_text",
    "record",
    "write_draft",
]
