"""The floods as a picture: a panel for each size, a bar for each client, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from section import figure

COLOURS = {"limit": "#8a8a8a", "bird": "#1f6fb4", "peer": "#e08214"}
LEGEND = {"limit": "limits of this machine", "bird": "this library", "peer": "other clients"}
NAMES_WIDTH = 120
PANEL_WIDTH = 190
PANEL_GAP = 16
ROW_HEIGHT = 22
BAR_HEIGHT = 14
TOP = 64
BOTTOM = 34
# Characters of the values beside the bars need this much of a panel.
VALUE_WIDTH = 44


@dataclass(frozen=True)
class Bar:
    panel: str
    client: str
    group: str
    events_per_second: float


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#333", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'
    )


def _power(exponent: int) -> str:
    return {0: "1", 3: "1 k", 6: "1 M"}.get(exponent, "")


def _rate(events_per_second: float) -> str:
    for unit, factor in ((" M", 1e6), (" k", 1e3)):
        if events_per_second >= factor:
            return figure(events_per_second / factor) + unit
    return figure(events_per_second)


def svg(title: str, bars: Sequence[Bar]) -> str:
    panels = list(dict.fromkeys(bar.panel for bar in bars))
    clients = list(dict.fromkeys(bar.client for bar in bars))
    low = math.floor(math.log10(min(bar.events_per_second for bar in bars)))
    high = math.ceil(math.log10(max(bar.events_per_second for bar in bars)))
    scale = (PANEL_WIDTH - VALUE_WIDTH) / (high - low)
    width = NAMES_WIDTH + len(panels) * (PANEL_WIDTH + PANEL_GAP)
    bottom = TOP + len(clients) * ROW_HEIGHT

    def left(panel: str) -> float:
        return NAMES_WIDTH + panels.index(panel) * (PANEL_WIDTH + PANEL_GAP)

    parts = [_text(8, 20, title, size=14)]
    at = 8.0
    for group, meaning in LEGEND.items():
        parts.append(f'<rect x="{at:.1f}" y="30" width="10" height="10" fill="{COLOURS[group]}"/>')
        parts.append(_text(at + 15, 39, meaning))
        at += 30 + 6.5 * len(meaning)
    for panel in panels:
        parts.append(_text(left(panel), TOP - 8, panel, size=13))
        for exponent in range(low, high + 1):
            x = left(panel) + (exponent - low) * scale
            parts.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#ddd"/>')
            parts.append(_text(x, bottom + 14, _power(exponent), "middle", "#777", 10))
    for row, client in enumerate(clients):
        y = TOP + row * ROW_HEIGHT + ROW_HEIGHT / 2 + 4
        parts.append(_text(NAMES_WIDTH - 8, y, client, "end"))
    for bar in bars:
        length = max(1.0, (math.log10(bar.events_per_second) - low) * scale)
        y = TOP + clients.index(bar.client) * ROW_HEIGHT + (ROW_HEIGHT - BAR_HEIGHT) / 2
        x = left(bar.panel)
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{BAR_HEIGHT}" fill="{COLOURS[bar.group]}"/>'
        )
        parts.append(_text(x + length + 4, y + BAR_HEIGHT - 3, _rate(bar.events_per_second), size=10))
    height = bottom + BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
