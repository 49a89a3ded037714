#!/usr/bin/env bash
# Checks job.yaml by the schemas of the Kubernetes API: check.sh [VERSION...]
# They come with the package kubernetes-validate of PyPI (20 MB), which is installed in a folder of its own.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check kubernetes-validate==1.37.0
[ $# -gt 0 ] || set -- 1.33 1.37
for version in "$@"; do
  "$folder/venv/bin/kubernetes-validate" --strict --kubernetes-version "$version" job.yaml
done
