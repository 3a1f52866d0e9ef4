"""``handoff distance``: distances along an episode, and the graph of the states around its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import networkx as nx
import pytest
from kit.command import invoke
from kit.game_files import form, write
from kit.refusals import refusal

from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import Game
from handoff.errors import install_command
from handoff.records import Record


@pytest.fixture(scope="module")
def game() -> Game:
    source = BuiltinSource()
    return source.load(
        next(task for task in source.tasks("valid_unseen") if task.type == "pick_clean_then_place_in_recep")
    )


def test_the_distances_along_a_walkthrough_end_at_0_and_inadmissible_actions_are_marked(
    game: Game, tmp_path: Path
) -> None:
    path = write(tmp_path, form(game))
    result = invoke("distance", str(path), "--json", "--limit", "12")
    assert result.exit_code == 0
    points = json.loads(result.output)["points"]
    assert [point["action"] for point in points] == ["", *(game.walkthrough or ())]
    assert points[-1]["distance"] == 0
    assert points[-2]["distance"] == 1
    actions = tmp_path / "actions.txt"
    actions.write_text("look\nfly to the moon\n")
    result = invoke("distance", str(path), "--actions", str(actions), "--limit", "1")
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.output.splitlines()] == ["-", "-", "-"]
    assert "fly to the moon  (not admissible)" in result.output


def breadth_first(
    game: CompiledGame, prefix: tuple[str, ...], depth: int
) -> tuple[dict[int, int], set[tuple[int, str, int]]]:
    """By reset and replay alone: the depth of each state, and the edges between states."""

    def after(path: tuple[str, ...]) -> tuple[int, list[Record]]:
        return game.replay((*prefix, *path))

    root, _ = after(())
    depths: dict[int, int] = {root: 0}
    edges: set[tuple[int, str, int]] = set()
    layer: list[tuple[tuple[str, ...], int]] = [((), root)]
    for level in range(1, depth + 1):
        successors = []
        for path, state in layer:
            _, records = after(path)
            for action in () if records[-1].won else records[-1].admissible:
                successor, _ = after((*path, action))
                edges.add((state, action, successor))
                if successor not in depths:
                    depths[successor] = level
                    successors.append(((*path, action), successor))
        layer = successors
    return depths, edges


@pytest.mark.parametrize("ending", [".graphml", ".json"])
def test_a_graph_file_holds_the_states_that_reset_and_replay_find(ending: str, game: Game, tmp_path: Path) -> None:
    prefix = (game.walkthrough or ())[:-2]
    (tmp_path / "actions").write_text("\n".join(prefix))
    file = tmp_path / f"states{ending}"
    arguments = [str(write(tmp_path, form(game))), "--actions", str(tmp_path / "actions"), "--graph", str(file)]
    result = invoke("distance", *arguments)
    assert result.exit_code == 0
    if ending == ".json":
        graph = nx.node_link_graph(json.loads(file.read_text()), edges="edges")
    else:
        graph = nx.read_graphml(file, node_type=int, force_multigraph=True)
    compiled = CompiledGame.of(game)
    depths, edges = breadth_first(compiled, prefix, 2)
    assert sorted(data["depth"] for _, data in graph.nodes(data=True)) == sorted(depths.values())
    assert graph.number_of_edges() == len(edges)
    assert result.output.splitlines()[-1] == f"{len(depths)} states within 2 actions in {file}"
    # Two actions before the end of a shortest plan the distance is 2, and every win has distance 0.
    assert graph.nodes[0]["distance"] == 2
    assert graph.nodes[0]["observation"] == compiled.replay(prefix)[1][-1].observation.replace("\n", "\\n")
    assert {data["won"] for _, data in graph.nodes(data=True) if data.get("distance") == 0} == {True}
    actions = {data["action"] for _, _, data in graph.out_edges(0, data=True)}
    assert actions == set(compiled.replay(prefix)[1][-1].admissible)


def test_without_actions_the_graph_is_around_the_reset(game: Game, tmp_path: Path) -> None:
    file = tmp_path / "states.json"
    result = invoke("distance", str(write(tmp_path, form(game))), "--graph", str(file), "--depth", "1")
    assert result.exit_code == 0
    reset = CompiledGame.of(game).reset_record
    links = json.loads(file.read_text())["edges"]
    assert sorted(link["action"] for link in links) == list(reset.admissible)
    assert all(link["source"] == 0 for link in links)


def test_an_unknown_ending_and_a_missing_networkx_are_one_sentence(
    game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path, form(game)))
    line = refusal(capsys, "distance", path, "--graph", str(tmp_path / "states.png"))
    assert "states.png; end its name in .graphml or .json" in line
    monkeypatch.setitem(sys.modules, "networkx", None)
    line = refusal(capsys, "distance", path, "--graph", str(tmp_path / "states.graphml"))
    assert "a graph of states needs networkx (" in line
    assert line.endswith(f"; install it: {install_command('graph')}")
    assert not list(tmp_path.glob("states.*"))


def test_distances_need_no_networkx(game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert invoke("distance", str(write(tmp_path, form(game))), "--limit", "1").exit_code == 0
