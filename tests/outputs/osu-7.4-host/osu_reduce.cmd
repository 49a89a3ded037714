mpiexec -n 2 $OMB/collective/osu_reduce -m 1024:1048576 -i 100 -x 10 -f
osu_reduce rc=0
