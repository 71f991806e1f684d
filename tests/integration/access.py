#!/usr/bin/env python3
"""access.py BIN_DIR [--starts N]: who gets to what. The control socket refuses other users; nothing of the ops endpoint or the
control socket can be reached where clients connect, and nothing of the engine where operators do; of two norens that start at
once on one Unix path, N times over, one gets it. Ends with "N passed, N failed"."""
import argparse
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, free_port, wait_for  # noqa: E402

NOBODY, SOMEBODY = 65534, 65533
OPS_PATHS = ["/-/healthy", "/-/ready", "/-/status", "/-/config", "/-/drain-wait", "/-/drain-wait?begin_within=1", "/metrics"]
CONTROL_LINE = b'{"command": "drain"}\n'
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, str(detail).replace("\n", " | "), flush=True)


class Engine(http.server.ThreadingHTTPServer):
    """Says which request it has seen."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                text = f"engine: {self.command} {self.path}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *arguments):
        self.shutdown()
        super().__exit__(*arguments)


def raw(port, request):
    """What comes back until the end."""
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


def ask(port, method, path):
    return raw(port, f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


def drain_of(stack):
    return json.loads(stack.get("/-/status"))["drain"]


def ports(options):
    with Engine() as engine, Stack(options.bin, engine_port=engine.server_port) as stack:
        reached = {f"{method} {path}": ask(stack.port, method, path)
                   for path in OPS_PATHS + ["/-/drain", "/-/reload", "/-/undrain", "/-/limit", "/"] for method in ("GET", "POST")}
        wrong = {asked: answer for asked, answer in reached.items()
                 if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(f"engine: {asked}".encode())}
        check("whatever path a client asks for, it is the engine's", not wrong, wrong or f"{len(reached)} requests")
        for form in (f"http://127.0.0.1:{stack.ops}/-/status", f"//127.0.0.1:{stack.ops}/-/status"):
            answer = ask(stack.port, "GET", form)
            check(f"a target that names the ops endpoint, {form.split(str(stack.ops))[0]}..., leads to the engine or nowhere",
                  b"\r\n\r\nengine: GET " in answer or answer.startswith(b"HTTP/1.1 400 "), answer[:60])
        answer = raw(stack.port, f"CONNECT 127.0.0.1:{stack.ops} HTTP/1.1\r\nHost: 127.0.0.1:{stack.ops}\r\n\r\n".encode())
        check("CONNECT leads nowhere", answer.startswith(b"HTTP/1.1 405 "), answer[:60])
        for port, name in ((stack.port, "where clients connect"), (stack.ops, "at the ops endpoint")):
            answer = raw(port, CONTROL_LINE + b"\r\n\r\n")
            check(f"a line of the control socket is a bad request {name}", answer.startswith(b"HTTP/1.1 400 "), answer[:60])
        refused = {}
        for path in OPS_PATHS:
            for method in ("POST", "PUT", "DELETE"):
                if not (answer := ask(stack.ops, method, path)).startswith(b"HTTP/1.1 405 "):
                    refused[f"{method} {path}"] = answer
        check("the ops endpoint changes nothing: all but GET and HEAD is a 405", not refused, refused or "")
        answers = [ask(stack.ops, "GET", path) for path in ("/v1/models", "/v1/chat/completions", "/health", "/")]
        check("the ops endpoint leads to no engine", not any(b"engine: " in answer for answer in answers))
        check("after all of that nothing is changed", drain_of(stack) == "no" and stack.noren.poll() is None)


def other_users(options):
    if os.geteuid() != 0:
        print("     the control socket and other users: not tried, only root can become another user")
        return
    with tempfile.TemporaryDirectory(prefix="noren-test-") as programs:
        os.chmod(programs, 0o755)
        for program in ("noren", "noren-sim"):  # where every user can run them
            shutil.copy(os.path.join(options.bin, program), programs)
        for owner in (0, NOBODY):
            users_of(programs, owner)


def users_of(programs, owner):
    """A noren that runs as owner, and others."""
    def ctl(user, *command):
        return subprocess.run([os.path.join(programs, "noren"), "ctl", *command, "--socket", stack.control], user=user, group=user,
                              extra_groups=[], capture_output=True, text=True, timeout=30, check=False)
    stack = Stack(programs, user=owner, group=owner, extra_groups=[])
    os.chown(stack.folder.name, owner, owner)
    os.chmod(stack.folder.name, 0o755)
    with stack:
        mode = os.stat(stack.control)
        check(f"a noren of user {owner}: its control socket is its own, and nobody else's", (mode.st_uid, mode.st_mode & 0o777) ==
              (owner, 0o600), oct(mode.st_mode))
        others = [user for user in (NOBODY, SOMEBODY) if user != owner]
        for user in others:
            said = ctl(user, "drain")
            check(f"user {user} does not get in", said.returncode == 1 and "not allowed to use" in said.stderr, said.stderr.strip())
        os.chmod(stack.control, 0o666)
        for user in others:
            for command in ("drain", "limit 1", "reload", "status"):
                said = ctl(user, *command.split())
                check(f"where the file lets user {user} in, noren refuses \"{command}\"", said.returncode == 1 and
                      "only the user that runs noren" in said.stderr and not said.stdout, said.stderr.strip())
        check("nothing of it was done", drain_of(stack) == "no" and stack.metrics()["noren_concurrency_limit"] == 256)
        for user in {0, owner}:
            said = ctl(user, "ready")
            check(f"user {user} is heard", said.returncode == 0, said.stderr.strip())


class Starter:
    """A noren that tries to listen at a path; its ops endpoint is anywhere."""

    def __init__(self, options, listen, config, log):
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen([os.path.join(options.bin, "noren"), "--config", config, "--listen", listen, "--upstream",
                                             "http://127.0.0.1:1", "--ops", "127.0.0.1:0"], stdout=output, stderr=output)

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def decided(self):
        return self.process.poll() is not None or '"msg":"serving"' in self.said()


def one_gets_it(options, folder, listen, what):
    """Two starters at once; whichever serves is killed, so that it leaves its sockets to the next two."""
    config = os.path.join(folder, "noren.yaml")
    good = True
    for turn in range(options.starts):
        starters = [Starter(options, listen or f"127.0.0.1:{free_port()}", config, os.path.join(folder, f"log{i}")) for i in range(2)]
        for starter in starters:
            wait_for("a noren to serve or to give up", starter.decided, 60)
        logs = [starter.said() for starter in starters]
        if listen:
            served = [starter.process.poll() is None for starter in starters]
            told = all(status == 1 for status in (starter.process.poll() for starter in starters) if status is not None)
        else:
            served, told = ['"msg":"no control socket"' not in log for log in logs], True
        status = subprocess.run([os.path.join(options.bin, "noren"), "ctl", "status", "--config", config], capture_output=True,
                                check=False).returncode
        for starter in starters:
            starter.process.kill()
            starter.process.wait()
        if sum(served) != 1 or not told or status != 0:
            good = False
            print(f"     round {turn}: served {served}, ctl status {status}: {' '.join(logs)}")
            break
    check(f"two norens at once on one {what}: one gets it, {options.starts} times", good)


def starts_at_once(options):
    with tempfile.TemporaryDirectory(prefix="noren-test-") as folder:
        with open(os.path.join(folder, "noren.yaml"), "w", encoding="utf-8") as file:
            file.write(f"control: {{socket: {folder}/control.sock}}\nlog: {{access: off}}\n")
        one_gets_it(options, folder, f"unix:{folder}/listen.sock", "Unix path for clients")
        one_gets_it(options, folder, None, "control socket")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--starts", type=int, default=20)
    options = parser.parse_args()
    for part in (ports, other_users, starts_at_once):
        part(options)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
