"""Many games at once: places play what single episodes play, and episodes end and start as gymnasium's do."""

from __future__ import annotations

import random

import numpy as np
import pytest
from kit.game_files import one_of_each_type

from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.vector import VectorAlfworld
from handoff.errors import UsageError


@pytest.fixture(scope="module")
def compiled() -> dict[str, CompiledGame]:
    return {kind: CompiledGame.of(game) for kind, game in one_of_each_type().items()}


def test_places_of_a_vector_environment_play_what_single_episodes_play(compiled: dict[str, CompiledGame]) -> None:
    games = list(compiled.values())
    envs = VectorAlfworld(games, num_envs=3)
    observations, infos = envs.reset(seed=0)
    singles = [game.episode() for game in games[:3]]
    rng = random.Random(0)
    for _ in range(10):
        actions = [rng.choice(infos["admissible"][i]) for i in range(3)]
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        records = [episode.step(action) for episode, action in zip(singles, actions, strict=True)]
        assert observations == tuple(record.observation for record in records)
        assert list(infos["admissible"]) == [record.admissible for record in records]
        assert rewards.tolist() == [record.score for record in records]
        assert terminations.tolist() == [record.won for record in records]
        assert not truncations.any()


def test_episodes_end_by_success_or_by_length_and_the_next_step_starts_the_next_game(
    compiled: dict[str, CompiledGame],
) -> None:
    first, second = compiled["look_at_obj_in_light"], compiled["pick_and_place_simple"]
    plan = first.plan(first.initial)
    envs = VectorAlfworld([first, second], num_envs=1, max_steps=len(plan))
    envs.reset(seed=0)
    for action in plan:
        _, rewards, terminations, truncations, _ = envs.step([action])
    assert (rewards.tolist(), terminations.tolist(), truncations.tolist()) == ([1.0], [True], [False])
    observations, rewards, terminations, truncations, _ = envs.step(["ignored"])
    assert observations == (second.reset_record.observation,)
    assert (rewards.tolist(), terminations.tolist(), truncations.tolist()) == ([0.0], [False], [False])
    for _ in plan:
        _, _, terminations, truncations, _ = envs.step(["look"])
    assert (terminations.tolist(), truncations.tolist()) == ([False], [True])


def test_an_episode_that_ends_starts_the_next_one_in_the_same_step_if_asked(compiled: dict[str, CompiledGame]) -> None:
    first, second = compiled["look_at_obj_in_light"], compiled["pick_and_place_simple"]
    envs = VectorAlfworld([first, second], num_envs=2, autoreset="same_step")
    envs.reset(seed=0)
    for action in first.plan(first.initial):
        observations, rewards, terminations, _, infos = envs.step([action, "look"])
    assert terminations.tolist() == [True, False]
    assert rewards.tolist() == [1.0, 0.0]
    assert observations[0] == first.reset_record.observation  # place 0 plays game (0 + 1 * 2) % 2 next
    _, records = first.replay(first.plan(first.initial))
    assert infos["final_obs"][0] == records[-1].observation
    assert infos["_final_obs"].tolist() == [True, False]
    assert infos["final_info"]["won"].tolist() == [True, False]


def test_misuse_of_a_vector_environment_is_one_sentence(compiled: dict[str, CompiledGame]) -> None:
    game = compiled["pick_and_place_simple"]
    envs = VectorAlfworld([game], num_envs=2, max_steps=1, autoreset="disabled")
    with pytest.raises(UsageError, match="before reset"):
        envs.step(["look", "look"])
    envs.reset()
    with pytest.raises(UsageError, match="1 actions for 2 places"):
        envs.step(["look"])
    envs.step(["look", "look"])
    with pytest.raises(UsageError, match="has ended"):
        envs.step(["look", "look"])
    envs.reset(options={"reset_mask": np.array([True, True])})
    envs.step(["look", "look"])
    with pytest.raises(UsageError, match="autoreset is one of"):
        VectorAlfworld([game], num_envs=1, autoreset="sometimes")
