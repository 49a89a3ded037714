mpirun -np 2 $OMB/pt2pt/osu_bw -m 1048576:1073741824 -i 10 -x 2 -d cuda D D
osu_bw rc=0
