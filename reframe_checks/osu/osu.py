"""MPI by OSU Micro-Benchmarks: between two ranks (E9), and collectives (E10)."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON
from fabricheck.rfm.benchmarks import OsuCollectiveCheck, OsuPairCheck


@rfm.simple_test
class osu_device_0(OsuPairCheck):
    """From device 0 to each other one: 16 MiB as AMD's lab notes, 1 GiB as the paper's figure."""

    descr = "osu_bw and osu_latency from device 0 to every other one (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +several_devices"]
    valid_prog_environs = ["+osu"]
    sizes = (16 << 20, 1 << 30)
    rounds = {"iterations": 5, "warm_up": 1, "window": 64}
    env_vars = ENGINES_ON


@rfm.simple_test
class osu_device_0_engine_off(osu_device_0):
    """The same without the copy engines: kernels move the data, and may use all links."""

    descr = "osu_bw from device 0 to every other one, copy engines switched off (E9)"
    valid_systems = ["+devices +several_devices +peers +sdma"]
    programs = ("osu_bw",)
    env_vars = ENGINES_OFF


@rfm.simple_test
class osu_all_pairs(OsuPairCheck):
    """Every ordered pair, at the sizes of the JSC's study; kernels reach more than engines do."""

    descr = "osu_bw between all ordered pairs of devices (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+osu"]
    programs = ("osu_bw",)
    first_only = False
    sizes = (4 << 20, 64 << 20)
    stated_sizes = "pair_sizes"
    env_vars = ENGINES_OFF


@rfm.simple_test
class osu_collectives(OsuCollectiveCheck):
    """Reduce, broadcast, allreduce, reduce-scatter, allgather on 2 to all ranks."""

    descr = "OSU's collectives on 2 to all devices, 1 MiB (E10)"
    tags = {"E10", "full"}
    valid_systems = ["+devices +several_devices"]
    valid_prog_environs = ["+osu"]
    env_vars = ENGINES_ON
    sizes = (1 << 10, 1 << 20)
    stated_sizes = "collective_sizes"
