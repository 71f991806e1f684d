"""What every client shows with every engine whose API it speaks: one line each.

Clients are in clients/, engines in engines.py; what one of them cannot show stands there in its `cannot`."""
import functools
import time

from behaviour import Skip, behaviour, same, within
from clients import CLIENTS
from clients.apis import CALL
from clients.client import Ask, Background
from clients.openai_python import OpenAIPython
from engines import LlamaCpp, Simulator, Vllm, occupied
from stack import wait_for
from tap import Tap


class Trial:
    """A client at a site, or at a balancer before it."""

    def __init__(self, stack, client, site, url=None, **options):
        """options: of every Ask."""
        self.stack, self.client, self.site = stack, client, site
        self.noren, self.engine = site.noren, site.engine
        self.url, self.options = url or self.noren.url, options

    def asking(self, url=None, **options):
        return Ask(url=url or self.url, request_id=self.stack.fresh_id(), model=self.engine.model,
                   **self.options, **options)

    def directly(self, ask):
        """The same request without noren; noren-sim makes its text of the request's id."""
        return Ask(**{**vars(ask), "url": ask.url.replace(self.url, self.engine.url)})

    def answered(self, ask, on_event=lambda: None):
        seen = self.client.ask(ask, on_event)
        same("refused", seen.refused, None)
        line = self.noren.recorded(ask.request_id)
        same("outcome", (line["outcome"], line["status"], line["stream"]), ("ok", 200, ask.stream))
        same("noren's tokens and the client's", (line["input_tokens"], line["output_tokens"]),
             (seen.input_tokens, seen.output_tokens))
        return seen, line


def plain(trial):
    ask = trial.asking()
    seen, line = trial.answered(ask)
    same("text", seen.text, trial.client.ask(trial.directly(ask)).text)
    same("output tokens", seen.output_tokens, ask.max_tokens)
    assert seen.text, "no text"
    return f"{line['output_tokens']} tokens, the text as without noren"


def streamed(trial):
    """What comes in one go, or late, is no stream. A busy machine may delay a client, so it has three tries to see the events
    spread over half of the time at least that the engine took for them."""
    for _ in range(3):
        seen, line, share = one_stream(trial)
        if share >= 0.5:
            return f"{seen.events} events, spread over {share:.0%} of the engine's time, the text as without noren"
    raise AssertionError(f"the events were held back: spread over {share:.0%} of the engine's time")


def one_stream(trial):
    running, times = [], []

    def at_event():
        times.append(time.monotonic())
        if not running:
            running.append(trial.noren.running())

    ask = trial.asking(stream=True, max_tokens=trial.engine.stream_tokens)
    seen, line = trial.answered(ask, at_event)
    same("running in the engine at the first event", running, [1])
    same("events", seen.events, line["token_events"])
    same("text", seen.text, trial.client.ask(trial.directly(ask)).text)
    same("output tokens", seen.output_tokens, ask.max_tokens)
    same("ending", (line["complete"], line["output_tokens_source"]), (True, "usage"))
    return seen, line, (times[-1] - times[0]) * 1e3 / line["decode_ms"]


def tool_call(trial):
    for stream in (False, True):
        seen, line = trial.answered(trial.asking(tools=True, stream=stream))
        same("call", seen.tool, CALL)
    return f"get_weather(Paris), plain and streamed, {line['output_tokens']} tokens"


def engines_error(trial, status, ask):
    """The client understands the engine's error just as it does without noren, which claims none of it."""
    seen, direct = trial.client.ask(ask), trial.client.ask(trial.directly(ask))
    same("error", seen.refused, direct.refused)
    same("class and status", (seen.refused.kind, seen.refused.status), (trial.client.errors[status], status))
    same("x-noren-reason", seen.refused.reason, None)
    line = trial.noren.recorded(ask.request_id)
    same("logged status", line["status"], status)
    return f"{seen.refused.kind}: {seen.refused.message[:60]!r}"


def malformed(trial):
    return engines_error(trial, 400, trial.asking(malformed=True))


def no_such_path(trial):
    return engines_error(trial, 404, trial.asking(url=trial.url + "/nowhere"))


def refused(trial, status):
    """queue full: the client understands noren's own refusal, in the dialect of the API that it speaks."""
    ask = trial.asking()
    with trial.noren.admitting(max_queue=0, full_status=status), occupied(trial.site):
        error = trial.client.ask(ask).refused
        assert error, "not refused"
        same("class and status", (error.kind, error.status), (trial.client.errors[status], status))
        assert error.message.startswith("noren: "), error
        same("type", error.type, trial.client.error_types.get(status))
        assert error.reason in ("queue_full", None), error
    line = trial.noren.recorded(ask.request_id)
    same("logged", (line["outcome"], line["status"], line["reason"]), ("rejected", status, "queue_full"))
    return f"{error.kind}, {error.type or 'no type'}: {error.message!r}"


