"""Measure commands as whole processes, in units of an empty interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from bench.yards import environment, filled, process, say

RUNS = 30


def report(folder: str) -> None:
    print("Whole processes, best of 30, and in units of `python -c pass`:")
    path = f"{folder}/processes"
    filled(path, 1000, "durable")
    empty = process("-c", "pass")
    say("python -c pass", f"{empty * 1e3:.1f} ms")
    command = [sys.executable, "-m", "taskyard", "--yard", path, "--json"]
    claims, dones = [], []
    for _ in range(RUNS):
        begin = time.perf_counter()
        answer = subprocess.run([*command, "claim"], env=environment(), capture_output=True, check=True)
        claims.append(time.perf_counter() - begin)
        handle = json.loads(answer.stdout)["data"]["claim"]
        begin = time.perf_counter()
        subprocess.run([*command, "done", handle], env=environment(), capture_output=True, check=True)
        dones.append(time.perf_counter() - begin)
    for label, times in (("claim", claims), ("done", dones)):
        say(f"taskyard {label}", f"{min(times) * 1e3:.1f} ms = {min(times) / empty:.2f}")
    for words in (["add", "kind0"], ["ready"], ["stats"]):
        cost = process("-m", "taskyard", "--yard", path, "--json", *words, rounds=RUNS)
        say(f"taskyard {words[0]}", f"{cost * 1e3:.1f} ms = {cost / empty:.2f}")
