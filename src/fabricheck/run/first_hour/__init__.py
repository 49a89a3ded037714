"""The first hour on an unmeasured node: ten commands, and one archive of their output."""
