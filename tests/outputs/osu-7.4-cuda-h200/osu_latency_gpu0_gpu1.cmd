mpirun -np 2 $OMB/pt2pt/osu_latency -m 1:8192 -d cuda D D
osu_latency rc=0
