"""The seam between the engine and everything above it: plain values, standard library only.

Requests go in as messages, chunks come out in batches, so an engine may live on a thread of this process or in another
process without a change here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from inference.dialects import Dialect

Finish = Literal["stop", "length", "cancelled", "error"]
Progress = Callable[[str, float], None]
"""`progress(stage, done)`: a stage's name for people, and how much of it is done, 0.0 to 1.0. Any thread."""


RESERVED_TEMPLATE_ARGUMENTS = frozenset(
    {
        "add_generation_prompt", "additional_special_tokens", "bos_token", "chat_template", "cls_token",
        "continue_final_message", "conversation", "eos_token", "extra_special_tokens", "mask_token", "max_length",
        "messages", "pad_token", "padding", "return_assistant_tokens_mask", "return_dict", "return_tensors",
        "sanitize_control_tokens", "self", "sep_token", "tokenize", "tokenizer_kwargs", "tools", "truncation",
        "unk_token",
    }
)  # fmt: skip
"""What no caller may pass to a chat template: the rendering itself decides these."""


class ModelError(Exception):
    """A model or an engine can't do what was asked. The message is one clear sentence for the user."""


Message = dict[str, Any]
"""One message as a chat template reads it: `role` (system, user, assistant or tool), `content`, and what else the
template of the dialect wants (see `Dialect.template_messages`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is chosen: penalties and bias change the logits, temperature divides them, and `top_k`,
    `top_p` and `min_p`, in this order, leave the likeliest. The defaults change nothing.
    """

    temperature: float = 1.0
    """0 is greedy."""
    top_k: int = 0
    """So many of the likeliest tokens; 0 is all."""
    top_p: float = 1.0
    """The smallest set of the likeliest tokens that holds this probability."""
    min_p: float = 0.0
    """The tokens that have at least this share of the likeliest one's probability."""
    repetition_penalty: float = 1.0
    """Above 0. Divides the positive logits, and multiplies the negative ones, of all tokens in prompt and answer."""
    presence_penalty: float = 0.0
    """Is subtracted from the logit of each token that the answer has."""
    frequency_penalty: float = 0.0
    """Is subtracted from a token's logit for each time that the answer has it."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """What is added to the logits of tokens; each token once, all of them in the model's vocabulary."""
    seed: int | None = None
    """Makes the sequence reproducible on one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What an answer must look like: every token is chosen so that it can still be reached."""

    kind: Literal["json_schema", "json_object", "lark", "regex"]
    text: str = ""
    """The JSON Schema as JSON, the Lark grammar, or the regular expression; empty for any JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingLimit:
    """How much an answer may think before it has to go on."""

    tokens: int
    """At least 0."""
    start: str
    end: str
    """The marks of thinking, as the text of the answer has them."""
    opened: bool
    """The prompt ends inside a block of thinking: the answer begins as thinking."""
    closing: tuple[int, ...]
    """The tokens that end it, not empty. They count as tokens of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One sequence to generate."""

    id: str
    """Unique in the engine's lifetime."""
    prompt: tuple[int, ...]
    """Token ids, not empty."""
    max_tokens: int
    """At least 1, for the whole answer. It ends earlier, with finish "length", where the model's context ends."""
    sampling: Sampling
    generated: tuple[int, ...] = ()
    """Tokens that the answer has already, from an earlier run of the same request: the sequence goes on after them.

    None of them is told again, nor the text that came out with them; text that was held back comes out now. Where
    nothing can follow them, the sequence starts and ends at once. A "cancelled" chunk gives out what was held back:
    who goes on after it drops that text.
    """
    stop: tuple[str, ...] = ()
    """The answer ends, with finish "stop", before the first of these; none of them is empty."""
    constraint: Constraint | None = None
    """An answer that ends with "stop" satisfies it, unless a stop string cut it."""
    top_logprobs: int | None = None
    """None asks for no log-probabilities; 0 to 20 asks for each token's own, and so many of the likeliest."""
    thinking: ThinkingLimit | None = None
    cache_scope: str = ""
    """The prefix cache is private to this name."""
    priority: int = 0
    """0 interactive, 1 background; requests are admitted in the order (priority, arrival)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """How likely one token was at its place: the probability with which it is drawn at temperature 1.

    That is after penalties, bias and the constraint, so a token without alternative has 0.0; `top_k`, `top_p` and
    `min_p` don't count. It doesn't depend on what else runs. Every value is finite, from -9999.0 to 0.0.
    """

    token: bytes
    """What the token adds to the text, perhaps half a character; nothing for a special token that is no text."""
    logprob: float
    """The natural logarithm of its probability."""
    top: tuple[tuple[bytes, float], ...] = ()
    """The likeliest tokens at this place, most likely first, without forbidden ones: perhaps fewer than asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one engine step says of one sequence.

    A sequence's chunks are: one with `started`, any number with `tokens`, one with `finish` (which may carry the last
    tokens too). A sequence that never started has only its `finish` chunk. Nothing follows a `finish`.
    """

    request_id: str
    text: str = ""
    """Newly complete text, never half a character, and nothing that may still become a stop string."""
    tokens: tuple[int, ...] = ()
    """Token ids this chunk consumed; the stop token is not among them, the tokens of a stop string are."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """One for each of `tokens`, in order, when the request asks for them."""
    finish: Finish | None = None
    started: bool = False
    """Prefill began; `cached_tokens` is valid."""
    cached_tokens: int = 0
    """Prompt tokens whose state came from the prefix cache."""
    cache_write_tokens: int = 0
    """With `finish`: prompt tokens whose state this sequence added to the prefix cache."""
    error: str = ""
    """One sentence, with finish "error"."""


Sink = Callable[[list[Chunk]], None]
"""Called from the engine's thread once a step with all chunks of the step. It must be cheap and must not raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a worker announces of its model; known before the engine starts."""

    name: str
    digest: str
    """Names weights, tokenizer and template: equal digests continue each other's sequences."""
    context_length: int
    vocab_size: int
    temperature: float = 1.0
    """The model's own default, used when a request names none."""
    top_p: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """A snapshot of an engine's occupation."""

    running: int
    waiting: int
    slots: int
    free: int
    """Slots that neither a running nor a waiting request will take."""
    cache_bytes: int


