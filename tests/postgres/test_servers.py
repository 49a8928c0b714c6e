"""The tests' own server: it is there when it is asked for, and gone with the last who asked, however that one ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import is_alive, wait_until

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, time
from tests.servers import postgres
print(postgres.folder(), flush=True)
time.sleep(60)
"""


def test_the_server_goes_with_the_last_of_two_who_are_killed() -> None:
    environment = {**os.environ, "PYTEST_RUN_ID": f"own{os.getpid()}", "PYTHONPATH": str(ROOT)}
    crew = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
        for _ in range(2)
    ]
    folders = {hand.stdout.readline().strip() for hand in crew if hand.stdout is not None}
    assert len(folders) == 1
    [folder] = folders
    server = int(Path(folder, "data/postmaster.pid").read_text().split()[0])
    crew[0].kill()
    crew[0].wait()
    assert is_alive(server)
    crew[1].send_signal(signal.SIGKILL)
    crew[1].wait()
    wait_until(lambda: not is_alive(server) and not os.path.exists(folder))
    for hand in crew:
        assert hand.stdout is not None
        hand.stdout.close()
