"""Opens GGUF files with the package of llama.cpp's authors. Files that can't be read are refused in one sentence."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.types import ModelError

if TYPE_CHECKING:
    from gguf import ReaderTensor


class GgufFile:
    """A GGUF file with a valid header. Tensors are mapped into memory, and read when they are used."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises ModelError."""
        from gguf import GGUFReader

        if not path.is_file():
            raise ModelError(f"There is no file {path}.")
        self.name = path.name
        try:
            self._reader = GGUFReader(path)
        except OSError as error:
            raise ModelError(f"{path} can't be read: {error.strerror or error}.") from None
        except Exception:  # the reader raises whatever the first wrong byte leads to
            raise ModelError(
                f"{path.name} is not a GGUF file that can be read: it is damaged, cut short, or of a newer version."
            ) from None
        self.tensors: dict[str, ReaderTensor] = {tensor.name: tensor for tensor in self._reader.tensors}

    def value(self, key: str) -> Any:
        """The metadata value of this key: a number, a text, or a list of them; None if there is none."""
        field = self._reader.get_field(key)
        return None if field is None else field.contents()
