"""What dashboards.py says it with: PromQL over noren's metrics, and the JSON that Grafana (10 and later) imports."""

# Families with a series per model; all others are of the whole process, and the model variable does not filter them.
PER_MODEL = {
    "noren_requests_total", "noren_request_duration_seconds", "noren_time_to_first_token_seconds",
    "noren_upstream_time_to_first_token_seconds", "noren_inter_token_latency_seconds",
    "noren_time_per_output_token_seconds", "noren_request_output_tokens_per_second", "noren_request_prompt_tokens",
    "noren_request_output_tokens", "noren_prompt_tokens_total", "noren_prompt_cached_tokens_total",
    "noren_output_tokens_total", "noren_reasoning_tokens_total", "noren_finish_reasons_total"}


def of(name, where=""):
    """The selected series of a metric."""
    family = name
    for suffix in ("_bucket", "_sum", "_count"):
        family = family.removesuffix(suffix)
    labels = ['job=~"$job"', 'pod=~"$pod"']
    labels += ['model=~"$model"'] if family in PER_MODEL else []
    labels += [where] if where else []
    return f"{name}{{{','.join(labels)}}}"


def added(operator, what, by):
    return f"{operator} by ({by}) ({what})" if by else f"{operator}({what})"


def gauge(name, by="", where="", operator="sum"):
    return added(operator, of(name, where), by)


def steady(name):
    """A gauge as its average between two points, so that it compares with a rate over the same time."""
    return f"sum(avg_over_time({of(name)}[$__rate_interval]))"


def rate(name, by="", where=""):
    return added("sum", f"rate({of(name, where)}[$__rate_interval])", by)


def increase(name, by, over):
    return f"round({added('sum', f'increase({of(name)}[{over}])', by)})"


def mean(name):
    return f"{rate(name + '_sum')} / {rate(name + '_count')}"


def quantile(q, name, where=""):
    return f"histogram_quantile({q}, {rate(name + '_bucket', 'le', where)})"


def percentiles(name, where=""):
    return {f"p{round(q * 100)}": quantile(q, name, where) for q in (0.5, 0.95, 0.99)}


def above(bound, name):
    """The share of observations above a bucket bound; exact, where a quantile is an estimate."""
    within = rate(name + "_bucket", where=f'le="{bound}"')
    return f"1 - {within} / {rate(name + '_count')}"


SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(kind, title, about, queries, unit, width, height, defaults=None, options=None, **more):
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
                "editorMode": "code", "range": True} for i, (legend, expr) in enumerate(queries.items())]
    return {"type": kind, "title": title, "description": about, "datasource": SOURCE, "targets": targets,
            "gridPos": {"w": width, "h": height},
            "fieldConfig": {"defaults": {"unit": unit, **(defaults or {})}, "overrides": []}, "options": options or {}, **more}


def looks(name, **properties):
    """One line of a graph that is to look different."""
    return {"matcher": {"id": "byName", "options": name},
            "properties": [{"id": key.replace("_", "."), "value": value} for key, value in properties.items()]}


def graph(title, about, queries, unit="short", width=8, stack=False, most=None, right=None):
    """right: (legend, unit) of a line with an axis of its own on that side."""
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 40 if stack else 0, "showPoints": "never",
              "spanNulls": False, "stacking": {"mode": "normal" if stack else "none", "group": "A"}}
    bounds = {"min": 0} if most is None else {"min": 0, "max": most}
    made = panel("timeseries", title, about, queries, unit, width, 8, {"custom": custom, **bounds},
                 {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                  "tooltip": {"mode": "multi", "sort": "desc"}})
    if "limit" in queries:
        made["fieldConfig"]["overrides"].append(
            looks("limit", custom_lineStyle={"fill": "dash", "dash": [8, 8]}, color={"mode": "fixed", "fixedColor": "red"}))
    if right:
        made["fieldConfig"]["overrides"].append(looks(right[0], custom_axisPlacement="right", unit=right[1]))
    return made


def number(title, about, expr, unit="short", steps=(), decimals=None, width=4):
    """One figure. steps: (bound, colour) from which on it is shown in that colour."""
    colours = [{"value": None, "color": "text"}] + [{"value": bound, "color": colour} for bound, colour in steps]
    defaults = {"thresholds": {"mode": "absolute", "steps": colours}}
    if decimals is not None:
        defaults["decimals"] = decimals
    return panel("stat", title, about, {title: expr}, unit, width, 4, defaults,
                 {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area",
                  "colorMode": "value", "textMode": "value"})


def heatmap(title, about, histogram, unit="s", width=12):
    made = panel("heatmap", title, about, {"{{le}}": rate(histogram + "_bucket", "le")}, unit, width, 9,
                 options={"calculate": False, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
                          "yAxis": {"unit": unit, "axisPlacement": "left"}, "cellGap": 0,
                          "tooltip": {"mode": "single", "yHistogram": True}, "legend": {"show": True}})
    made["targets"][0]["format"] = "heatmap"
    return made


def against(title, about, across, up, unit="short", width=12):
    """One query against another, a point for each moment. across, up: (name, query). seriesMapping and dims are what Grafana
    10 reads, and what 11.1 and later translate a panel from that names no plugin version: without them it does not load."""
    return panel("xychart", title, about, dict([across, up]), unit, width, 9,
                 {"min": 0, "custom": {"show": "points", "pointSize": {"fixed": 4}}},
                 {"seriesMapping": "auto", "dims": {}, "mapping": "auto", "series": [],
                  "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
                  "tooltip": {"mode": "single", "sort": "none"}},
                 transformations=[{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}},
                                  {"id": "organize", "options": {"excludeByName": {"Time": True}}}])


def chosen_by(label, metric, name, **more):
    return {"type": "query", "name": label, "label": name, "datasource": SOURCE, "refresh": 2, "sort": 1, "multi": True,
            "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]},
            "query": {"query": f"label_values({metric}, {label})", "refId": label}, "definition": f"label_values({metric}, {label})",
            **more}


def variables():
    """All jobs: those that run noren, by name, since process_* is everybody's. All pods and models: any, also none."""
    return [{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "current": {}},
            chosen_by("job", "noren_build_info", "Job"),
            chosen_by("pod", 'noren_build_info{job=~"$job"}', "Pod", allValue=".*"),
            chosen_by("model", 'noren_requests_total{job=~"$job"}', "Model", allValue=".*")]


def dashboard(uid, title, about, rows):
    """rows: (title, panels); panels flow from left to right, 24 columns wide."""
    panels, y = [], 0
    for row, members in rows:
        panels.append({"type": "row", "title": row, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        x, y, line = 0, y + 1, 0
        for member in members:
            size = member["gridPos"]
            if x + size["w"] > 24:
                x, y, line = 0, y + line, 0
            size.update(x=x, y=y)
            x, line = x + size["w"], max(line, size["h"])
            panels.append(member)
        y += line
    for index, each in enumerate(panels):
        each["id"] = index + 1
    return {"uid": uid, "title": title, "description": about, "tags": ["noren"], "id": None, "schemaVersion": 39, "version": 1,
            "editable": True, "graphTooltip": 1, "refresh": "30s", "timezone": "", "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": variables()}, "annotations": {"list": []},
            "links": [{"type": "dashboards", "title": "noren", "tags": ["noren"], "asDropdown": False, "includeVars": True,
                       "keepTime": True}],
            "panels": panels}
