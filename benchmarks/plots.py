"""Bars and flames, as SVG that is legible on light and dark pages: it brings its own ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH, LABELS, ROW, TOP = 860, 330, 26, 64
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933 }
.title { font-size: 16px; font-weight: 600 }
.ground { fill: #ffffff; stroke: #d5dbe1 }
.ours { fill: #0b6e4f } .peer { fill: #8795a1 } .bare { fill: #c9d1d8 }
.spread { stroke: #1f2933; stroke-width: 1.5 }
.flame text { font-size: 11px }
.flame rect { stroke: #ffffff; stroke-width: .5 }
.f0 { fill: #7fd1ae } .f1 { fill: #f2c078 } .f2 { fill: #b8c4f0 } .f3 { fill: #f0a8a0 }
.f4 { fill: #d5dbe1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6eaee }
  .ground { fill: #1b2229; stroke: #3a444e }
  .ours { fill: #3fbf8f } .peer { fill: #7b8794 } .bare { fill: #4b5763 }
  .spread { stroke: #e6eaee }
  .flame rect { stroke: #1b2229 }
  .f0 { fill: #0b6e4f } .f1 { fill: #8a5a12 } .f2 { fill: #3d4c92 } .f3 { fill: #8c3a32 }
  .f4 { fill: #3a444e }
}
"""
FLAME_ROW, LETTER = 17, 6.2
LEGEND = {"ours": "django_mcp", "peer": "others", "bare": "without MCP"}


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure with the extremes of its rounds."""

    label: str
    kind: str
    value: float
    least: float
    most: float
    text: str


def bars(title: str, given: Sequence[Bar]) -> str:
    """Return a picture of horizontal bars, the longest first."""
    ordered = sorted(given, key=lambda bar: -bar.value)
    height = TOP + ROW * len(ordered) + 14
    top = max((bar.most for bar in ordered), default=1) or 1
    scale = (WIDTH - LABELS - 100) / top
    kinds = [kind for kind in LEGEND if any(bar.kind == kind for bar in ordered)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        *(_legend(place, kind) for place, kind in enumerate(kinds)),
        *(_bar(place, bar, scale) for place, bar in enumerate(ordered)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _legend(place: int, kind: str) -> str:
    x = 16 + place * 130
    return (
        f'<rect class="{kind}" x="{x}" y="38" width="12" height="12" rx="2"/>'
        f'<text x="{x + 18}" y="49">{LEGEND[kind]}</text>'
    )


def _bar(place: int, bar: Bar, scale: float) -> str:
    y = TOP + place * ROW
    middle = y + ROW / 2 - 2
    length = max(bar.value * scale, 1)
    least, most = (LABELS + each * scale for each in (bar.least, bar.most))
    return (
        f'<text x="{LABELS - 10}" y="{y + 15}" text-anchor="end">{escape(bar.label)}</text>'
        f'<rect class="{bar.kind}" x="{LABELS}" y="{y + 2}" width="{length:.1f}" '
        f'height="{ROW - 8}" rx="2"/>'
        f'<line class="spread" x1="{least:.1f}" x2="{most:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<text x="{max(LABELS + length, most) + 8:.1f}" y="{y + 15}">{escape(bar.text)}</text>'
    )


def flame(title: str, tree: Sequence[Any], origins: Sequence[str]) -> str:
    """Return a picture of nested calls: a frame is as wide as its share, and below its caller.

    ``tree`` is a name, whose code it is (one of ``origins``), a share and the calls from there.
    """
    frames = list(_frames(tree, 0, 0.0))
    height = TOP + FLAME_ROW * (1 + max((depth for depth, *_ in frames), default=0)) + 14
    legend = (
        f'<rect class="f{place}" x="{16 + place * 130}" y="38" width="12" height="12" rx="2"/>'
        f'<text x="{34 + place * 130}" y="49">{escape(origin)}</text>'
        for place, origin in enumerate(origins)
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        *legend,
        '<g class="flame">',
        *(_flame(origins, *each) for each in frames),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _frames(
    tree: Sequence[Any], depth: int, left: float
) -> Iterator[tuple[int, float, str, str, float]]:
    name, origin, share, calls = tree
    yield depth, left, name, origin, share
    for each in sorted(calls, key=lambda call: -call[2]):
        yield from _frames(each, depth + 1, left)
        left += each[2]


def _flame(
    origins: Sequence[str], depth: int, left: float, name: str, origin: str, share: float
) -> str:
    scale = WIDTH - 32
    x, y, width = 16 + left * scale, TOP + depth * FLAME_ROW, share * scale
    letters = int((width - 6) / LETTER)
    label = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    text = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(label)}</text>' if label else ""
    return (
        f"<g><title>{escape(name)}, {escape(origin)}: {share:.1%}</title><rect "
        f'class="f{origins.index(origin)}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{FLAME_ROW - 1}"/>{text}</g>'
    )