class Engine(Protocol):
    """One model, one thread that owns it, many sequences at once."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def is_running(self) -> bool:
        """Whether it takes requests: not before its start, nor after its end, whatever ended it. Any thread."""

    def start(self, *, progress: Progress | None = None) -> None:
        """Load the model on the engine's own thread and return when it can serve. Raises ModelError."""

    def submit(self, request: GenerationRequest) -> None:
        """Hand over a request: any thread, never blocks. Raises ModelError when the engine is not running."""

    def cancel(self, request_id: str) -> None:
        """End a sequence within a token: any thread. A live one gets a final chunk; an unknown id is no error."""

    def forget(self, scope: str) -> None:
        """Drop what the prefix cache has of a scope, and keep nothing more of it: any thread, never blocks."""

    def load(self) -> EngineLoad:
        """How occupied the engine is now: any thread, never blocks."""

    def close(self) -> None:
        """Cancel what is live (each gets its final chunk), end the thread and join it. Safe to call twice."""


class ChatTokenizer(Protocol):
    """Turns conversations into prompts. Usable from any thread; imports no mlx."""

    @property
    def longest_token(self) -> int:
        """A text of n bytes has at least n / `longest_token` tokens; 0 where that can't be told."""

    @property
    def dialect(self) -> "Dialect":
        """How the model calls tools and thinks."""

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokens that stand in no text, by how they are written."""

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """The prompt's token ids, generation prompt included. Raises ModelError when the template refuses.

        `tools` are for a template that takes them. `template_kwargs` are JSON values that the template finds under
        their names, which are identifiers and none of RESERVED_TEMPLATE_ARGUMENTS.
        """

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """The tokens of text that a template would write: special tokens are what they say."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a piece of a prompt, special tokens written out."""
