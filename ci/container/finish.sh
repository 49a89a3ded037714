#!/usr/bin/env bash
# Leaves of a build what an image needs: finish.sh RUNTIME
# Afterwards make run builds nothing (ci/run.sh reads the name of the image in env.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
find build -mindepth 2 -maxdepth 2 ! -name bin -exec rm -rf {} +
.venv/bin/python -m compileall -q src .venv/lib > /dev/null || true
echo "export FABRICHECK_IMAGE=\"$1\"" >> env.sh
