"""Rules that no schema holds: for noren's container, for its pod, and for every object."""
import re

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
MOUNTS = ("/etc/noren", "/etc/podinfo", "/run/noren")


def find_containers(thing, name="noren"):
    """Every container of that name, however deep and whatever the kind of the object; JSON patches too."""
    if isinstance(thing, dict):
        if thing.get("name") == name and "image" in thing and "volumeMounts" in thing:
            yield thing
        for value in thing.values():
            yield from find_containers(value, name)
    elif isinstance(thing, list):
        for value in thing:
            yield from find_containers(value, name)


def container_faults(container):
    security = container.get("securityContext", {})
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True,
              "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    if security != wanted:  # a fixed uid or fsGroup would keep it out of OpenShift's restricted-v2
        yield f"securityContext is {security}"
    if "cpu" in container.get("resources", {}).get("limits", {}):
        yield "it has a CPU limit"
    if container["image"].endswith(":latest") or not re.search(r"[:@]", container["image"]):
        yield f"image {container['image']}"
    probes = {kind: container.get(kind, {}).get("httpGet", {}).get("path") for kind in
              ("startupProbe", "livenessProbe", "readinessProbe")}
    if probes != {"startupProbe": "/-/healthy", "livenessProbe": "/-/healthy", "readinessProbe": "/-/ready"}:
        yield f"probes {probes}"
    if any("host" in container[kind]["httpGet"] for kind in probes):
        yield "a probe names a host: 127.0.0.1 there is the node"
    if any(len(port.get("name", "")) > 15 for port in container["ports"]):
        yield "a port's name is longer than 15 characters"
    if tuple(mount["mountPath"] for mount in container["volumeMounts"]) != MOUNTS:
        yield "mounts"
    if any("subPath" in mount for mount in container["volumeMounts"]):
        yield "subPath: changes never arrive"
    if container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        yield "terminationMessagePolicy"


def handler_faults(thing, where=""):
    """Probes and hooks in it, however deep: each has one handler, which no schema says."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            if key in ("preStop", "postStart") or key.endswith("Probe") and isinstance(value, dict):
                found = [name for name in HANDLERS if name in value]
                if len(found) != 1:
                    yield f"{where}.{key} has {' and '.join(found) or 'no handler'}"
            yield from handler_faults(value, f"{where}.{key}")
    elif isinstance(thing, list):
        for index, value in enumerate(thing):
            yield from handler_faults(value, f"{where}[{index}]")


def object_faults(one):
    """Of any object of ours."""
    kind, spec = one.get("kind"), one.get("spec", {})
    yield from handler_faults(spec)
    if kind == "Service" and one["metadata"]["name"].startswith("noren"):
        if not all(isinstance(port.get("targetPort"), int) for port in spec["ports"]):
            yield "a targetPort by name: names of native sidecars' ports do not resolve before 1.33"
    if kind == "PodDisruptionBudget" and "minAvailable" in spec:
        yield "minAvailable blocks the node of a single replica"
    if kind in ("ScaledObject", "HorizontalPodAutoscaler"):
        behavior = spec.get("behavior") or spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        if behavior["scaleDown"]["stabilizationWindowSeconds"] < 600:
            yield "scales down within 10 minutes: loading a model takes as long"
    if kind == "ConfigMap" and re.search(r"-[a-z0-9]{10}$", one["metadata"]["name"]):
        yield "the name has a hash: a changed limit would restart pods"


def same_truth(container):
    """What must be the same wherever the container stands: all but the port it listens on and the layout."""
    kept = {key: value for key, value in container.items() if key not in ("restartPolicy", "image")}
    kept["env"] = sorted((one["name"], "" if one["name"] == "NOREN_LISTEN" else one["value"]) for one in container["env"])
    return kept