def refused_and_back(trial, status):
    """What the client was told and how long it waited, each time, until it was served behind who holds the engine for 3 s."""
    with trial.noren.admitting(max_queue=0, full_status=status), Tap(trial.url) as tap:
        ask = trial.asking(url=tap.url, retries=4, max_tokens=4)
        with occupied(trial.site, seconds=3):
            call = Background(lambda: trial.client.ask(ask))
            wait_for("the first try is refused", lambda: trial.noren.tries(ask.request_id), 60)
        seen = call.result()
    same("refused in the end", seen.refused, None)
    assert seen.text, "no text"
    wait_for("the last try is logged", lambda: trial.noren.tries(ask.request_id)[-1]["outcome"] == "ok")
    statuses = [line["status"] for line in trial.noren.tries(ask.request_id)]
    same("statuses", statuses, [status] * (len(statuses) - 1) + [200])
    waits = tap.returns()
    same("refusals that came to the client", [kind for kind, _, _ in waits], statuses[:-1])
    return waits


def retried(trial, status):
    """The client's own retries wait as long as Retry-After says, longer than they would by themselves, and then succeed."""
    # noren tells what requests take of late: after quick ones no more than a client waits anyhow. Each round has a slow one.
    for _ in range(5):
        waits = refused_and_back(trial, status)
        if waits[0][1] > trial.client.own_wait:
            break
    assert waits[0][1] > trial.client.own_wait, f"told {waits[0][1]} s, which the client would have waited anyhow"
    for _, told, waited in waits:
        within("seconds waited, as told", told - 0.05, waited, told + 10)
    return ", ".join(f"told {told} s, waited {waited:.2f} s" for _, told, waited in waits) + ", then answered"


def leaves(trial):
    ask = trial.asking(stream=True, max_tokens=8000 if isinstance(trial.engine, Vllm) else 1800, leave_after=4)
    busy = []

    def at_event():
        if len(busy) < 1:
            busy.append(trial.engine.busy())

    def after_leaving():
        wait_for("the engine's place is free", lambda: trial.engine.busy() == 0, 10)

    seen = trial.client.ask(ask, at_event, after_leaving)
    same("left", seen.left, True)
    same("requests in the engine while it streamed", busy, [1])
    line = trial.noren.recorded(ask.request_id)
    same("logged", (line["outcome"], line["complete"]), ("client_closed", False))
    within("token events", seen.events, line["token_events"], ask.max_tokens - 1)
    wait_for("noren's place is free", lambda: trial.noren.running() == 0)
    return f"left at event {seen.events}, the engine stopped at {line['token_events']} of {ask.max_tokens}"


BEHAVIOURS = {
    "plain": plain,
    "streamed": streamed,
    "tool call": tool_call,
    "400 of the engine": malformed,
    "404 of the engine": no_such_path,
    "429 of noren": lambda trial: refused(trial, 429),
    "503 of noren": lambda trial: refused(trial, 503),
    "retries after 429": lambda trial: retried(trial, 429),
    "retries after 503": lambda trial: retried(trial, 503),
    "leaves mid-stream": leaves,
}


def trial_of(client, engine, name):
    def run(stack):
        why_not = client.cannot.get(name) or engine.cannot.get(name)
        if why_not:
            raise Skip(why_not)
        patient = name.startswith("retries") and client.own_wait >= 1
        return BEHAVIOURS[name](Trial(stack, client, long_held(stack, engine) if patient else stack.site(engine)))
    return run


@functools.cache
def long_held(stack, engine):
    """A noren of its own that has seen one long answer and no short ones: it tells its Retry-After by them."""
    site = stack.site(engine, "long-held")
    ask = Ask(site.noren.url, stack.fresh_id(), engine.model, stream=True, max_tokens=8 * engine.stream_tokens)
    same("refused", OpenAIPython().ask(ask).refused, None)
    return site


def not_installed(_):
    raise Skip("not installed: run.sh --vllm (6 GB, a quarter of an hour)")


for engine_class in (LlamaCpp, Simulator, Vllm):
    if not engine_class.installed():
        behaviour("every client", "every behaviour", engine_class.name)(not_installed)
        continue
    for each in CLIENTS:
        if each.api in engine_class.apis:
            for title in BEHAVIOURS:
                behaviour(each.name, title, engine_class.name)(trial_of(each, engine_class, title))
