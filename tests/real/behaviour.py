"""The list of what is tried, and the words of its checks."""

ALL = []


class Skip(Exception):
    """It cannot be tried here, and this is why."""


def behaviour(client, name, engine="llama.cpp"):
    """Adds a function to the list. It gets the stack; it raises, or returns a few words on what it found."""
    def add(function):
        ALL.append((client, engine, name, function))
        return function
    return add


def same(what, found, expected):
    assert found == expected, f"{what}: {found}, expected {expected}"


def within(what, low, value, high):
    assert low <= value <= high, f"{what}: {value:.1f} is not within {low:.1f}..{high:.1f}"


def same_tokens(line, usage, timings):
    """noren's counts, the usage that the client got and the engine's timings are one and the same."""
    same("noren's input_tokens", line["input_tokens"], usage.prompt_tokens)
    same("noren's output_tokens", line["output_tokens"], usage.completion_tokens)
    same("output tokens in usage and timings", usage.completion_tokens, timings["predicted_n"])
    same("prompt tokens in usage and timings", usage.prompt_tokens, timings["prompt_n"] + timings["cache_n"])
