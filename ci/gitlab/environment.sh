# Sourced by the scripts in this folder: checks the variables, and prepares ReFrame.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The folder that keeps the verdicts of a pipeline between jobs; artifacts of its children are not
# passed on. A child has a number of its own, and its parent's number in FABRICHECK_PIPELINE.
every_kept=${FABRICHECK_KEPT:-$PWD/pipeline/kept}
kept=$every_kept/${FABRICHECK_PIPELINE:-${CI_PIPELINE_ID:-by-hand}}
site=${FABRICHECK_SITE:-local}
set=${FABRICHECK_SET:-smoke}
read -ra options <<< "${FABRICHECK_OPTIONS:-}"

fail() { # CODE SENTENCE
  echo "${0##*/}: $2" >&2
  exit "$1"
}

# configured: prints the partitions of FABRICHECK_SITE's system, as JSON.
configured() {
  reframe --system="$site" --show-config=systems/0/partitions \
    || fail 2 "ReFrame has no configuration of FABRICHECK_SITE='$site'"
}

# form VARIABLE PATTERN WHAT: refuses a value of another form before anything waits for it.
form() {
  [[ ${!1:-} =~ ^($2)?$ ]] || fail 2 "$1='${!1}' is not $3"
}
form FABRICHECK_SITE '[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?' 'a system or system:partition'
form FABRICHECK_SET 'smoke|node|full|network' 'a set of checks: smoke, node, full and network are'
form FABRICHECK_NODES '[1-9][0-9]*|[A-Za-z][A-Za-z0-9_.,-]*(\[[0-9,-]+\][A-Za-z0-9_.,-]*)*' \
  'a number of nodes, list of their names, idle, avail or all'
for name in RESERVATION ACCOUNT QUEUE QOS; do
  form "FABRICHECK_$name" '[A-Za-z0-9_.,@+-]+' 'a name that Slurm takes'
done
form FABRICHECK_TIME '[1-9][0-9]*' 'a number of minutes'
form FABRICHECK_SITES '/[A-Za-z0-9_./:+-]*' 'an absolute path that needs no quotes'
form FABRICHECK_KEPT '/[A-Za-z0-9_./+-]*' 'an absolute path that needs no quotes'

if [ -n "${FABRICHECK_SETUP_FILE:-}" ]; then
  [ -f "$FABRICHECK_SETUP_FILE" ] \
    || fail 3 "there is no file $FABRICHECK_SETUP_FILE, which FABRICHECK_SETUP_FILE names"
  set +eu # it is the site's own
  # shellcheck disable=SC1090
  source "$FABRICHECK_SETUP_FILE"
  set -eu
fi

# What the file above has put on the PATH is taken as it is, such as a bundle.
if ! command -v fabricheck > /dev/null; then
  if [ "${site%%:*}" = local ]; then ci/setup.sh build; else ci/setup.sh; fi
  source env.sh
fi
# The code is that of this checkout, wherever fabricheck was installed from.
export RFM_CONFIG_FILES=$PWD/config/settings.py PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH}
