#!/usr/bin/env python3
"""Real clients, noren, real engines: does it work, and does noren's account agree with the engine's own?

Every behaviour is one line, `ok`, `FAIL` or `SKIP`; the last line has the totals. README.md says what each compares.
"""
import argparse
import itertools
import pathlib
import re
import shutil
import signal
import sys
import time
import traceback

# Each adds its behaviours to the list, in this order.
import answers  # noqa: F401
import limits  # noqa: F401
import matrix  # noqa: F401
import curl_ways  # noqa: F401
import balancers  # noqa: F401
import load  # noqa: F401
import broken  # noqa: F401
import last  # noqa: F401
from behaviour import ALL, Skip
from engines import LlamaCpp, Simulator, Site, Vllm
from stack import Noren


class Stack:
    """What a behaviour works with: sites, each started when it is asked for first."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, program
        self.processes, self.engines, self.sites = [], {}, {}
        self.ids = itertools.count(1)

    def site(self, engine_class, name="noren", **noren_options):
        """A noren of that name before the engine of that class."""
        if (engine_class, name) not in self.sites:
            engine = self.running(engine_class)
            noren = Noren(self.folder, self.program, engine.url, f"{name}-{engine_class.__name__.lower()}", **noren_options)
            self.sites[engine_class, name] = Site(engine, self.keep(noren))
        return self.sites[engine_class, name]

    def running(self, engine_class):
        if engine_class not in self.engines:
            arguments = {LlamaCpp: (self.model,), Simulator: (self.simulator,), Vllm: ()}
            self.engines[engine_class] = self.keep(engine_class(self.folder, *arguments[engine_class])).ready()
        return self.engines[engine_class]

    @property
    def simulator(self):
        return self.program.with_name("noren-sim")

    @property
    def model(self):
        return self.folder.parent / "gemma-3-270m-q4_k_m.gguf"

    @property
    def llama(self):
        return self.site(LlamaCpp)

    @property
    def engine(self):
        return self.llama.engine

    @property
    def noren(self):
        return self.llama.noren

    def embedding(self):
        """A site of its own: an engine serves embeddings or text."""
        if "embedding" not in self.sites:
            engine = self.keep(LlamaCpp(self.folder, self.model, embedding=True)).ready()
            noren = Noren(self.folder, self.program, engine.url, "embedding-noren")
            self.sites["embedding"] = Site(engine, self.keep(noren))
        return self.sites["embedding"]

    def keep(self, process):
        self.processes.append(process)
        return process

    def fresh_id(self):
        return f"real-{next(self.ids):04d}"

    def end(self):
        for process in reversed(self.processes):
            process.end()


def run_all(stack, only):
    counts = {"ok  ": 0, "FAIL": 0, "SKIP": 0}
    for client, engine, name, behaviour in ALL:
        title = f"{client} x {engine}: {name}"
        if not only.search(title):
            continue
        start = time.monotonic()
        try:
            verdict, detail = "ok  ", behaviour(stack)
        except Skip as reason:
            verdict, detail = "SKIP", str(reason)
        except Exception as error:  # whatever a client library raises is a failure of this behaviour only
            verdict, detail = "FAIL", f"{type(error).__name__}: {error}"
            where = traceback.extract_tb(error.__traceback__)[-1]
            detail += f" ({pathlib.Path(where.filename).name}:{where.lineno})"
        counts[verdict] += 1
        print(f"{verdict} {title}: {detail} [{time.monotonic() - start:.1f} s]", flush=True)
    print("\n{} passed, {} failed, {} skipped".format(*counts.values()))
    return counts["FAIL"] == 0 and counts["ok  "] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noren", required=True, type=pathlib.Path, help="the program under test; noren-sim beside it")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder for logs and config")
    parser.add_argument("--keep", action="store_true", help="leave that folder there")
    parser.add_argument("--only", default="", type=re.compile, help="lines whose title has this regular expression")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("out of time"))
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    stack = Stack(arguments.work.resolve(), arguments.noren.resolve())
    try:
        good = run_all(stack, arguments.only)
    finally:
        stack.end()
    if good and not arguments.keep:
        shutil.rmtree(arguments.work)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
