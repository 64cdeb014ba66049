"""The interface between engines and everything above them: plain values, standard library only.

Requests go in as messages and chunks come out in batches, so that an engine may run on a thread of this process or in
another process.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
"""Arguments of a chat template that no caller may pass: rendering sets them."""


class ModelError(Exception):
    """A model or an engine can't do what was asked. The message is one clear sentence for the user."""


Message = dict[str, Any]
"""One message as a chat template reads it: `role` (system, user, assistant or tool), `content`, and what else the
template of the dialect needs (see `Dialect.template_messages`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is chosen: penalties and bias change the logits, temperature divides them, and `top_k`,
    `top_p` and `min_p`, in this order, keep the likeliest. The defaults change nothing.
    """

    temperature: float = 1.0
    """0 is greedy."""
    top_k: int = 0
    """How many of the likeliest tokens are kept; 0 keeps all."""
    top_p: float = 1.0
    """Keeps the smallest set of the likeliest tokens with at least this probability."""
    min_p: float = 0.0
    """Keeps tokens with at least this share of the likeliest one's probability."""
    repetition_penalty: float = 1.0
    """Above 0. Divides the positive logits, and multiplies the negative ones, of all tokens in prompt and answer."""
    presence_penalty: float = 0.0
    """Subtracted from the logit of each token in the answer."""
    frequency_penalty: float = 0.0
    """Subtracted from a token's logit once for each time it is in the answer."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Pairs of a token and a number that is added to its logit; each token once, all in the model's vocabulary."""
    seed: int | None = None
    """Makes the sequence reproducible on one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The form of an answer: tokens are chosen so that it can still be satisfied."""

    kind: Literal["json_schema", "json_object", "lark", "regex"]
    text: str = ""
    """The JSON Schema as JSON, the Lark grammar, or the regular expression; empty for any JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingLimit:
    """How much an answer may think before it has to answer."""

    tokens: int
    """At least 0."""
    start: str
    end: str
    """The markers of thinking in the text of the answer."""
    opened: bool
    """The prompt ends inside a block of thinking: the answer begins as thinking."""
    closing: tuple[int, ...]
    """The tokens that end thinking, not empty. They count as tokens of the answer."""


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
    """Tokens from an earlier run of the same request: the sequence resumes after them.

    They are not in chunks again, nor is the text that was emitted with them; text that was held back is emitted now. If
    nothing can follow them, the sequence starts and ends at once. A "cancelled" chunk emits the text that was held
    back: a caller that resumes after it drops that text.
    """
    stop: tuple[str, ...] = ()
    """The answer ends, with finish "stop", before the first of these strings; none of them is empty."""
    constraint: Constraint | None = None
    """An answer that ends with "stop" satisfies it, unless a stop string cut it."""
    top_logprobs: int | None = None
    """0 to 20: return the log-probability of each token, and of this many of the likeliest. None returns none."""
    thinking: ThinkingLimit | None = None
    cache_scope: str = ""
    """The name of the private prefix cache that is used."""
    cache_key: str = ""
    """A hint: what is cached under one key of a scope is kept, and dropped, together. It gives access to nothing."""
    cache_holder: str = ""
    """Who can have what only this request has cached dropped, see `Engine.release`; empty for nobody."""
    cache_on_disk: bool = False
    """Whether its state may be written to the disk."""
    cuts: tuple[int, ...] = ()
    """Positions in the prompt at which other prompts are likely to differ, where its state is worth keeping."""
    priority: int = 0
    """0 interactive, 1 background; requests are admitted in the order (priority, arrival)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """The log-probability of one token of an answer at temperature 1.

    It is taken after penalties, bias and the constraint, so a token without alternative has 0.0, and before `top_k`,
    `top_p` and `min_p`. It doesn't depend on other sequences. Every value is finite, from -9999.0 to 0.0.
    """

    token: bytes
    """The bytes of the token, perhaps half a character; empty for special tokens that are not text."""
    logprob: float
    """The natural logarithm of its probability."""
    top: tuple[tuple[bytes, float], ...] = ()
    """The likeliest tokens at this position, most likely first, without forbidden ones: maybe fewer than requested."""


