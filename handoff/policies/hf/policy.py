"""``hf:CHECKPOINT``: transformers in this process.

Tokens do not depend on the batch: every row has its own sampler (:mod:`handoff.policies.hf.sampler`), and the shape of
the pass that it takes part in follows from the row alone.  Rows of about one length share a pass, and every pass has
the same number of rows, filled up with copies where fewer requests wait.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from handoff.errors import DataError, MissingExtra, UsageError
from handoff.policies.hf.sampler import RowSampler, gumbel, sample
from handoff.policies.hf.scoring import STEP, Tree, plain_scores, shape, takes_trees, tree_scores
from handoff.policies.language import guarantees
from handoff.policies.language.checkpoints import Checkpoint, Encoder
from handoff.policies.language.local import Local, Waiting
from handoff.policies.language.model import Output
from handoff.policies.language.options import ModelOptions, is_greedy
from handoff.policies.language.texts import TEXTS, ReplyText, ReplyTextAlone
from handoff.policies.language.tokens import TokenIds


@attrs.define
class _Sequence:
    """One request on its way through generation."""

    ids: tuple[int, ...]
    sampler: RowSampler
    limit: int
    reply: ReplyText
    generated: list[int] = attrs.Factory(list)
    finish: str | None = None


class Transformers(Local):
    """A checkpoint under transformers."""

    kind = "hf"
    guarantee = guarantees.ROWS

    def __init__(self, argument: str, options: ModelOptions) -> None:
        """Raises :class:`~handoff.errors.UsageError` for options that cannot be had here."""
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingExtra("torch and transformers", "hf", error, f"{self.kind}: policy") from None
        if options.engine:
            raise UsageError("engine arguments are for vllm: policies; hf: takes none")
        super().__init__(argument, options)
        # Only rows of about one length share a pass: the more are waiting, the fuller the passes.
        self.capacity = max(64, 4 * options.rows)
        self.device = _device(options.device)
        self._model: Any = None
        self._takes_trees = False
        self._trees: dict[tuple[str, ...], Tree] = {}
        self._cache_name = "past_key_values"
        self._reply_text = ReplyText
        self._versions = {"torch": torch.__version__, "transformers": transformers.__version__}

    def configure(self) -> None:
        config = self.checkpoint.read("config.json")
        self.dtype = _dtype(self.options.dtype, config)
        self.context = self.checkpoint.context(self.options.context)
        self._ends = _ends(self.checkpoint, config, self.encoder)

    def describe(self) -> Mapping[str, Any]:
        described = super().describe()
        if self.options.constrain or self._reply_text is ReplyTextAlone:
            return described
        return {**described, "texts": TEXTS}

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        remarks = super().resume_from(stated)
        if self.options.constrain or "texts" in stated:
            return remarks
        self._reply_text = ReplyTextAlone
        return [
            *remarks,
            "begun by a version that decoded replies without their prompts, it goes on with texts of that kind",
        ]

    def engine(self) -> dict[str, Any]:
        return {
            "name": "transformers",
            **self._versions,
            "dtype": self.dtype,
            "device": _device_name(self.device),
            "rows": self.options.rows,
            "attention": "eager",
            "context": self.context,
        }

    def activate(self) -> None:
        self.open()
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()
        if self._model is None:
            try:
                self._model = AutoModelForCausalLM.from_pretrained(
                    str(self.checkpoint.path),
                    dtype=getattr(torch, self.dtype),
                    attn_implementation="eager",
                    use_safetensors=True,
                    trust_remote_code=False,
                ).eval()
            except Exception as error:  # a checkpoint can be broken in many ways
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                raise DataError(f"checkpoint {self.checkpoint.name} cannot be loaded: {reason}") from error
            # The argument is about to be renamed (transformers 5.24 warns, 5.40 drops the old name).
            known = inspect.signature(type(self._model).forward).parameters
            self._cache_name = "cache" if "cache" in known else "past_key_values"
            self._model.to(self.device)
            self._takes_trees = takes_trees(self._model)
        self._model.to(self.device)

    def release(self) -> None:
        # In main memory it waits for its next phase without being read from disk again.
        if self._model is not None and self.device != "cpu":
            import torch

            self._model.to("cpu")
            torch.cuda.empty_cache()

    def close(self) -> None:
        self._model = None

    def generate(self, waiting: Sequence[Waiting]) -> list[Output]:
        if self.options.constrain:
            return self.choose(waiting)
        rows = [
            _Sequence(
                one.ids,
                RowSampler(one.request.seed, self.options, one.request.temperature),
                one.room,
                self._reply_text(self.encoder.decode, one.ids, self.options.stop),
            )
            for one in waiting
        ]
        # Rows of one width share a pass.
        groups = _groups(range(len(rows)), lambda place: _width(rows[place]))
        for batch in _batches(groups, self.options.rows):
            self._generate([rows[place] for place in batch])
        return [
            Output(row.reply.text, row.finish or "length", row.reply.stop, TokenIds.of(row.generated)) for row in rows
        ]

    def _generate(self, rows: list[_Sequence]) -> None:
        import torch
        from transformers import DynamicCache

        size = self.options.rows
        ids = [row.ids for row in rows] + [rows[0].ids] * (size - len(rows))
        width = _width(rows[0])
        tokens = torch.zeros((size, width), dtype=torch.int64)
        mask = torch.zeros((size, width), dtype=torch.int64)
        for place, row in enumerate(ids):
            tokens[place, width - len(row) :] = torch.tensor(row)
            mask[place, width - len(row) :] = 1
        tokens, mask = tokens.to(self.device), mask.to(self.device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache()
        with torch.inference_mode():
            while True:
                logits = self._model(
                    input_ids=tokens,
                    attention_mask=mask,
                    position_ids=positions,
                    use_cache=True,
                    logits_to_keep=1,
                    **{self._cache_name: cache},
                ).logits[:, -1]
                live = [place for place, row in enumerate(rows) if row.finish is None]
                samples = sample(logits[live], [rows[place].sampler for place in live], self.options)
                tokens = torch.zeros((size, 1), dtype=torch.int64)
                for place, token in zip(live, samples, strict=True):
                    tokens[place, 0] = token
                    self._append(rows[place], token)
                if all(row.finish is not None for row in rows):
                    return
                tokens = tokens.to(self.device)
                mask = torch.cat([mask, torch.ones((size, 1), dtype=torch.int64, device=mask.device)], dim=1)
                positions = positions[:, -1:] + 1

    def _append(self, row: _Sequence, token: int) -> None:
        row.generated.append(token)
        if token in self._ends:
            row.finish = "stop"
            return
        row.reply.add(token)
        if row.reply.stop is not None:
            row.finish = "stop"
        elif len(row.generated) >= row.limit:
            row.finish = "length"

    def choose(self, waiting: Sequence[Waiting]) -> list[Output]:
        """For every prompt, one of the admissible actions, by its exact probability as a whole reply.

        An action's score is the log-probability of its tokens and of an end token after them, given the prompt; among
        the scores, divided by the temperature, the choice is Gumbel-max with the decision's seed.
        """
        import torch

        rows = [(one.ids, self._tree(one.request.record.admissible)) for one in waiting]
        outputs = [_NOTHING] * len(rows)
        score = tree_scores if self._takes_trees else plain_scores
        groups = _groups([place for place, (_, tree) in enumerate(rows) if tree.replies], lambda n: shape(rows[n]))
        for batch in _batches(groups, self.options.rows):
            scores = score(self._model, [rows[place] for place in batch], self.options.rows)
            seeds = torch.tensor([waiting[place].request.seed for place in batch], dtype=torch.int64)
            noise = gumbel(seeds, max(map(len, scores))).tolist()
            for place, utilities, luck in zip(batch, scores, noise, strict=True):
                request = waiting[place].request
                temperature = request.tempered(self.options.temperature)
                if not is_greedy(temperature):
                    utilities = [value / temperature + bit for value, bit in zip(utilities, luck, strict=False)]
                best = max(range(len(utilities)), key=utilities.__getitem__)
                reply = TokenIds.of(rows[place][1].replies[best])
                outputs[place] = Output(request.record.admissible[best], "stop", None, reply, flags=("scored",))
        return outputs

    def _tree(self, actions: tuple[str, ...]) -> Tree:
        """The actions as replies.  Many states of a task have the same ones."""
        if actions not in self._trees:
            if len(self._trees) >= _TREES_KEPT:
                self._trees.clear()
            ids = self.encoder.tokenizer(list(actions), add_special_tokens=False)["input_ids"] if actions else []
            self._trees[actions] = Tree.of([(*map(int, reply), min(self._ends)) for reply in ids])
        return self._trees[actions]


def _width(row: _Sequence) -> int:
    """The columns of a row's prompt: a multiple of a step, so that many rows have the same."""
    return len(row.ids) + -len(row.ids) % STEP


