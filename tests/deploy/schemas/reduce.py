#!/usr/bin/env python3
"""reduce.py CRD_FILE VERSION MANIFEST...: what of a CRD's schema our manifests of that kind touch, to stdout. At every place they go
through, all names that the CRD knows are kept, so that a wrong one is noticed; what lies behind names they do not use is not,
nor are descriptions. Pod specs are marked, and held to Kubernetes' own schemas by crds.py."""
import sys

import yaml

POD = {"containers", "initContainers", "volumes", "terminationGracePeriodSeconds"}
KEPT = ("type", "enum", "required", "minItems", "maxItems", "minimum", "maximum", "pattern", "minLength", "maxLength")


def reduced(schema, values):
    kept = {key: schema[key] for key in KEPT if key in schema}
    names = schema.get("properties")
    if names:
        pod = POD <= names.keys()
        kept["additionalProperties"] = False
        kept["properties"] = {name: {} for name in names}
        if pod:
            kept["x-pod-spec"] = True
        for name, below in names.items():
            found = [value[name] for value in values if name in value]
            if found and not (pod and name not in ("labels", "annotations")):
                kept["properties"][name] = reduced(below, found)
    elif isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = reduced(schema["additionalProperties"], [each for one in values for each in one.values()])
    elif "items" in schema:
        kept["items"] = reduced(schema["items"], [each for one in values for each in one])
    return kept


class Indented(yaml.SafeDumper):
    """Lists as yamllint wants them."""

    def increase_indent(self, flow=False, indentless=False):  # pylint: disable=unused-argument
        return super().increase_indent(flow, False)


def main(crd_file, version, *manifests):
    with open(crd_file, encoding="utf-8") as file:
        crd = yaml.load(file, Loader=yaml.CSafeLoader)["spec"]
    api, kind = f"{crd['group']}/{version}", crd["names"]["kind"]
    ours = []
    for name in manifests:
        with open(name, encoding="utf-8") as file:
            ours += [one for one in yaml.safe_load_all(file) if one and (one["apiVersion"], one["kind"]) == (api, kind)]
    schema = next(one for one in crd["versions"] if one["name"] == version)["schema"]["openAPIV3Schema"]
    yaml.dump({"apiVersion": api, "kind": kind, "schema": reduced(schema, ours)}, sys.stdout, Indented, sort_keys=False, width=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
