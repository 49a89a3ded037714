"""The words of the suite and the exit codes.

Made of src/fabricheck/core/vocabulary.json by ci/vocabulary.py: edit that.
"""

from collections.abc import Mapping
from typing import Final, Literal

#: Where every time in this document comes from.
Clock = Literal["measured", "simulated"]

#: What the program was built for.
Runtime = Literal["rocm", "cuda", "host", "sim"]
DeviceRuntime = Literal["rocm", "cuda"]
OF_DEVICES: tuple[Runtime, ...] = ("rocm", "cuda")
RUNTIME_LABELS: Mapping[str, str] = {
    "rocm": "ROCm",
    "cuda": "CUDA",
    "host": "host runtime",
    "sim": "SimGrid",
}

#: How the run ended.
Status = Literal[
    "good",
    "usage",
    "unsupported",
    "software",
    "wrong-data",
    "time-limit",
    "too-noisy",
    "setting",
    "device-error",
    "tool",
    "refused",
    "interrupted",
    "running",
]
REACHED_THE_END: tuple[Status, ...] = ("good", "wrong-data", "too-noisy")
EXIT_CODE: Mapping[str, int] = {
    "good": 0,
    "usage": 2,
    "unsupported": 3,
    "software": 4,
    "wrong-data": 5,
    "time-limit": 6,
    "too-noisy": 7,
    "setting": 8,
    "device-error": 9,
    "tool": 10,
    "refused": 11,
}
STATUS_OF_EXIT: Mapping[int, Status] = {
    0: "good",
    2: "usage",
    3: "unsupported",
    4: "software",
    5: "wrong-data",
    6: "time-limit",
    7: "too-noisy",
    8: "setting",
    9: "device-error",
    10: "tool",
    11: "refused",
}
EXIT_MEANING: Mapping[int, str] = {
    0: "good",
    2: "bad usage",
    3: "no such device, or not supported",
    4: "an error of the program, MPI, a file or the system",
    5: "wrong data",
    6: "the time limit",
    7: "too noisy to judge",
    8: "prevented by a setting of the node or the job",
    9: "an error of the runtime that names hardware",
    10: "another program that it ran failed",
    11: "a call of the runtime failed by an error that names no hardware",
}

#: How a command of fabricheck ends.
COMMAND_EXITS: Mapping[int, str] = {
    0: "good",
    1: "a defect in fabricheck",
    2: "bad usage",
    3: "nothing there (no such file, session or folder)",
    4: "an input is unreadable, invalid or incomplete",
    8: "a node differs from its model",
    9: "a metric has no reference",
    10: "a value is worse than before",
    11: "values are missing",
    12: "a node failed",
    13: "no node failed and one is unstable or incomplete",
    14: "a node stands out from the others",
    15: "files are not those of an acceptance's manifest",
    16: "a signature is missing, or of another key or manifest",
    17: "an acceptance judged again says otherwise",
}
EXIT_GOOD: Final = 0
EXIT_DEFECT: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_FOUND: Final = 3
EXIT_INVALID_INPUT: Final = 4
EXIT_DIFFERENT: Final = 8
EXIT_NO_REFERENCE: Final = 9
EXIT_WORSE: Final = 10
EXIT_MISSING: Final = 11
EXIT_NODE_FAILED: Final = 12
EXIT_NODE_OPEN: Final = 13
EXIT_ODD: Final = 14
EXIT_ALTERED: Final = 15
EXIT_NOT_SIGNED: Final = 16
EXIT_JUDGED_OTHERWISE: Final = 17

