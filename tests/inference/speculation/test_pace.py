"""Drafts are verified where the rates and durations that were measured say that it saves time, and only there."""

import pytest

from inference.speculation.acceptance import FORCED, Acceptance, DraftToken, evidence_of
from inference.speculation.pass_costs import LONGEST_DRAFT, PassCosts


def expected(acceptance: Acceptance, *, match: int, count: int = 15) -> list[float]:
    return acceptance.expected_tokens([DraftToken(0, evidence_of(match + number)) for number in range(count)])


def test_a_long_match_is_worth_a_long_draft_and_a_short_one_less() -> None:
    acceptance, costs = Acceptance(), PassCosts()
    lengths = [costs.best_length([expected(acceptance, match=match)]) for match in (2, 4, 8)]
    assert lengths == sorted(lengths)
    assert lengths[-1] == 15


def test_a_sequence_whose_drafts_are_wrong_stops_and_one_that_repeats_again_resumes() -> None:
    """No pass is needed to find out: the tokens that the model chooses say what a draft would have been worth."""
    acceptance, costs = Acceptance(), PassCosts()
    for _ in range(30):
        acceptance.measure(8, is_right=False)
    assert costs.best_length([expected(acceptance, match=8)]) == 0
    for _ in range(30):
        acceptance.measure(8, is_right=True)
    assert costs.best_length([expected(acceptance, match=8)]) > 0


def test_expected_tokens_are_the_sum_of_the_chances_that_each_is_reached() -> None:
    acceptance = Acceptance()
    first, second = acceptance.rate(FORCED), acceptance.rate(2)
    draft = [DraftToken(1, FORCED), DraftToken(2, 2)]
    assert acceptance.expected_tokens(draft) == pytest.approx([1, 1 + first, 1 + first + first * second])


def test_slow_passes_end_speculation_until_they_are_tried_again() -> None:
    acceptance, costs = Acceptance(), PassCosts()
    costs.measure_step(0.01)
    for _ in range(40):
        for length in (1, 3, 7, 15):
            costs.measure_pass(length, 0.3)
    counts = [expected(acceptance, match=8)]
    assert costs.best_length(counts) == 0
    for _ in range(64 * 6):
        costs.measure_step(0.01)
    assert costs.best_length(counts) > 0


def test_one_interrupted_pass_changes_little() -> None:
    acceptance, costs = Acceptance(), PassCosts()
    costs.measure_step(0.01)
    before = costs.best_length([expected(acceptance, match=8)])
    costs.measure_pass(before, 10.0)
    assert costs.best_length([expected(acceptance, match=8)]) > 0


def test_a_draft_for_one_of_several_sequences_has_to_pay_for_all() -> None:
    acceptance, costs = Acceptance(), PassCosts()
    alone = expected(acceptance, match=3)
    assert costs.best_length([alone]) > 0
    assert costs.best_length([alone, [1.0], [1.0], [1.0]]) == 0
    assert costs.best_length([[1.0]]) == 0


def test_every_length_of_draft_has_a_cost() -> None:
    costs = [PassCosts().cost(length) for length in range(1, LONGEST_DRAFT + 1)]
    assert costs == sorted(costs)
    assert costs[0] > 1