@dataclass(slots=True, kw_only=True)
class Chunk:
    """The output of one engine step for one sequence. Nobody changes it: it is not frozen since making it would then
    take three times as long, in each step for each sequence.

    A sequence's chunks are: one with `started`, any number with `tokens`, one with `finish` (which may carry the last
    tokens too). A sequence that never started has only its `finish` chunk. Nothing follows a `finish`.
    """

    request_id: str
    text: str = ""
    """Newly complete text: whole characters, and nothing that may still become a stop string."""
    tokens: tuple[int, ...] = ()
    """Ids of the generated tokens, with those of a stop string and without the stop token."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """One for each of `tokens`, in order, when the request asks for them."""
    finish: Finish | None = None
    started: bool = False
    """Prefill began; `cached_tokens` is valid."""
    cached_tokens: int = 0
    """Prompt tokens whose state came from the prefix cache."""
    cache_write_tokens: int = 0
    """With `finish`: prompt tokens whose state this sequence added to the prefix cache."""
    drafted_tokens: int = 0
    """With `finish`: tokens that were guessed for this sequence, and verified together."""
    accepted_tokens: int = 0
    """With `finish`: those of them that the model chose."""
    error: str = ""
    """One sentence, with finish "error"."""


STOPPED = "The engine stopped."
"""The error of the requests that an engine's own failure ends."""

Sink = Callable[[list[Chunk]], None]
"""Called on the engine's thread once per step, with all chunks of the step. It must be fast and must not raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """The facts of a model that a worker announces; known before the engine starts."""

    name: str
    digest: str
    """Identifies weights, tokenizer and template: models with equal digests can resume each other's sequences."""
    context_length: int
    """How many tokens prompt and answer may have together."""
    vocab_size: int
    own_context_length: int | None = None
    """The context that the model was made for, where there is memory for less of it only."""
    temperature: float = 1.0
    """The model's default, for requests without a temperature."""
    top_p: float = 1.0

    def limited_to(self, tokens: int | None) -> "ModelInfo":
        """The same model with memory for so many tokens of its context only."""
        if tokens is None or tokens >= self.context_length:
            return self
        return replace(self, context_length=tokens, own_context_length=self.context_length)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFigures:
    """What one tier of a prefix cache has done since it was made, and its size."""

    hits: int = 0
    """Prompts for which it had state."""
    misses: int = 0
    """Prompts for which it was searched in vain."""
    tokens: int = 0
    """Prompt tokens whose state came from it."""
    evictions: int = 0
    """States that were dropped to make room."""
    nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """A snapshot of an engine's load."""

    running: int
    waiting: int
    slots: int
    free: int
    """Slots that no running or waiting request will take."""
    step_seconds: float = 0.0
    """Age of the step that runs now; 0 between steps."""
    memory_cache: CacheFigures = CacheFigures()
    disk_cache: CacheFigures = CacheFigures()


class Engine(Protocol):
    """One model, one thread that owns it, many sequences at once."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def is_running(self) -> bool:
        """Whether it takes requests, from its start to its end, for whatever reason it ends. Any thread."""

    def start(self, *, progress: Progress | None = None) -> None:
        """Load the model on the engine's own thread and return when it can serve. Raises ModelError."""

    def submit(self, request: GenerationRequest) -> None:
        """Add a request. Any thread; never blocks. Raises ModelError if the engine is not running."""

    def cancel(self, request_id: str) -> None:
        """End a sequence within one token. Any thread. A live one gets a final chunk; an unknown id is ignored."""

    def forget(self, scope: str) -> None:
        """Drop the prefix cache of a scope, and cache nothing more for it. Any thread; never blocks."""

    def retain(self, scopes: Collection[str]) -> None:
        """Drop the prefix caches of all other scopes, also those that other processes have left on the disk. Any
        thread; never blocks.
        """

    def holders(self) -> Collection[str]:
        """The holders of what is cached, see `GenerationRequest.cache_holder`. Any thread; never blocks."""

    def release(self, holders: Collection[str]) -> None:
        """Drop what only these holders have cached, and the files written for them. Any thread; never blocks."""

    def load(self) -> EngineLoad:
        """The current load. Any thread; never blocks."""

    def close(self) -> None:
        """Cancel live sequences (each gets its final chunk), end the thread and join it. May be called twice."""


class ChatTokenizer(Protocol):
    """Turns conversations into prompts. Usable from any thread; imports no mlx."""

    def load(self) -> None:
        """Load now what the first call would load. Raises ModelError."""

    @property
    def longest_token(self) -> int:
        """A text of n bytes has at least n / `longest_token` tokens, unless bytes have no token; 0 if unknown."""

    @property
    def dialect(self) -> "Dialect":
        """How the model calls tools and thinks."""

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The ids of the tokens that are not text, by how they are written."""

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """The prompt's token ids, generation prompt included. Raises ModelError when the template refuses.

        `tools` are for templates that take them. `template_kwargs` are JSON values that the template reads by name; the
        names are identifiers, and not in RESERVED_TEMPLATE_ARGUMENTS.
        """

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """The tokens of text as a template writes it: special tokens are encoded as such."""

    def cuts(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Positions in a prompt at which other prompts are likely to differ; see `GenerationRequest.cuts`."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a part of a prompt, with special tokens."""