#: Of which experiment.
Experiment = Literal[
    "E1",
    "E2",
    "E3",
    "E4",
    "E5",
    "E6",
    "E7",
    "E8",
    "E9",
    "E10",
    "E11",
    "E12",
    "E13",
    "E14",
    "E15",
    "E16",
    "E17",
]
JUDGED_BY_SUM: tuple[Experiment, ...] = ("E7", "E8")
EXPERIMENTS: Mapping[str, str] = {
    "E1": "device-local STREAM",
    "E2": "host-device copy by hipMemcpy",
    "E3": "host-device managed memory",
    "E4": "NUMA domain x device matrix",
    "E5": "concurrent host-device STREAM copy",
    "E6": "placement ping-pong",
    "E7": "peer copy by copy engine",
    "E8": "peer access by kernel",
    "E9": "MPI point to point on device buffers",
    "E10": "MPI collectives on device buffers",
    "E11": "RCCL collectives",
    "E12": "GPU-aware MPI gives right data",
    "E13": "topology against the node model",
    "E14": "best k devices",
    "E15": "binding of ranks to cores and devices",
    "E16": "NICs against the node model",
    "E17": "messages between nodes",
}

#: Operations of STREAM.
StreamOperation = Literal["copy", "scale", "add", "triad", "read-only", "write-only"]

#: What a device computes while it copies.
COMPUTE: Final = "compute"

#: Messages between two ranks.
OSU_PAIRS: Mapping[str, str] = {
    "bandwidth": "osu_bw",
    "bandwidth-both": "osu_bibw",
    "latency": "osu_latency",
}
NCCL_PAIRS: Mapping[str, str] = {"sendrecv": "sendrecv_perf"}

#: Operations of all ranks that take part.
Collective = Literal["reduce", "bcast", "allreduce", "reduce_scatter", "allgather"]
COLLECTIVES: tuple[Collective, ...] = (
    "reduce",
    "bcast",
    "allreduce",
    "reduce_scatter",
    "allgather",
)
REDUCTIONS: tuple[Collective, ...] = ("reduce", "allreduce", "reduce_scatter")
OSU_COLLECTIVES: Mapping[str, str] = {
    "reduce": "osu_reduce",
    "bcast": "osu_bcast",
    "allreduce": "osu_allreduce",
    "reduce_scatter": "osu_reduce_scatter",
    "allgather": "osu_allgather",
}
NCCL_COLLECTIVES: Mapping[str, str] = {
    "reduce": "reduce_perf",
    "bcast": "broadcast_perf",
    "allreduce": "all_reduce_perf",
    "reduce_scatter": "reduce_scatter_perf",
    "allgather": "all_gather_perf",
}

#: What is done with the data.
Operation = Literal[
    "copy",
    "scale",
    "add",
    "triad",
    "read-only",
    "write-only",
    "engine",
    "read",
    "write",
    "latency",
    "latency-host",
    "chase",
    "engine-both",
    "read-both",
    "write-both",
    "h2d",
    "h2d-sync",
    "d2h",
    "d2h-sync",
    "h2d-latency",
    "d2h-latency",
    "both",
    "host-read",
    "host-write",
    "prefetch-h2d",
    "prefetch-d2h",
    "compute",
    "there-and-back",
    "bandwidth",
    "bandwidth-both",
    "exchange",
    "sendrecv",
    "reduce",
    "bcast",
    "allreduce",
    "reduce_scatter",
    "allgather",
]

#: What the series is of.
Role = Literal["single", "share", "sum", "beside"]

#: The kind of memory.
Memory = Literal["device", "peer", "host-pinned", "host-noncoherent", "host-pageable", "managed"]
OF_HOST: tuple[Memory, ...] = ("host-pinned", "host-noncoherent", "host-pageable")

#: What moves the data; a copy may be by a kernel of the runtime.
Engine = Literal["kernel", "copy-engine", "cpu", "mpi", "rccl"]
Mover = Literal["kernel", "copy-engine"]

#: How a kernel writes; null without a kernel.
Stores = Literal["plain", "streaming"]

#: How a kernel reads; null without a kernel, and where it is always plain.
Loads = Literal["plain", "streaming"]

#: How managed or mapped memory comes to who uses it; null or absent where that is no question.
Movement = Literal["zero-copy", "page-migration", "prefetch"]

#: How far apart the NICs of two ranks are; null or absent within a node and where no place is
#: known.
Distance = Literal["same-switch", "same-group", "other-group"]

#: How messages left the node, by the counters that moved; null where none can be read.
Transport = Literal["nic", "kernel", "within-node"]

