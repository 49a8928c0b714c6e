"""python -m tests.simulation: every scene; or one of them, one run of it again, a crowd by its seed, or a deep search.

python -m tests.simulation                                  all scenes, as far as the tests go
python -m tests.simulation two-claimers --mode crash        one of them
python -m tests.simulation done-reap --schedule a6,b12,a4   one run again, told call by call if it fails
python -m tests.simulation done-reap --plant NAME           with a planted bug
python -m tests.simulation --seed 17                        one crowd
python -m tests.simulation --deep --seconds 600             everything that the tests have no time for
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from .crowd import Crowd
from .explorer import Tally
from .extent import CUT, EXPLORED
from .found import Found
from .modes import MODES
from .package import Package
from .plants import PLANTS
from .replay import replayed
from .scenes import SCENES
from .search import cut, explored, staged
from .story import told

if TYPE_CHECKING:
    from .power import Cuts

_ALL_MODES = [*MODES, "stale"]


def main() -> int:
    """0 if nothing broke the promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.split("\n")[0])
    parser.add_argument("scene", nargs="?", choices=sorted(SCENES), metavar="SCENE")
    parser.add_argument("--mode", default="plain", choices=[*_ALL_MODES, "power"])
    parser.add_argument("--schedule")
    parser.add_argument("--plant", choices=sorted(PLANTS), metavar="NAME")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--seconds", type=float, default=600)
    asked = parser.parse_args()
    try:
        if asked.seed is not None and asked.scene is None:
            print(f"crowd {asked.seed}: {len(Crowd(Package(), asked.seed).run().trace or ())} calls")
        elif asked.scene is not None and asked.schedule is not None:
            replayed(staged(asked.scene, asked.mode, asked.plant), asked.schedule, stale=asked.mode == "stale")
            print("the promise holds in this run")
        elif asked.deep:
            _deep(asked.seconds)
        else:
            pairs = [(asked.scene, asked.mode)] if asked.scene else [*EXPLORED, *((scene, "power") for scene in CUT)]
            begin = time.process_time()
            tallies = [_one(scene, mode, asked.plant, asked.seed or 0) for scene, mode in pairs]
            tried = [tally for tally in tallies if isinstance(tally, Tally)]
            if len(tried) > 1:
                figures = (sum(getattr(tally, what) for tally in tried) for what in ("schedules", "states", "runs"))
                print("total: {} schedules, {} states, {} runs".format(*figures), end="")
                print(f", {time.process_time() - begin:.0f} s with the power cuts")
    except Found as found:
        print(told(found, command(found, asked)))
        return 1
    return 0


def _one(scene: str, mode: str, plant: str | None, seed: int = 0, orders: int = 2, most: int = 16) -> Tally | Cuts:
    begin = time.process_time()
    stage = staged(scene, mode, plant)
    tally = cut(stage, orders, most, seed) if mode == "power" else explored(stage, mode)
    print(f"{scene:20} {mode:6} {tally}, {time.process_time() - begin:.1f} s", flush=True)
    return tally


def _deep(seconds: float) -> None:
    """All scenes in all modes, then crowds and power cuts by new seeds, until the time is over."""
    end = time.monotonic() + seconds
    seed = int(time.time())
    for mode in _ALL_MODES:
        for scene in SCENES:
            if time.monotonic() < end:
                _one(scene, mode, None)
    package, crowds = Package(), 0
    while time.monotonic() < end:
        try:
            Crowd(package, seed + crowds).run()
        except Found:
            print(f"seed {seed + crowds}")
            raise
        crowds += 1
        if crowds % 100 == 0:
            for scene in SCENES:
                _one(scene, "power", None, seed + crowds, 2)
    print(f"{crowds} crowds from seed {seed}")


def command(found: Found, asked: argparse.Namespace) -> str:
    """What shows this failure again."""
    again = ["python -m tests.simulation"]
    if asked.scene is None and asked.seed is not None:
        return f"{again[0]} --seed {asked.seed}"
    name = found.stage.scene.name
    again += [name, *(["--plant", asked.plant] if asked.plant else [])]
    mode = found.mode
    again += [] if mode == "plain" else ["--mode", mode]
    again += ["--seed", str(asked.seed or 0)] if mode == "power" else ["--schedule", found.world.schedule()]
    return " ".join(again)


if __name__ == "__main__":
    sys.exit(main())
