hosts: device0 device1
HSA_ENABLE_SDMA=0 smpirun -np 2 -platform $BIN/libfabricheck_node.so -hostfile hosts --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/crosstraffic:no --log=root.thresh:error $OMB/pt2pt/osu_bw -m 16777216:67108864 -i 1 -x 0 -W 8
osu_bw_engine_off rc=0
