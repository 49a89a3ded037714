#!/usr/bin/env bash
# A Slurm on this machine, of one node or of several, for tests:
#   slurm.sh start DIR [CORES [GPUS [NODES]]]   configures and starts it in DIR, waits for idle nodes
#   slurm.sh stop DIR                           ends its jobs and its daemons
#   slurm.sh kill DIR NODE                      ends all processes of one node, as a power failure does
# What DIR/extra.conf has is added to slurm.conf, such as a Prolog.
# SLURM_CONF=DIR/slurm.conf directs sbatch, srun, squeue and the others to it.
#
# It needs no root and no systemd: its daemons run as the calling user, and run only his jobs. Its
# key, sockets, ports, logs and state are separate from any other Slurm of this machine.
# Each node states CORES cores (64) and GPUS devices (8) whatever the machine has: tasks are not bound
# to cores (task/none), and a device is an empty file. A single node is called localhost, several
# node1, node2 and so on; each has a slurmd of its own, and all of them are this machine.
# If one of several nodes does not answer, it is DOWN after some 25 s, and its jobs end as NODE_FAIL.
set -euo pipefail

readonly start_seconds=60 stop_seconds=60

fail() {
  echo "slurm.sh: $1" >&2
  exit 4
}

usage() {
  echo "slurm.sh: $1; usage: slurm.sh start DIR [CORES [GPUS [NODES]]] | stop DIR | kill DIR NODE" >&2
  exit 2
}

# fail_of NAME LOG SENTENCE: what did not start, why, and the last lines of its log.
fail_of() {
  [ ! -s "$2" ] || tail -n 10 "$2" >&2
  (stop) || true
  fail "$1 $3 (log: $2)"
}

require_programs() {
  # Daemons lie where only root's PATH looks.
  PATH=$PATH:/usr/sbin:/sbin
  local program
  for program in munged mungekey slurmctld slurmd sinfo scontrol scancel; do
    command -v "$program" > /dev/null || fail "there is no program $program: the Debian packages \
slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins are needed"
  done
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
  local ends=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$ends" ] || return 1
    sleep 0.1
  done
}

# The process of a daemon by its own pid file, if it still is that program.
pid_of() {
  local pid
  pid=$(cat "$dir/$1.pid" 2> /dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = "${1%%.*}" ] && echo "$pid"
}

runs() { pid_of "$1" > /dev/null; }
ended() { ! runs "$1"; }
no_jobs() { [ -z "$(squeue --noheader --format=%i 2> /dev/null)" ]; }
munge_answers() { [ -S "$dir/munge.socket" ] && munge --socket="$dir/munge.socket" --no-input > /dev/null 2>&1; }
nodes_idle() { [ "$(sinfo --noheader --Node --format=%T 2> /dev/null | grep -cx idle)" = "$nodes" ]; }

# The daemons of nodes, by the names of their pid files: slurmd.NODE.
node_daemons() {
  local file
  for file in "$dir"/slurmd.*.pid; do
    [ -e "$file" ] && basename "$file" .pid
  done
}

free_ports() {
  python3 -c 'import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))' "$1"
}

name_of() { if [ "$nodes" -eq 1 ]; then echo localhost; else echo "node$1"; fi; }

configure() {
  local ports user memory last=$((gpus - 1)) node silent=0
  # Seconds, to which Slurm adds some 15 for its own tries. A node alone is never given up.
  [ "$nodes" -eq 1 ] || silent=10
  read -r -a ports < <(free_ports $((nodes + 1)))
  user=$(id -un)
  memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE) / 1048576))
  mkdir -p "$dir/state" "$dir/devices"
  for ((gpu = 0; gpu < gpus; gpu++)); do : > "$dir/devices/gpu$gpu"; done
  rm -f "$dir/munge.key"
  mungekey --create --keyfile="$dir/munge.key"
  # A bare Count, without files, leaves the node invalid and every srun waiting.
  for ((node = 1; node <= nodes; node++)); do
    mkdir -p "$dir/spool.$(name_of "$node")"
    echo "NodeName=$(name_of "$node") Name=gpu File=$dir/devices/gpu[0-$last]"
  done > "$dir/gres.conf"
  cat > "$dir/slurm.conf" << END_CONF
ClusterName=fabricheck-test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
# The node states more cores than there are.
SlurmdParameters=config_overrides
MessageTimeout=60
TCPTimeout=30
SlurmdTimeout=$silent
InactiveLimit=0
ReturnToService=2
# Looks at the queue at once, not seconds after a job has ended.
SchedulerParameters=batch_sched_delay=0,sched_interval=1
# Seconds between the signals that ask a job to end and end it.
KillWait=2
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END_CONF
  for ((node = 1; node <= nodes; node++)); do
    echo "NodeName=$(name_of "$node") NodeHostname=localhost NodeAddr=127.0.0.1" \
      "Port=${ports[node]} Sockets=1 CoresPerSocket=$cores ThreadsPerCore=1" \
      "RealMemory=$memory Gres=gpu:$gpus State=UNKNOWN"
  done >> "$dir/slurm.conf"
  [ ! -e "$dir/extra.conf" ] || cat "$dir/extra.conf" >> "$dir/slurm.conf"
}

