"""Becomes one container's process: a root of its own over this machine's, the pod's volumes, the security context of the
manifest. Run by kubelet.py inside a private mount namespace; the argument is the container as JSON."""
import json
import os
import subprocess
import sys


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def make_root(container):
    """This machine's files, nothing of which can be changed from inside."""
    folder = container["folder"]
    mount("-t", "tmpfs", "tmpfs", folder)
    upper, work, root = (os.path.join(folder, name) for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        os.mkdir(path)
    os.chmod(upper, 0o755)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", root)
    mount("--rbind", "/dev", root + "/dev")
    mount("--rbind", "/proc", root + "/proc")
    for source, target, read_only in container["mounts"]:
        place = root + target
        if os.path.isdir(source):
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "ab"):
                pass
        mount("--bind", source, place)
        if read_only:
            mount("-o", "remount,bind,ro", place)
    if container["read_only_root"]:
        mount("-o", "remount,ro", root)
    return root


def as_user(container, command):
    """The command under the container's user and without any capability; as it is, if the container has none."""
    if not container["uid"]:
        return list(command)
    return ["setpriv", f"--reuid={container['uid']}", "--regid=0", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs", *command]


def main():
    container = json.loads(sys.argv[1])
    root = make_root(container)
    os.chroot(root)
    os.chdir("/")
    command = as_user(container, container["command"])
    os.execvpe(command[0], command, container["env"])


if __name__ == "__main__":
    main()