def _groups(places: Iterable[int], shape: Callable[[int], Any]) -> list[list[int]]:
    """``places`` by their shape, in the order of shapes."""
    groups: dict[Any, list[int]] = {}
    for place in places:
        groups.setdefault(shape(place), []).append(place)
    return [groups[key] for key in sorted(groups)]


def _batches(groups: Iterable[list[int]], size: int) -> Iterator[list[int]]:
    for group in groups:
        for start in range(0, len(group), size):
            yield group[start : start + size]


_TREES_KEPT = 4096
_NOTHING = Output("", "stop", None, TokenIds.of(()))


def _device(wanted: str) -> str:
    import torch

    if wanted != "auto":
        if wanted.startswith("cuda") and not torch.cuda.is_available():
            raise UsageError("device cuda was asked for, but torch finds no CUDA device here")
        return wanted
    return "cuda" if torch.cuda.is_available() else "cpu"


def _device_name(device: str) -> str:
    import torch

    return str(torch.cuda.get_device_name(device)) if device.startswith("cuda") else device


def _dtype(wanted: str, config: Mapping[str, Any]) -> str:
    if wanted != "auto":
        return wanted
    stated = config.get("dtype") or config.get("torch_dtype")
    return str(stated).removeprefix("torch.") if stated in ("float32", "bfloat16", "float16") else "float32"


def _ends(checkpoint: Checkpoint, config: Mapping[str, Any], encoder: Encoder) -> frozenset[int]:
    """The tokens that end a reply: the tokenizer's and those that the generation configuration states."""
    entries = [encoder.tokenizer.eos_token_id, config.get("eos_token_id")]
    generation = "generation_config.json"
    if (checkpoint.path / generation).is_file():
        entries.append(checkpoint.read(generation).get("eos_token_id"))
    flat = [token for entry in entries for token in (entry if isinstance(entry, list) else [entry])]
    ends = frozenset(token for token in flat if type(token) is int)
    if not ends:
        raise DataError(f"checkpoint {checkpoint.name} states no end-of-sequence token")
    return ends
