"""The engines, each with noren before it. To add one: a class like these, and a Site of it in real_engine.py."""
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

from clients.apis import WHOLE, Anthropic, Ollama, OpenAI
from clients.client import PROMPT
from clients.openai_python import MODEL
from stack import Metrics, Noren, Process, free_port, get, wait_for

HERE = pathlib.Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Engine(Process):
    name: str
    model: str
    apis: tuple  # of clients/apis.py
    stream_tokens: int  # a stream of so many is not over before one has looked at it
    cannot = {}  # behaviour: why this engine does not show it

    @classmethod
    def installed(cls):
        return True

    def ready(self):
        """Waits until it answers."""
        wait_for(f"{self.name} is ready", lambda: self.alive() and answers(self.url + "/health"), 420)
        return self

    def busy(self):
        """Requests it is working on now."""
        raise NotImplementedError

    def endless(self):
        """A streamed request that is not done by itself within a test: path, body."""
        raise NotImplementedError


class LlamaCpp(Engine):
    """llama.cpp with the real model."""

    name = "llama.cpp"
    model = MODEL
    apis = (OpenAI, Anthropic)
    stream_tokens = 24

    def __init__(self, folder, model, embedding=False):
        command = [sys.executable, str(HERE / "llama_server.py"), "--model", str(model)]
        super().__init__("embedding-engine" if embedding else "engine",
                         command + (["--embedding"] if embedding else []), folder, stdin=subprocess.PIPE)

    def ready(self):
        def address():
            self.alive()
            return re.search(r"^ready (http://\S+)$", self.out_path.read_text(errors="replace"), re.M)

        self.url = wait_for("the engine is ready", address, 120)[1]
        return self

    def metrics(self):
        return Metrics(self.url + "/metrics")

    def busy(self):
        return sum(slot["is_processing"] for slot in json.loads(get(self.url + "/slots")))

    def endless(self):
        return OpenAI.path, {"model": self.model, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 1800,
                             "stream": True, **WHOLE}


class Simulator(Engine):
    """noren-sim, an engine without a model: here for Ollama's API, whose server no package registry has."""

    name = "noren-sim as Ollama"
    model = "sim-7b"
    apis = (Ollama,)
    stream_tokens = 24
    cannot = {"tool call": "noren-sim calls no tools"}

    def __init__(self, folder, program, name="simulator", *options):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # A time of its own making: the same request gets the same bytes again.
        super().__init__(name, [str(program), "--listen", f"127.0.0.1:{self.port}", "--ttft", "0.05", "--tps", "25",
                                "--gap", "fixed", "--created", "1700000000", *options], folder)

    def busy(self):
        return json.loads(get(self.url + "/sim/state"))["active"]

    def endless(self):
        return Ollama.path, {"model": self.model, "messages": [], "stream": True, "options": {"num_predict": 4000}}


class Vllm(Engine):
    """vLLM on the CPU: a tiny Llama with random weights (vllm_model.py)."""

    name = "vLLM"
    model = "tiny"
    apis = (OpenAI, Anthropic)
    stream_tokens = 400  # some ms each
    cannot = {"tool call": "random weights call no tools"}
    program = pathlib.Path(sys.prefix).parent / "vllm" / "bin" / "vllm"

    def __init__(self, folder):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        model = folder / "tiny"
        subprocess.run([self.program.with_name("python"), str(HERE / "vllm_model.py"), str(model)], check=True)
        environment = {**os.environ, **ONE_THREAD, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
                       "VLLM_HOST_IP": "127.0.0.1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1",
                       "CUDA_VISIBLE_DEVICES": ""}
        super().__init__("vllm", [str(self.program), "serve", str(model), "--served-model-name", self.model, "--load-format",
                                  "dummy", "--enforce-eager", "--max-model-len", "8192", "--max-num-seqs", "4",
                                  "--host", "127.0.0.1", "--port", str(port)], folder, env=environment)

    @classmethod
    def installed(cls):
        return cls.program.exists()

    def busy(self):
        return Metrics(self.url + "/metrics").total("vllm:num_requests_running")

    def endless(self):
        return OpenAI.path, {"model": self.model, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 8000,
                             "stream": True, "ignore_eos": True}


def answers(url):
    try:
        get(url)
        return True
    except OSError:
        return False


@dataclasses.dataclass
class Site:
    """An engine and the noren before it."""

    engine: Process
    noren: Noren

    def address(self):
        return urllib.parse.urlsplit(self.noren.url).netloc


@contextlib.contextmanager
def occupied(site, seconds=0.0):
    """A stream that holds the only place, from its first byte until the block ends, and for so long at least: then its
    client leaves. What a place is held for goes into noren's Retry-After."""
    path, body = site.engine.endless()
    holder = http.client.HTTPConnection(site.address(), timeout=60)
    begin = time.monotonic()
    holder.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = holder.getresponse()
    assert answer.status == 200 and answer.read(1), f"the holder got {answer.status}"
    try:
        yield
        time.sleep(max(0.0, begin + seconds - time.monotonic()))
        assert site.engine.busy() >= 1, "the holder is not served any more"
    finally:
        answer.close()
        holder.close()
        wait_for("the engine is idle", lambda: site.engine.busy() == 0)