start() {
  require_programs
  local daemon node name
  for daemon in munged slurmctld $(node_daemons); do
    ended "$daemon" || fail "$daemon runs in $dir already: stop it first (slurm.sh stop $dir)"
  done
  configure
  # --force: the folder may lie in one that others can write to, such as /tmp.
  munged --force --num-threads=2 --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
    --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munged.seed" \
    > "$dir/munged.out" 2>&1 || fail_of munged "$dir/munged.out" "did not start"
  within "$start_seconds" munge_answers \
    || fail_of munged "$dir/munged.log" "did not answer within $start_seconds s"
  slurmctld -c > "$dir/slurmctld.out" 2>&1 || fail_of slurmctld "$dir/slurmctld.out" "did not start"
  # It returns before the daemon has written its number, without which nothing could stop it.
  within "$start_seconds" runs slurmctld || fail_of slurmctld "$dir/slurmctld.log" "did not start"
  for ((node = 1; node <= nodes; node++)); do
    name=$(name_of "$node")
    slurmd -c -N "$name" > "$dir/slurmd.$name.out" 2>&1 \
      || fail_of slurmd "$dir/slurmd.$name.out" "did not start"
  done
  within "$start_seconds" nodes_idle || {
    local state
    daemon=slurmd.$name
    runs slurmctld || daemon=slurmctld
    state=$(sinfo --noheader --Node --format='%N %T, %E' 2>&1 | grep -v ' idle, ' | sed -n 1p)
    fail_of "${daemon%%.*}" "$dir/$daemon.log" "left a node not idle within $start_seconds s ($state)"
  }
}

# The names of the nodes, as they were configured.
node_names() { sed -n 's/^NodeName=\([^ ]*\) .*/\1/p' "$dir/slurm.conf" 2> /dev/null || true; }

# The processes of a node beside its slurmd: first its slurmstepds, which would tell of their tasks'
# end, known by their sockets in the node's folder; then what they started, by session and by name.
processes_of() {
  local socket steps
  steps=$(awk -v folder="$dir/spool.$1/" 'index($NF, folder) == 1 { print $7 }' /proc/net/unix \
    | while read -r socket; do
      find /proc/[0-9]*/fd -lname "socket:\\[$socket\\]" 2> /dev/null | cut -d / -f 3
    done | sort -u)
  echo "$steps"
  # The session of a process is the fourth word after its name, which may hold anything.
  cat /proc/[0-9]*/stat 2> /dev/null | awk -v steps="$steps" '
    BEGIN { split(steps, numbers); for (i in numbers) sessions[numbers[i]] }
    { pid = $1; sub(/.*\) /, ""); if ($4 in sessions) print pid }'
  grep -lzx "SLURMD_NODENAME=$1" /proc/[0-9]*/environ 2> /dev/null | while read -r file; do
    ! grep -qzx "SLURM_CONF=$dir/slurm.conf" "$file" 2> /dev/null || echo "$file" | cut -d / -f 3
  done
}

kill_node() {
  require_programs
  local names daemon pids
  names=$(node_names | paste -s -d ' ')
  [ -n "$names" ] || usage "there is no Slurm in $dir"
  [[ " $names " == *" $1 "* ]] || usage "'$1' is not a node of the Slurm in $dir: those are $names"
  daemon=$(pid_of "slurmd.$1") || fail "the daemon of $1 does not run (log: $dir/slurmd.$1.log)"
  pids=("$daemon")
  while [ ${#pids[@]} -gt 0 ]; do
    kill -KILL "${pids[@]}" 2> /dev/null || true
    read -r -d '' -a pids < <(processes_of "$1" || true) || true
  done
  rm -f "$dir/slurmd.$1.pid"
}

# Jobs of a node whose daemon does not run would be waited for until it is given up.
give_up_dead_nodes() {
  local node
  for node in $(node_names); do
    runs "slurmd.$node" || scontrol update "NodeName=$node" State=DOWN Reason="its daemon is gone" || true
  done
}

stop() {
  require_programs
  if runs slurmctld; then
    give_up_dead_nodes > /dev/null 2>&1
    scancel --full --user="$(id -un)" > /dev/null 2>&1 || true
    within "$stop_seconds" no_jobs || echo "slurm.sh: jobs are left in $dir" >&2
  fi
  local daemon pid left=()
  for daemon in $(node_daemons) slurmctld munged; do
    pid=$(pid_of "$daemon") || continue
    kill "$pid" 2> /dev/null || true
    within "$stop_seconds" ended "$daemon" || left+=("$daemon ($pid)")
    ended "$daemon" && rm -f "$dir/$daemon.pid"  # one that was starting leaves its own
  done
  [ ${#left[@]} -eq 0 ] || fail "${left[*]} did not end within $stop_seconds s"
}

[ $# -ge 2 ] || usage "too few arguments"
action=$1
dir=$2
cores=${3:-64}
gpus=${4:-8}
nodes=${5:-1}
case $dir in
  /*) ;;
  *) usage "'$dir' is not an absolute path" ;;
esac
export SLURM_CONF=$dir/slurm.conf
case $action in
  start)
    [[ "$cores $gpus $nodes" =~ ^([1-9][0-9]*( |$)){3}$ ]] \
      || usage "CORES, GPUS and NODES are whole numbers above 0"
    mkdir -p "$dir"
    start
    ;;
  stop) stop ;;
  kill)
    [ $# -ge 3 ] || usage "kill needs the name of a node"
    kill_node "$3"
    ;;
  *) usage "'$action' is neither start, stop nor kill" ;;
esac
