mpiexec -n 2 $OMB/collective/osu_reduce -m 1024:1048576 -i 1 -x 0 -c -u 0 -f
osu_reduce_c rc=0
