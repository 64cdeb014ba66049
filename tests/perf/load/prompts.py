"""Texts for the default model, which depend only on their seed."""

import random

_ADJECTIVES = (
    "amber", "brave", "calm", "distant", "eager", "frozen", "gentle", "hollow", "iron", "jolly", "kind", "lonely",
    "misty", "nimble", "old", "patient", "quiet", "rusty", "silver", "tall", "upright", "vast", "weary", "young",
    "bright", "crooked", "dusty", "early", "faint", "golden", "humble",
)  # fmt: skip
_NOUNS = (
    "anchor", "baker", "canal", "doctor", "engine", "farmer", "garden", "harbor", "island", "jacket", "kettle",
    "lantern", "market", "needle", "orchard", "painter", "quarry", "river", "sailor", "teacher", "umbrella",
    "valley", "wagon", "window", "yard", "bridge", "castle", "desert", "forest", "glacier", "hill", "library",
)  # fmt: skip
_VERBS = (
    "builds", "carries", "draws", "finds", "guards", "hides", "keeps", "lifts", "mends", "opens", "paints", "reads",
    "sells", "teaches", "visits", "washes",
)  # fmt: skip
_TOKENS_PER_WORD = 1.15
"""Approximately, with a usual tokenizer."""


def story(seed: object) -> str:
    """A question of about 40 tokens that leads to a long answer."""
    draw = random.Random(f"story/{seed}")
    return (
        f"{draw.choice(_ADJECTIVES).capitalize()} case {draw.randrange(100, 999)}: write a long story, with many "
        f"details, about a {draw.choice(_ADJECTIVES)} {draw.choice(_NOUNS)} that {draw.choice(_VERBS)} a "
        f"{draw.choice(_ADJECTIVES)} {draw.choice(_NOUNS)}. Begin with the weather on the first morning."
    )


def notes(tokens: int, seed: object) -> str:
    """A text of about ``tokens`` tokens."""
    draw = random.Random(f"notes/{seed}")
    sentences, count = [f"You are a careful assistant. These are the notes of archive {seed}."], 12
    while count * _TOKENS_PER_WORD < tokens:
        sentences.append(
            f"The {draw.choice(_ADJECTIVES)} {draw.choice(_NOUNS)} {draw.choice(_VERBS)} the "
            f"{draw.choice(_ADJECTIVES)} {draw.choice(_NOUNS)} and the {draw.choice(_NOUNS)} {draw.choice(_VERBS)} it."
        )
        count += 13
    return " ".join(sentences)
