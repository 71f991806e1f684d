"""The dashboards by what Grafana (10 to 13) takes: keys and words of each kind of panel, units, transformations, places on the
grid, variables. From the types of its Apache-licensed packages @grafana/schema and @grafana/data; what is not listed here is
not used, or has to be looked up there first."""
import glob
import json
import os
import re

from support.prometheus import TOP

UNITS = {"none", "short", "percent", "percentunit", "s", "ms", "bytes", "decbytes", "Bps", "binBps", "reqps", "ops", "cps",
         "hertz"}
ANY, NUMBER, FLAG, TEXT = object, (int, float), bool, str
LEGEND = {"options.legend.displayMode": {"list", "table", "hidden"}, "options.legend.placement": {"bottom", "right"},
          "options.legend.showLegend": FLAG}
TOOLTIP = {"options.tooltip.mode": {"single", "multi", "none"}, "options.tooltip.sort": {"asc", "desc", "none"}}
FIELD = {"unit": TEXT, "min": NUMBER, "max": NUMBER, "decimals": NUMBER, "color.mode": {"fixed", "thresholds", "palette-classic"},
         "color.fixedColor": TEXT, "thresholds.mode": {"absolute", "percentage"}, "thresholds.steps": ANY}
KEYS = {
    "timeseries": LEGEND | TOOLTIP | {
        "custom.drawStyle": {"line", "bars", "points"}, "custom.lineWidth": NUMBER, "custom.fillOpacity": NUMBER,
        "custom.showPoints": {"auto", "never", "always"}, "custom.spanNulls": FLAG,
        "custom.stacking.mode": {"none", "normal", "percent"}, "custom.stacking.group": TEXT,
        "custom.lineStyle.fill": {"solid", "dash", "dot"}, "custom.lineStyle.dash": ANY,
        "custom.axisPlacement": {"auto", "left", "right", "hidden"}},
    "stat": {
        "options.reduceOptions.calcs": ANY, "options.reduceOptions.fields": TEXT, "options.reduceOptions.values": FLAG,
        "options.graphMode": {"none", "area"}, "options.colorMode": {"none", "value", "background"},
        "options.textMode": {"auto", "name", "none", "value", "value_and_name"}},
    "heatmap": {
        "options.calculate": FLAG, "options.color.mode": {"opacity", "scheme"}, "options.color.scheme": TEXT,
        "options.color.steps": NUMBER, "options.yAxis.unit": TEXT, "options.yAxis.axisPlacement": {"left", "right", "hidden"},
        "options.cellGap": NUMBER, "options.tooltip.mode": {"single", "multi", "none"}, "options.tooltip.yHistogram": FLAG,
        "options.legend.show": FLAG},
    "xychart": LEGEND | TOOLTIP | {
        "options.mapping": {"auto", "manual"}, "options.series": ANY, "options.seriesMapping": {"auto", "manual"},
        "options.dims": ANY, "custom.show": {"lines", "points", "points+lines"}, "custom.pointSize.fixed": NUMBER},
}
# A panel that names no plugin version is translated from the form of Grafana 10, which has to be there.
NEEDED = {"xychart": {"options.seriesMapping", "options.series", "options.mapping"}}
TRANSFORMATIONS = {"joinByField", "organize", "reduce", "merge", "filterFieldsByName"}
BUILT_IN = {"__rate_interval", "__interval", "__range", "__all"}


def leaves(value, path, known):
    """(path, value) of everything that is no object, or is known as a whole."""
    if isinstance(value, dict) and path not in known:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key, known)
    else:
        yield path, value


def fits(value, allowed):
    if isinstance(allowed, set):
        return value in allowed
    return allowed is ANY or isinstance(value, allowed) and (allowed is FLAG or not isinstance(value, bool))


