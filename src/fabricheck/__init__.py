"""Checks how data moves inside a multi-GPU node against published and measured references."""

#: The one place of the version: CMakeLists.txt and pyproject.toml read it here.
__version__ = "0.3.0"
