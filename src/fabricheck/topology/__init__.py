"""What the vendors' tools say about a node: reading it, comparing it with a node model."""

from fabricheck.errors import GarbledOutput
from fabricheck.topology.comparison import DIFFERENT, Comparison, compare
from fabricheck.topology.detection import Detection, detect
from fabricheck.topology.drafting import draft, write_draft
from fabricheck.topology.parse import parse_files, parse_text
from fabricheck.topology.recording import Question, Runtime, record
from fabricheck.topology.reported import Reported, merge

__all__ = [
    "DIFFERENT",
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
