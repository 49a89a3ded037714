"""The environment that switches AMD's copy engines on and off; what has none ignores it."""

ENGINES_ON = {"HSA_ENABLE_SDMA": "1", "HSA_ENABLE_PEER_SDMA": "1"}

#: Kernels move the data then.
ENGINES_OFF = {"HSA_ENABLE_SDMA": "0", "HSA_ENABLE_PEER_SDMA": "0"}
