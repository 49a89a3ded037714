hosts: device0 device2
HSA_ENABLE_SDMA=1 smpirun -np 2 -platform $BIN/libfabricheck_node.so -hostfile hosts --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/crosstraffic:no --log=root.thresh:error $OMB/pt2pt/osu_latency -m 16:8192 -i 1 -x 0
osu_latency rc=0
