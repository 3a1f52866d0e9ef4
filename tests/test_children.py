"""Worker processes end with their parent, and quietly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# The moment in which the executor's thread closes its pipe, made half a second long.
SCRIPT = """
import time
from concurrent.futures import process
from handoff.children import Children

class Slow(process._ThreadWakeup):
    def close(self):
        if not self._closed:
            self._writer._close()
            time.sleep(0.5)
            self._writer._handle = None
        super().close()

if __name__ == "__main__":
    process._ThreadWakeup = Slow
    workers = Children(1)
    future = workers.submit(time.sleep, 30 if {busy} else 0)
    while not (future.running() or future.done()):
        time.sleep(0.01)
    if {busy}:
        workers.end()
    else:
        future.result()
        workers.shutdown(wait=False)
        workers.join()
    print("the sentence", flush=True)
    time.sleep(0.1)
"""


def run_script(folder: Path, busy: bool) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(SCRIPT.format(busy=busy))
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)


def test_a_process_whose_workers_were_ended_in_the_middle_of_a_call_exits_without_a_further_word(
    tmp_path: Path,
) -> None:
    result = run_script(tmp_path, busy=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "the sentence\n", "")


KEPT = """
import threading, time
from handoff.children import Children

def spin():
    threading.Thread(target=time.sleep, args=(300,)).start()

if __name__ == "__main__":
    workers = Children(1)
    workers.submit(spin).result()
    workers.shutdown(wait=False)
    print(workers.join(0.3), workers.join(0.3), flush=True)
"""


def test_a_worker_that_a_thread_keeps_is_killed_and_does_not_keep_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(KEPT)
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True False\n", "")


def test_a_process_whose_workers_were_done_exits_without_a_further_word(tmp_path: Path) -> None:
    result = run_script(tmp_path, busy=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "the sentence\n", "")
