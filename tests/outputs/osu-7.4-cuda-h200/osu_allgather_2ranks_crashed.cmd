mpirun -np 2 env -u SLURM_PROCID CUDA_VISIBLE_DEVICES=0,1 CUDA_DEVICE_ORDER=PCI_BUS_ID $OMB/collective/osu_allgather -m 1024:1048576 -i 100 -x 10 -f -d cuda
osu_allgather rc=139
