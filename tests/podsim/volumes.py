"""A pod's volumes as the kubelet lays them on disk."""
import os
import shutil


def write_atomically(folder, files):
    """As the kubelet's AtomicWriter: a new directory, and the ..data link swapped over to it."""
    link = os.path.join(folder, "..data")
    old = os.readlink(link) if os.path.islink(link) else None
    version = int(old.rsplit("_", 1)[1]) + 1 if old else 1
    fresh = f"..version_{version}"
    os.mkdir(os.path.join(folder, fresh), 0o755)
    for name, text in files.items():
        with open(os.path.join(folder, fresh, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.symlink(fresh, link + "_tmp")
    os.rename(link + "_tmp", link)
    for name in files:
        if not os.path.islink(os.path.join(folder, name)):
            os.symlink(os.path.join("..data", name), os.path.join(folder, name))
    if old:
        shutil.rmtree(os.path.join(folder, old))


class Volumes:
    """Sources for a pod's mounts. config_maps: name to data; annotations: the pod's."""

    def __init__(self, folder, specs, config_maps, annotations):
        self.folder, self.specs = folder, {spec["name"]: spec for spec in specs}
        self.config_maps, self.annotations = config_maps, annotations
        for name in self.specs:
            os.makedirs(self.path(name))
            os.chmod(self.path(name), 0o777 if "emptyDir" in self.specs[name] else 0o755)
        self.sync()

    def path(self, name):
        return os.path.join(self.folder, name)

    def files_of(self, spec):
        if "configMap" in spec:
            return self.config_maps[spec["configMap"]["name"]]
        if "downwardAPI" in spec:
            return {item["path"]: self.field(item["fieldRef"]["fieldPath"]) for item in spec["downwardAPI"]["items"]}
        return None

    def field(self, path):
        prefix = "metadata.annotations['"
        assert path.startswith(prefix) and path.endswith("']"), path
        return self.annotations.get(path[len(prefix):-2], "")

    def sync(self):
        """What the kubelet does once a minute, and at once when the pod is changed: for instance annotated."""
        for name, spec in self.specs.items():
            files = self.files_of(spec)
            if files is not None and files != self.current(name, files):
                write_atomically(self.path(name), files)

    def current(self, name, files):
        found = {}
        for file in files:
            try:
                with open(os.path.join(self.path(name), file), encoding="utf-8") as content:
                    found[file] = content.read()
            except FileNotFoundError:
                pass
        return found
