"""ALFWorld: adapter on textworld + alfworld, compiled engine, game discovery, game generator."""

from handoff.envs.alfworld.adapter import AlfworldEnvironment
from handoff.envs.alfworld.engine import CompiledGame, Episode
from handoff.envs.alfworld.games import Game, load_game

__all__ = ["AlfworldEnvironment", "CompiledGame", "Episode", "Game", "load_game"]
