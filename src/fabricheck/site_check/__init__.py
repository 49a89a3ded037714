"""What a partition of a site needs, looked for on the node where this runs."""

from fabricheck.site_check.looking import check
from fabricheck.site_check.place import Finding, Place
from fabricheck.site_check.target import Target, choose

__all__ = ["Finding", "Place", "Target", "check", "choose"]
