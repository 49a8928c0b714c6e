"""Put the files of the repository onto the pages that show them: `python docs/write_files.py`.

A block whose first line is "```yaml compose.yaml" holds that file, and nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"^(```\w+ (\S+)\n).*?^```$", re.MULTILINE | re.DOTALL)


def written(page: str) -> str:
    """Return the page with each file as it is now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{(ROOT / found[2]).read_text(encoding='utf-8')}```", page)


def main() -> None:
    """Rewrite every page of docs/ that shows a file."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if written(text) != text:
            page.write_text(written(text), encoding="utf-8")


if __name__ == "__main__":
    main()
