"""Checkpoints on disk or on a hub, pinned and digested, and their tokenizers.

A checkpoint is ``FOLDER`` or ``OWNER/NAME[/SUBFOLDER][@REVISION]``.  A branch, or no revision, is resolved to its
commit, which the manifest states.  Only safetensors are loaded: weights in other formats are pickles.  Code that comes
with a checkpoint is never run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.canonical import digest
from handoff.errors import DataError, MissingExtra, UsageError
from handoff.policies.language.chat import ChatTemplate, Messages
from handoff.policies.language.prompts import Prompt

_HUB = re.compile(r"([\w.-]+/[\w.-]+)((?:/[\w.-]+)*)(?:@([\w./-]+))?")
_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")


@attrs.frozen
class Checkpoint:
    """A checkpoint's folder and identity."""

    path: Path
    #: Free of paths.
    name: str
    #: The commit of a hub checkpoint.
    revision: str | None
    #: Over the contents of weights, configuration and tokenizer.
    digests: Mapping[str, str]

    def read(self, file: str) -> dict[str, Any]:
        """A JSON object of the checkpoint.  Raises :class:`~handoff.errors.DataError` if it is none."""
        try:
            form = json.loads(files.text_of(files.read(self.path / file), file))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"checkpoint {self.name}: {file} cannot be read: {error}") from error
        if not isinstance(form, dict):
            raise DataError(f"checkpoint {self.name}: {file} is not a JSON object")
        return form

    def context(self, *limits: int) -> int | None:
        """The tokens of prompt and reply together that the model has places for, and no more than any of ``limits``
        above 0; ``None`` if neither says anything."""
        places = [self.read("config.json").get("max_position_embeddings"), *limits]
        return min((limit for limit in places if isinstance(limit, int) and limit > 0), default=None)

    @property
    def place(self) -> str:
        """The name with the revision, as a spec's argument."""
        return f"{self.name}@{self.revision}" if self.revision else self.name

    def describe(self) -> dict[str, Any]:
        return {"checkpoint": self.name, "revision": self.revision, "digests": dict(self.digests)}


def find(argument: str) -> Checkpoint:
    """The checkpoint that ``argument`` names, downloaded if need be.

    Raises :class:`~handoff.errors.UsageError` if it cannot be found and :class:`~handoff.errors.DataError` if what is
    there is no checkpoint.
    """
    local = Path(argument).expanduser()
    if local.is_dir():
        return Checkpoint(local, local.resolve().name, None, _digests(local, argument))
    match = _HUB.fullmatch(argument)
    if match is None or argument.startswith((".", "/", "~")) or ".." in argument:
        raise UsageError(
            f"checkpoint {argument}: there is no such folder (a hub checkpoint is OWNER/NAME[/SUBFOLDER][@REVISION])"
        )
    repository, subfolder, revision = match.group(1), match.group(2).strip("/"), match.group(3)
    root = _download(repository, subfolder, revision)
    path = root / subfolder
    name = f"{repository}/{subfolder}" if subfolder else repository
    if not path.is_dir():
        raise UsageError(f"checkpoint {argument}: {repository} has no folder {subfolder!r}")
    return Checkpoint(path, name, root.name, _digests(path, argument))


def _download(repository: str, subfolder: str, revision: str | None) -> Path:
    """The local snapshot, whose folder is named after the commit."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hf", error, f"the hub checkpoint {repository}") from None
    patterns = [f"{subfolder}/{pattern}" if subfolder else pattern for pattern in _FILES]
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        way = files.way_out(error)
        reason = " ".join(str(error).split())[:300] + (f"; {way}" if way else "")
        raise UsageError(
            f"checkpoint {repository}@{revision or 'main'} cannot be downloaded from the hub: {reason}"
        ) from error


def _digests(folder: Path, argument: str) -> dict[str, str]:
    """Digests of weights, configuration and tokenizer: over names and contents."""
    paths = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
    weights = [name for name in paths if name.endswith(".safetensors")]
    if "config.json" not in paths:
        raise DataError(f"checkpoint {argument}: {folder} has no config.json")
    if not weights:
        others = [name for name in paths if name.endswith((".bin", ".pt", ".pth"))]
        reason = f"its weights are pickles ({others[0]}, ...), which are not loaded" if others else "it has no weights"
        raise DataError(f"checkpoint {argument}: {reason}; save it as safetensors (see docs/models.md)")
    groups: dict[str, list[str]] = {
        "weights": weights,
        "config": [name for name in ("config.json", "generation_config.json") if name in paths],
        "tokenizer": [
            name
            for name in paths
            if name.startswith(("tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "chat_template"))
        ],
    }
    with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
        return {
            group: digest(dict(zip(names, pool.map(lambda name: _sha256(paths[name]), names), strict=True)))
            for group, names in groups.items()
        }


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"checkpoint file {path}: {files.cause(error)}") from error


class Encoder:
    """A checkpoint's tokenizer: prompts to token ids, as a server that serves the checkpoint would have them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise MissingExtra("transformers", "hf", error, "this policy") from None
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(str(checkpoint.path), trust_remote_code=False)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"checkpoint {checkpoint.name}: its tokenizer cannot be loaded: {_brief(error)}") from error
        self._name = checkpoint.name
        self.chat = self._chat()

    def _chat(self) -> ChatTemplate | None:
        """The checkpoint's chat template, if it has one."""
        if not self.tokenizer.chat_template:
            return None
        try:
            source = self.tokenizer.get_chat_template()
        except ValueError as error:  # several, and none is the usual one
            raise DataError(f"checkpoint {self._name}: {_brief(error)}") from error
        return ChatTemplate(source, dict(self.tokenizer.special_tokens_map))

    def rendered(self, messages: Messages, now: str) -> str:
        """The text that the chat template makes of ``messages``.

        Raises :class:`~handoff.errors.UsageError` if the checkpoint has none.
        """
        if self.chat is None:
            raise UsageError(f"checkpoint {self._name} has no chat template; use --prompt-form text")
        try:
            return self.chat.render(messages, now)
        except Exception as error:  # templates raise whatever they like
            raise DataError(f"checkpoint {self._name}: its chat template fails: {_brief(error)}") from error

    def ids(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids of ``prompt``, with at most one beginning-of-sequence token.

        Raises :class:`~handoff.errors.UsageError` for a chat prompt if the checkpoint has no chat template.
        """
        bos = self.tokenizer.bos_token
        if prompt.form == "chat":
            text = self.rendered(prompt.chat(), prompt.now)
            special = False  # the template has written them
        else:
            text = prompt.text
            special = not (bos and text.startswith(bos))
        ids = tuple(int(token) for token in self.tokenizer(text, add_special_tokens=special)["input_ids"])
        first = self.tokenizer.bos_token_id
        if first is not None and ids[:2] == (first, first):
            raise DataError(f"checkpoint {self._name}: the prompt would begin with two {bos!r} tokens")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, without special tokens, as the tokenizer has it: no space is taken away afterwards."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _brief(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
