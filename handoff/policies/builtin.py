"""``builtin:NAME``: the small ALFWorld checkpoints that ship with the toolkit, under the template that they know.

They are ordinary checkpoints for transformers (``examples/small_checkpoints`` trains them).  Their kind brings the
options that they were trained with; an option of the user counts more.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from handoff.canonical import digest
from handoff.errors import DataError, UsageError
from handoff.policies.hf.policy import Transformers
from handoff.policies.language.options import ModelOptions


def folder() -> Path:
    """The folder of the checkpoints."""
    return Path(str(resources.files("handoff.artifacts"))) / "checkpoints"


def names() -> list[str]:
    """The checkpoints that ship, sorted."""
    return sorted(path.parent.name for path in folder().glob("*/config.json"))


def options() -> dict[str, Any]:
    """Fields of :class:`ModelOptions` that the checkpoints were trained with."""
    return {
        "template": "alfworld-compact",
        "prompt_form": "text",
        "history": None,
        "action_format": "choice",
        "constrain": True,
        "max_new_tokens": 8,
        "dtype": "float32",
        "device": "cpu",
        "rows": 8,
    }


class Builtin(Transformers):
    """A checkpoint that ships."""

    kind = "builtin"

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Raises :class:`~handoff.errors.UsageError` if none of that name ships."""
        if name not in names():
            known = ", ".join(names()) or "none"
            raise UsageError(f"no checkpoint that ships is named {name!r} (there are: {known})")
        super().__init__(str(folder() / name), options)
        self._name = name

    def open(self) -> None:
        """Raises :class:`~handoff.errors.DataError` if the checkpoint is damaged."""
        try:
            super().open()
        except DataError as error:
            raise DataError(f"builtin:{self._name} is damaged ({error}); install handoff again") from error

    def configure(self) -> None:
        super().configure()
        shipped = self.checkpoint.read("manifest.json").get("weights_sha256")
        if self.checkpoint.digests["weights"] != digest({"model.safetensors": shipped}):
            raise DataError("its weights are not those that shipped")
