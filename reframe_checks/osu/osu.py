"""MPI by OSU Micro-Benchmarks: between two ranks (E9), and collectives (E10)."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON
from fabricheck.rfm.benchmarks import OsuCollectiveCheck, OsuOwnDeviceCheck, OsuPairCheck


@rfm.simple_test
class osu_device_0(OsuPairCheck):
    """From device 0 to each other one: 16 MiB as in AMD's lab notes, 1 GiB as in the paper's
    figure.

    Iterations are OSU's own defaults for such sizes, which both documents used.
    """

    descr = "osu_bw and osu_latency from device 0 to every other one (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +several_devices"]
    valid_prog_environs = ["+osu"]
    sizes = (16 << 20, 1 << 30)
    launch_seconds = 300
    env_vars = ENGINES_ON


@rfm.simple_test
class osu_device_0_engine_off(osu_device_0):
    """The same without the copy engines: kernels move the data, and may use all links."""

    descr = "osu_bw from device 0 to every other one, copy engines disabled (E9)"
    valid_systems = ["+devices +several_devices +peers +sdma"]
    programs = ("osu_bw",)
    env_vars = ENGINES_OFF


@rfm.simple_test
class osu_all_pairs(OsuPairCheck):
    """Every ordered pair, at the sizes of JSC's study; kernels are faster than engines here."""

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
class osu_own_device(OsuOwnDeviceCheck):
    """From each device to itself, two ranks on it: the diagonal of the JSC's heat maps.

    The JSC set no variable for the copy engines. A kernel copies within one memory with any
    setting; this one equals `osu_all_pairs`, whose heat map it completes.
    """

    descr = "osu_bw between two ranks on one device (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+osu"]
    sizes = (4 << 20, 64 << 20)
    stated_sizes = "pair_sizes"
    env_vars = ENGINES_OFF


class CollectiveCheck(OsuCollectiveCheck):
    """Reduce, broadcast, allreduce, reduce-scatter and allgather, to 1 MiB."""

    tags = {"E10", "full"}
    valid_systems = ["+devices +several_devices"]
    valid_prog_environs = ["+osu"]
    sizes = (1 << 10, 1 << 20)
    stated_sizes = "collective_sizes"


@rfm.simple_test
class osu_collectives(CollectiveCheck):
    """Each collective on the best 2, 3 ... devices by the node model, with copy engines."""

    descr = "OSU's collectives on 2 to all devices, the best ones, 1 MiB (E10)"
    env_vars = ENGINES_ON


@rfm.simple_test
class osu_collectives_engine_off(CollectiveCheck):
    """The same without the copy engines, as in the paper's second run."""

    descr = "OSU's collectives on the best devices, copy engines disabled (E10)"
    valid_systems = ["+devices +several_devices +peers +sdma"]
    env_vars = ENGINES_OFF


class FirstDevicesCheck(CollectiveCheck):
    """On the first 2, 3 ... devices, if these are not the best ones, which others measure."""

    valid_systems = ["+devices +several_devices +peers"]

    def device_sets(self):
        """Return the sets of the first devices that are not among the best sets."""
        return self.first_sets()


@rfm.simple_test
class osu_collectives_in_order(FirstDevicesCheck):
    """Each collective on the first devices instead of the best ones."""

    descr = "OSU's collectives on the first 2, 3 ... devices, 1 MiB (E10)"
    env_vars = ENGINES_ON


@rfm.simple_test
class osu_collectives_in_order_engine_off(FirstDevicesCheck):
    """The same without the copy engines."""

    descr = "OSU's collectives on the first devices, copy engines disabled (E10)"
    valid_systems = ["+devices +several_devices +peers +sdma"]
    env_vars = ENGINES_OFF
