mpiexec -n 4 $OMB/collective/osu_reduce_scatter -m 1024:1048576 -i 20 -x 2 -f
osu_reduce_scatter rc=0
