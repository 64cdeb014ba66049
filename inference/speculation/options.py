"""What may be drafted. Pure, standard library only."""

from dataclasses import dataclass

from inference.speculation.pass_costs import LONGEST_DRAFT


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationOptions:
    """Limits; within them, drafts are verified where that is measured to save time."""

    sequences: int = 4
    """With more sequences in the batch, nothing is drafted."""
    draft_tokens: int = LONGEST_DRAFT
    """Most tokens that are drafted for a sequence at once, from 1 to LONGEST_DRAFT."""
