"""The compared servers of the same model: this project's, and others that are installed.

Others are searched for in this environment and in the virtual environments of `--peers`, as their requirements conflict
with each other. On a Linux CPU each gets the OpenBLAS that this project loads.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from inference import ModelEntry, Registry, pull_default
from inference.blas import preload_blas, renamed_openblas
from tests.live.server import free_ports
from tests.perf.options import Options, data_dir

from .servers import embedded_server, target_of
from .streams import RequestFailed, Target

OURS = "ours"
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A running server."""

    name: str
    target: Target
    pid: int
    ready_seconds: float
    """Seconds from its start to the end of its first request of one token."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another server, with the command that starts it."""

    name: str
    program: str
    """The name of its program in an environment, or `python MODULE`."""
    arguments: tuple[str, ...]
    """Arguments with `{model}` and `{port}`."""
    environment: tuple[tuple[str, str], ...] = ()

    def command(self, environment: Path, *, model: Path, port: int) -> list[str] | None:
        """The command that starts it; None if it isn't installed."""
        programs = environment / "bin"
        if self.program.startswith("python "):
            module = self.program.split()[1]
            find = f"import importlib.util as u, sys; sys.exit(u.find_spec({module.partition('.')[0]!r}) is None)"
            python = programs / "python"
            if not python.exists() or subprocess.run([python, "-c", find], check=False).returncode:
                return None
            start = [str(python), "-m", module]
        else:
            start = [str(programs / self.program)]
            if not Path(start[0]).exists():
                return None
        return start + [argument.format(model=model, port=port) for argument in self.arguments]


_ADDRESS = ("--host", "127.0.0.1", "--port", "{port}")
PEERS = (
    Peer("mlx_lm.server", "python mlx_lm.server", ("--model", "{model}", *_ADDRESS)),
    Peer("mlx_vlm.server", "python mlx_vlm.server", ("--model", "{model}", *_ADDRESS), (("APC_ENABLED", "1"),)),
    Peer("vllm-mlx", "vllm-mlx", ("serve", "{model}", *_ADDRESS, "--continuous-batching", "--offline")),
    Peer(
        "mlx-openai-server",
        "mlx-openai-server",
        ("launch", "--model-path", "{model}", "--model-type", "lm", *_ADDRESS, "--no-log-file"),
    ),
)


@contextmanager
def contenders(options: Options, name: str, **settings: str) -> Iterator[list[Contender]]:
    """All servers to compare, running and warm, this project's first, which gets ``settings``."""
    entry = default_model()
    with ExitStack() as stack:
        servers = [stack.enter_context(ours(options, name, **settings))]
        for peer in PEERS:
            for environment in (Path(sys.prefix), *options.peers):
                port = free_ports(1)
                command = peer.command(environment, model=entry.path, port=port)
                if command is not None:
                    servers.append(stack.enter_context(_started(peer, command, entry, port, options.directory)))
                    break
        yield servers


def default_model() -> ModelEntry:
    """The default model, downloaded if it is missing."""
    return pull_default(Registry(data_dir()))


@contextmanager
def ours(options: Options, name: str, **settings: str) -> Iterator[Contender]:
    """The embedded server with the default model, running and warm."""
    started_at = time.perf_counter()
    settings = {"RESPONSES_ENGINE": "mlx", **options.settings, **settings}
    with embedded_server(options.directory / name, settings, models=data_dir()) as server:
        assert server.process is not None
        target = target_of(server)
        _wait_until_ready(target, server.process)
        yield Contender(OURS, target, server.process.pid, time.perf_counter() - started_at)


@contextmanager
def _started(peer: Peer, command: Sequence[str], entry: ModelEntry, port: int, work: Path) -> Iterator[Contender]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", **dict(peer.environment)}
    libraries = data_dir() / "libraries"
    if preload_blas(libraries):
        environment["LD_PRELOAD"] = str(renamed_openblas(libraries))
    started_at = time.perf_counter()
    with (work / f"{peer.name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        target = Target(f"http://127.0.0.1:{port}/v1", api="chat", model=str(entry.path))
        _wait_until_ready(target, process)
        yield Contender(peer.name, target, process.pid, time.perf_counter() - started_at)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(target: Target, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            one_token(target, "Say yes.")
        except (httpx.HTTPError, RequestFailed):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def one_token(target: Target, text: str) -> float:
    """Seconds of a request of one token, not streamed, on a new connection. Raises RequestFailed."""
    body = target.body([{"role": "user", "content": text}], tokens=1, stream=False)
    headers = {"authorization": f"Bearer {target.key}"} if target.key else {}
    started_at = time.perf_counter()
    answer = httpx.post(target.url + target.path, json=body, headers=headers, timeout=START_SECONDS)
    if answer.status_code != 200:
        raise RequestFailed(f"{answer.status_code}: {answer.text[:300]}")
    return time.perf_counter() - started_at
