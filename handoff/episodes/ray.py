"""Environments as actors of a Ray cluster.

Ray places one actor per worker on the nodes, starts an actor anew where there is room when its node or process is lost,
and says which calls were lost with it.  All that is done here is to use the workers that stand: an actor takes episodes
once it has answered, and no more from the call that failed until it answers again.  What becomes of the episodes that
it held is the same as everywhere (:class:`handoff.episodes.pool.Pool`).

The model stays with the process that runs the study, which is also the only one that writes records.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from handoff import __version__
from handoff.canonical import canonical, differing_keys
from handoff.episodes.host import Host, WorkerLost
from handoff.episodes.places import Workers
from handoff.errors import HandoffError, Interrupted, MissingExtra, UsageError
from handoff.guard import adapter

#: Seconds in which all workers of a healthy cluster start.  Until then episodes wait for all of them, so that the first
#: worker to stand is not given everybody's.
SETTLE = 15.0
#: Seconds to wait for a worker when none stands: nodes may be on their way.
PATIENCE = 300.0
#: Seconds that the head node may be away.  After 60 Ray ends the whole process, with no word about what is owed.
HEADLESS = 40.0
#: How often Ray starts one actor anew.
RESTARTS = 16

_NAME = "an environment worker of the Ray cluster"


def identity(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal on every node for records to be: the toolkit and the environment with its libraries."""
    with adapter.opened(name, options) as environment:
        return {"handoff": __version__, "environment": {"name": environment.name, **environment.describe()}}


class Actor:
    """One worker.  It holds no environments until :meth:`start` has been called, also after Ray started it anew."""

    def __init__(self) -> None:
        self._host: Host | None = None

    def start(
        self, name: str, options: Mapping[str, Any], folder: str, expected: str, timeout: float | None = None
    ) -> str:
        """Get ready to hold environments; the address of the node.

        Raises :class:`~handoff.errors.UsageError` if it does not have what the study was prepared with: ``expected``
        is canonical JSON of :func:`identity` there.
        """
        import ray

        util: Any = ray.util  # partly typed
        node = str(util.get_node_ip_address())
        if self._host is None:
            with contextlib.suppress(OSError):
                os.chdir(folder)  # relative paths mean what they mean to the user, where the folder is shared
            try:
                mine = identity(name, options)
            except Exception as error:
                raise UsageError(f"node {node} of the Ray cluster cannot open the environment: {error}") from error
            if canonical(mine).decode() != expected:
                keys = ", ".join(differing_keys(json.loads(expected), mine))
                raise UsageError(
                    f"node {node} of the Ray cluster has other versions than this process; these differ: {keys}"
                )
            self._host = Host(name, options, timeout=timeout)
        return node

    def call(self, method: str, *arguments: Any) -> Any:
        if self._host is None:
            raise WorkerLost(f"{_NAME} was started anew in the middle of an episode")
        return getattr(self._host, method)(*arguments)


@attrs.frozen(eq=False)
class _Standing:
    """A worker that answered, until a call to it is lost."""

    node: str


