hosts: device0 device1 device2 device3 device4 device5 device6 device7
HSA_ENABLE_SDMA=1 smpirun -np 8 -platform $BIN/libfabricheck_node.so -hostfile hosts --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/crosstraffic:no --log=root.thresh:error $OMB/collective/osu_allreduce -m 1024:1048576 -i 1 -x 0 -f
osu_allreduce rc=0
