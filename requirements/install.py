"""Installs locked requirements into this environment with pip: `install.py LABEL PIP-ARGUMENT...`.

On a terminal one line counts the packages; pip's own words are shown only when it fails, and its status is returned.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

STEP = re.compile(
    r"^\s*(Collecting|Processing|Downloading|Installing collected packages|Requirement already satisfied)\b:?\s*(\S*)"
)


def main(label: str, arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    started, collected, words = time.monotonic(), 0, []
    show(label)
    assert process.stdout is not None
    for line in process.stdout:
        words.append(line)
        found = STEP.match(line)
        if found is None:
            continue
        step, what = found.groups()
        if step == "Downloading":
            size = re.search(r"\(([\d.]+ [kMG]B)\)", line)
            show(f"{label}: {collected} packages, fetching {what.split('-')[0]}" + (f", {size[1]}" if size else ""))
        elif step.startswith("Installing"):
            show(f"{label}: unpacking {collected} packages, takes a while")
        else:
            collected += 1
            show(f"{label}: {collected} packages, {Path(what).name.split('==')[0]}")
    status = process.wait()
    if status:
        show(f"{label}: failed\n")
        sys.stdout.writelines(line for line in words if not line.startswith("WARNING: Location "))
    else:
        show(f"{label}: {collected} packages in {time.monotonic() - started:.0f} s\n")
    return status


def show(text: str) -> None:
    """Overwrites the line on a terminal; elsewhere prints finished lines only."""
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[K" + text)
    elif text.endswith("\n"):
        sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
