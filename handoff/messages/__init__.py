"""Conversations and tools: message lists, replies that call tools, and tool schemas, all as data."""
