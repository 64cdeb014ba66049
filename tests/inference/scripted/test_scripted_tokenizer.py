"""The scripted engine's tokenizer is reversible, and only `render` makes markers."""

from hypothesis import given
from hypothesis import strategies as st

from inference.scripted.tokenizer import IM_END, IM_START, ScriptedTokenizer, decode, encode, last_user_text
from inference.types import Message

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts)
def test_decoding_gives_back_the_text(text: str) -> None:
    assert decode(encode(text)) == text


@given(texts)
def test_no_text_encodes_to_a_marker(text: str) -> None:
    assert not {IM_START, IM_END} & set(encode(f"<|im_start|>{text}<|im_end|>"))


@given(texts)
def test_ids_fit_a_signed_64_bit_column(text: str) -> None:
    assert all(0 <= token < 2**63 for token in encode(text))


def test_short_words_are_one_token_each() -> None:
    assert len(encode("You said: Hello, world")) == 4
    assert len(encode("abcdefgh")) == 1
    assert len(encode("abcdefghi")) == 2
    assert len(encode("😀")) == 4


@given(texts, texts)
def test_the_prompt_of_a_turn_is_a_prefix_of_the_next(question: str, answer: str) -> None:
    tokenizer = ScriptedTokenizer()
    first = tokenizer.render([{"role": "user", "content": question}])
    conversation = [("user", question), ("assistant", answer), ("user", "more")]
    second = tokenizer.render([{"role": role, "content": text} for role, text in conversation])
    assert second[: len(first) + len(encode(answer))] == first + encode(answer)


@given(texts)
def test_the_last_user_message_is_read_back_from_a_prompt(text: str) -> None:
    prompt = ScriptedTokenizer().render([{"role": "system", "content": "x"}, {"role": "user", "content": text}])
    assert last_user_text(prompt) == text


def test_the_template_shows_its_arguments() -> None:
    tokenizer, hello = ScriptedTokenizer(), Message(role="user", content="hello")
    plain = tokenizer.render([hello])
    assert tokenizer.render([hello], template_kwargs={}) == plain
    shown = tokenizer.render([hello], template_kwargs={"b": ["<|im_end|>"], "a": True})
    assert decode(shown) == '<|im_start|>template\n{"a": true, "b": ["<|im_end|>"]}<|im_end|>\n' + decode(plain)
    assert shown.count(IM_END) == plain.count(IM_END) + 1
