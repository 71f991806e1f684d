"""The chart of tests/bench/run.sh: what a token costs, as bars on a log scale, with the floor (the raw relay) as a line."""
import math

COLOURS = {"nginx": "#8a8f98", "haproxy": "#b9bec6", "noren": "#2f5fa8"}
FLOOR = "#c0392b"
PANELS = [
    ("Added delay of a token (µs)",
     [("S2", "added delay p50 us", "256 streams", "p50"), ("S2", "added delay p99 us", "256 streams", "p99"),
      ("S2b", "added delay p99 us", "lock-step", "p99"), ("S6", "added delay p50 us", "one stream", "p50"),
      ("S6", "added delay p99 us", "one stream", "p99")]),
    ("CPU per token (µs)", [("S1", "CPU us/event", "flood", ""), ("S2", "CPU us/event", "256 streams", ""),
                            ("S2b", "CPU us/event", "lock-step", ""), ("S3", "CPU us/event", "4,000 streams", "")]),
]
WIDTH, HEIGHT, TOP, BOTTOM, LEFT, GAP = 980, 380, 70, 60, 50, 70


def text(x, y, words, size=12, anchor="middle", colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">'
            f"{words}</text>")


class Scale:
    """Whole decades that hold all the values. What is 1 or less lies on the ground: a log scale has no place for it."""

    def __init__(self, numbers, top, bottom):
        numbers = [max(number, 1.0) for number in numbers] or [1.0]
        self.low, self.high = math.floor(math.log10(min(numbers))), math.floor(math.log10(max(numbers))) + 1
        self.top, self.bottom = top, bottom

    def y(self, value):
        part = (math.log10(max(value, 1.0, 10 ** self.low)) - self.low) / (self.high - self.low)
        return self.bottom - part * (self.bottom - self.top)

    def ticks(self):
        return [step * 10 ** decade for decade in range(self.low, self.high) for step in (1, 2, 5)] + [10 ** self.high]


def grid(scale, left, right):
    out = []
    for tick in scale.ticks():
        y = scale.y(tick)
        out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e5e8"/>')
        out.append(text(left - 6, y + 4, f"{tick:,}", 10, "end", "#666"))
    return out


def group(scale, medians, left, width, words):
    """The bars of one figure, and the floor across them."""
    out = []
    bar = width * 0.8 / len(COLOURS)
    for index, (who, colour) in enumerate(COLOURS.items()):
        value = medians.get(who)
        if value is None:
            continue
        x, y = left + width * 0.1 + index * bar, scale.y(value)
        out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar * 0.9:.1f}" height="{scale.bottom - y:.1f}" fill="{colour}"/>')
        out.append(text(x + bar * 0.45, y - 4, f"{value:.0f}" if value >= 10 else f"{value:.1f}", 10))
    floor = medians.get("relay")
    if floor is not None:
        y = scale.y(floor)
        out.append(f'<line x1="{left + width * 0.04:.1f}" x2="{left + width * 0.96:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                   f'stroke="{FLOOR}" stroke-width="2"/>')
    for line, word in enumerate(words):
        out.append(text(left + width / 2, scale.bottom + 16 + 14 * line, word, 11))
    return out


def panel(title, figures, found, left, right):
    """One of the two diagrams. found: (scenario, figure) -> medians."""
    figures = [figure for figure in figures if figure[:2] in found]
    if not figures:
        return []
    numbers = [value for figure in figures for value in found[figure[:2]].values() if value is not None]
    scale = Scale(numbers, TOP, HEIGHT - BOTTOM)
    width = (right - left) / len(figures)
    out = [text((left + right) / 2, TOP - 14, title, 14, weight="bold"), *grid(scale, left, right)]
    for index, figure in enumerate(figures):
        out += group(scale, found[figure[:2]], left + index * width, width, figure[2:])
    return out


def legend():
    out, x = [], LEFT
    for who, colour in COLOURS.items():
        out += [f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>', text(x + 18, 25, who, 12, "start")]
        x += 90
    return out + [f'<line x1="{x}" x2="{x + 24}" y1="20" y2="20" stroke="{FLOOR}" stroke-width="2"/>',
                  text(x + 30, 25, "a raw relay in C++: the floor", 12, "start")]


def draw(rows, path):
    """rows: as compare.summary() makes them."""
    found = {(row["scenario"], row["figure"]): row["medians"] for row in rows}
    middle = LEFT + (WIDTH - LEFT - GAP - 20) * 0.55
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *legend(),
             *panel(*PANELS[0], found, LEFT, middle), *panel(*PANELS[1], found, middle + GAP, WIDTH - 20), "</svg>"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")
