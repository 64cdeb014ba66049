"""What a run of the benchmark was asked for."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The same for all measurements."""

    work: Path
    """A directory that is removed afterwards."""
    is_short: bool = False
    """A form for CI: one round, few tokens, no default model."""
    rounds: int = 3
    """How often each is measured, in turn with those that it is compared with."""
    streams: tuple[int, ...] | None = None
    """Only with so many streams."""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings that the project's servers are started with beside those of the measurement."""
    against: dict[str, str] = field(default_factory=dict)
    """Settings of a second server, where a measurement compares two."""
    peers: tuple[Path, ...] = ()
    """Virtual environments in which other servers are looked for, beside this one."""

    @property
    def tries(self) -> int:
        """How often a pass is made that others disturb."""
        return 1 if self.is_short else 2

    def levels(self, *all_levels: int) -> Sequence[int]:
        """Those of the numbers of streams that are asked for."""
        return [level for level in all_levels if self.streams is None or level in self.streams]


def data_dir() -> Path:
    """The data directory of the user's own server, which has the default model."""
    return Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
