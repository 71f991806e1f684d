#!/usr/bin/env python3
"""quickstart.py: deploy/quickstart.sh on ports that nobody else has: the whole demo, and what it must not do: send its load
to somebody who listens there already, wait in silence, load an engine it was told to leave alone. Ends with "N passed, N failed"."""
import contextlib
import http.server
import os
import re
import socket
import subprocess
import sys
import threading

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(TOP, "tests"))
from support.harness import free_port  # noqa: E402

VARIABLES = ("NOREN_QUICKSTART_PORT", "NOREN_QUICKSTART_OPS_PORT", "NOREN_QUICKSTART_ENGINE_PORT")
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, "" if good else detail.replace("\n", " | "), flush=True)


def start(*arguments, **ports):
    """With any free ports, or those given."""
    environment = {**os.environ, **dict.fromkeys(VARIABLES, "0"), **ports}
    return subprocess.Popen(["bash", os.path.join(TOP, "deploy/quickstart.sh"), *arguments], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run(*arguments, **ports):
    process = start(*arguments, **ports)
    said, _ = process.communicate(timeout=550)
    return process.returncode, said


@contextlib.contextmanager
def engine():
    """Answers everything with an empty list of models; the paths that were asked for."""
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "11")
            self.end_headers()
            self.wfile.write(b'{"data":[]}')

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def taken_ports():
    for variable in VARIABLES:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            status, said = run("--once", "--short", **{variable: str(port)})
            check(f"a port that is taken is no place to start: {variable}",
                  status == 1 and f"port {port} is in use; set {variable}" in said, f"status {status}: {said}")
            other.setblocking(False)
            heard = b""
            with contextlib.suppress(BlockingIOError):
                while True:
                    with other.accept()[0] as connection:
                        connection.settimeout(10)
                        heard += connection.recv(4096)
            check("... and whoever listens there hears nothing", heard == b"", repr(heard))


def dead_engine():
    port = free_port()
    with start("--once", "--upstream", f"http://127.0.0.1:{port}") as process:
        told = next((line for line in process.stdout if "is not up" in line), "")
        check("an engine that is not there: says why it waits", "Connection refused" in told, told)
        process.terminate()
        process.communicate(timeout=60)


def without_load():
    with engine() as (url, asked):
        status, said = run("--once", "--no-load", "--upstream", url)
        check("--no-load: shows where noren is", status == 0 and "/v1/chat/completions" in said, said)
        check("... and the engine gets nothing but health probes", asked and set(asked) == {"/health"}, str(set(asked)))


def whole():
    status, said = run("--once", "--short")
    found = {name: int(number) for name, number in re.findall(r"^  ([a-z ]+?) {2,}(\d+)$", said, re.M)}
    check("the whole demo", status == 0 and found.get("requests ended", 0) > 0 and found.get("output tokens", 0) > 0, said[-2000:])


def main():
    status, said = run("--help")
    check("--help names the variables", status == 0 and all(one in said for one in VARIABLES), said)
    check("an unknown option is wrong usage", run("--explode")[0] == 2)
    for test in (taken_ports, dead_engine, without_load, whole):
        test()
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
