mpiexec -n 2 $OMB/pt2pt/osu_bw -m 1048576:16777216 -i 20 -x 2 -W 16
osu_bw_scan rc=0
