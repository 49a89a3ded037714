"""Checks how data moves inside a multi-GPU node against published and measured references."""

__version__ = "0.1.0"
