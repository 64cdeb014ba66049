"""Progress bars for the long steps of commands: download, conversion, load."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn


class ProgressBars:
    """A callable ``progress(stage, done)``, ``done`` from 0.0 to 1.0, for any thread. One bar per stage on stderr.

    If stderr is not a terminal, a line is printed when a stage begins.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: float) -> None:
        if stage not in self._bars:
            self._bars[stage] = self._progress.add_task(stage, total=1.0)
            if not self._console.is_terminal:
                self._console.print(f"{stage} …")
        self._progress.update(self._bars[stage], completed=min(1.0, done))
