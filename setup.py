"""The packages of a wheel: those of src, and what commands read of the checkout beside it."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src", include=["fabricheck*"]), "fabricheck.suite"],
    package_dir={"": "src", "fabricheck.suite": "."},
)
