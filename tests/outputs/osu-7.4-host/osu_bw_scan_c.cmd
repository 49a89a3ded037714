mpiexec -n 2 $OMB/pt2pt/osu_bw -m 1048576:16777216 -i 1 -x 0 -W 1 -c -u 0
osu_bw_scan_c rc=0
