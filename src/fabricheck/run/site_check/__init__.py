"""What a partition of a site needs, looked for on the node where this runs."""

from fabricheck.run.site_check.looking import check
from fabricheck.run.site_check.place import Finding, Place
from fabricheck.run.site_check.target import Target, choose

__all__ = ["Finding", "Place", "Target", "check", "choose"]
