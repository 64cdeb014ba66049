"""What an engine knows of its memory."""

from dataclasses import dataclass, field

from inference.memory.budget import Account, MemoryBudget
from inference.memory.footprint import Footprint
from inference.memory.state_cost import StateCost

NOTHING = Footprint(weights=0, loading=0, state=StateCost(), step=0, step_per_token=0, as_fp32=False)
"""The footprint of a model without memory."""


def _unbounded() -> Account:
    return MemoryBudget(1 << 62).open_account()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """The account of a model, and what it was expected to need before it was loaded."""

    account: Account = field(default_factory=_unbounded)
    footprint: Footprint = NOTHING
