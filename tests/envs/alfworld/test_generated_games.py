"""Built-in games, their generator, and the ``handoff games`` commands."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path

import attrs
import pytest
from click.testing import Result
from kit.command import invoke
from kit.shared import shared_path

from handoff.canonical import digest
from handoff.envs.alfworld.games import builtin
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import TASK_TYPES, FolderSource, grammar_problem, load_game
from handoff.envs.alfworld.generator import generate, proofs, wheel
from handoff.envs.alfworld.generator.drafts import SPLIT_SCENES, drafts
from handoff.envs.alfworld.generator.planning import Facts, plan
from handoff.envs.alfworld.generator.scenes import SCENES, object_id, parse_id, scene, stand
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.envs.dice import Dice
from handoff.errors import DataError, EnvironmentFault, HandoffError, StoreError, UsageError
from handoff.progress import Silent

SOURCE = BuiltinSource()
SPLITS = ("valid_seen", "valid_unseen")
RECIPES = {split: list(SOURCE.recipes(split)) for split in SPLITS}
ALL = [recipe for split in SPLITS for recipe in RECIPES[split]]


def games_command(*arguments: str | Path) -> Result:
    """Run ``handoff games ...``.  Raises a refusal as the error that the command line would print."""
    result = invoke("games", *arguments)
    if isinstance(result.exception, HandoffError):
        raise result.exception
    return result


def shipped(name: str) -> bytes:
    return (resources.files("handoff.artifacts") / "games" / name).read_bytes()


# --- what ships


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_at_least_sixty_games_balanced_over_the_six_types(split: str) -> None:
    counts = Counter(task.type for task in SOURCE.tasks(split))
    assert set(counts) == set(TASK_TYPES)
    assert len(set(counts.values())) == 1
    assert counts.total() >= 60


def test_ids_names_and_tasks_in_a_scene_are_unique() -> None:
    tasks = [task for split in SPLITS for task in SOURCE.tasks(split)]
    assert len({task.id for task in tasks}) == len({task.name for task in tasks}) == len(tasks)
    assert len({recipe.name.partition("/")[0] for recipe in ALL}) == len(ALL)


def test_unseen_games_lie_in_the_scenes_that_the_release_holds_out_and_seen_games_in_none_of_them() -> None:
    seen, unseen = ({recipe.scene for recipe in RECIPES[split]} for split in SPLITS)
    assert not seen & unseen
    assert {10, 219, 308, 424} <= unseen  # the scenes of the release's valid_unseen
    assert unseen <= {9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425}


def test_shipped_files_are_small_and_carry_the_digests_that_the_manifest_says() -> None:
    for entry in builtin.manifest()["splits"].values():
        data = shipped(entry["file"])
        assert len(data) < 400_000
        assert hashlib.sha256(data).hexdigest() == entry["sha256"]


def test_every_shipped_game_is_rebuilt_to_the_digest_that_is_listed_for_it() -> None:
    for split in SPLITS:
        for task in SOURCE.tasks(split):
            game = SOURCE.load(task)
            content = {"domain": game.domain, "grammar": game.grammar, "problem": game.problem}
            assert digest(content) == game.id == task.id
            assert game.domain == wheel.domain()
            assert grammar_problem(game.grammar) is None


def test_names_are_in_the_style_of_the_release() -> None:
    for recipe in ALL:
        match = re.fullmatch(r"(\w+)-(\w+)-None-(\w+)-(\d+)/trial_G\d+_(?:un)?seen_\d{6}", recipe.name)
        assert match is not None
        assert match.groups() == (recipe.type, recipe.thing, recipe.target, str(recipe.scene))


def test_the_manifest_says_which_command_made_the_games_and_the_games_were_proven() -> None:
    manifest = builtin.manifest()
    assert manifest["verified"] is True
    assert manifest["command"].startswith("handoff games generate --compact --split valid_seen --split valid_unseen")
    assert set(manifest["versions"]) == {"handoff", "alfworld", "textworld"}
    assert manifest["sha256"]["domain"] == hashlib.sha256(wheel.domain().encode()).hexdigest()


@pytest.mark.parametrize("split", SPLITS)
def test_generating_again_gives_the_shipped_bytes(split: str) -> None:
    again = list(drafts(split, 12, builtin.manifest()["seed"]))
    lines = shipped(f"{split}.jsonl").splitlines(keepends=True)
    assert [generate.line(recipe) for recipe in again] == lines[:12]


# --- what the games are


@pytest.mark.parametrize("recipe", [RECIPES[SPLITS[k % 2]][12 * k + 5] for k in range(6)], ids=lambda r: r.type)
def test_a_game_of_each_type_is_won_natively_exactly_at_the_last_step_of_its_plan(recipe: object) -> None:
    engine = NativeEngine()
    game = recipe.game()  # type: ignore[attr-defined]
    record = engine.reset(game)
    assert not record.won
    assert "You are in the middle of a room." in record.observation
    assert f"Your task is to: {recipe.sentence}." in record.observation  # type: ignore[attr-defined]
    won = []
    for action in game.walkthrough or ():
        assert action in record.admissible
        record = engine.step(action)
        won.append(record.won)
    assert won == [False] * (len(won) - 1) + [True]


def test_the_check_before_writing_refuses_a_plan_that_stops_early_or_says_what_cannot_be_done() -> None:
    engine = NativeEngine()
    recipe = next(r for r in RECIPES["valid_seen"] if r.type == "pick_and_place_simple")
    with pytest.raises(EnvironmentFault, match="is not won after action"):
        proofs.prove(attrs.evolve(recipe, plan=recipe.plan[:-1]), engine)
    with pytest.raises(EnvironmentFault, match="action 1 of its plan, 'go to moon 1', is not admissible"):
        proofs.prove(attrs.evolve(recipe, plan=("go to moon 1", *recipe.plan)), engine)


def test_no_object_of_the_task_lies_where_the_task_wants_it_at_the_start() -> None:
    for recipe in ALL:
        if recipe.type in ("pick_and_place_simple", "pick_two_obj_and_place"):
            there = [o for r, held in recipe.held.items() if parse_id(r)[0] == recipe.target for o in held]
            assert not [o for o in there if parse_id(o)[0] == recipe.thing]
        if recipe.type == "pick_cool_then_place_in_recep":
            cold = [o for r, held in recipe.held.items() if parse_id(r)[0] == "Fridge" for o in held]
            assert not [o for o in cold if parse_id(o)[0] == recipe.thing]


def test_every_object_lies_in_a_receptacle_of_its_scene_or_on_the_floor_and_types_are_those_of_the_scene() -> None:
    for recipe in ALL:
        room = scene(recipe.scene)
        objects = {o for held in recipe.held.values() for o in held} | set(recipe.floor)
        assert set(recipe.held) <= {r.id for r in room.receptacles}
        assert {parse_id(o)[0] for o in objects} <= set(wheel.layout(recipe.scene, "objects"))
        assert not {f.id for f in room.fixtures} & objects
        assert tuple(recipe.start) not in {r.location for r in room.receptacles}


def test_every_entity_of_a_problem_is_declared_once_and_no_location_is_missing() -> None:
    for recipe in ALL[::9]:
        problem = recipe.game().problem
        declared = re.findall(r"^\s*(\S+) - (\w+)$", problem.partition("(:init")[0], re.MULTILINE)
        names = [name for name, _ in declared]
        assert len(names) == len(set(names))
        used = {argument for facts in Facts.of(problem).table.values() for fact in facts for argument in fact}
        assert used <= set(names)


def test_train_games_share_neither_game_nor_task_in_a_scene_with_the_shipped_ones() -> None:
    train = list(drafts("train", 300, 7))
    tasks = {recipe.name.partition("/")[0] for recipe in train}
    assert not tasks & {recipe.name.partition("/")[0] for recipe in ALL}
    assert not {recipe.id for recipe in train} & {recipe.id for recipe in ALL}
    assert len({recipe.id for recipe in train}) == 300
    assert len({recipe.scene for recipe in train}) > 70
    assert set(Counter(recipe.type for recipe in train).values()) == {50}


def test_another_seed_gives_other_games_and_a_longer_list_begins_with_a_shorter_one() -> None:
    assert [r.id for r in drafts("train", 18, 3)][:6] == [r.id for r in drafts("train", 6, 3)]
    assert not {r.id for r in drafts("train", 6, 3)} & {r.id for r in drafts("train", 6, 4)}


# --- parts


def test_plans_are_as_short_as_the_walkthroughs_of_the_release() -> None:
    root = shared_path("data/alfworld/json_2.1.1")
    for path in sorted(root.glob("valid_*/*/*/game.tw-pddl")):
        kind, thing, _, target, _ = path.parts[-3].split("-")
        game = load_game(path)
        assert len(plan(game.problem, kind, thing, target)) == len(game.walkthrough or ())


def test_standing_points_are_those_of_the_release() -> None:
    root = shared_path("data/alfworld/json_2.1.1")
    same = total = 0
    for path in sorted(root.glob("valid_unseen/*/*/game.tw-pddl"))[::8]:
        number = int(path.parts[-3].rpartition("-")[2])
        listed = wheel.layout(number, "openable")
        points = scene(number).points
        for receptacle, location in Facts.of(load_game(path).problem).mapping("receptacleAtLocation").items():
            for mangled, plain in (("_bar_", "|"), ("_minus_", "-"), ("_plus_", "+"), ("_dot_", ".")):
                receptacle, location = receptacle.replace(mangled, plain), location.replace(mangled, plain)
            kind, position = parse_id(receptacle)
            at = listed.get(receptacle)
            known = None if at is None else (round(4 * at[0]), round(4 * at[1]))
            x, z, *_ = (int(number) for number in location.split("|")[1:])
            total += 1
            same += stand(position, kind, points, known, number)[:2] == (x, z)
    assert total > 200
    assert same == total


def test_ids_are_written_as_the_wheel_writes_them() -> None:
    listed = [identity for number in SCENES for identity in wheel.layout(number, "openable")]
    assert len(listed) > 1000
    signed_zero = re.compile(r"[+-]00\.00")  # a rounded number of either sign; ids of ours have no such
    differ = {i for i in listed if object_id(*parse_id(i)) != i and not signed_zero.search(i)}
    assert differ == {"Bathtub|-01.28|+00.28|-02.53|SinkBasin"}  # a slip in the wheel


def test_a_scene_is_the_same_room_every_time_and_no_receptacle_is_there_twice() -> None:
    for number in SCENES:
        room = scene(number)
        scene.cache_clear()
        assert scene(number) == room
        assert len({r.id for r in room.receptacles}) == len(room.receptacles)
        assert set(wheel.layout(number, "openable")) <= {r.id for r in room.receptacles}


def test_dice_follow_the_generator_whose_sequence_python_promises() -> None:
    # random.Random(5).random() * 100, truncated: the promise of the standard library's documentation
    import random

    from handoff.seeds import derive

    plain = random.Random(derive("a", 1))
    assert [Dice("a", 1).below(100)] == [int(plain.random() * 100)]
    weights = Counter(Dice("w", k).weighted("xyz", (1, 0, 3)) for k in range(4000))
    assert weights["y"] == 0
    assert abs(weights["x"] - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5


# --- bad input


def test_a_changed_recipe_is_not_loaded() -> None:
    recipe = ALL[0]
    with pytest.raises(DataError, match=r"comes out as .* instead of"):
        attrs.evolve(recipe, sentence=recipe.sentence + " now").game()
    with pytest.raises(DataError, match="has no receptacle 'Moon"):
        attrs.evolve(recipe, held={"Moon|+00.00|+00.00|+00.00": ()}).game()


def test_another_version_of_the_wheel_is_named_as_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SOURCE.tasks("valid_seen")[0]
    monkeypatch.setattr(wheel, "domain", lambda: "(define (domain other))")
    builtin.check_wheel.cache_clear()
    with pytest.raises(DataError, match=r"another domain than the one of the built-in games; install alfworld=="):
        SOURCE.load(task)
    builtin.check_wheel.cache_clear()


def test_a_task_from_elsewhere_is_refused() -> None:
    task = SOURCE.tasks("valid_seen")[0]
    for source in ("", "valid_seen.jsonl#0", "valid_seen.jsonl#9999", "../manifest.json#1", "valid_seen.jsonl#x"):
        with pytest.raises(DataError, match="is not a built-in game"):
            SOURCE.load(attrs.evolve(task, source=source))
    with pytest.raises(DataError, match="is not a built-in game"):
        SOURCE.load(attrs.evolve(task, id="0" * 64))
    with pytest.raises(UsageError, match="handoff games generate --split train"):
        SOURCE.tasks("train")


# --- commands


def test_written_games_are_official_files_that_the_folder_source_finds_as_the_same_tasks(tmp_path: Path) -> None:
    out = tmp_path / "games"
    assert games_command("write", "--out", out, "-q").exit_code == 0
    folder = FolderSource(out)
    for split in SPLITS:
        expected = [(t.id, t.name, t.type) for t in SOURCE.tasks(split)]
        assert [(t.id, t.name, t.type) for t in folder.tasks(split)] == expected
    path = next(out.glob("json_2.1.1/valid_unseen/*/trial_*/game.tw-pddl"))
    assert set(json.loads(path.read_text())) == {"pddl_domain", "grammar", "pddl_problem", "walkthrough", "solvable"}
    with pytest.raises(UsageError, match="is not empty"):
        games_command("write", "--out", out, "-q")
    assert games_command("write", "--out", out, "--force", "--split", "valid_seen", "-q").exit_code == 0


def test_generate_gives_the_same_files_with_one_and_with_two_workers_and_goes_on_where_it_stopped(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    generate.generate("train", 2, 7, one, workers=1, progress=Silent())
    generate.generate("train", 2, 7, two, workers=2, progress=Silent())
    files = {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()}
    assert files == {path.relative_to(two): path.read_bytes() for path in two.rglob("*") if path.is_file()}
    assert len(files) == 3  # two games and the manifest
    gone, kept = sorted(path for path in one.rglob("game.tw-pddl"))
    before = kept.stat().st_mtime_ns
    gone.unlink()
    generate.generate("train", 2, 7, one, workers=1, progress=Silent())
    assert {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()} == files
    assert kept.stat().st_mtime_ns == before
    with pytest.raises(UsageError, match=r"has games of another command \(seed differ\)"):
        generate.generate("train", 2, 8, one, workers=1, progress=Silent())


def test_generate_refuses_a_folder_with_other_things_and_says_what_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        games_command("generate", "-n", "1", "--no-verify", "--out", tmp_path, "-q")
    with pytest.raises(UsageError, match="is a file"):
        games_command("generate", "-n", "1", "--no-verify", "--out", tmp_path / "mine.txt", "-q")
    with pytest.raises(StoreError, match="cannot write"):
        games_command("generate", "-n", "1", "--no-verify", "--out", tmp_path / "mine.txt" / "x", "-q")


def test_compact_form_of_the_generate_command_is_the_one_that_ships(tmp_path: Path) -> None:
    out = tmp_path / "compact"
    result = games_command(
        "generate", "--compact", "--split", "valid_unseen", "-n", "6", "--seed", "0", "--no-verify", "--out", out, "-q"
    )
    assert result.exit_code == 0
    lines = (out / "valid_unseen.jsonl").read_bytes()
    assert shipped("valid_unseen.jsonl").startswith(lines)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["verified"] is False
    assert manifest["sha256"] == builtin.manifest()["sha256"]
    assert manifest["splits"]["valid_unseen"]["types"] == dict.fromkeys(sorted(TASK_TYPES), 1)


def test_list_prints_every_game_and_its_json_is_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    plain = games_command("list").output.splitlines()
    assert plain[-1] == "144 games (valid_unseen: 72, valid_seen: 72)"
    assert len(plain) == 145
    listed = json.loads(games_command("list", "--split", "valid_seen", "--json").output)["games"]
    assert [game["id"] for game in listed] == [task.id for task in SOURCE.tasks("valid_seen")]


def test_splits_and_their_scenes_are_complete() -> None:
    assert len(SPLIT_SCENES["valid_seen"]) == 108
    assert sorted(SPLIT_SCENES["train"] + SPLIT_SCENES["valid_unseen"]) == sorted(SCENES)
    with pytest.raises(UsageError, match="there is no split 'test'"):
        list(drafts("test", 1, 0))
