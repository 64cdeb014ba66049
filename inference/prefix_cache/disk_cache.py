"""The second tier of the prefix cache: states on disk, which outlive the process.

One thread of its own writes, finds and removes files; a few more that it starts read them. To be written, arrays are
evaluated by the engine's thread, which then hands over their memory; what was read comes back as arrays made of
numbers. So these threads compute nothing.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.prefix_cache.directory import MODEL_DIGITS, Directory
from inference.prefix_cache.sealed_file import Keys, write_sealed
from inference.prefix_cache.token_tree import WIDTH

if TYPE_CHECKING:
    from inference.prefix_cache.disk_index import DiskIndex
    from inference.prefix_cache.layout import Layout
    from inference.prefix_cache.state_file import ReadState, Stored
    from inference.prefix_cache.states import Edge

log = logging.getLogger(__name__)

VERSION = "2"
"""Of the files; those of another version are not read."""
READERS = 2
"""Threads that open files while a request waits for them."""
MOST_PENDING_BYTES = 128 << 20
"""What waits to be written takes memory beyond the bound of the first tier: more is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskOptions:
    """directory: for all models, and all processes that have the same secret; max_bytes: of all files in it."""

    directory: Path
    secret: bytes = field(repr=False)
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """States that are being read; `start` is up to where the state was known without them."""

    future: "Future[list[ReadState]]"
    start: int

    @property
    def is_done(self) -> bool:
        return self.future.done()

    def wait(self, seconds: float) -> None:
        """Return when it is done, or after so long."""
        wait([self.future], timeout=seconds)


