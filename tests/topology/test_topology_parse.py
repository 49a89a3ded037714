"""Reading the tools' outputs: right, or one sentence, never a smaller node."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import topology_texts as texts
from fabricheck.core.errors import (
    FabricheckError,
    GarbledOutput,
    InvalidInputError,
    NotFoundError,
)
from fabricheck.node import load
from fabricheck.tools.topology.reported import merge
from fabricheck.tools.topology.texts import parse_files, parse_text

PUBLISHED = Path(__file__).parents[1] / "outputs" / "rocm-smi"
HF_BANDWIDTH = PUBLISHED / "published-hugging-face-shownodesbw.txt"
HF_NUMA = PUBLISHED / "published-hugging-face-showtoponuma.txt"

MAP_A, MAP_B, H200, A100 = (load(n) for n in ("mi250x", "mi250", "h200", "a100-booster"))

COMPOSED = {
    "shownodesbw": texts.shownodesbw(MAP_A),
    "showtoponuma": texts.showtoponuma(MAP_A),
    "showtopo": texts.showtopo(MAP_A),
    "showbus": texts.showbus(texts.PCI),
    "amd-smi": texts.amd_smi(MAP_A, texts.PCI),
    "topo -m": texts.topo_m(A100),
    "published": HF_BANDWIDTH.read_text(),
}


def test_the_published_table_is_map_a_and_not_map_b():
    report = parse_text(HF_BANDWIDTH.read_text(), "table")
    assert report.links == MAP_A.link_matrix
    assert report.links != MAP_B.link_matrix
    assert report.link_peak_gbs == 50
    assert (report.count, report.vendor, report.numa, report.pci) == (8, "amd", None, None)


def test_the_published_numa_list_needs_a_table_beside_it():
    """The page leaves the tool's closing line out, so the list alone could be cut."""
    with pytest.raises(GarbledOutput, match="the list of devices may be cut"):
        parse_files([HF_NUMA])
    report = parse_files([HF_BANDWIDTH, HF_NUMA])
    assert report.numa == (0, 0, 0, 0, 1, 1, 1, 1)
    assert report.links == MAP_A.link_matrix


@pytest.mark.parametrize("node", [MAP_A, MAP_B], ids=["map A", "map B"])
def test_links_of_rocm_smi_and_amd_smi(node):
    assert parse_text(texts.shownodesbw(node), "x").links == node.link_matrix
    report = parse_text(texts.amd_smi(node, texts.PCI), "x")
    assert (report.links, report.link_peak_gbs, report.pci) == (node.link_matrix, 50, texts.PCI)


def test_showtopo_tells_types_and_domains_but_no_links():
    report = parse_text(COMPOSED["showtopo"], "x")
    assert report.links is None
    assert report.link_types is not None and report.link_types[0][:2] == ("0", "XGMI")
    assert report.numa == (3, 3, 1, 1, 0, 0, 2, 2)


def test_several_calls_in_one_text():
    report = parse_text(COMPOSED["shownodesbw"] + COMPOSED["showbus"], "x")
    assert (report.links, report.pci) == (MAP_A.link_matrix, texts.PCI)


def test_a_device_without_a_numa_domain():
    text = COMPOSED["showtoponuma"].replace("Numa Node: 3", "Numa Node: -1")
    assert parse_text(text, "x").numa == (None, None, 1, 1, 0, 0, 2, 2)
    # rocm-smi of ROCm 5.7 reads the kernel's -1 without its sign.
    assert parse_text(text.replace("-1", "4294967295"), "x").numa == (None, None, 1, 1, 0, 0, 2, 2)


@pytest.mark.parametrize(("node", "nics"), [(A100, 4), (A100, 0), (H200, 9)])
def test_nvidia_matrix(node, nics):
    report = parse_text(texts.topo_m(node, nics=nics), "x")
    assert report.links == node.link_matrix
    assert (report.vendor, report.count) == ("nvidia", len(node.devices))
    assert report.numa == tuple(device.domain for device in node.devices)
    assert report.cpus is not None and report.cpus[0] in ("0-15", "0-127")


