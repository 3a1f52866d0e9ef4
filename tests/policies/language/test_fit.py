"""How many turns fit in a prompt: by arithmetic, where one character is one token."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke, output_of
from kit.fault_server import serving

from handoff.policies import ModelOptions, Request, Turn
from handoff.policies.language.fit import Fit, fit
from handoff.policies.language.model import Speaker
from handoff.records import Record, Task

TASK = Task("0" * 64, "t", "t", "s")


class Characters:
    """A policy whose tokenizer has a token per character; with ``counts`` false it has none."""

    def __init__(self, options: ModelOptions, context: int | None = None, counts: bool = True) -> None:
        self.options, self.context, self.counts, self.speaker = options, context, counts, Speaker(options)

    async def count(self, request: Request) -> int | None:
        return self.speaker.render(request).characters if self.counts else None


def measured(source: str, folder: Path, turns: int = 48, **given: Any) -> Fit:
    """The fit after two turns whose observations have 10 characters each."""
    path = folder / "mine.jinja"
    path.write_text(source)
    context, counts = given.pop("context", None), given.pop("counts", True)
    options = ModelOptions(template=str(path), max_new_tokens=50, **{"history": None, **given})
    view = Record("o" * 10, ("look",), 0.0, False, False)
    opening = Request(TASK, 0, view, (Turn("look", view), Turn("look", view)), 3)
    result = asyncio.run(fit(Characters(options, context, counts), [opening], turns))
    assert result is not None
    return result


CONVERSATION = "{% block first %}{{ 'f' * 100 }}{% endblock %}{% block turn %}{{ observation }}{% endblock %}"
#: 100 characters, and 10 for the action and observation of each turn.
PLAIN = "{{ 'f' * 100 }}{% for turn in history %}{{ 't' * 10 }}{% endfor %}"


def test_without_replies_in_the_prompt_one_number_is_told(tmp_path: Path) -> None:
    # 100 + 10 n <= 400 holds up to n = 30 earlier turns, which are 31 prompts.
    one = measured(PLAIN, tmp_path, max_prompt_tokens=400)
    assert (one.first, one.growth, one.least, one.most) == (100, (10.0, 10.0), 31, 31)
    assert not one.fits
    assert "about 31 of 48 turns fit in --max-prompt-tokens 400; " in one.sentence()
    assert "give --history K or a larger --max-prompt-tokens" in one.sentence()


def test_with_replies_in_the_prompt_the_longest_and_the_shortest_are_told(tmp_path: Path) -> None:
    # An observation of 10 and <action>look</action> of 21, or 50 more: 300 / 31 = 9.7 and 300 / 81 = 3.7.
    one = measured(CONVERSATION, tmp_path, max_prompt_tokens=400)
    assert (one.first, one.growth, one.least, one.most) == (100, (31.0, 81.0), 4, 10)
    assert "about 4 to 10 of 48 turns fit" in one.sentence()
    assert "(4 if every reply has 50 tokens, the most; 10 if it is an action alone)" in one.sentence()


def test_a_window_that_fits_lets_all_turns_fit(tmp_path: Path) -> None:
    assert measured(PLAIN, tmp_path, max_prompt_tokens=400, history=30).fits
    assert measured(PLAIN, tmp_path, max_prompt_tokens=400, history=31).least == 31
    assert measured(PLAIN, tmp_path, max_prompt_tokens=570).fits, "100 + 10 x 47 earlier turns"
    assert measured(PLAIN, tmp_path, max_prompt_tokens=569).least == 47


def test_a_first_prompt_that_does_not_fit_leaves_no_turn(tmp_path: Path) -> None:
    assert measured(PLAIN, tmp_path, max_prompt_tokens=99).most == 0


def test_a_models_context_that_is_shorter_is_the_limit_and_leaves_room_for_a_token(tmp_path: Path) -> None:
    one = measured(PLAIN, tmp_path, max_prompt_tokens=400, context=201)
    assert (one.limit, one.by_context, one.least) == (200, True, 11)
    assert "in the model's context of 200" in one.sentence()
    assert "larger" not in one.sentence()


def test_without_a_tokenizer_four_characters_are_taken_for_a_token(tmp_path: Path) -> None:
    # 25 + 2.5 n <= 100 holds up to n = 30.
    one = measured(PLAIN, tmp_path, max_prompt_tokens=100, counts=False)
    assert (one.first, one.growth, one.least, one.counted) == (25, (2.5, 2.5), 31, "characters")
    assert "estimated at 4 characters per token" in one.sentence()


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_the_plan_of_a_run_tells_it_before_anything_is_played(tmp_path: Path, dialect: str) -> None:
    with serving(dialect=dialect) as server:
        plan = ("run", "sokoban", "-p", f"a=openai:{server.url}#m", "-p", "b=expert", "--cross", "a,b", "--tasks", "6")
        long = (*plan, "--template", "turns", "--history", "all", "--out", tmp_path / "run", "--dry-run")
        form = json.loads(output_of(*long, "--json"))
        assert set(form["fits"]) == {"a"}
        one = form["fits"]["a"]
        assert one["least"] < one["most"] <= one["turns"] == 48
        assert one["counted"] == ("tokens" if dialect == "vllm" else "characters")
        assert f"policy a: about {one['least']} to {one['most']} of 48 turns fit" in output_of(*long)
        wide = output_of(*long, "--max-prompt-tokens", "1000000")
        assert "policy a: about 48 of 48 turns fit" in wide
    assert not (tmp_path / "run").exists()


def test_a_run_without_language_models_has_no_such_line() -> None:
    plan = ("run", "sokoban", "--reacher", "expert", "--solver", "random", "--tasks", "6", "--dry-run")
    assert "fit in" not in output_of(*plan)
    assert "fits" not in json.loads(output_of(*plan, "--json"))


def test_a_template_that_never_ends_is_refused_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "endless.jinja"
    path.write_text("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
    result = invoke("run", "sokoban", "-p", "a=openai:http://127.0.0.1:9#m", "--cross", "a", "--template", path)
    assert getattr(result.exception, "exit_code", None) == 2
    assert "rendering does not end within 5,000,000 steps" in str(result.exception)
