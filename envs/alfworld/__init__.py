"""ALFWorld: adapter on textworld + alfworld, compiled engine, game discovery, game generator."""

from __future__ import annotations

from handoff.envs.alfworld.adapter import AlfworldEnvironment
from handoff.envs.alfworld.compiled.engine import CompiledEpisode, CompiledGame
from handoff.envs.alfworld.games.files import Game, load_game

__all__ = ["AlfworldEnvironment", "CompiledEpisode", "CompiledGame", "Game", "load_game"]
