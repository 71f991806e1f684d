"""Draws a dashboard from a Prometheus, panel by panel as Grafana would lay it out: to look at without a Grafana."""
import math
import re

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

from dashboards.panels import filled  # noqa: E402

COLUMN, LINE = 0.75, 0.4  # inches of a grid unit
COLOURS = plt.rcParams["axes.prop_cycle"].by_key()["color"]
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"))
UNITS = {"s": "s", "reqps": " req/s", "cps": "/s", "bytes": "B", "Bps": "B/s", "short": ""}


def said(value, unit):
    """As Grafana says a value: 1.2 k, 340 ms, 12 %."""
    if value is None or not math.isfinite(value):
        return "no data"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s" and value >= 60:
        return f"{value / 60:.3g} min"
    word = UNITS.get(unit, " " + unit.removeprefix("suffix:"))
    size = abs(value)
    for factor, prefix in PREFIXES:
        if size >= factor and (factor >= 1 or unit == "s"):
            return f"{value / factor:.3g} {prefix}{word}".replace("  ", " ").strip()
    return f"{value:.2g}{word}"


def legend_of(pattern, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern).strip() or "value"


class Board:
    def __init__(self, prometheus, job, start, end, window):
        self.prometheus, self.job, self.start, self.end, self.window = prometheus, job, start, end, window
        self.step = max(0.5, (end - start) / 200)

    def series(self, panel):
        """[(legend, times from the start, values)]"""
        for target in panel["targets"]:
            expr = filled(target["expr"], self.job, self.window)
            for labels, points in self.prometheus.query_range(expr, self.start, self.end, self.step):
                yield (legend_of(target["legendFormat"], labels), [at - self.start for at, _ in points],
                       [value if math.isfinite(value) else math.nan for _, value in points])


def draw_graph(board, panel, axes):
    drawn = list(board.series(panel))
    if panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal":
        times = sorted({at for _, across, _ in drawn for at in across})
        layers = []
        for _, across, up in drawn:
            known = dict(zip(across, up))
            layers.append([0 if math.isnan(known.get(at, 0)) else known.get(at, 0) for at in times])
        handles = axes.stackplot(times, layers, labels=[name for name, _, _ in drawn], alpha=0.7)
    else:
        handles = draw_lines(panel, axes, drawn)
    most = panel["fieldConfig"]["defaults"].get("max")
    axes.set_xlim(0, board.end - board.start)
    axes.set_ylim(bottom=0, top=most * 1.03 if most else None)
    if not any(value > 0 for _, _, up in drawn for value in up):
        axes.set_ylim(0, most or 1)
    axes.grid(alpha=0.3)
    if handles:
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, fontsize=8, frameon=False)


def draw_lines(panel, axes, drawn):
    """Lines, and those with an axis of their own on the right; a limit is dashed."""
    overrides = {each["matcher"]["options"]: {p["id"]: p["value"] for p in each["properties"]}
                 for each in panel["fieldConfig"]["overrides"]}
    handles = []
    for index, (name, across, up) in enumerate(drawn):
        own = overrides.get(name, {})
        where = axes
        if own.get("custom.axisPlacement") == "right":
            where = axes.twinx()
            where.tick_params(labelsize=8)
            where.yaxis.set_major_formatter(FuncFormatter(lambda value, _, unit=own["unit"]: said(value, unit) if value else "0"))
        dashed = "custom.lineStyle" in own
        handles += where.plot(across, up, label=name, linewidth=1.3, linestyle="--" if dashed else "-",
                              color="red" if dashed else COLOURS[index % len(COLOURS)])
        if where is not axes:
            where.set_ylim(bottom=0)
    return handles


def draw_number(board, panel, axes):
    values = [value for _, _, up in board.series(panel) for value in up if math.isfinite(value)]
    last = values[-1] if values else None
    colour = "black"
    for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]:
        colour = step["color"] if last is not None and last >= step["value"] else colour
    axes.text(0.5, 0.45, said(last, panel["fieldConfig"]["defaults"]["unit"]), ha="center", va="center", fontsize=20, color=colour,
              transform=axes.transAxes)
    axes.set_axis_off()


def draw_heatmap(board, panel, axes):
    expr = filled(panel["targets"][0]["expr"], board.job, board.window)
    found = [(float(labels["le"].replace("+Inf", "inf")), dict(points))
             for labels, points in board.prometheus.query_range(expr, board.start, board.end, board.step)]
    found.sort(key=lambda bucket: bucket[0])
    times = sorted({at for _, known in found for at in known})
    rows, below = [], dict.fromkeys(times, 0.0)
    for _, known in found:
        rows.append([max(0.0, known.get(at, 0) - below[at]) for at in times])
        below = {at: known.get(at, 0) for at in times}
    used = [i for i, row in enumerate(rows) if any(value > 0 for value in row)]
    if not used:
        axes.text(0.5, 0.5, "no data", ha="center", transform=axes.transAxes)
        return
    low, high = max(0, used[0] - 1), min(len(rows), used[-1] + 2)
    axes.pcolormesh([at - board.start for at in times], range(low, high), rows[low:high], cmap="Oranges", shading="nearest")
    axes.set_yticks(range(low, high, max(1, (high - low) // 8)))
    axes.yaxis.set_major_formatter(FuncFormatter(
        lambda row, _: said(found[int(row)][0], "s") if 0 <= row < len(found) and math.isfinite(found[int(row)][0]) else "more"))


def draw_against(board, panel, axes):
    (across_name, times, across), (_, other_times, up) = list(board.series(panel))[:2]
    other = dict(zip(other_times, up))
    points = [(x, other[at]) for at, x in zip(times, across) if at in other and math.isfinite(other[at])]
    axes.scatter([x for x, _ in points], [y for _, y in points], s=9, alpha=0.6)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(across_name, fontsize=8)
    axes.grid(alpha=0.3)


DRAW = {"timeseries": draw_graph, "stat": draw_number, "heatmap": draw_heatmap, "xychart": draw_against}


def draw_dashboard(prometheus, title, panels, job, start, end, path, window="10s"):
    board = Board(prometheus, job, start, end, window)
    top = min(panel["gridPos"]["y"] for panel in panels)
    lines = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) - top
    width, height = 24 * COLUMN, lines * LINE + 0.6
    figure = plt.figure(figsize=(width, height), dpi=70)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, weight="bold", y=1 - 0.15 / height)
    for panel in panels:
        place = panel["gridPos"]
        left, below = (0.1, 0.05) if panel["type"] == "stat" else (0.85, 0.62)
        right = 0.85 if any("custom.axisPlacement" in str(each) for each in panel["fieldConfig"]["overrides"]) else 0.2
        axes = figure.add_axes(((place["x"] * COLUMN + left) / width,
                                1 - (0.6 + (place["y"] - top + place["h"]) * LINE - below) / height,
                                (place["w"] * COLUMN - left - right) / width, (place["h"] * LINE - below - 0.4) / height))
        axes.set_title(panel["title"], fontsize=10, loc="left", weight="bold")
        axes.tick_params(labelsize=8)
        unit = panel["fieldConfig"]["defaults"]["unit"]
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: said(value, unit) if value else "0"))
        if panel["type"] != "xychart":
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} s"))
        DRAW[panel["type"]](board, panel, axes)
    figure.savefig(path)
    plt.close(figure)
