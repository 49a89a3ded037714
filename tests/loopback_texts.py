"""Composed: what vendors' loopbacks of a NIC print, in their formats, with published values.

cxi_gpu_loopback_bw: the values that HPE prints for a compute node (HewlettPackard/shs-docs,
fabric_validation/loopback_performance_test.md @ef07c6c). ib_write_bw of perftest: two runs between
NICs of 100 Gb/s that users published, of 64 KiB for a time and of 1 MiB. None was recorded here.
"""

from __future__ import annotations

#: By NIC: Gb/s and millions of packets a second. That of cxi1 does not fit its bandwidth by 2 %.
HPE = {
    "cxi0": ("184.63", "11.268732"),
    "cxi1": ("182.44", "10.890877"),
    "cxi2": ("185.33", "11.311563"),
    "cxi7": ("186.61", "11.389751"),
}

#: By size of a message in bytes: messages, Gb/s at most and on average, millions of messages a s.
PERFTEST = {
    65536: ("560845", "0.00", "98.02", "0.186950"),
    1048576: ("5000", "92.62", "92.62", "0.011041"),
}

LINE = "-" * 51


def cxi_loopback(nic: str = "cxi0", rate: str | None = None, packets: str | None = None) -> str:
    """Compose the output of ``cxi_gpu_loopback_bw --device NIC``."""
    published = HPE.get(nic, HPE["cxi0"])
    fields = {
        "Device": nic,
        "Service ID": 1,
        "TX Mem": "System",
        "RX Mem": "System",
        "Test Type": "Iteration",
        "Iterations": 25,
        "Write Size (B)": 524288,
        "Cmds per iter": 8192,
        "Hugepages": "Disabled",
    }
    told = [f"{name:<16} : {value}" for name, value in fields.items()]
    row = f"    524288      204800    {rate or published[0]}        {packets or published[1]}"
    head = "RDMA Size[B]      Writes  BW[Gb/s]  PktRate[Mpkt/s]"
    lines = [LINE, "    CXI Loopback Bandwidth Test", *told, LINE, head, row, LINE]
    return "\n".join(lines) + "\n"


def ib_write_bw(nic: str = "mlx5_0", size: int = 65536, remark: bool = True) -> str:
    """Compose the output of ``ib_write_bw -d NIC --report_gbits`` of one size."""
    number, most, mean, rate = PERFTEST[size]
    line = "-" * 87
    lines = [
        line,
        "                    RDMA_Write BW Test",
        f" Dual-port       : OFF\t\tDevice         : {nic}",
        " Number of qps   : 1\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " Mtu             : 4096[B]",
        " Link type       : IB",
        " Data ex. method : Ethernet",
        line,
        " local address: LID 0x01 QPN 0x008a PSN 0xfffb6d RKey 0x238f86 VAddr 0x007dd5a3cfd000",
        " remote address: LID 0x01 QPN 0x008b PSN 0xaa095c RKey 0x202129 VAddr 0x0074c6b5900000",
        line,
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
        *(["Conflicting CPU frequency values detected: 1500.0 != 3300.0. CPU Frequency is not max."]
          if remark else []),
        f" {size:<10} {number:<15} {most:<18} {mean:<20} {rate}",
        line,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
