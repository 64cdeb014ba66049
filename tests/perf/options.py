"""The options of the benchmark."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of all measurements."""

    directory: Path
    """A temporary directory."""
    is_short: bool = False
    """Whether to run the form for CI: one round, few tokens, without the default model."""
    rounds: int = 3
    """The number of rounds, in which the compared alternatives take turns."""
    streams: tuple[int, ...] | None = None
    """Measure only with these numbers of streams."""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of this project's servers, in addition to those of the measurement."""
    against: dict[str, str] = field(default_factory=dict)
    """Settings of a second server, for measurements that compare two."""
    peers: tuple[Path, ...] = ()
    """Virtual environments with other servers, in addition to this one."""

    @property
    def tries(self) -> int:
        """The number of attempts at a pass that other programs disturb."""
        return 1 if self.is_short else 2

    def levels(self, *all_levels: int) -> Sequence[int]:
        """The selected numbers of streams."""
        return [level for level in all_levels if self.streams is None or level in self.streams]


def data_dir() -> Path:
    """The data directory of the user's server, with the default model."""
    return Path(os.environ.get("RESPONSES_DATA_DIR", BASE_DIR / ".data")).resolve()