def key_faults(panel):
    known = FIELD | KEYS[panel["type"]]
    found = dict(leaves(panel["fieldConfig"]["defaults"], "", known)) | dict(leaves(panel["options"], "options", known))
    changed = [(each["id"], each["value"]) for one in panel["fieldConfig"]["overrides"] for each in one["properties"]]
    given = list(found.items()) + [leaf for path, value in changed for leaf in leaves(value, path, known)]
    yield from (f"{path}: {value!r}" for path, value in given if path not in known or not fits(value, known[path]))
    yield from (f"{path} is missing" for path in NEEDED.get(panel["type"], set()) - set(found))
    for path, value in given:
        if path.endswith("unit") and value not in UNITS and not re.fullmatch(r"suffix:\S+", value):
            yield f"unit {value!r}"


def panel_faults(panel):
    if panel["type"] == "row":
        return [] if panel["panels"] == [] and panel["collapsed"] is False else ["a row that holds panels"]
    if panel["type"] not in KEYS:
        return [f"kind {panel['type']}"]
    refs = [target["refId"] for target in panel["targets"]]
    legends = {target["legendFormat"] for target in panel["targets"]}
    faults = list(key_faults(panel)) + ([] if len(set(refs)) == len(refs) else ["two queries with one refId"])
    faults += [f"transformation {one['id']}" for one in panel.get("transformations", []) if one["id"] not in TRANSFORMATIONS]
    return faults + [f"looks of {one['matcher']['options']}, which is no line of it" for one in panel["fieldConfig"]["overrides"]
                     if one["matcher"]["id"] != "byName" or one["matcher"]["options"] not in legends]


def grid_faults(panels):
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        if not (0 <= at["x"] and 0 < at["w"] and at["x"] + at["w"] <= 24 and at["h"] > 0):
            yield f"{panel['title']}: outside of the 24 columns"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            if taken.setdefault(cell, panel["title"]) != panel["title"]:
                yield f"{panel['title']} lies on {taken[cell]}"
                break


def sources(value):
    """Every datasource that is named somewhere within."""
    if isinstance(value, list):
        for inner in value:
            yield from sources(inner)
    elif isinstance(value, dict):
        if "datasource" in value:
            yield json.dumps(value["datasource"], sort_keys=True)
        for inner in value.values():
            yield from sources(inner)


def variable_faults(board):
    variables = board["templating"]["list"]
    names = [one["name"] for one in variables]
    first = variables[0]
    if (first["type"], first["name"], first["query"]) != ("datasource", "datasource", "prometheus"):
        yield "the data source is not the first variable, so that the others cannot ask it"
    for i, one in enumerate(variables):
        asked = one["query"]["query"] if one["type"] == "query" else ""
        yield from (f"{one['name']} needs {name}, which comes later" for name in re.findall(r"\$\{?(\w+)", asked)
                    if name not in names[:i])
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
    yield from (f"${name} is no variable" for name in used - set(names) - BUILT_IN)
    yield from (f"variable {name} is of no use" for name in set(names) - used)
    others = set(sources(board)) - {json.dumps({"type": "prometheus", "uid": "${datasource}"}, sort_keys=True)}
    yield from (f"datasource {one}" for one in others)


def board_faults(board):
    panels = board["panels"]
    faults = [f"{panel['title']}: {fault}" for panel in panels for fault in panel_faults(panel)]
    faults += list(grid_faults(panels)) + list(variable_faults(board))
    if len({panel["id"] for panel in panels}) != len(panels):
        faults.append("two panels with one id")
    if board["id"] is not None or not 1 <= len(board["uid"]) <= 40:
        faults.append("no id (Grafana's own) and a uid of up to 40 characters are wanted")
    return faults


def check_grafana(check):
    for path in sorted(glob.glob(os.path.join(TOP, "deploy", "grafana", "noren-*.json"))):
        with open(path, encoding="utf-8") as file:
            faults = board_faults(json.load(file))
        check(f"{os.path.basename(path)} is what Grafana takes", not faults, "; ".join(faults))
