"""Where the prompts of one chat template part: at the first message of the user, and where the answer begins. Pure."""

from collections.abc import Callable, Container, Sequence
from itertools import islice

Tokens = Sequence[int]


class TemplateCuts:
    """Finds these positions by the special tokens that stand there. A template without such tokens has none."""

    def __init__(self, user: Tokens = (), answer: int | None = None) -> None:
        """user: the tokens between the beginning of a user's message and its text; answer: the first of an answer."""
        self._user, self._answer = tuple(user), answer

    @classmethod
    def learn(cls, render: Callable[[str, bool], Tokens], special: Container[int]) -> "TemplateCuts":
        """Learn a template from two short prompts. `render(text, answers)` gives the tokens of one message of the user,
        followed by the beginning of an answer if `answers` is true.
        """
        prompt, bare = tuple(render("a", True)), tuple(render("a", False))
        head = prompt[: _common(prompt, render("b", True))]
        answer = next(iter(prompt[len(bare) :]), None) if prompt[: len(bare)] == bare else None
        if answer not in special:
            answer = None
        starts = [at for at, token in enumerate(head) if token == answer]
        starts = starts or [at for at, token in enumerate(head) if token in special]
        return cls(head[starts[-1] :] if starts else (), answer)

    def find(self, prompt: Tokens) -> tuple[int, ...]:
        """The positions in a prompt, ascending: none, one or both."""
        prompt = tuple(prompt)
        found = set()
        if self._answer in prompt:
            found.add(len(prompt) - 1 - prompt[::-1].index(self._answer))
        if self._user:
            starts = (at for at, token in enumerate(prompt) if token == self._user[0])
            size = len(self._user)
            found.update(islice((at for at in starts if prompt[at : at + size] == self._user), 1))
        return tuple(sorted(found))


def _common(one: Tokens, other: Tokens) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
