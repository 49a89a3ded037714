"""What differs in the state of node and devices is told before a number is blamed."""

from two_sessions import judged, pair, results, spread

import factories
from session_builder import SessionBuilder


def on_h200(path, state, slow=1.0):
    """Write a session of a copy between two H200 with a state."""
    series = [pair(0, 1, spread(350 * slow))]
    return results(path, factories.on_h200(series=series, state=state))


def devices(**changes):
    """Build the states of two H200, both with some other items."""
    return [factories.device_state(index, **changes) for index in range(2)]


def test_what_differs_in_the_state_of_node_and_devices_is_told_first(command, tmp_path, wording):
    before = on_h200(tmp_path / "a", factories.state(devices()))
    firmware = {"inforom": "G520.1", "gsp": "2"}
    narrow = factories.device_state()["pcie"] | {"width": 8, "width_max": 8}
    others = devices(power_cap_w=600, vbios="96.00.B0", firmware=firmware, pcie=narrow)
    links = factories.links(down=[16, 17])
    slow = {"throttle": ["power"], "clock_mhz": 1310, "processes": [factories.process()]}
    state = factories.state(others, [others[0] | {"links": links}, others[1] | slow])
    after = on_h200(tmp_path / "b", state, 0.8)
    code, only = judged(command, before, after)
    assert code == 10
    differs = {one["what"]: (one["a"], one["b"]) for one in only["differs"]}
    assert differs == {
        "VBIOS of devices 0 and 1": (["96.00.A5.00.1A"], ["96.00.B0"]),
        "power cap in W of devices 0 and 1": (["700"], ["600"]),
        "firmware inforom of devices 0 and 1": (["G520.0282.02.02"], ["G520.1"]),
        "firmware gsp of devices 0 and 1": ([], ["2"]),
        "PCIe lanes of devices 0 and 1": (["16"], ["8"]),
        "links that are up of device 0": (["18 of 18"], ["16 of 18"]),
    }
    assert only["causes_in_a"] == []
    wording(only["causes_in_b"])
    throttled, _, process = only["causes_in_b"]
    told = command("compare", before, after, code=10).words
    assert 0 < told.index(f"In B: {throttled}") < told.index(f"In B: {process}")
    assert told.index(f"In B: {process}") < told.index("Worse in B")
    markdown = command("compare", before, after, "--markdown", code=10).stdout.replace("\\", "")
    assert f"In B: {process}\n\n|" in markdown


def test_what_changes_by_itself_is_no_difference(command, tmp_path):
    before = on_h200(tmp_path / "a", factories.state(devices()))
    own = {"clock_mhz": 345, "temperature_c": 30, "power_w": 75, "busy_percent": 3, "energy_j": 7}
    after = on_h200(tmp_path / "b", factories.state(devices(**own)), 0.8)
    _, only = judged(command, before, after)
    assert only["differs"] == only["causes_in_b"] == []


def test_the_same_cause_in_several_checks_is_told_once(command, tmp_path):
    used = factories.state(devices(processes=[factories.process()]))
    for side in ("a", "b"):
        session = SessionBuilder(tmp_path / side)
        for name in ("p2p_engine", "p2p_kernel"):
            document = factories.on_h200(series=[pair(0, 1, spread(350))], state=used)
            session.add(factories.case(name), document)
        session.write()
    _, only = judged(command, tmp_path / "a", tmp_path / "b")
    both = "devices 0 (0000:41:00.0) and 1 (0000:42:00.0) before and after the measurement"
    said = [f"Process 4711 (copy_loop of user ada) used {both}."]
    assert only["causes_in_a"] == only["causes_in_b"] == said