class RayWorkers(Workers):
    """``count`` actors with a core each on the Ray cluster at ``address`` (``None``: as many as cores are free there).

    Raises :class:`~handoff.errors.UsageError` if Ray is not installed or no cluster is there.  ``patience``, and
    ``timeout`` of one call of the environment, are in seconds.
    """

    moves: ClassVar[int] = 3

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        address: str,
        count: int | None,
        patience: float = PATIENCE,
        timeout: float | None = None,
    ) -> None:
        if count is not None and count < 1:
            raise UsageError("with --ray the number of --workers is 1 or more")
        self._patience = patience
        self._told = (name, dict(options), os.getcwd(), canonical(identity(name, options)).decode(), timeout)
        self._ray, self._mine = _connect(address)
        self._standing: dict[int, _Standing] = {}
        self._starts: dict[int, asyncio.Task[None]] = {}
        self._began: float | None = None
        self._failure: HandoffError | None = None
        self._lost: list[str] = []
        try:
            self.count = count or max(1, int(self._ray.available_resources().get("CPU", 0)))
            actor = self._ray.remote(num_cpus=1, max_restarts=RESTARTS, scheduling_strategy="SPREAD")(Actor)
            self._actors = [actor.remote() for _ in range(self.count)]
        except BaseException:
            self.close()
            raise

    async def choose(self, load: Sequence[int]) -> int:
        loop = asyncio.get_running_loop()
        if self._began is None:
            self._began = loop.time()
            self._head = loop.create_task(self._watch_head(self._ray.get_runtime_context().gcs_address))
            for worker in range(self.count):
                self._begin(worker)
        deadline = loop.time() + self._patience
        while True:
            settled = loop.time() >= self._began + SETTLE
            if self._failure is not None:
                raise self._failure
            if self._standing and (settled or not self._starts):
                return min(self._standing, key=lambda worker: (load[worker], worker))
            if not self._starts:
                raise Interrupted("no environment worker of the Ray cluster is left: all ended too often")
            if loop.time() >= deadline:
                raise Interrupted(
                    f"the Ray cluster gave no core to an environment worker for {self._patience:g} seconds "
                    "(`ray status` on a node shows what it has and what uses it)"
                )
            until = deadline if settled else min(deadline, self._began + SETTLE)
            await asyncio.wait(
                self._starts.values(), timeout=max(0.0, until - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        if self._failure is not None:
            raise self._failure
        standing = self._standing.get(worker)
        if standing is None:
            raise WorkerLost(f"{_NAME} was lost")
        try:
            return await self._ask(self._actors[worker].call.remote(method, *arguments))
        except WorkerLost:
            self._lose(worker, standing)
            raise
        except self._ray.exceptions.RayTaskError:
            raise  # a defect there, in Ray's words
        except self._ray.exceptions.RayError as error:
            self._lose(worker, standing)
            raise WorkerLost(f"{_NAME} on node {standing.node} was lost") from error

    def remarks(self) -> list[str]:
        return list(self._lost)

    def close(self) -> None:
        if self._mine is not None:
            self._mine.close()
            self._mine = None
        elif self._ray.is_initialized():
            for actor in getattr(self, "_actors", ()):
                with contextlib.suppress(Exception):
                    self._ray.kill(actor)

    def _lose(self, worker: int, standing: _Standing) -> None:
        """Give ``worker`` no more episodes until it answers again.  Of the calls that were lost with it only the first
        one does this; by the last it may be back."""
        if self._standing.get(worker) is standing:
            del self._standing[worker]
            self._lost.append(f"{_NAME} on node {standing.node} was lost; its episodes went on with others")
            self._begin(worker)

    def _begin(self, worker: int) -> None:
        self._starts[worker] = asyncio.get_running_loop().create_task(self._start(worker))

    async def _start(self, worker: int) -> None:
        """Wait until Ray has found a place for the actor and it is ready there, or until Ray has given it up."""
        start = self._actors[worker].start.options(max_task_retries=-1)
        try:
            self._standing[worker] = _Standing(await self._ask(start.remote(*self._told)))
        except HandoffError as error:
            self._failure = error
        except self._ray.exceptions.RayError as error:
            reason = str(error)
            if "failed to import" in reason or "ModuleNotFoundError" in reason:
                self._failure = UsageError(
                    "a node of the Ray cluster cannot import handoff: install the same version of it on every node"
                )
            self._lost.append(f"{_NAME} ended too often and is not started any more")
        finally:
            del self._starts[worker]

    async def _watch_head(self, address: str) -> None:
        """End the work in time if the head node is gone for good."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while loop.time() < seen + HEADLESS:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), 5)
                seen = loop.time()
                writer.close()
            await asyncio.sleep(5)
        self._failure = Interrupted(f"the head node of the Ray cluster ({address}) does not answer any more")

    async def _ask(self, reference: Any) -> Any:
        """What an actor's method returned, or what it raised in its own form."""
        try:
            return await asyncio.wrap_future(reference.future())
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, Exception) and not isinstance(error.cause, self._ray.exceptions.RayError):
                raise error.cause from None
            raise


class _Connection:
    """A connection to a cluster that this process opened and closes.

    Ray prints what it has to say about nodes to standard output, from a thread of its own and once more at the end.
    Standard output is where results go (``--json``), so its lines go to the log ``handoff.ray``.
    """

    def __init__(self, ray: Any, address: str) -> None:
        self._ray = ray
        self._stdout = _WithoutRay(sys.stdout)
        self._redirected = contextlib.redirect_stdout(self._stdout)
        self._redirected.__enter__()
        try:
            before = signal.getsignal(signal.SIGTERM)
            ray.init(address=address, log_to_driver=False, configure_logging=False)
            with contextlib.suppress(ValueError):  # not the main thread: nothing was changed
                signal.signal(signal.SIGTERM, before)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._stdout.ending = True
        try:
            self._ray.shutdown()
        finally:
            self._redirected.__exit__(None, None, None)


class _WithoutRay(io.TextIOBase):
    """Standard output but for what Ray's threads write, and this thread for Ray while it is ``ending``."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.ending = False

    def write(self, text: str) -> int:
        if not (self.ending or threading.current_thread().name.startswith("ray_")):
            return int(self._inner.write(text))
        if text.strip():
            logging.getLogger("handoff.ray").info("%s", text.rstrip())
        return len(text)

    def flush(self) -> None:
        self._inner.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _connect(address: str) -> tuple[Any, _Connection | None]:
    """The module ``ray`` and, unless this process was connected already, the connection."""
    # Ray reports usage to its makers unless told otherwise, which a toolkit must not decide for its user.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", "ray", error, "--ray") from None
    if ray.is_initialized():
        return ray, None
    if address.startswith("ray://"):
        # Through a Ray client every call to an environment would pass through one more process, and the run would end
        # with that connection.
        host = address.removeprefix("ray://").rpartition(":")[0] or "HOST"
        raise UsageError(
            f"{address} is the address of a Ray client server; run this on a node of the cluster and give --ray auto, "
            "or the address that `ray start --head` printed (HOST:PORT). From a machine outside of it: "
            f"ray job submit --address http://{host}:8265 -- handoff ... --ray auto"
        )
    advice = "start one with `ray start --head` and give the address that it prints, or auto"
    if address != "auto":
        _reach(ray, address, advice)
    try:
        return ray, _Connection(ray, address)
    except (ConnectionError, ValueError, RuntimeError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(f"cannot use a Ray cluster at {address} ({first}); {advice}") from None


def _reach(ray: Any, address: str, advice: str) -> None:
    """Raise :class:`~handoff.errors.UsageError` if nothing listens at ``address``.  Ray itself would try for ten
    minutes, then end the process."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"write --ray HOST:PORT or --ray auto, not {address!r}")
    hosts = [host.strip("[]")]
    if hosts[0] in ("localhost", "127.0.0.1", "::1"):
        hosts.append(ray.util.get_node_ip_address())  # what Ray takes these names for
    reason = ""
    for name in hosts:
        try:
            with socket.create_connection((name, int(port)), timeout=10):
                return
        except OSError as error:
            reason = str(error.strerror or error)
    raise UsageError(f"no Ray cluster answers at {address} ({reason}); {advice}")