@pytest.mark.parametrize("nic", ["mlx5_bond_0", "rocep1s0", "ibp2s0", "rdmap16s27"])
def test_nvidia_matrix_with_other_names_of_nics(nic):
    text = texts.topo_m(A100)
    assert parse_text(text.replace("NIC0", nic), "x") == parse_text(text, "x")


def test_nvidia_matrix_as_pasted_with_blanks_and_with_colours():
    tabs = texts.topo_m(A100)
    blanks = tabs.replace("\t", "   ")
    assert parse_text(blanks, "x") == parse_text(tabs, "x")
    head, rest = tabs.split("\n", 1)
    assert parse_text(f"\x1b[4m{head}\x1b[0m\n{rest}", "x") == parse_text(tabs, "x")


@pytest.mark.parametrize("mark", ["\x1b[K", "\x1b[?25l", "\x1b[2J\x1b[1;1H", "\x1b[0 q", "\ufeff"])
def test_what_a_terminal_or_an_editor_puts_in_front_is_passed_over(mark):
    for name in ("topo -m", "amd-smi"):
        text = COMPOSED[name].lstrip("\n")
        assert parse_text(mark + text, "x") == parse_text(text, "x")


def test_nvidia_without_affinities_and_with_empty_ones():
    text = texts.topo_m(A100, nics=0)
    bare = re.sub(r"\t0-15\t0\t\tN/A", "", text)
    bare = bare.replace("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", "")
    report = parse_text(bare, "x")
    assert (report.numa, report.cpus) == (None, None)
    report = parse_text(text.replace("\t0-15\t0\t", "\t\t0\t"), "x")
    assert (report.numa, report.cpus) == ((0,) * 4, (None,) * 4)
    report = parse_text(text.replace("\t0-15\t0\t", "\t0-15\t0-1\t"), "x")
    assert report.numa == (None,) * 4


#: The fields after the devices as nvidia-smi prints them, and the NUMA domain and cores of each.
AFTER_THE_DEVICES = {
    "an empty CPU affinity, as in a job of one core": ("\t\t0\t\tN/A", 0, None),
    "both are empty": ("\t\t\t\tN/A", None, None),
    "no NUMA domain, as in a virtual machine": ("\t0-15\t\tN/A\t\tN/A", None, "0-15"),
    "no affinity at all": ("\tN/A\t\tN/A\t\tN/A", None, None),
    "doubled tabs joined": ("\t0-15\t0\tN/A", 0, "0-15"),
    "memory of the devices behind the domain of the cores": ("\t0-71\t0,2-17\t\tN/A", 0, "0-71"),
    "the same in a job of one core": ("\t1\t0,2-17\t\tN/A", 0, "1"),
    "some cores": ("\t4,6,8,10,12\t0\t\tN/A", 0, "4,6,8,10,12"),
    "blanks": ("   0-71    0,2-17          N/A", 0, "0-71"),
    "blanks that do not show what is empty": ("           0          N/A", None, None),
}


@pytest.mark.parametrize(
    ("printed", "domain", "cores"), AFTER_THE_DEVICES.values(), ids=AFTER_THE_DEVICES
)
def test_nvidia_rows_are_read_whichever_affinity_is_empty_or_a_list(printed, domain, cores):
    text = texts.topo_m(A100)
    if "\t" not in printed:
        text = text.replace("\t", "  ")
    printed_before = "\t0-15\t0\t\tN/A" if "\t" in printed else "  0-15  0    N/A"
    changed = text.replace(printed_before, printed)
    assert changed != text
    report, before = parse_text(changed, "x"), parse_text(text, "x")
    assert (report.links, report.link_types) == (before.links, before.link_types)
    first = before.cpus.count("0-15")
    assert report.numa[:first] == (domain,) * first and report.cpus[:first] == (cores,) * first


