"""Custom resources of other projects, held to what schemas/ keeps of their definitions; the pod specs in them to Kubernetes'
own schemas. tests/deploy.sh fetches the two libraries."""
import glob
import os

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
KUBERNETES = "1.37"


def known():
    """(apiVersion, kind) -> schema."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "schemas/*.yaml"))):
        with open(path, encoding="utf-8") as file:
            one = yaml.safe_load(file)
        found[one["apiVersion"], one["kind"]] = one["schema"]
    return found


def faults(one, schema):
    import jsonschema  # pylint: disable=import-outside-toplevel  (fetched)
    for error in jsonschema.Draft202012Validator(schema).iter_errors(one):
        yield f"{'.'.join(str(each) for each in error.absolute_path)}: {error.message}"
    for where, spec in pod_specs(one, schema, ""):
        yield from pod_faults(where, spec)


def pod_specs(one, schema, where):
    if isinstance(one, dict):
        below = schema.get("properties", {})
        if schema.get("x-pod-spec"):  # what the other project added to it has a schema of its own
            yield where, {name: value for name, value in one.items() if below.get(name) == {}}
        for name, value in one.items():
            yield from pod_specs(value, below.get(name, {}), f"{where}.{name}" if where else name)
    elif isinstance(one, list):
        for index, value in enumerate(one):
            yield from pod_specs(value, schema.get("items", {}), f"{where}[{index}]")


def pod_faults(where, spec):
    import kubernetes_validate  # pylint: disable=import-outside-toplevel  (fetched)
    template = {"metadata": {"labels": {"app": "any"}}, "spec": spec}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"},
                  "spec": {"selector": {"matchLabels": {"app": "any"}}, "template": template}}
    try:
        kubernetes_validate.validate(deployment, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{where}: {error.message}"


def picker_faults(config, metrics):
    """Names in an EndpointPickerConfig that no schema can hold: of plugins, engines and of noren's metrics."""
    names = {one.get("name", one["type"]) for one in config["plugins"]}
    for profile in config["schedulingProfiles"]:
        yield from (f"{profile['name']}: no plugin {one['pluginRef']}" for one in profile["plugins"] if one["pluginRef"] not in names)
    for source in config["dataLayer"]["sources"]:
        yield from (f"no plugin {name}" for name in (source["pluginRef"], *(one["pluginRef"] for one in source["extractors"]))
                    if name not in names)
    for parameters in (one.get("parameters", {}) for one in config["plugins"]):
        engines = parameters.get("engineConfigs", [])
        if engines and parameters["defaultEngine"] not in {one["name"] for one in engines}:
            yield f"no engine {parameters['defaultEngine']}"
        yield from (f"noren has no metric {value}" for one in engines for key, value in one.items()
                    if key.endswith("Spec") and value not in metrics)
