"""Promises of engines about equal tokens: one sentence each, which manifests state."""

from __future__ import annotations

#: Transformers in this process.
ROWS = "one generator per row and a constant number of rows: tokens independent of the batch"
#: vLLM in this process.
BATCHES = "each request has its own seed; equal tokens in any batch need float32 (handoff doctor)"
#: A vLLM server, and any other server.
SERVER = "each request has its own seed; equal tokens at any concurrency need a float32 server (handoff doctor)"
UNKNOWN_SERVER = "each request has its own seed; what the server makes of it is not known"