@pytest.mark.parametrize(
    ("columns", "printed", "cores", "domain"),
    [
        ("\tCPU Affinity", "\t", None, None),
        ("\tCPU Affinity", "\t1", "1", None),
        ("\tCPU Affinity\tNUMA Affinity", "\t\t", None, None),
        ("\tCPU Affinity\tNUMA Affinity", "\t0-15\t", "0-15", None),
        ("\tCPU Affinity\tNUMA Affinity", "\t0-15\t3", "0-15", 3),
    ],
)
def test_nvidia_rows_of_older_drivers_may_end_with_empty_cells(columns, printed, cores, domain):
    text = texts.topo_m(A100, nics=0).replace("\t0-15\t0\t\tN/A", printed)
    text = text.replace("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", columns)
    report = parse_text(text, "x")
    assert report.cpus == (cores,) * 4
    assert (report.numa or (None,) * 4) == (domain,) * 4


def test_nvidia_columns_of_devices_without_a_tab_move_the_others_and_are_refused():
    text = texts.topo_m(A100, nics=2).replace("NV4\tNV4", "NV4 NV4", 1)
    with pytest.raises(GarbledOutput, match="two columns of devices have no tab between them"):
        parse_text(text, "x")


def test_nvidia_devices_of_one_node_may_have_an_affinity_or_none():
    text = texts.topo_m(A100).replace("\t0-15\t0\t\tN/A", "\t\t0\t\tN/A", 1)
    report = parse_text(text, "x")
    assert report.cpus == (None, "0-15", "0-15", "0-15") and report.numa == (0,) * 4


def test_nvidia_memory_of_each_device_is_a_domain_of_its_own():
    text = texts.topo_m(A100)
    for number in (2, 10, 18, 26):
        text = text.replace("\t0\t\tN/A", f"\t0,2-33\t\t{number}", 1)
    assert parse_text(text, "x").numa == (0,) * 4
    with pytest.raises(GarbledOutput, match="the column 'GPU NUMA ID' is damaged"):
        parse_text(text.replace("\t\t10\n", "\t\t2\n"), "x")


def test_nvidia_pairs_without_nvlink():
    report = parse_text(texts.topo_m(A100, between=lambda a, b: "SYS"), "x")
    assert report.links == ((0,) * 4,) * 4


def test_nvidia_addresses_belong_to_a_matrix(tmp_path):
    matrix, query = tmp_path / "matrix", tmp_path / "query"
    matrix.write_text(texts.topo_m(A100))
    query.write_text(texts.query([device.pci_address or "" for device in A100.devices]))
    report = parse_files([matrix, query])
    assert report.pci == ("0000:1d:00.0", "0000:56:00.0", "0000:8f:00.0", "0000:c8:00.0")
    with pytest.raises(GarbledOutput, match=f"{query}: the list of devices may be cut"):
        parse_files([query])
    query.write_text(texts.query(texts.PCI))
    with pytest.raises(InvalidInputError, match="8 nvidia devices in"):
        parse_files([matrix, query])
    query.write_text("1, 00000000:1D:00.0\n")
    with pytest.raises(
        GarbledOutput, match=f"{query}, line 1: the PCI address of GPU 0 is expected here"
    ):
        parse_files([matrix, query])


def test_reports_with_addresses_are_matched_by_them(tmp_path):
    """amd-smi lists the devices in another order than rocm-smi numbers them."""
    order = (3, 1, 0, 2, 7, 6, 5, 4)
    first, second, bus = tmp_path / "amd", tmp_path / "rocm", tmp_path / "bus"
    first.write_text(texts.amd_smi(MAP_A, texts.PCI, order=order))
    second.write_text(texts.shownodesbw(MAP_A) + texts.showbus(texts.PCI))
    report = parse_files([second, first])
    assert (report.links, report.pci) == (MAP_A.link_matrix, texts.PCI)
    assert report.link_types is not None
    bus.write_text(texts.showbus(("0000:aa:00.0", *texts.PCI[1:])))
    with pytest.raises(InvalidInputError, match=f"no device at PCI address 0000:c1:00.0 in {bus}"):
        parse_files([first, bus])


