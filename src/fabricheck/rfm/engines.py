"""The environment that makes copies alike on all AMD nodes; other devices ignore it."""

#: Set to 0, they switch off all copy engines, and those between devices.
SWITCHES = ("HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA")

#: Whatever the version of ROCm: no copy is shared by several engines (the default from 6.0 on),
#: and none is by kernel for its size alone (between devices to 1 MiB from 6.2 on, any to 16 KiB
#: from 7 on).
_ALIKE = {"HSA_ENABLE_SDMA_GANG": "0", "ROC_P2P_SDMA_SIZE": "0", "GPU_FORCE_BLIT_COPY_SIZE": "0"}

#: Each copy is by one engine.
ENGINES_ON = dict.fromkeys(SWITCHES, "1") | _ALIKE

#: Kernels move the data then.
ENGINES_OFF = dict.fromkeys(SWITCHES, "0") | _ALIKE
