MPIR_CVAR_NOLOCAL=1 mpiexec -n 2 $OMB/pt2pt/osu_bibw -m 1048576:4194304 -i 20 -x 2 -W 16
osu_bibw rc=0
