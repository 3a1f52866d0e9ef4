"""WebShop: products, goals, text pages and the reward of one purchase."""

from handoff.envs.webshop.adapter import WebShopEnvironment

__all__ = ["WebShopEnvironment"]
