"""python -m tests.layers

Prints the layers of the import contracts, each package with its modules and lines. Exits with 1 if a file, class or
package is too large.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("responses_site", "responses_api", "inference", "tests")
MOST_LINES = 400
"""Most lines of a file."""
MOST_CLASS_LINES = 250
MOST_MODULES = 15
"""Most modules of a package, without its `__init__.py` and its subpackages."""


def main() -> int:
    """Print the drawing and what is too large."""
    for line in drawing():
        print(line)
    outgrown = list(too_large())
    print(*outgrown, sep="\n")
    return 1 if outgrown else 0


def drawing() -> Iterator[str]:
    """The layers of each container, highest first. Packages on one line don't import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] != "layers":
            continue
        for container in contract.get("containers", [""]):
            yield f"{container or 'the repository'}: {contract['name']}"
            for layer in contract["layers"]:
                names = layer.replace("(", "").replace(")", "").replace(":", "|").split("|")
                yield "    " + " | ".join(_described(container, name.strip()) for name in names)
            yield ""


def _described(container: str, name: str) -> str:
    place = ROOT.joinpath(*f"{container}.{name}".strip(".").split("."))
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    lines = sum(_count_lines(file) for file in files if file.exists())
    modules = len(files)
    return f"{name} ({modules} {'module' if modules == 1 else 'modules'}, {lines} lines)"


def too_large() -> Iterator[str]:
    """A sentence for each file, class and package that is too large. Migrations are written by Django."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    for file in files:
        if "migrations" in file.parts:
            continue
        place = file.relative_to(ROOT)
        if (lines := _count_lines(file)) > MOST_LINES:
            yield f"{place} has {lines} lines, and {MOST_LINES} are allowed."
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > MOST_CLASS_LINES:
                    yield f"{place}: the class {node.name} has {lines} lines, and {MOST_CLASS_LINES} are allowed."
    for folder in sorted({file.parent for file in files if "migrations" not in file.parts}):
        modules = [file for file in folder.glob("*.py") if file.name not in ("__init__.py", "__main__.py")]
        if len(modules) > MOST_MODULES:
            yield f"{folder.relative_to(ROOT)} has {len(modules)} modules, and {MOST_MODULES} are allowed."


def _count_lines(file: Path) -> int:
    return len(file.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main())
