"""Fidelity: the agreement of a simulated node with published values of real ones."""

from fabricheck.papers.fidelity.plan import plan_path, read_plan
from fabricheck.papers.fidelity.table import AIM, Fidelity, compare

__all__ = ["AIM", "Fidelity", "compare", "plan_path", "read_plan"]
