"""Programs that know nothing of Taskyard, as people write them from a plan: `python programs.py loop|janitor FOLDER AGENT READING`.

A queue of four folders: an agent moves the first thing in todo/ to processing/AGENT_NAME, works on it, and moves it to
done/NAME or failed/NAME. A janitor moves what nobody has modified for long back to todo/. They end when their stdin does.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
import threading
import time

STALE = 30 * 60.0


def list_files(todo: str, reading: str) -> list[str]:
    """The two ways to list a folder that the plan leaves open."""
    if reading == "glob":
        return [os.path.basename(path) for path in glob.glob(f"{todo}*.json")]
    return os.listdir(todo)


def agent(folder: str, name: str, reading: str, told: threading.Thread) -> None:
    """The agent's loop, step by step."""
    todo, processing, done, failed = (f"{folder}/{state}/" for state in ("todo", "processing", "done", "failed"))
    while told.is_alive():
        tasks = list_files(todo, reading)
        if not tasks:
            time.sleep(0.01)
            continue
        task_file_name = tasks[0]
        claimed_path = processing + name + "_" + task_file_name
        try:
            os.rename(todo + task_file_name, claimed_path)
        except FileNotFoundError:
            continue
        try:
            with open(claimed_path, encoding="utf-8") as file:
                task_data = json.load(file)
            result = perform(task_data)
            with open(f"{done}{name}-{time.time_ns()}.txt", "w", encoding="utf-8") as file:
                file.write(f"{task_file_name} {result}\n")
            shutil.move(claimed_path, done + task_file_name)
        except Exception:
            shutil.move(claimed_path, failed + task_file_name)


def perform(task: object) -> str:
    """The work, which takes a moment."""
    time.sleep(0.001)
    return f"{type(task).__name__} of {len(str(task))} characters"


def janitor(folder: str, stale: float, told: threading.Thread) -> None:
    """Stale files go back to todo/, again and again."""
    while told.is_alive():
        sweep(folder, stale)
        time.sleep(0.02)


def sweep(folder: str, stale: float = STALE) -> int:
    """One round of the janitor; how many files it moved."""
    moved = 0
    for name in os.listdir(f"{folder}/processing"):
        path = f"{folder}/processing/{name}"
        try:
            if time.time() - os.path.getmtime(path) > stale:
                shutil.move(path, f"{folder}/todo/{name}")
                moved += 1
        except FileNotFoundError:
            continue
    return moved


def take(folder: str, name: str, reading: str = "listdir") -> str:
    """One claim as the loop makes it; where the file is then."""
    task = sorted(list_files(f"{folder}/todo/", reading))[0]
    claimed = f"{folder}/processing/{name}_{task}"
    os.rename(f"{folder}/todo/{task}", claimed)
    return claimed


if __name__ == "__main__":
    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    told.start()
    if sys.argv[1] == "loop":
        agent(sys.argv[2], sys.argv[3], sys.argv[4], told)
    else:
        janitor(sys.argv[2], float(sys.argv[3]), told)
