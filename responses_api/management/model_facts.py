"""The facts of a model that `manage.py models` shows: for people, and for programs."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from inference import LEAST_TOKENS, Footprint, ModelEntry, memory_for_models, read_dialect, read_footprint


@dataclass(frozen=True, slots=True)
class Machine:
    """The memory that this machine has for models."""

    memory: int

    @classmethod
    def this(cls) -> "Machine":
        return cls(memory_for_models(settings.RESPONSES_MEMORY_BYTES))

    def footprint(self, entry: ModelEntry) -> Footprint:
        """The memory that a model would need here."""
        return read_footprint(
            entry.path,
            memory=self.memory,
            batch_size=settings.RESPONSES_BATCH_SIZE,
            prefill_step=settings.RESPONSES_PREFILL_STEP,
            kv_bits=settings.RESPONSES_KV_BITS,
        )

    @property
    def sentence(self) -> str:
        """What the columns of memory mean."""
        return (
            "Memory is what a model needs with a short conversation. All loaded models together may use "
            f"{shown(self.memory)} (RESPONSES_MEMORY_BYTES)."
        )


class ModelFacts:
    """One model on one machine."""

    def __init__(self, entry: ModelEntry, machine: Machine) -> None:
        self.entry = entry
        self._dialect = read_dialect(entry.path)
        footprint = machine.footprint(entry)
        self._memory = footprint.needs(min(entry.context_length, LEAST_TOKENS))
        self._per_token = footprint.state.per_token
        self._tokens = footprint.most_tokens(machine.memory, context=entry.context_length)
        self._machine = machine

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values. `memory_bytes` is what it needs with a short sequence, and `fits_tokens` the longest
        sequence that there is memory for: 0 if the model doesn't fit.
        """
        dialect = self._dialect
        return {
            **self.entry.as_dict(),
            "dialect": dialect.name,
            "own_tool_template": dialect.own_template,
            "thinks": dialect.thinks,
            "thinking_markers": [dialect.thinking.start, dialect.thinking.end] if dialect.thinking else None,
            "thinking_switches": list(dialect.switches),
            "memory_bytes": self._memory,
            "memory_bytes_per_token": self._per_token,
            "fits_tokens": self._tokens,
        }

    def row(self) -> dict[str, str]:
        """One line of a table, by its titles."""
        entry = self.entry
        return {
            "Name": entry.name,
            "Aliases": ", ".join(entry.aliases),
            "Context": f"{entry.context_length:,}",
            "Weights": entry.weights,
            "Size": shown(entry.size_bytes),
            "Tools": self._dialect.name,
            "Thinking": "yes" if self._dialect.thinks else "no",
            "Memory": shown(self._memory),
            "Fits": self._fits("up to {tokens:,} tokens"),
            "Source": entry.source,
        }

    def page(self) -> dict[str, str]:
        """Everything, by its title."""
        entry, dialect = self.entry, self._dialect
        return {
            "Name": entry.name,
            "Aliases": ", ".join(entry.aliases) or "none",
            "Context": f"{entry.context_length:,} tokens",
            "Weights": f"{entry.weights}, {shown(entry.size_bytes)}",
            "Memory": f"{shown(self._memory)}, and {self._per_token / 1e3:,.0f} kB per token of a conversation",
            "Fits": self._fits("conversations up to {tokens:,} tokens", no=f"no, {self._too_little}"),
            "Sampling": f"temperature {entry.temperature:g}, top_p {entry.top_p:g}",
            "Tools": f"calls in the style of {dialect.name}"
            + (
                ", with tools in the system message, since its chat template takes none" if dialect.own_template else ""
            ),
            "Thinking": self._thinking(),
            "Source": entry.source,
            "Digest": entry.digest,
            "Added": entry.added_at,
            "Files": str(entry.path),
        }

    def _fits(self, partly: str, *, no: str = "no") -> str:
        if self._tokens >= self.entry.context_length:
            return "yes"
        return partly.format(tokens=self._tokens) if self._tokens else no

    @property
    def _too_little(self) -> str:
        return f"models may use only {shown(self._machine.memory)} here (RESPONSES_MEMORY_BYTES)"

    def _thinking(self) -> str:
        dialect = self._dialect
        if not dialect.thinks:
            return "no"
        thinking = dialect.thinking
        style = f"between {thinking.start} and {thinking.end}" if thinking else f"in the channels of {dialect.name}"
        switches = f", with {', '.join(dialect.switches)} in its template" if dialect.switches else ""
        return style + switches


def shown(size: int) -> str:
    """A size for people."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
