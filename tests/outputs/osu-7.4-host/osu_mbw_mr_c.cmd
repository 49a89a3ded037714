MPIR_CVAR_NOLOCAL=1 mpiexec -n 4 $OMB/pt2pt/osu_mbw_mr -m 1048576:4194304 -i 1 -x 0 -W 1 -c -u 0
osu_mbw_mr_c rc=0