#: Counters of a NIC, by their file below its folder of its class in /sys.
CXI_RETRIES: tuple[str, ...] = (
    "rh:sct_timeouts",
    "rh:spt_timeouts",
    "rh:nacks",
    "rh:pkts_cancelled_o",
    "rh:pkts_cancelled_u",
)
NIC_FAILURES: tuple[str, ...] = (
    "device/properties/pcie_uncorr_err",
    "counters/link_error_recovery",
    "counters/link_downed",
)
CXI_ERRORS: tuple[str, ...] = (
    "device/telemetry/hni_pcs_uncorrected_cw",
    "device/properties/pcie_corr_err",
    "device/properties/pcie_uncorr_err",
)
IB_ERRORS: tuple[str, ...] = (
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_xmit_discards",
)
NET_ERRORS: tuple[str, ...] = ("statistics/tx_errors", "statistics/rx_errors")

#: Which way the data goes.
Direction = Literal["local", "one-way", "both-ways", "collective"]

#: Type of the elements of a message; null or absent without one.
Datatype = Literal["byte", "int32", "float", "double"]
ELEMENT_BYTES: Mapping[str, int] = {"byte": 1, "int32": 4, "float": 4, "double": 8}

#: The convention by which bytes_moved counts.
BytesCounted = Literal["once", "read+write", "bus"]
BytesOfCopy = Literal["once", "read+write"]

#: Whether caches can hold the arrays.
Regime = Literal["memory", "cache"]

#: Which values are the better ones.
Better = Literal["higher", "lower"]

#: Of the samples.
SeriesUnit = Literal["GB/s", "us"]
BETTER: Mapping[str, Better] = {"GB/s": "higher", "us": "lower"}

#: Of the value of a metric.
Unit = Literal["GB/s", "us", "count", "%"]
SMALLER_IS_BETTER: tuple[Unit, ...] = ("us", "count")

#: What a setting changes.
Concern = Literal["launches", "engines", "peer-engines", "devices"]

#: Why a device runs below its clock.
Throttle = Literal["power", "thermal", "hardware", "other"]

#: Whose energy a counter counts.
EnergyCounter = Literal["device", "package", "accelerator", "node"]

#: What a driver counts of the links of a device.
LinkError = Literal[
    "xgmi-corrected",
    "xgmi-uncorrected",
    "bif-corrected",
    "bif-uncorrected",
    "aer-corrected",
    "aer-nonfatal",
    "aer-fatal",
    "nvlink-replay",
    "nvlink-recovery",
    "nvlink-crc",
    "nvlink-recovered",
    "nvlink-recovery-failed",
    "nvlink-symbol",
    "nvlink-effective",
    "nvlink-malformed",
    "nvlink-overrun",
    "nvlink-received",
    "nvlink-remote",
    "nvlink-general",
    "nvlink-integrity",
    "nvlink-discard",
]
LINK_ERROR_NOUNS: Mapping[str, str] = {
    "xgmi-corrected": "corrected xGMI error",
    "xgmi-uncorrected": "uncorrected xGMI error",
    "bif-corrected": "corrected PCIe interface error",
    "bif-uncorrected": "uncorrected PCIe interface error",
    "aer-corrected": "corrected AER error",
    "aer-nonfatal": "non-fatal AER error",
    "aer-fatal": "fatal AER error",
    "nvlink-replay": "NVLink replay",
    "nvlink-recovery": "NVLink recovery event",
    "nvlink-crc": "NVLink CRC error",
    "nvlink-recovered": "successful NVLink recovery event",
    "nvlink-recovery-failed": "failed NVLink recovery event",
    "nvlink-symbol": "NVLink symbol error",
    "nvlink-effective": "effective NVLink error",
    "nvlink-malformed": "malformed NVLink packet",
    "nvlink-overrun": "NVLink buffer overrun",
    "nvlink-received": "faulty NVLink packet",
    "nvlink-remote": "remote NVLink error",
    "nvlink-general": "general NVLink error",
    "nvlink-integrity": "local NVLink integrity error",
    "nvlink-discard": "discarded NVLink packet",
}
LINK_ERROR_WEIGHS: Mapping[str, str] = {
    "xgmi-corrected": "corrected",
    "xgmi-uncorrected": "uncorrected",
    "bif-corrected": "corrected",
    "bif-uncorrected": "uncorrected",
    "aer-corrected": "corrected",
    "aer-nonfatal": "unclear",
    "aer-fatal": "uncorrected",
    "nvlink-replay": "corrected",
    "nvlink-recovery": "corrected",
    "nvlink-crc": "corrected",
    "nvlink-recovered": "corrected",
    "nvlink-recovery-failed": "uncorrected",
    "nvlink-symbol": "corrected",
    "nvlink-effective": "unclear",
    "nvlink-malformed": "unclear",
    "nvlink-overrun": "unclear",
    "nvlink-received": "unclear",
    "nvlink-remote": "unclear",
    "nvlink-general": "unclear",
    "nvlink-integrity": "unclear",
    "nvlink-discard": "unclear",
}

