"""The command of the demo's workers: sharpens one picture. It reads its task from stdin, as any command of `work`."""

from __future__ import annotations

import json
import os
import sys
import time

KERNEL = ((0, -1, 0), (-1, 5, -1), (0, -1, 0))
SIZE = 48
STEPS = 8


def read(path: str) -> list[list[int]]:
    """Read a picture from a plain PGM file: a text of grey values."""
    with open(path, encoding="ascii") as file:
        words = file.read().split()
    width, height, values = int(words[1]), int(words[2]), [int(word) for word in words[4:]]
    return [values[row * width : (row + 1) * width] for row in range(height)]


def write(path: str, picture: list[list[int]]) -> None:
    """Write a picture so that no reader sees half of it."""
    rows = "\n".join(" ".join(map(str, row)) for row in picture)
    draft = f"{path}.{os.getpid()}"
    with open(draft, "w", encoding="ascii") as file:
        file.write(f"P2 {len(picture[0])} {len(picture)} 255\n{rows}\n")
    os.replace(draft, path)


def blurred(seed: int) -> list[list[int]]:
    """Make a blurred picture of rings, different for every seed."""
    centre = SIZE / 2 + seed % 5
    return [
        [
            round(127 + 100 * (((x - centre) ** 2 + (y - centre) ** 2) % (300 + 20 * seed)) / (300 + 20 * seed) - 50)
            for x in range(SIZE)
        ]
        for y in range(SIZE)
    ]


def sharpened(picture: list[list[int]]) -> list[list[int]]:
    """Sharpen every pixel against its neighbours; the edge stays as it is."""
    height, width = len(picture), len(picture[0])
    result = [row[:] for row in picture]
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            total = sum(KERNEL[j][i] * picture[y + j - 1][x + i - 1] for j in range(3) for i in range(3))
            result[y][x] = max(0, min(255, total))
    return result


def main() -> None:
    """Do the task on stdin; the last JSON object on stdout is its result."""
    data = json.load(sys.stdin)["data"]
    picture = read(data["inputFile"])
    for _ in range(STEPS):
        time.sleep(data["parameters"]["seconds"] / STEPS)  # a real agent takes longer than sharpening 2,304 pixels
    write(data["outputFile"], sharpened(picture))
    json.dump({"outputFile": data["outputFile"], "pixels": sum(map(len, picture))}, sys.stdout)


if __name__ == "__main__":
    main()
