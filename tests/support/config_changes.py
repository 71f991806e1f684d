"""The ways in which a config file gets new content. Each is called with the path and the text."""
import os


def in_place(path, text):
    with open(path, "r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()


def rename(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def editor(path, text):
    """As vim saves: the old file becomes a backup, a new one is written under the name."""
    os.rename(path, path + "~")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.unlink(path + "~")


class ConfigMap:
    """As kubelet updates a mounted ConfigMap: a new directory, and the ..data link swapped over to it."""

    def __init__(self):
        self.version = 0

    def __call__(self, path, text):
        folder, name = os.path.split(path)
        self.version += 1
        fresh = os.path.join(folder, f"..v{self.version}")
        os.makedirs(fresh)
        with open(os.path.join(fresh, name), "w", encoding="utf-8") as file:
            file.write(text)
        data = os.path.join(folder, "..data")
        os.symlink(os.path.basename(fresh), data + "_tmp")
        os.rename(data + "_tmp", data)
        if not os.path.islink(path):
            os.symlink(os.path.join("..data", name), path + "_tmp")
            os.rename(path + "_tmp", path)
