"""What a client is asked to do, what it says it saw, and what a client is."""
import dataclasses
import json
import threading

PROMPT = "The sea was calm, and the old keeper of the lighthouse began to write a letter to his"


@dataclasses.dataclass
class Ask:
    """One request. `url` is noren's, the engine's own, or that of a balancer before noren."""

    url: str
    request_id: str
    model: str
    max_tokens: int = 16
    stream: bool = False
    tools: bool = False
    malformed: bool = False  # a message of the wrong type: the engine says 400
    retries: int = 0  # of the client's own
    timeout: float = 60.0  # seconds, of the client's own
    leave_after: int | None = None  # pieces of text of a stream, then the client leaves in its own way


@dataclasses.dataclass
class Refused:
    """An error, as the client's library understood it."""

    kind: str  # the class of the error; curl: its exit status
    status: int
    message: str
    type: str | None = None
    reason: str | None = None  # the field x-noren-reason: noren's own word, never an engine's


@dataclasses.dataclass
class Seen:
    text: str = ""
    events: int = 0  # pieces of text
    input_tokens: int | None = None
    output_tokens: int | None = None
    tool: tuple | None = None  # name, arguments
    refused: Refused | None = None
    left: bool = False


class Client:
    """A client library or program. To add one: a class like those beside this file, and its name in __init__.py."""

    name: str
    api: type  # of apis.py
    errors: dict  # status: kind
    error_types = {}  # status of noren's own refusals: type
    own_wait = 0.5  # seconds at most before its first retry, if nobody tells it another time
    cannot = {}  # behaviour: why this client does not show it

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        """Does it and says what was seen. on_event is called at each piece of text of a stream as it comes, on_left
        when the client has left and is still alive."""
        raise NotImplementedError


class Background(threading.Thread):
    """A call on a thread of its own; result() gives what it returned or raises what it raised."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.value, self.error = call, None, None
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except Exception as error:  # for result()
            self.error = error

    def result(self, seconds=120):
        self.join(seconds)
        assert not self.is_alive(), f"no end within {seconds} s"
        if self.error:
            raise self.error
        return self.value


def arguments_of(text):
    return json.loads(text) if isinstance(text, str) else dict(text)
