#!/usr/bin/env python3
"""Real clients, noren, a real engine: does it work, and does noren's account agree with the engine's own?

Every behaviour is one line, `ok` or `FAIL`; the last line has the totals. README.md says what each compares.
"""
import argparse
import itertools
import pathlib
import shutil
import signal
import sys
import time
import traceback

import behaviours
from stack import Engine, Noren


class Stack:
    """What a behaviour works with."""

    def __init__(self):
        self.processes = []
        self.ids = itertools.count(1)

    def start(self, folder, program):
        model = folder.parent / "gemma-3-270m-q4_k_m.gguf"
        self.engine = self.keep(Engine(folder, model))
        self.engine.ready()
        self.embedding_engine = self.keep(Engine(folder, model, embedding=True))
        self.embedding_engine.ready()
        self.noren = self.keep(Noren(folder, program, self.engine.url))
        self.embedding_noren = self.keep(
            Noren(folder, program, self.embedding_engine.url, name="embedding-noren"))

    def keep(self, process):
        self.processes.append(process)
        return process

    def fresh_id(self):
        return f"real-{next(self.ids):04d}"

    def end(self):
        for process in reversed(self.processes):
            process.end()


def run_all(stack):
    passed = failed = 0
    for client, engine, name, behaviour in behaviours.ALL:
        start = time.monotonic()
        try:
            verdict, detail = "ok  ", behaviour(stack)
            passed += 1
        except Exception as error:  # whatever a client library raises is a failure of this behaviour only
            verdict, detail = "FAIL", f"{type(error).__name__}: {error}"
            where = traceback.extract_tb(error.__traceback__)[-1]
            detail += f" ({pathlib.Path(where.filename).name}:{where.lineno})"
            failed += 1
        print(f"{verdict} {client} x {engine}: {name}: {detail} [{time.monotonic() - start:.1f} s]", flush=True)
    print(f"\n{passed} passed, {failed} failed")
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noren", required=True, type=pathlib.Path, help="the program under test")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder for logs and config")
    parser.add_argument("--keep", action="store_true", help="leave that folder there")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("out of time"))
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    stack = Stack()
    try:
        stack.start(arguments.work, arguments.noren.resolve())
        good = run_all(stack)
    finally:
        stack.end()
    if good and not arguments.keep:
        shutil.rmtree(arguments.work)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