def test_contradicting_files_are_named(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(texts.shownodesbw(MAP_A))
    other.write_text(texts.shownodesbw(MAP_B))
    with pytest.raises(InvalidInputError, match=f"Pair 0-2: 1 links in {one}, 0 in {other}"):
        parse_files([one, other])
    every = parse_text(one.read_text(), "one")
    single = tuple(tuple(min(count, 1) for count in row) for row in every.links)
    with pytest.raises(InvalidInputError, match="Pair 0-1: 4 links in one, 1 in other"):
        merge([every, replace(every, origin="other", links=single)])
    one.write_text(texts.showtoponuma(MAP_A))
    other.write_text(texts.showtoponuma(MAP_B))
    with pytest.raises(InvalidInputError, match=f"Device 0: NUMA domain 3 in {one}, 0 in {other}"):
        parse_files([one, other])


def test_files_that_disagree_on_the_kind_of_a_connection(tmp_path):
    every = parse_text(texts.shownodesbw(MAP_A), "bandwidth")
    types = tuple(tuple("SELF" if a == b else "XGMI" for b in range(8)) for a in range(8))
    pcie = tuple(tuple("PCIE" if {a, b} == {0, 1} else types[a][b] for b in range(8))
                 for a in range(8))  # fmt: skip
    good = replace(every, origin="good", links=None, link_types=types)
    bad = replace(good, origin="bad", link_types=pcie)
    assert merge([every, good]).link_types == types
    with pytest.raises(InvalidInputError, match="Pair 0-1: XGMI in good, PCIE in bad"):
        merge([good, bad])
    with pytest.raises(InvalidInputError, match="Pair 0-1: 4 links in bandwidth, PCIE in bad"):
        merge([every, bad])


def test_pairs_that_are_not_xgmi():
    table = texts.rocm_table("Bandwidth", ["GPU0", "GPU1"], lambda a, b: "N/A")
    with pytest.raises(GarbledOutput, match=r"x, line 3: 'N/A' \(GPU0 to GPU1\) is out of place"):
        parse_text(table, "x")
    report = parse_text(f"{table}\nNon-xGMI links detected and is currently not supported\n", "x")
    assert report.links == ((0, 0), (0, 0))


@pytest.mark.parametrize("cell", ["0", "0-0"])
def test_rocm_smi_whose_driver_tells_no_bandwidth(cell):
    text = re.sub(r"\d+-\d+", cell, COMPOSED["shownodesbw"])
    report = parse_text(text, "rocm-smi --shownodesbw")
    assert (report.links, report.link_peak_gbs) == (None, None)
    # One pair without is damage: a tool that knows the others knows this one.
    with pytest.raises(GarbledOutput, match="is not a bandwidth range"):
        parse_text(COMPOSED["shownodesbw"].replace("50000-200000", "0", 1), "x")


def test_the_tables_that_amd_smi_has_since_are_passed_over():
    rows = ["             " + " ".join(texts.PCI)]
    rows += [" ".join([one, *("SELF" if one == other else "C" for other in texts.PCI)])
             for one in texts.PCI]  # fmt: skip
    titles = ("CACHE COHERANCY", "ATOMICS", "BI-DIRECTIONAL")
    more = "".join("\n".join([f"\n{title} TABLE:", *rows, ""]) for title in titles)
    legend = "\nLegend:\n SELF = Current GPU\n ENABLED / DISABLED = Link is enabled or disabled\n"
    report = parse_text(COMPOSED["amd-smi"] + more + legend, "x")
    assert report == parse_text(COMPOSED["amd-smi"], "x")


def test_amd_smi_whose_driver_tells_no_bandwidth():
    """Some drivers print 0-0 for all pairs although their type is XGMI: links are then unknown."""
    text = re.sub(r"\d+000-\d+000", "0-0", COMPOSED["amd-smi"])
    assert parse_text(text, "x").links is None


def test_amd_smi_whose_tables_contradict_each_other():
    text = COMPOSED["amd-smi"].replace("XGMI", "PCIE")
    with pytest.raises(GarbledOutput, match="has XGMI bandwidth but type PCIE"):
        parse_text(text, "x")


def damaged(text: str, *, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


DAMAGES = [
    (
        "shownodesbw",
        "\nGPU3  ",
        "\nGPU9  ",
        "'GPU9' is in the place of GPU3 in the table 'Bandwidth'",
    ),
    ("shownodesbw", " GPU1 ", " CARD ", "'CARD' is not a label of column 1 of the table"),
    ("shownodesbw", "50000-100000", "50000-120000", "one link and a multiple of it"),
    ("shownodesbw", "50000-100000", "50000-200000", "the way back is"),
    ("shownodesbw", "50000-100000", "zebra", "'zebra' (GPU0 to GPU6) is not a bandwidth range"),
    ("shownodesbw", "Units: mps", "Units: gbps", "the unit of the bandwidths is not mps"),
    ("shownodesbw", " Bandwidth ", " Bandwith ", "is not a kind of connection"),
    ("shownodesbw", " GPU7  ", " ", "the row of GPU6|more rows|is out of place|has 8 cells"),
    ("showtopo", "Weight between", "Wait between", "unknown title 'Wait between two GPUs'"),
    ("showtopo", "Hops between", "Weight between", "occurs twice"),
    ("showtopo", "XGMI", "XGML", "'XGML' (GPU0 to GPU1) is not a link type"),
    ("showtopo", "GPU[2]", "GPU[3]", "a line about GPU[2] is expected here"),
    ("showtoponuma", "Numa Affinity: 3", "Numa Node: 3", "'(Topology) Numa Affinity' of GPU[0]"),
    ("showtoponuma", "Numa Node: 3", "Numa Node: three", "is not the number of a NUMA domain"),
    ("showbus", "0000:C1:00.0", "0000:C1", "'PCI Bus' of GPU[0] is not a PCI address"),
    ("showbus", "0000:C1:00.0", "0000:C6:00.0", "two devices have the same PCI address"),
    ("amd-smi", "NUMA BW TABLE", "Numa BW TABLE", "or a table has no title"),
    ("amd-smi", "HOPS TABLE", "WEIGHT TABLE", "the table 'WEIGHT TABLE' occurs twice"),
    ("amd-smi", "XGMI", "XGML", "'XGML' (0000:c1:00.0 to 0000:c6:00.0) is not a link type"),
    (
        "amd-smi",
        f"LINK TYPE TABLE:\n{' ' * 13}{texts.PCI[0]}",
        f"LINK TYPE TABLE:\n{' ' * 13}{texts.PCI[1]}",
        "names a device twice",
    ),
    ("amd-smi", "XGMI", "PCIE", "the way back is"),
    ("topo -m", "NV4", "NVX", "'NVX' (GPU0 to GPU1) is not a kind of connection"),
    ("topo -m", "NV4", "NV3", "GPU1 to GPU0 is 'NV4', the way back is 'NV3'"),
    ("topo -m", "\nGPU2\t", "\nGPU3\t", "'GPU3' is in the place of GPU2 in the matrix"),
    ("topo -m", "0-15", "15-0", "the CPU affinity is damaged: the range 15-0 descends"),
    ("topo -m", "\t0\t\tN/A", "\tfoo\t\tN/A", "'foo' is not a NUMA affinity"),
    ("topo -m", "\tGPU1\t", "\tGPU5\t", "the columns are not GPU0, GPU1 and so on"),
    ("topo -m", "CPU Affinity", "Affinity", "is not a known end of the header"),
    ("topo -m", "Legend:", "", "the text ends without the legend, so it may be cut off"),
]


@pytest.mark.parametrize(("name", "old", "new", "reason"), DAMAGES)
def test_damage_is_one_sentence(name, old, new, reason):
    with pytest.raises(GarbledOutput) as caught:
        parse_text(damaged(COMPOSED[name], old=old, new=new), "the file")
    said = str(caught.value)
    assert said.startswith("the file")
    assert any(part in said for part in reason.split("|")), said
    assert "\n" not in said


def test_tables_that_disagree_about_the_number_of_devices():
    short = texts.rocm_table("Bandwidth", ["GPU0"], lambda a, b: "N/A")
    with pytest.raises(GarbledOutput, match="'Numa Nodes' has 8 devices, but 'Bandwidth' has 1"):
        parse_text(f"{short}\n{COMPOSED['showtoponuma']}", "x")
    other = texts.amd_smi(MAP_A, texts.PCI[::-1]).split("\n\n")[3]
    text = damaged(COMPOSED["amd-smi"], old=COMPOSED["amd-smi"].split("\n\n")[3], new=other)
    with pytest.raises(GarbledOutput, match="its two tables name different devices"):
        parse_text(text, "x")


def test_an_indirect_pair_with_two_widths_of_a_link():
    text = COMPOSED["shownodesbw"].replace("50000-100000", "64000-128000")
    with pytest.raises(GarbledOutput, match="one link has 50000 and 64000 MB/s"):
        parse_text(text, "x")


@pytest.mark.parametrize("text", ["", "hello\n", "GPU 0: NVIDIA H200\n", '{"card0": {}}\n'])
def test_a_text_of_no_tool(text):
    with pytest.raises(GarbledOutput, match="x: it contains no topology table"):
        parse_text(text, "x")


def test_files_that_can_not_be_read(tmp_path):
    with pytest.raises(NotFoundError, match=r"gone: there is no such file"):
        parse_files([tmp_path / "gone"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="binary: byte 0 is not UTF-8 text"):
        parse_files([tmp_path / "binary"])


def same_or_refused(text: str, name: str) -> None:
    """A damaged text is refused in one sentence, or it still tells the same devices and links."""
    whole = parse_text(COMPOSED[name], "the file")
    try:
        report = parse_text(text, "the file")
    except FabricheckError as error:
        assert str(error).startswith("the file") and "\n" not in str(error)
        return
    assert report.count == whole.count
    for told, all_of_it in (
        (report.links, whole.links),
        (report.link_types, whole.link_types),
        (report.pci, whole.pci),
    ):
        assert told is None or told == all_of_it


@pytest.mark.parametrize("name", COMPOSED)
def test_cut_at_any_line(name):
    lines = COMPOSED[name].splitlines(keepends=True)
    refused = 0
    for end in range(len(lines)):
        same_or_refused("".join(lines[:end]), name)
        try:
            parse_text("".join(lines[:end]), "x")
        except FabricheckError:
            refused += 1
    # Everything up to the last row of the last table is refused.
    assert refused >= len(lines) * 0.6


@pytest.mark.parametrize("name", COMPOSED)
@settings(max_examples=60)
@given(data=st.data())
def test_cut_at_any_character(name, data):
    text = COMPOSED[name]
    same_or_refused(text[: data.draw(st.integers(0, len(text)))], name)


@pytest.mark.parametrize("name", COMPOSED)
@settings(max_examples=60)
@given(data=st.data())
def test_any_word_replaced(name, data):
    text = COMPOSED[name]
    words = list(re.finditer(r"[^\s=]+", text))
    word = data.draw(st.sampled_from(words))
    new = data.draw(st.sampled_from(["zebra", "GPU", "0", "N/A", "X", "-", "error:"]))
    changed = text[: word.start()] + new + text[word.end() :]
    if not word[0].lstrip("-").isdigit():  # a plain number may become another plain number
        same_or_refused(changed, name)


@pytest.mark.parametrize("name", [name for name in COMPOSED if name != "showbus"])
def test_any_line_lost(name):
    """In a list of one line per device, only the closing line confirms the end."""
    lines = COMPOSED[name].splitlines(keepends=True)
    for lost in range(len(lines)):
        same_or_refused("".join(lines[:lost] + lines[lost + 1 :]), name)


@given(st.text(max_size=300))
@example("GPU0\n")
@example("\tGPU0\tGPU1\n")
@example("= Bandwidth =\n")
@example("= Numa Nodes =\n= End of ROCm SMI Log =\n")
@example("NUMA BW TABLE:\n")
@example("0, 00000000:1D:00.0\nGPU0 x\n")
def test_any_text_is_refused_in_one_sentence(text):
    with pytest.raises(GarbledOutput):
        parse_text(text, "x")


def test_texts_of_two_tools_are_refused():
    """The tables of the first one would be taken for the whole."""
    for first, second in (
        ("topo -m", "amd-smi"),
        ("amd-smi", "shownodesbw"),
        ("showbus", "topo -m"),
    ):
        with pytest.raises(GarbledOutput, match="x: it contains topology tables of several tools"):
            parse_text(COMPOSED[first] + COMPOSED[second], "x")


def test_addresses_beside_the_matrix_in_one_text_are_refused():
    """They would be passed over."""
    query = texts.query(texts.PCI)
    for text in (query + COMPOSED["topo -m"], COMPOSED["topo -m"] + query):
        with pytest.raises(GarbledOutput, match="addresses are in the text of the matrix"):
            parse_text(text, "x")


@pytest.mark.parametrize("other", [A100, H200], ids=["the same", "another"])
def test_two_matrices_in_one_text_are_refused(other):
    """The second one would be passed over."""
    with pytest.raises(GarbledOutput, match="the header of the matrix occurs twice"):
        parse_text(COMPOSED["topo -m"] + texts.topo_m(other), "x")


def test_bandwidths_without_their_unit_are_refused():
    text = COMPOSED["shownodesbw"].replace("Format: min-max; Units: mps\n", "")
    with pytest.raises(GarbledOutput, match="ends without the unit of the bandwidths"):
        parse_text(text, "x")


FIELDS = {
    "one row lacks its NUMA domain": (
        "GPU2\t(.*)\t0\t\tN/A",
        r"GPU2\t\1\tN/A",
        "another number of",
    ),
    "all rows lack it": (
        "\t0-15\t0\t\tN/A",
        "\t0-15\tN/A",
        "another number of fields than the header",
    ),
    "all rows have the cores twice": (
        "\t0-15\t",
        "\t0-15\t0-15\t\t",
        "another number of fields than the header",
    ),
    "NUMA domain and memory of a device": (
        "GPU2\t(.*)\t0\t\tN/A",
        r"GPU2\t\1\tN/A\t\t0",
        "GPU NUMA",
    ),
    "cores and NUMA domain": ("\t0-15\t0\t", "\t0\t0-15\t", "outnumber the cores 0"),
}


@pytest.mark.parametrize(("old", "new", "reason"), FIELDS.values(), ids=FIELDS)
def test_affinities_are_those_of_their_columns(old, new, reason):
    text = re.sub(old, new, COMPOSED["topo -m"])
    assert text != COMPOSED["topo -m"]
    with pytest.raises(GarbledOutput, match=reason):
        parse_text(text, "x")


@pytest.mark.parametrize("digit", ["\u00b2", "\u0663", "9" * 5000])
@pytest.mark.parametrize("name", ["topo -m", "showtoponuma"])
def test_digits_that_no_tool_prints(name, digit):
    text = re.sub(r"(\t0\t|15 |Node: )", lambda found: found[0] + digit, COMPOSED[name], count=1)
    with pytest.raises(GarbledOutput) as refused:
        parse_text(text, "x")
    assert len(str(refused.value)) < 200
