"""The packages of a wheel: those of src, and what commands read of the checkout beside it."""

import sys

from setuptools import find_packages, setup

packages = find_packages("src", include=["fabricheck*"])
folders = {"": "src"}
# An editable installation has the checkout itself, and stays a path.
if "editable_wheel" not in sys.argv:
    packages.append("fabricheck.suite")
    folders["fabricheck.suite"] = "."
setup(packages=packages, package_dir=folders)
