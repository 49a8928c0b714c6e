"""Links between the project's pages lead to a file that is there, and to a heading that is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ADDRESS = re.compile(r"[a-z]+:")  # https:, mailto: and the like lead out of the project


def prose(text: str) -> str:
    """The page without its blocks and its `words` of code, in which a bracket is no link and a # no heading."""
    return re.sub(r"`[^`\n]*`", "", without_blocks(text))


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings: lower case, no punctuation, dashes for spaces, repeated ones numbered."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", without_blocks(text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if _ADDRESS.match(link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_map_in_the_readme_names_every_page_of_docs() -> None:
    linked = set(_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_a_link_to_a_missing_page_or_heading_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# Other\n\n## Who, and `why`?\n\n## Twice\n\n## Twice\n\n```sh\n## no heading\n```\n"
    )
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#who-and-why) [b](other.md#twice-1) [c](https://example.org/x#y) `[d](code.md)`\n"
        "[e](missing.md) [f](other.md#no-heading) [g](other.md#twice-2) [h](#page)\n"
    )
    assert broken(page) == ["missing.md", "other.md#no-heading", "other.md#twice-2", "#page"]
