"""The diagnosis of a node as types: part of a verdict's document, and what the command prints."""

from __future__ import annotations

from pydantic import Field

from fabricheck.core.models import StrictModel

#: Above this power of ten the odds depend on the assumed noise and are not printed.
_SURE = 12


class Degraded(StrictModel):
    """A degraded component."""

    component: str
    """The component, as docs/result.md names it."""
    equals: list[str] = []
    """Other components that explain as much: one of them all is degraded."""
    loss_percent: float | None
    """By how many percent it is below its bandwidth, or, of a latency, how much longer that is;
    null where it is not a matter of degree, as of a link that is gone."""
    longer: bool = False
    """Whether it is a latency, and longer by that many percent."""
    devices: list[int]
    """The devices that it is of or joins."""
    explains: int = Field(ge=0)
    """The misses that it explains."""
    odds: float
    """How much likelier the measured values are with it than without, as a power of ten."""
    supporting: list[str] = []
    """Measurements that are as slow as it predicts."""
    contradicting: list[str] = []
    """Measurements that are faster than it predicts."""
    next: list[str] = []
    """Checks of the set node, not in the session, that would tell it from its equals."""
    causes: list[str] = []
    """What the devices' counters say of them."""

    @property
    def said_odds(self) -> str:
        """The odds, up to the precision of the noise that they depend on."""
        return f"1e{self.odds:.0f}" if self.odds <= _SURE else f">1e{_SURE}"

    @property
    def loss(self) -> str:
        """The loss of bandwidth, or the increase of a latency; empty without a degree."""
        if self.loss_percent is None:
            return ""
        if self.longer:
            return f"{self.loss_percent:.3g} % longer"
        return f"{self.loss_percent:.2g} %"


class Diagnosis(StrictModel):
    """The explanation of a node's misses: its missed limits and its differences from the model."""

    node_model: str | None = None
    """The node model whose routes it knows; null without one."""
    misses: int = Field(ge=0)
    """Metrics that missed a limit, and differences from the node model."""
    explained: int = Field(ge=0)
    degraded: list[Degraded]
    """The smallest set of components that explains them; empty where nothing does."""
    unexplained: list[str]
    """The misses that stay unexplained: check and metric."""
    lacking: list[str] = []
    """What it could not take into account, in sentences."""

    @property
    def sentence(self) -> str:
        """The diagnosis in one line."""
        if not self.degraded:
            many = "the miss" if self.misses == 1 else f"any of the {self.misses} misses"
            return f"No degraded component explains {many}."
        told = "; ".join(_told(one) for one in self.degraded)
        return f"{told}: {self.explained} of {self.misses} misses."


def _told(one: Degraded) -> str:
    names = [one.component, *one.equals]
    name = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    down = "" if one.longer else "down by "
    told = f"{name} {down}{one.loss}" if one.loss else name
    return f"{told} ({one.causes[0]})" if one.causes else told
