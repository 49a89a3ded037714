# To be sourced with bash in a checkout of fabricheck: source BUNDLE/enter.sh
# Afterwards `reframe -c reframe_checks -r` works. A failure prints the reason and sets nothing.
if [ -z "${BASH_VERSION:-}" ]; then
  echo "enter: this shell is not bash" >&2
  return 3
fi
bash "$(dirname "${BASH_SOURCE[0]}")/prepare.sh" "$PWD" || return
source ./env.sh
