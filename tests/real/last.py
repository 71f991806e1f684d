"""The engine is killed: nothing can come after this."""
import openai

from behaviour import behaviour, same, within
from clients.client import PROMPT
from clients.openai_python import chat, openai_client
from stack import wait_for


@behaviour("openai (Python)", "the engine dies mid-stream: no clean end, then 502 or 503")
def engine_dies(stack):
    request_id = stack.fresh_id()
    stream = chat(openai_client(stack.noren.url, request_id), PROMPT, 1800, stream=True)
    for _ in zip(range(6), stream):
        pass
    stack.engine.process.kill()
    stack.engine.process.wait()
    try:
        list(stream)
        raise AssertionError("a cut stream ended as if it were whole")
    except AssertionError:
        raise
    except Exception as error:  # the SDK lets its transport's error through here
        kind = type(error).__name__
    line = stack.noren.recorded(request_id)
    same("outcome", (line["outcome"], line["reason"], line["complete"]), ("upstream_error", "upstream_reset", False))

    def refusal_of_the_next():
        try:
            chat(openai_client(stack.noren.url, stack.fresh_id()), "Hello", 4)
        except openai.InternalServerError as error:
            same("reason", error.response.headers["x-noren-reason"], "upstream_connect")
            return error
        raise AssertionError("an answer without an engine")

    # Until the next health probe noren has only this one connection's word for it: 502. Then it knows: 503.
    first = refusal_of_the_next().status_code
    assert first in (502, 503), f"status {first}"
    wait_for("noren_upstream_up 0", lambda: stack.noren.metrics().total("noren_upstream_up") == 0)
    second = refusal_of_the_next()
    same("status of an engine known to be down", second.status_code, 503)
    within("retry-after", 1, int(second.response.headers["retry-after"]), 60)
    return f"{kind}, then {first}, then 503 with Retry-After"
