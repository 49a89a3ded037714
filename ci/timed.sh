#!/usr/bin/env bash
# A shell of make that also writes what each line of a recipe took: make SHELL=$PWD/ci/timed.sh ...
# To the file MAKE_TIMED: seconds by the clock, of the processor by itself and by the kernel,
# and the line. A line that calls make has the time of the lines below it, too.
TIMEFORMAT='%R %U %S'
exec 3>&1 4>&2
status=0
spent=$({ time bash "$@" >&3 2>&4 3>&- 4>&-; } 2>&1) || status=$?
line=${!#}
# Who calls make without the variable, as a test may, is not timed.
[ -z "${MAKE_TIMED:-}" ] || echo "$spent ${line//$'\n'/ }" >> "$MAKE_TIMED"
exit $status
