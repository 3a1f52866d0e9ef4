"""Transformers in process: the sampler against its source, tokens independent of the batch, a whole crossing."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from handoff.canonical import digest
from handoff.errors import DataError, UsageError
from handoff.policies import ModelOptions
from handoff.policies.bindings import make
from handoff.policies.doctor import requests
from handoff.protocols.frontier import study

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from kit.audits import by_name  # noqa: E402
from kit.checkpoints import make_pair  # noqa: E402
from kit.command import handoff  # noqa: E402
from kit.runs import record_bytes  # noqa: E402

from handoff.policies.hf.sampler import RowSampler, filtered, gumbel, sample  # noqa: E402
from handoff.policies.hf.scoring import Tree, plain_scores, shape, takes_trees, tree_scores  # noqa: E402

FEW = ModelOptions(max_new_tokens=12, dtype="float32", rows=4, device="cpu")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("checkpoints"))


def test_noise_is_splitmix64_as_published() -> None:
    # The first outputs of SplitMix64 from state 1234567, from its author's reference implementation.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    gamma = 0x9E3779B97F4A7C15
    assert [mix((1234567 + (i + 1) * gamma) % 2**64) for i in range(4)] == published
    seed = 987654321
    expected = []
    for i in range(50):
        uniform = ((mix((mix(seed) + (i + 1) * gamma) % 2**64) >> 11) + 0.5) / 2**53
        expected.append(-math.log(-math.log(uniform)))
    found = gumbel(torch.tensor([seed], dtype=torch.int64), 50)[0].tolist()
    assert found == pytest.approx(expected, rel=1e-12)


def test_sampled_tokens_follow_the_softmax_of_the_scaled_logits() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(1, 6, generator=generator)
    options = ModelOptions(temperature=0.7)
    n = 20_000
    rows = [RowSampler(seed, options) for seed in range(n)]
    counts = torch.bincount(torch.tensor(sample(logits.expand(n, -1), rows, options)), minlength=6)
    p = (logits[0] / 0.7).softmax(-1)
    chi = float(((counts - n * p) ** 2 / (n * p)).sum())
    assert chi < 20.5, "the 0.999 quantile of chi-squared with 5 degrees of freedom"


def test_top_k_and_top_p_keep_what_they_say() -> None:
    logits = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()
    assert (filtered(logits, 2, 1.0) > -torch.inf).tolist() == [[True, True, False, False, False]]
    # The smallest set whose mass reaches 0.8: 0.5 + 0.2 + 0.15.
    assert (filtered(logits, 0, 0.8) > -torch.inf).tolist() == [[True, True, True, False, False]]
    assert (filtered(logits, 0, 0.01) > -torch.inf).tolist() == [[True, False, False, False, False]]
    assert torch.equal(filtered(logits, 0, 1.0), logits)


def test_tokens_do_not_depend_on_the_batch_its_order_or_its_rest(checkpoints: Path) -> None:
    policy = make(f"hf:{checkpoints / 'sft'}", FEW)
    asked = requests(10)
    together = policy.decide(asked)
    assert [policy.decide([request])[0] for request in asked] == together
    assert policy.decide(asked[::-1])[::-1] == together
    assert policy.decide(asked[3:6]) == together[3:6]
    assert len({decision.generation.digest for decision in together if decision.generation}) == 10
    assert make(f"hf:{checkpoints / 'sft'}", FEW).decide(asked[:4]) == together[:4], "a fresh process gives the same"
    assert make(f"hf:{checkpoints / 'rl'}", FEW).decide(asked[:1]) != together[:1]


def test_greedy_replies_are_those_of_transformers_own_generate(checkpoints: Path) -> None:
    from tokenizers.decoders import DecodeStream
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = make(f"hf:{checkpoints / 'sft'}", ModelOptions(temperature=0, max_new_tokens=12, dtype="float32", rows=3))
    model = AutoModelForCausalLM.from_pretrained(checkpoints / "sft")
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / "sft")
    for request in requests(5):
        decision = policy.decide([request])[0]
        messages = policy.speaker.render(request).chat()  # type: ignore[attr-defined]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
        assert decision.prompt_digest == digest(list(ids))
        assert decision.prompt_tokens == len(ids)
        found = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=12)[0, len(ids) :].tolist()
        assert decision.generation is not None
        assert decision.generation.digest == digest(found)
        stream = DecodeStream(ids=list(ids), skip_special_tokens=True)
        assert decision.text == "".join(stream.step(tokenizer.backend_tokenizer, token) or "" for token in found)


def test_a_request_can_name_its_own_temperature(checkpoints: Path) -> None:
    policy = make(f"hf:{checkpoints / 'sft'}", FEW)
    own = [None, 1.5, 0.0, 1.5]
    asked = [attrs.evolve(request, temperature=t) for request, t in zip(requests(4), own, strict=True)]
    found = policy.decide(asked)
    assert found[0] == policy.decide(requests(1))[0]
    for temperature, places in ((1.5, (1, 3)), (0.0, (2,))):
        there = make(f"hf:{checkpoints / 'sft'}", attrs.evolve(FEW, temperature=temperature)).decide(requests(4))
        assert [found[place].text for place in places] == [there[place].text for place in places]


def test_commands_are_scored_exactly(checkpoints: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = make(f"hf:{checkpoints / 'rl'}", ModelOptions(temperature=0, constrain=True, dtype="float32"))
    model = AutoModelForCausalLM.from_pretrained(checkpoints / "rl")
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / "rl")
    for request in requests(4):
        decision = policy.decide([request])[0]
        prompt = policy.encoder.ids(policy.speaker.render(request))  # type: ignore[attr-defined]
        scores = {}
        for command in request.record.admissible:
            reply = [*tokenizer(command, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
            with torch.inference_mode():
                logits = model(torch.tensor([[*prompt, *reply]])).logits[0].double().log_softmax(-1)
            scores[command] = sum(float(logits[len(prompt) - 1 + i, token]) for i, token in enumerate(reply))
        assert decision.action == max(scores, key=scores.__getitem__)
        assert (decision.status, decision.flags) == ("parsed", ("scored",))


def test_scores_of_commands_are_bitwise_the_same_alone_in_a_batch_and_in_any_order(checkpoints: Path) -> None:
    policy = make(f"hf:{checkpoints / 'rl'}", ModelOptions(constrain=True, dtype="float32", rows=4, temperature=1.0))
    policy.activate()
    model = policy._model  # type: ignore[attr-defined]
    assert takes_trees(model)
    generator = random.Random(3)
    trees = [Tree.of([(2,), (9, 2), *((*generator.choices(range(9, 14), k=3), 2) for _ in range(9))]) for _ in range(4)]
    rows = [(tuple(generator.choices(range(400), k=31 - place)), tree) for place, tree in enumerate(trees)]
    assert len({shape(row) for row in rows}) == 1
    together = tree_scores(model, rows, 4)
    assert [tree_scores(model, [row], 4)[0] for row in rows] == together
    assert tree_scores(model, rows[::-1], 4)[::-1] == together
    for scores, plain in zip(together, plain_scores(model, rows, 4), strict=True):
        assert scores == pytest.approx(plain, abs=1e-4)
    asked = requests(10)
    decisions = policy.decide(asked)
    assert [policy.decide([request])[0] for request in asked] == decisions
    assert policy.decide(asked[::-1])[::-1] == decisions


def test_a_model_that_does_not_see_all_of_its_context_is_scored_reply_by_reply(checkpoints: Path) -> None:
    policy = make(f"hf:{checkpoints / 'rl'}", ModelOptions(constrain=True, dtype="float32", temperature=0))
    expected = [decision.action for decision in policy.decide(requests(4))]
    config = policy._model.config  # type: ignore[attr-defined]
    kinds, config.layer_types = config.layer_types, ["full_attention", "sliding_attention"]
    assert not takes_trees(policy._model)  # type: ignore[attr-defined]
    config.layer_types = kinds
    policy._takes_trees = False  # type: ignore[attr-defined]
    assert [decision.action for decision in policy.decide(requests(4))] == expected


def test_stop_strings_cut_the_text_and_keep_the_ids(checkpoints: Path) -> None:
    free = make(f"hf:{checkpoints / 'sft'}", FEW).decide(requests(1))[0]
    stop = free.text[4:6]
    options = ModelOptions(max_new_tokens=12, dtype="float32", rows=4, stop=(stop,))
    cut = make(f"hf:{checkpoints / 'sft'}", options).decide(requests(1))[0]
    assert cut.text == free.text[: free.text.index(stop)]
    assert cut.generation is not None
    assert (cut.generation.finish, cut.generation.stop) == ("stop", stop)


def test_overflow_and_clamping_follow_the_context(checkpoints: Path) -> None:
    request = requests(1)[0]
    count = make(f"hf:{checkpoints / 'sft'}", FEW).decide([request])[0].prompt_tokens
    assert count is not None
    for room, status in ((5, "truncated"), (0, "context_overflow"), (-1, "context_overflow")):
        options = ModelOptions(max_new_tokens=12, dtype="float32", rows=2, context=count + room)
        decision = make(f"hf:{checkpoints / 'sft'}", options).decide([request])[0]
        assert decision.status == status
        if room > 0:
            assert decision.flags == ("clamped",)
            assert decision.generation is not None
            assert decision.generation.tokens == room


def introduce(spec: str) -> None:
    asyncio.run(make(spec, FEW).introduce())


def test_what_is_no_checkpoint_is_refused_in_one_sentence(checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "config.json").write_text("{}")
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    (tmp_path / "broken").mkdir()
    for path in (checkpoints / "sft").iterdir():
        (tmp_path / "broken" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(DataError, match=r"has no config\.json"):
        introduce(f"hf:{tmp_path / 'empty'}")
    with pytest.raises(DataError, match="pickles"):
        introduce(f"hf:{tmp_path / 'pickled'}")
    with pytest.raises(DataError, match="cannot be loaded"):
        make(f"hf:{tmp_path / 'broken'}", FEW).activate()
    with pytest.raises(UsageError, match="no such folder"):
        introduce("hf:/no/where/at/all")


def test_a_changed_weight_changes_the_digest_and_a_moved_folder_does_not(checkpoints: Path, tmp_path: Path) -> None:
    described = make(f"hf:{checkpoints / 'sft'}", FEW).describe()
    moved = tmp_path / "sft"
    moved.mkdir()
    for path in (checkpoints / "sft").iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    assert make(f"hf:{moved}", FEW).describe() == described
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    changed = make(f"hf:{moved}", FEW).describe()
    assert changed["digests"]["weights"] != described["digests"]["weights"]
    assert changed["digests"]["tokenizer"] == described["digests"]["tokenizer"]


def test_an_unpinned_hub_revision_is_resolved_to_its_commit(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hub cache as huggingface_hub lays it out, used offline.
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--someone--pair" / "snapshots" / commit / "checkpoint-140"
    snapshot.mkdir(parents=True)
    for path in (checkpoints / "sft").iterdir():
        (snapshot / path.name).write_bytes(path.read_bytes())
    refs = tmp_path / "models--someone--pair" / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    script = (
        "from handoff.policies import make, ModelOptions; import json;"
        "print(json.dumps([make(s, ModelOptions(dtype='float32')).describe() for s in"
        f" ('hf:someone/pair/checkpoint-140', 'hf:someone/pair/checkpoint-140@{commit}')]))"
    )
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    unpinned, pinned = json.loads(result.stdout)
    assert unpinned == pinned
    assert unpinned["revision"] == commit
    assert unpinned["spec"] == f"hf:someone/pair/checkpoint-140@{commit}"
    missing = script.replace("checkpoint-140'", "checkpoint-7'")
    result = subprocess.run([sys.executable, "-c", missing], capture_output=True, text=True, env=environment)
    assert "UsageError" in result.stderr


def crossing(checkpoints: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = [
        *("run", "frozenlake", "-p", f"sft=hf:{checkpoints / 'sft'}", "-p", f"rl=hf:{checkpoints / 'rl'}"),
        *("--cross", "sft,rl", "--tasks", "4", "--slots", "2", "--budget", "8", "--dtype", "float32"),
        *("--max-new-tokens", "8", "--rows", "8", "--history", "3", "--out", str(folder), "-q", *more),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return handoff(*arguments, env=environment)


@pytest.mark.slow
def test_a_whole_crossing_is_the_same_for_any_number_of_workers_and_passes_its_audit(
    checkpoints: Path, tmp_path: Path
) -> None:
    for workers in ("0", "2"):
        result = crossing(checkpoints, tmp_path / workers, "--constrain", "--temperature", "2", "--workers", workers)
        assert result.returncode == 0, result.stderr
    assert record_bytes(tmp_path / "0") == record_bytes(tmp_path / "2")
    loaded = study.load(tmp_path / "0")
    arrived = [end for end in loaded.endpoints.values() if end.arrived]
    assert arrived, "the crossing must have clones to compare"
    firsts: dict[tuple[str, int, str], set[Any]] = {}
    for end in arrived:
        decision = end.steps[0].decision
        key = (end.task, end.slot, end.reacher)
        firsts.setdefault(key, set()).add((decision.prompt_digest, decision.prompt_tokens))
    assert all(len(prompts) == 1 for prompts in firsts.values())
    result = handoff("audit", tmp_path / "0", "--json")
    assert result.returncode == 0, result.stdout
    checks = by_name(result.stdout)
    decisions = sum(len(run.steps) for run in loaded.trajectories.values()) + sum(len(end.steps) for end in arrived)
    assert checks["prompts"]["count"] >= decisions
    assert checks["prompts"]["notes"] == []
