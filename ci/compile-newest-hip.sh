#!/usr/bin/env bash
# Compiles every program at -O3 for gfx90a, gfx942 and gfx950 with the newest HIP of Debian, in a chroot of
# Debian sid, and checks the machine code: compile-newest-hip.sh [FOLDER]
# FOLDER (build/newest-hip) keeps the chroot, 1.5 GB: remove it to get newer packages.
# Runs as root on Debian; takes six minutes on two cores. Exit codes: 1 the compiled code is wrong,
# 3 something is missing on this machine, 6 the disk is full.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/newest-hip}
chroot=$folder/chroot
log=$folder/chroot.log
packages=(ca-certificates cmake g++ hipcc libamdhip64-dev libcli11-dev libhwloc-dev libmpich-dev
  ninja-build nlohmann-json3-dev pkg-config python3)

fail() {
  echo "compile-newest-hip: $2" >&2
  exit "$1"
}

make_chroot() {
  local mirror setting options=()
  mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2> /dev/null \
    | awk '$1 == "Debian" && !found++ {print $2}')
  [ -n "$mirror" ] || fail 3 "apt knows no mirror of Debian: run it on Debian, after apt-get update"
  while read -r setting; do
    options+=("--aptopt=$setting")
  done < <(apt-config dump --no-empty --format '%f "%v";%n' Acquire \
    | grep -E '^Acquire::(Check-Valid-Until|Retries|https?::Proxy) ')
  echo "compile-newest-hip: making a chroot of Debian sid in $chroot"
  rm -rf --one-file-system "$chroot.part"
  if ! mmdebstrap --mode=root --variant=apt --include="$(IFS=, && echo "${packages[*]}")" \
    "${options[@]}" sid "$chroot.part" "$mirror" > "$log" 2>&1; then
    ! grep -q 'No space left on device\|enough free space' "$log" \
      || fail 6 "no space for the chroot in $folder; name another folder"
    fail 3 "no chroot of Debian sid can be made from $mirror; all that mmdebstrap said is in $log"
  fi
  mv "$chroot.part" "$chroot"
}

# A process in the chroot; what is mounted for it goes when it ends.
inside() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -c 'cd "$0" \
    && mount --rbind /sys sys && mount -t proc proc proc \
    && exec chroot . env -i PATH=/usr/sbin:/usr/bin "$@"' "$chroot" "$@"
}

[ "$(id -u)" -eq 0 ] || fail 3 "only root can make a chroot"
for command in apt-get mmdebstrap unshare; do
  command -v $command > /dev/null || fail 3 "$command is missing: on Debian, apt-get install $command"
done
mkdir -p "$folder" && : > "$log" || fail 6 "cannot write to $folder"
[ -d "$chroot" ] || make_chroot
rm -rf "$chroot/fabricheck/src"
mkdir -p "$chroot/fabricheck" && cp -Rp CMakeLists.txt cmake ci src "$chroot/fabricheck" \
  || fail 6 "cannot copy the sources to $chroot"
inside dpkg-query -W "${packages[@]}"
inside bash -c 'cd /fabricheck && ci/compile-check.sh rocm-sid build'
