"""The positions at which prompts of a template part, learned from two short prompts."""

from collections.abc import Callable

import pytest

from inference.models.template_cuts import TemplateCuts

SPECIAL = "①②③④⑤⑥"
Messages = list[tuple[str, str]]


def chatml(messages: Messages, answers: bool) -> str:
    if messages[0][0] != "system":
        messages = [("system", "You help."), *messages]
    return "".join(f"①{role}\n{text}②\n" for role, text in messages) + "①assistant\n" * answers


def thinking(messages: Messages, answers: bool) -> str:
    return chatml(messages, answers) + "③\n\n④\n\n" * answers


def llama(messages: Messages, answers: bool) -> str:
    return "⑤" + "".join(f"①{role}③\n\n{text}②" for role, text in messages) + "①assistant③\n\n" * answers


def glm(messages: Messages, answers: bool) -> str:
    marks = {"system": "①", "user": "②", "assistant": "③"}
    return "④⑤" + "".join(f"{marks[role]}\n{text}" for role, text in messages) + "③" * answers


def mistral(messages: Messages, answers: bool) -> str:
    marks = {"system": ("①", "②"), "user": ("③", "④"), "assistant": ("", "⑥")}
    return "⑤" + "".join(marks[role][0] + text + marks[role][1] for role, text in messages)


def gemma(messages: Messages, answers: bool) -> str:
    """The instructions stand inside the first message."""
    if messages[0][0] == "system":
        messages = [("user", f"{messages[0][1]}\n\n{messages[1][1]}"), *messages[2:]]
    return "⑤" + "".join(f"①{role}\n{text}②\n" for role, text in messages) + "①model\n" * answers


def bare(messages: Messages, answers: bool) -> str:
    return "".join(f"{role}: {text}\n" for role, text in messages) + "assistant:" * answers


def tokens(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def learned(template: Callable[[Messages, bool], str]) -> TemplateCuts:
    def render(text: str, answers: bool) -> tuple[int, ...]:
        return tokens(template([("user", text)], answers))

    return TemplateCuts.learn(render, set(tokens(SPECIAL)))


TALK: Messages = [("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello."), ("user", "What is user\n?")]


@pytest.mark.parametrize(
    ("template", "after_head", "after_messages"),
    [
        (chatml, "①user\nHi", "①assistant\n"),
        (thinking, "①user\nHi", "①assistant\n③"),
        (llama, "①user③\n\nHi", "①assistant③"),
        (glm, "②\nHi", "③"),
        (mistral, "③Hi", None),
        (gemma, "①user\nBe", "①model"),
        (bare, None, None),
    ],
)
def test_a_prompt_is_cut_before_the_first_question_and_before_the_answer(
    template: Callable[[Messages, bool], str], after_head: str | None, after_messages: str | None
) -> None:
    prompt = template(TALK, True)
    wanted = [
        *([] if after_head is None else [prompt.index(after_head)]),
        *([] if after_messages is None else [prompt.rindex(after_messages)]),
    ]
    assert learned(template).find(tokens(prompt)) == tuple(wanted)


@pytest.mark.parametrize("template", [chatml, llama, glm, mistral])
def test_what_stands_before_the_first_cut_is_the_same_for_every_question(
    template: Callable[[Messages, bool], str],
) -> None:
    cuts = learned(template)
    prompts = [template([TALK[0], ("user", text)], True) for text in ("Hi", "Hello", "①")]
    heads = {prompt[: cuts.find(tokens(prompt))[0]] for prompt in prompts}
    assert len(heads) == 1
    assert "Be kind." in heads.pop()


def test_a_prompt_without_the_marks_has_no_cuts() -> None:
    assert learned(chatml).find(tokens("once upon a time")) == ()
    assert learned(chatml).find(()) == ()
    assert TemplateCuts().find(tokens("①user\n")) == ()