class DiskCache:
    """Any thread may call. Errors of the disk are logged, and cost a state."""

    def __init__(self, options: DiskOptions, *, model: str) -> None:
        """model: its digest. Until the cache is opened it only forgets."""
        self.evictions = 0
        """Files that were removed to make room."""
        self._keys = Keys(options.secret)
        self._directory = Directory(options.directory, self._keys, options.max_bytes)
        self._digest, self._model = model, ""
        self._index: DiskIndex | None = None
        self._thread = _new_thread()
        self._lock = threading.Lock()
        self._forgotten: set[str] = set()
        self._pending = 0

    @property
    def nbytes(self) -> int:
        """Of all files in the directory, as far as this process knows."""
        return self._directory.nbytes

    def open(self, layout: "Layout", signature: str) -> None:
        """Begin to note which files there are; those with states of another signature are another model's."""
        from inference.prefix_cache.disk_index import DiskIndex

        self._model = self._keys.name("model", VERSION, self._digest, signature, size=MODEL_DIGITS)
        self._index = DiskIndex(needs=layout.needs, needs_snapshot=layout.needs_snapshot)
        self._layout = layout
        self._submit(self._note_files)

    def settle(self, seconds: float | None = None) -> None:
        """Return when everything that was asked for before has been done, or after so long."""
        done = self._submit(lambda: None)
        if done is not None:
            wait([done], timeout=seconds)

    def close(self) -> None:
        """Write what is waiting, and end the thread. Scopes can still be forgotten."""
        ended, self._thread = self._thread, _new_thread()
        ended.shutdown(wait=True)

    # Reading

    def find(self, scope: str, tokens: bytes, limit: int) -> int:
        """The last position, at most `limit`, at which a sequence could be resumed; 0 if there is none."""
        return self._index.find(self._name(scope), tokens, limit) if self._index is not None else 0

    def read(self, scope: str, tokens: bytes, start: int, end: int, *, most_bytes: int) -> Reading | None:
        """Read what is needed to resume at `end` where the state is known up to `start`; None if that is too much."""
        assert self._index is not None
        files = self._index.files(self._name(scope), tokens, start, end)
        if sum(stored.nbytes for stored in files) > most_bytes:
            return None
        future = self._submit(self._read, files)
        return None if future is None else Reading(future, start)

    def _read(self, files: "Sequence[Stored]") -> "list[ReadState]":
        from inference.prefix_cache.state_file import read_state

        states = []
        with ThreadPoolExecutor(READERS, thread_name_prefix="prefix-cache-reader") as readers:
            reading = [readers.submit(read_state, stored, self._keys) for stored in files]
            for stored, future in zip(files, reading, strict=True):
                state = self._attempt(stored.path, future.result)
                if state is not None:
                    states.append(state)
        self._directory.used([stored.path for stored in reversed(files)])
        return states

    def _note_files(self) -> None:
        from inference.prefix_cache.state_file import read_head

        assert self._index is not None
        heads: list[Stored] = []
        for scope_name, path in self._directory.files(self._model):
            head = self._attempt(path, partial(read_head, path, self._keys, scope=scope_name))
            if head is not None:
                heads.append(head)
        for head in sorted(heads, key=lambda head: (head.start, head.end)):
            if not self._index.add(head):  # what it continues is gone
                self._directory.remove(head.path)
        self._make_room(0)

    def _attempt(self, path: Path, read: "Callable[[], Any]") -> Any:
        """What `read` returns; None when the file is gone, or can't be read and so is removed."""
        try:
            return read()
        except FileNotFoundError:  # another process has removed it
            pass
        except OSError as error:
            log.warning("a file of the prefix cache can't be read (%s)", error.strerror)
            return None
        except Exception:  # it is torn, altered, or not ours
            log.warning("a damaged file of the prefix cache was removed")
            self._directory.remove(path)
        assert self._index is not None
        self._index.discard([path])
        return None

    # Writing

    def save(self, scope: str, tokens: bytes, edges: "Sequence[Edge]", *, holder: str = "") -> None:
        """Write what edges, from the first on, know of the state of `tokens`, unless it is there; it goes when its
        holder is released.
        """
        name = self._name(scope)
        if self._index is None or name in self._forgotten:
            return
        for edge in edges:
            if not self._save(name, tokens[: edge.end * WIDTH], edge, holder):
                break
        self._submit(self._used, name, tokens)

    def _save(self, name: str, tokens: bytes, edge: "Edge", holder: str) -> bool:
        """Write an edge, if there is something to write; False when there is no room, so that no other can follow."""
        from inference.prefix_cache.state_file import Stored, encode

        assert self._index is not None
        parts, needs = self._layout.parts, self._layout.needs
        pieces = {number: piece for number, piece in enumerate(edge.content.pieces) if piece is not None}
        if not (pieces or edge.has_snapshot):
            return True
        if not self._index.lacks(name, tokens, edge.tails, snapshot=edge.has_snapshot):
            return True
        firsts = [edge.end - tail for tail in edge.tails]
        start = edge.start if None in needs else 0
        seen = [tail if need is None else 0 for tail, need in zip(edge.tails, needs, strict=True)]
        if None in needs and not self._index.lacks(name, tokens, seen, snapshot=False):
            # The layers that see every token are in another file.
            pieces = {number: piece for number, piece in pieces.items() if needs[parts[number].group] is not None}
            firsts = [edge.end if need is None else first for first, need in zip(firsts, needs, strict=True)]
            start = edge.end
        size = edge.content.nbytes
        if size > self._directory.max_bytes or (self._pending and self._pending + size > MOST_PENDING_BYTES):
            return False
        path = self._directory.new_path(name, self._model)
        stored = Stored(path, name, tokens, tuple(firsts), start, edge.has_snapshot, size, holder)
        header, buffers = encode(stored, pieces=pieces, snapshot=edge.content.snapshot)
        if not self._index.add(stored):
            return False
        with self._lock:
            self._pending += size
        self._submit(self._write, stored, header, buffers)
        return True

    def _write(self, stored: "Stored", header: bytes, buffers: Sequence[Any]) -> None:
        assert self._index is not None
        written = 0
        try:
            if stored.scope not in self._forgotten:
                self._directory.prepare(stored.scope)
                written = write_sealed(
                    stored.path, self._keys, header, buffers, may_stay=lambda: stored.scope not in self._forgotten
                )
        except OSError as error:
            log.warning("a state can't be written to the prefix cache's directory (%s)", error.strerror)
        finally:
            with self._lock:
                self._pending -= stored.nbytes
        if written:
            self._make_room(written)
        else:
            self._index.discard([stored.path])

    def _used(self, name: str, tokens: bytes) -> None:
        assert self._index is not None
        files = self._index.files(name, tokens, 0, len(tokens) // WIDTH)
        self._directory.used([stored.path for stored in reversed(files)])

    def _make_room(self, written: int) -> None:
        assert self._index is not None
        removed = self._directory.make_room(written)
        self.evictions += len(removed)
        self._index.discard(removed)

    # Forgetting

    def forget(self, scope: str) -> None:
        """Remove the files of a scope, of all models, whoever has written them; and write none again."""
        name = self._name(scope)
        self._forgotten.add(name)
        if self._index is not None:
            self._index.discard_scope(name)
        self._submit(self._directory.forget, name)

    def retain(self, scopes: Collection[str]) -> None:
        """Remove the files of all other scopes."""
        self._submit(self._retain, frozenset(map(self._name, scopes)))

    def holders(self) -> set[str]:
        """Those for whom there are files, as far as this process knows."""
        return self._index.holders() if self._index is not None else set()

    def release(self, holders: Collection[str]) -> None:
        """Remove the files that were written for these holders. What others share with them is written again with
        their next state.
        """
        if self._index is not None:
            self._submit(self._release, holders)

    def _release(self, holders: Collection[str]) -> None:
        assert self._index is not None
        paths = self._index.held(holders)
        self._index.discard(paths)
        for path in paths:
            self._directory.remove(path)

    def _retain(self, names: Collection[str]) -> None:
        for name in self._directory.retain(names):
            if self._index is not None:
                self._index.discard_scope(name)

    def _name(self, scope: str) -> str:
        return self._directory.scope_name(scope)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any] | None":
        """Have the thread do something; None when the process is ending."""
        try:
            return self._thread.submit(_logged, function, *arguments)
        except RuntimeError:
            return None


def _new_thread() -> ThreadPoolExecutor:
    """One thread, which starts when it has something to do."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefix-cache")


def _logged(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception:  # the thread must do the next thing
        log.exception("the prefix cache's thread failed")
        return []