#: What a line of a log says of a device.
LogKind = Literal["hardware", "unclear"]

#: What the vendor tells to do about an error in a log.
LogAction = Literal[
    "none",
    "restart-app",
    "reset",
    "drain-peers",
    "drain-reset",
    "restart-node",
    "check",
    "update",
    "report",
    "replace",
    "driver-resets",
    "driver-retires",
    "contact-support",
    "check-memory",
]
LOG_ACTIONS: Mapping[str, str] = {
    "none": "none at once",
    "restart-app": "start the program again",
    "reset": "reset the device",
    "drain-peers": "end the transfers with its peers",
    "drain-reset": "let its work end, then reset the device",
    "restart-node": "restart the node",
    "check": "check connectors and cables",
    "update": "update driver and firmware",
    "report": "report the device if it happens more than twice",
    "replace": "replace the device",
    "driver-resets": "none by hand, as the driver resets what failed",
    "driver-retires": "none by hand, as the driver gives up the page of memory",
    "contact-support": "ask its support",
    "check-memory": "look for errors of unified memory",
}

#: Who compared; absent is program.
ComparedBy = Literal["program", "tool"]

#: What stands for a text that is not there.
UNKNOWN: Final = "unknown"

#: Variables of the environment.
ENGINE_SWITCHES: tuple[str, ...] = ("HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA")
ENGINES_ON: Mapping[str, str] = {
    "HSA_ENABLE_SDMA": "1",
    "HSA_ENABLE_PEER_SDMA": "1",
    "HSA_ENABLE_SDMA_GANG": "0",
    "ROC_P2P_SDMA_SIZE": "0",
    "GPU_FORCE_BLIT_COPY_SIZE": "0",
}
ENGINES_OFF: Mapping[str, str] = {
    "HSA_ENABLE_SDMA": "0",
    "HSA_ENABLE_PEER_SDMA": "0",
    "HSA_ENABLE_SDMA_GANG": "0",
    "ROC_P2P_SDMA_SIZE": "0",
    "GPU_FORCE_BLIT_COPY_SIZE": "0",
}
ENV_RESULTS: Final = "FABRICHECK_RESULTS"
ENV_NODE_NAME: Final = "FABRICHECK_NODE_NAME"
ENV_SIMULATED_NODE: Final = "FABRICHECK_SIMULATED_NODE"
ENV_SIMULATED_CLOCK: Final = "FABRICHECK_SIMULATED_CLOCK"
ENV_METRICS: Final = "FABRICHECK_METRICS_FILE"
ENV_ENGINES: Final = "HSA_ENABLE_SDMA"
ENV_PEER_ENGINES: Final = "HSA_ENABLE_PEER_SDMA"
ENV_GANG: Final = "HSA_ENABLE_SDMA_GANG"
ENV_PEER_SIZE: Final = "ROC_P2P_SDMA_SIZE"
ENV_BLIT_SIZE: Final = "GPU_FORCE_BLIT_COPY_SIZE"
