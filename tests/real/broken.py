"""Each of these breaks one thing on purpose: the behaviour that is about it must then fail, and for that reason."""
import contextlib
import re
import unittest.mock

from openai._base_client import BaseClient

from balancers import Nginx, cancelled, exact
from behaviour import behaviour
from clients.openai_python import OpenAIPython
from engines import Simulator, Site
from matrix import BEHAVIOURS, Trial
from stack import Noren
from tap import HoldingTap


def must_fail(why, behave, *arguments):
    try:
        found = behave(*arguments)
    except Exception as error:  # what it should do; anything but this reason is a fault of the test
        said = f"{type(error).__name__}: {error}"
        assert re.search(why, said), f"failed for another reason: {said}"
        return f"fails as it should: {said[:100]}"
    raise AssertionError(f"passed all the same: {found}")


def openai_at(stack, site=None, url=None, **options):
    return Trial(stack, OpenAIPython(), site or stack.site(Simulator), url, **options)


@contextlib.contextmanager
def faulty(stack, fault):
    """noren before an engine that does this to every request."""
    engine = Simulator(stack.folder, stack.simulator, "faulty", "--fault", fault).ready()
    try:
        noren = Noren(stack.folder, stack.program, engine.url, "faulty-noren")
        try:
            yield Site(engine, noren)
        finally:
            noren.end()
    finally:
        engine.end()


@behaviour("broken", "a proxy that holds streams back: streamed fails", "noren-sim")
def holds_back_from_an_sdk(stack):
    with HoldingTap(stack.site(Simulator).noren.url) as tap:
        return must_fail("running in the engine at the first event|held back", BEHAVIOURS["streamed"],
                         openai_at(stack, url=tap.url))


@behaviour("broken", "nginx that keeps a client's leaving to itself: a client that leaves fails", "noren-sim")
def keeps_quiet(stack):
    process = Nginx(stack.folder, stack.site(Simulator).noren, proxy_ignore_client_abort="on")
    try:
        return must_fail("the engine hears of it", cancelled, stack, process, stack.site(Simulator))
    finally:
        process.end()


@behaviour("broken", "a proxy that holds streams back: byte-exact, and nothing is held back, fails", "noren-sim")
def holds_back(stack):
    site = stack.site(Simulator)
    with HoldingTap(site.noren.url) as tap:
        return must_fail("timed out", exact, stack, tap, site)


@behaviour("broken", "an SDK that ignores Retry-After: retries after 429 fails", "noren-sim")
def ignores_retry_after(stack):
    with unittest.mock.patch.object(BaseClient, "_parse_retry_after_header", lambda *_: None):
        return must_fail("seconds waited, as told|refused in the end", BEHAVIOURS["retries after 429"], openai_at(stack))


@behaviour("broken", "an engine that falls silent: streamed fails", "noren-sim")
def silent(stack):
    with faulty(stack, "stall@900") as site:
        return must_fail("Timeout", BEHAVIOURS["streamed"], openai_at(stack, site, timeout=4))


@behaviour("broken", "an engine that cuts its stream: streamed fails", "noren-sim")
def cut(stack):
    with faulty(stack, "cut@900") as site:
        return must_fail("incomplete|closed|Connection|Protocol", BEHAVIOURS["streamed"], openai_at(stack, site))


@behaviour("broken", "an engine that answers 500 to all: 400 of the engine fails", "noren-sim")
def wrong_status(stack):
    with faulty(stack, "early:500") as site:
        return must_fail("class and status", BEHAVIOURS["400 of the engine"], openai_at(stack, site))
