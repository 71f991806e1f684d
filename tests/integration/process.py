#!/usr/bin/env python3
"""process.py BIN_DIR: noren as a process: its standard descriptors closed, stuck or without a reader, its command line, the
addresses it listens on, and the hook that holds an engine until a drain is over. Ends with "N passed, N failed"."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, free_port, is_listening, wait_for  # noqa: E402

RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail.replace("\n", " | "), flush=True)


def noren(options, *arguments, **popen):
    return subprocess.run([os.path.join(options.bin, "noren"), *arguments], capture_output=True, text=True, timeout=30,
                          check=False, **popen)


class Options:
    def __init__(self, bin_dir):
        self.bin = bin_dir


def ask(stack, path="/v1/models"):
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.port}{path}", timeout=20) as answer:
        return answer.status


def load(stack, requests):
    """Whether so many streamed requests came back whole."""
    command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "-c", "32", "-n", str(requests),
               "--max-tokens", "1", "--json"]
    run = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout)["runs"][0]
    return run["ok"] == requests


def ends(process, what):
    """SIGTERM is enough, however its output stands. The bound tells "some seconds" from "never"."""
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(40)
    except subprocess.TimeoutExpired:
        status = "it did not end"
    check(f"{what}: SIGTERM ends it", status == 0, f"status {status} after {time.monotonic() - start:.1f} s")


def echoes(options):
    """The signal that ends it comes again and again, as from timeout(1) or a wrapper: at no moment of its end is it fatal."""
    ended = []
    for sign in (signal.SIGTERM, signal.SIGINT) * 5:
        with Stack(options.bin, config="drain: {lame_duck: 0}\n") as stack:
            stack.noren.send_signal(sign)
            while stack.noren.poll() is None:
                stack.noren.send_signal(sign)
            ended.append(stack.noren.returncode)
    check("the same signal many times is one", ended == [0] * len(ended), f"{ended}")


TO_STDOUT = "log: {access: stdout}\ndrain: {lame_duck: 0}\nadmission: {max_concurrency: 64}\n"


def output_stack(options, **popen):
    stack = Stack(options.bin, sim_args=["--ttft", "0", "--tps", "0"], **popen)
    with open(stack.config_file, "w", encoding="utf-8") as file:
        file.write(f"control: {{socket: {stack.control}}}\n{TO_STDOUT}")
    return stack


def closed_descriptors(options):
    for closed in ([1], [2], [0, 1, 2]):
        name = f"started with descriptors {closed} closed"
        with output_stack(options, close_fds=True, preexec_fn=lambda fds=closed: [os.close(fd) for fd in fds]) as stack:
            check(f"{name}: requests are served", load(stack, 300))
            if 1 in closed:
                wait_for("lost lines", lambda: stack.metrics()["noren_log_lines_dropped_total"] >= 300)
                check(f"{name}: every access line counts as lost", True)
            ends(stack.noren, name)


def reader_gone(options):
    reader, writer = os.pipe()
    with output_stack(options, stdout=writer, stderr=writer) as stack:
        os.close(writer)
        os.close(reader)
        check("nobody reads stdout and stderr any more: requests are served", load(stack, 300))
        wait_for("lost lines", lambda: stack.metrics()["noren_log_lines_dropped_total"] >= 300)
        check("... and the lines are counted as lost", True)
        before = stack.metrics()["noren_config_reloads_total{result=\"ok\"}"]
        stack.noren.send_signal(signal.SIGHUP)  # which writes an event
        wait_for("a reload", lambda: stack.metrics()["noren_config_reloads_total{result=\"ok\"}"] == before + 1)
        check("... and a reload goes on as ever", True)
        ends(stack.noren, "nobody reads")


def reader_stuck(options):
    reader, writer = os.pipe()
    with output_stack(options, stdout=writer, stderr=writer) as stack:
        os.close(writer)
        check("a reader that does not read: 20000 requests are served", load(stack, 20000))
        lost = stack.metrics()["noren_log_lines_dropped_total"]
        check("... what does not fit into the queue is counted as lost", lost > 0, f"{lost:.0f} lost")

        lines = []

        def read():
            with os.fdopen(os.dup(reader), encoding="utf-8") as file:
                lines.extend(file)

        thread = threading.Thread(target=read)
        thread.start()
        urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{stack.port}/v1/models", headers={"x-request-id": "after-the-jam"}), timeout=20).read()
        wait_for("the log to go on", lambda: any('"after-the-jam"' in line for line in lines[-50:]))
        check("... and once it reads again the log goes on", True)
        ends(stack.noren, "read again")
        thread.join(20)
        check("... in whole lines", all(json.loads(line) for line in lines), f"{len(lines)} lines")
    os.close(reader)

    reader, writer = os.pipe()
    with output_stack(options, stdout=writer, stderr=writer) as stack:
        os.close(writer)
        check("stuck to the end: requests are served", load(stack, 1000))
        ends(stack.noren, "stuck to the end")
    os.close(reader)


def ctl_forms(options):
    with Stack(options.bin) as stack:
        file, socket_path = stack.config_file, stack.control
        for arguments in (["ctl", "status", "--config", file], ["ctl", "--config", file, "status"],
                          ["--config", file, "ctl", "status"], ["ctl", "status", "--socket", socket_path],
                          ["ctl", "--socket", socket_path, "status"], ["ctl", "status", "--socket", socket_path, "--json"],
                          ["ctl", "--json", "status", "--config", file]):
            said = noren(options, *arguments)
            check("noren " + " ".join(os.path.basename(a) for a in arguments),
                  said.returncode == 0 and ("running" in said.stdout), said.stderr.strip())
        said = noren(options, "ctl", "limit", "48", "--config", file)
        check("noren ctl limit 48 --config noren.yaml", said.returncode == 0 and stack.metrics()["noren_concurrency_limit"] == 48,
              said.stderr.strip())
        said = noren(options, "ctl", "status", env={**os.environ, "NOREN_CONFIG": file})
        check("NOREN_CONFIG leads ctl to the socket too", said.returncode == 0, said.stderr.strip())
        with open(file, "a", encoding="utf-8") as broken:
            broken.write("admision: {}\n")
        said = noren(options, "ctl", "reload", "--config", file)
        check("a file with a mistake still says where the running noren listens", said.returncode == 1 and "admision" in said.stderr,
              said.stderr.strip())
        check("an unknown command is wrong usage", noren(options, "ctl", "explode", "--config", file).returncode == 2)
        check("fewer sequences than none are wrong usage", noren(options, "observe", "--sequences=-1", file).returncode == 2)


def odd_config_path(options):
    with Stack(options.bin, config_name=os.fsdecode(b"caf\xe9.yaml")) as stack:
        status = json.loads(stack.get("/-/status"))  # get() decodes strictly
        check("a config path that is not UTF-8: the status is valid JSON", status["config"]["file"].endswith("/caf\ufffd.yaml"),
              ascii(status["config"]["file"]))
        said = stack.ctl("status")
        check("... and noren ctl status shows it", said.returncode == 0 and "caf\ufffd.yaml" in said.stdout, said.stderr)
        with open(stack.config_file, "a", encoding="utf-8") as file:
            file.write("admision: {}\n")
        said = stack.ctl("reload")
        check("... and a mistake in it is told with it", said.returncode == 1 and "caf\ufffd.yaml" in said.stderr, said.stderr)


def starts(options, file, folder, *flags, **popen):
    """Whether noren serves with this file; else its exit status. And the last line, or all that it said."""
    with open(os.path.join(folder, "noren.log"), "ab") as log:
        process = subprocess.Popen([os.path.join(options.bin, "noren"), *(["--config", file] if file else []), *flags], stdout=log,
                                   stderr=subprocess.PIPE, text=True, **popen)
    said = ""
    try:
        for line in process.stderr:
            if '"msg":"serving"' in line:
                return True, line
            said += line
        return process.wait(20), said
    finally:
        process.send_signal(signal.SIGINT)
        process.stderr.close()
        process.wait(20)


def check_and_start_agree(options):
    forms = ["127.0.0.1:{port}", "0.0.0.0:{port}", ":{port}", "[::]:{port}", "[::1]:{port}", "[::ffff:127.0.0.1]:{port}",
             "127.0.0.1:0", "[::1%lo]:{port}", "localhost:{port}", "noren.example:{port}", "*:{port}", "{port}", "127.0.0.1",
             "127.1:{port}", "0x7f000001:{port}", "300.1.1.1:{port}", "[127.0.0.1]:{port}", "::1:{port}", "127.0.0.1:65536",
             "127.0.0.1:http", "http://127.0.0.1:{port}", "192.0.2.1:{port}", "[fe80::1%no-such-if]:{port}", "unix:{folder}/l.sock", "unix:l.sock", "{folder}/l.sock", ""]
    with tempfile.TemporaryDirectory(prefix="noren-test-") as folder:
        file = os.path.join(folder, "noren.yaml")
        for key in ("listen", "ops.listen"):
            agree, good = [], 0
            for form in forms:
                text = form.format(port=free_port(), folder=folder)
                other = f"127.0.0.1:{free_port()}"
                listen, ops = (text, other) if key == "listen" else (other, text)
                with open(file, "w", encoding="utf-8") as config:
                    config.write(f"listen: '{listen}'\nops: {{listen: '{ops}'}}\ncontrol: {{socket: {folder}/c.sock}}\n"
                                 f"upstream: {{url: 'http://127.0.0.1:{free_port()}'}}\n")
                checked = noren(options, "check", "--here", file)
                started, _ = starts(options, file, folder)
                same = started is True if checked.returncode == 0 else started == checked.returncode in (1, 78)
                agree.append(same)
                good += checked.returncode == 0
                if not same:
                    print(f"     {key}: {text!r}: check {checked.returncode}, start {started}: {checked.stderr.strip()}")
            check(f"{key}: check --here and start agree on {len(forms)} forms of address", all(agree), f"{good} of them good")
        with open(file, "w", encoding="utf-8") as config:
            config.write("listen: localhost:8080\n")
        said = noren(options, "check", file).stderr.strip()
        check("a name is refused with what to write instead", "127.0.0.1 or [::1] for localhost" in said, said)
        with open(file, "w", encoding="utf-8") as config:
            config.write(f"listen: 192.0.2.1:80\nlog: {{access: {folder}}}\ntls: {{certificate: /none/c, key: /none/k}}\n")
        anywhere, here = noren(options, "check", file), noren(options, "check", "--here", file)
        check("a file for another machine is good, and what this one lacks is said", anywhere.returncode == 0 and
              anywhere.stdout.endswith(": good\n") and anywhere.stderr.count("not on this machine: ") == 4, anywhere.stderr.strip())
        check("... and with --here it is no good", here.returncode == 1 and here.stderr.count(folder) >= 4, here.stderr.strip())
        with open(file, "w", encoding="utf-8") as config:
            config.write("listen: 192.0.2.1:80\nlisten_backlog: 4\n")
        mistaken, _ = starts(options, file, folder)
        with open(file, "w", encoding="utf-8") as config:
            config.write("listen: 192.0.2.1:80\n")
        lacking, _ = starts(options, file, folder)
        check("a mistake in the file ends with 78 (no other start mends it), what the machine lacks with 1",
              (mistaken, lacking) == (78, 1), f"{mistaken}, {lacking}")

        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="utf-8") as precious:
            precious.write("precious")
        with open(file, "w", encoding="utf-8") as config:
            config.write(f"listen: unix:{plain}\nops: {{listen: '127.0.0.1:0'}}\ncontrol: {{socket: {folder}/c.sock}}\n")
        said = noren(options, "--config", file)
        with open(plain, encoding="utf-8") as precious:
            kept = precious.read() == "precious"
        check("a plain file where the socket should be stays, and is named", said.returncode == 1 and kept and plain in said.stderr,
              said.stderr.strip())


def check_judges_flags_and_variables(options):
    """As the start does, whatever of file, variables and flags a value comes from."""
    with tempfile.TemporaryDirectory(prefix="noren-test-") as folder:
        file, bad = os.path.join(folder, "noren.yaml"), os.path.join(folder, "bad.yaml")
        with open(file, "w", encoding="utf-8") as config:
            config.write(f"listen: 192.0.2.1:80\ncontrol: {{socket: {folder}/c.sock}}\ndrain: {{lame_duck: 0}}\n")
        with open(bad, "w", encoding="utf-8") as config:
            config.write("admission: {max_queue: many}\n")
        listen, ops = ("--listen", "127.0.0.1:0"), ("--ops", "127.0.0.1:0")
        cases = {  # name: file, flags, variables, exit status; 0: it serves
            "a flag mends what the file has for another machine": (file, (*listen, *ops), {}, 0),
            "a variable does": (file, ops, {"NOREN_LISTEN": "127.0.0.1:0"}, 0),
            "nothing does": (file, ops, {}, 1),
            "a flag beats a good variable": (file, ("--listen", "192.0.2.1:81", *ops), {"NOREN_LISTEN": "127.0.0.1:0"}, 1),
            "a mistake in a flag": (file, (*listen, *ops, "--max-queue", "many"), {}, 78),
            "a mistake in a variable": (file, (*listen, *ops), {"NOREN_QUEUE_TIMEOUT": "soon"}, 78),
            "a mistake in file, variable and flag": (bad, (*listen, "--workers", "-1"), {"NOREN_OPS": "there"}, 78),
            "flags and no file": (None, (*listen, *ops), {}, 0),
            "the file of a variable": (None, (*listen, *ops), {"NOREN_CONFIG": bad}, 78),
            "a file that is not there": (folder + "/none", (*listen, *ops), {}, 78),
        }
        for name, (path, flags, variables, expected) in cases.items():
            env = {**{key: value for key, value in os.environ.items() if not key.startswith("NOREN_")}, **variables}
            checked = noren(options, "check", "--here", *([path] if path else []), *flags, env=env)
            started, said = starts(options, path, folder, *flags, env=env)
            check(f"check --here and start agree: {name}", checked.returncode == expected and (
                started is True if expected == 0 else (started, checked.stderr) == (expected, said)),
                f"check {checked.returncode}: {checked.stderr}, start {started}: {said}")
        good = noren(options, "check", file, "--max-queue", "5", env={**os.environ, "NOREN_LISTEN": "127.0.0.1:0"})
        check("check says what it judged", good.stdout == f"{file}, NOREN_LISTEN, --max-queue: good\n", good.stdout + good.stderr)
        tuned, empty = os.path.join(folder, "tuned.yaml"), os.path.join(folder, "empty.yaml")
        with open(tuned, "w", encoding="utf-8") as config:
            config.write("admission:\n  max_queue: 7\n")
        with open(empty, "w", encoding="utf-8") as config:
            config.write("# nothing yet\n")
        vain = noren(options, "check", tuned, "--max-queue", "5")
        check("check tells what the file sets in vain", vain.returncode == 0 and
              vain.stderr == f"{tuned}:2: admission.max_queue is not in force: --max-queue is stronger\n", vain.stderr)
        nothing = noren(options, "check", empty)
        check("... and that a file is empty", nothing.returncode == 0 and "the config file is empty" in nothing.stderr, nothing.stderr)
        twice = noren(options, "check", file, "--config", file)
        check("two files are wrong usage", twice.returncode == 2 and "FILE or --config" in twice.stderr, twice.stderr)


def problems_in_words(options):
    """What cannot be had at the start is told in one sentence, without places in the source."""
    with tempfile.TemporaryDirectory(prefix="noren-test-") as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        file, port = os.path.join(folder, "noren.yaml"), taken.getsockname()[1]
        for key, other in (("--listen", "--ops"), ("--ops", "--listen")):
            said = noren(options, key, f"127.0.0.1:{port}", other, "127.0.0.1:0")
            lines = said.stderr.splitlines()
            check(f"{key} is taken: one sentence", said.returncode == 1 and lines[-1].startswith("noren: cannot listen on 127.0.0.1:") and
                  lines[-1].endswith(": Address already in use"), said.stderr)
        closed = os.path.join(folder, "closed")
        os.mkdir(closed, 0o500)
        os.chmod(folder, 0o755)
        program = shutil.copy(os.path.join(options.bin, "noren"), folder)  # where an ordinary user may find it
        ordinary = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for name, path in (("a folder of others", os.path.join(closed, "control.sock")),
                           ("a folder that cannot be made", os.path.join(closed, "noren", "control.sock"))):
            with open(file, "w", encoding="utf-8") as config:
                config.write(f"listen: 127.0.0.1:0\nops: {{listen: '127.0.0.1:0'}}\ncontrol: {{socket: {path}}}\n")
            with subprocess.Popen([program, "--config", file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  **ordinary) as process:
                told, serves = "", False
                for line in process.stderr:
                    told = json.loads(line)["because"] if "no control socket" in line else told
                    if '"msg":"serving"' in line:
                        serves = True
                        process.send_signal(signal.SIGINT)
            check(f"the control socket in {name}: a start all the same, and what to set", serves and
                  f"control socket {path}: " in told and told.endswith("; set control.socket to a path you may write") and
                  "/usr/include" not in told, told)


def two_signals_at_once(options):
    """As timeout(1) sends them. A machine that stands still in between makes two of them, so one try of some is enough."""
    engine = PacedEngine()
    engine.start()
    for _ in range(5):
        with Stack(options.bin, engine_port=engine.port, config="drain: {lame_duck: 0}\nupstream: {health_interval: 0}\n") as stack:
            with socket.create_connection(("127.0.0.1", stack.port), timeout=30) as client:
                client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
                client.recv(1)
                stack.noren.send_signal(signal.SIGTERM)
                wait_for("the first to be seen", lambda one=stack: "draining, then ending" in one.noren_log())  # else they could be one
                stack.noren.send_signal(signal.SIGTERM)
                text = client.makefile("rb").read()
            if text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
                check("two signals at once are one: the stream goes on to its end", stack.noren.wait(30) == 0)
                break
    else:
        check("two signals at once are one: the stream goes on to its end", False)


def check_and_start_agree_on_logs(options):
    with tempfile.TemporaryDirectory(prefix="noren-test-") as folder:
        file, pipe, plain = (os.path.join(folder, name) for name in ("noren.yaml", "pipe", "plain"))
        os.mkfifo(pipe)
        with open(plain, "w", encoding="utf-8"):
            pass
        agree = []
        for log, good in ((folder, False), (pipe, False), (plain + "/log", False), (plain, True), (folder + "/new/log", True),
                          ("/dev/null", True)):
            with open(file, "w", encoding="utf-8") as config:
                config.write(f"listen: 127.0.0.1:{free_port()}\nops: {{listen: '127.0.0.1:{free_port()}'}}\n"
                             f"control: {{socket: {folder}/c.sock}}\nlog: {{access: {log}}}\n")
            checked = noren(options, "check", "--here", file)
            started, _ = starts(options, file, folder)
            agree.append(started is True and checked.returncode == 0 if good else started == 1 and
                         checked.returncode == 1 and "log.access" in checked.stderr)
            if not agree[-1]:
                print(f"     {log}: check {checked.returncode}, start {started}: {checked.stderr.strip()}")
        check(f"check --here and start agree on {len(agree)} access logs", all(agree))


def second_noren(options):
    """Its workers share their port among themselves, and with nobody else."""
    with Stack(options.bin) as stack:
        second = os.path.join(stack.folder.name, "second.yaml")
        for listen in (f"127.0.0.1:{stack.port}", f"0.0.0.0:{stack.port}", f":{stack.port}"):
            with open(second, "w", encoding="utf-8") as config:
                config.write(f"listen: '{listen}'\nworkers: 4\nops: {{listen: '127.0.0.1:{free_port()}'}}\n"
                             f"control: {{socket: {stack.path('second.sock')}}}\n")
            said = noren(options, "--config", second)
            check(f"a second noren on {listen.replace(str(stack.port), 'PORT')} ends and says why", said.returncode == 1 and
                  "cannot listen on " in said.stderr and "in use" in said.stderr, said.stderr.strip())
        check("... and the first serves on", ask(stack) == 200)


def interrupt_in_lame_duck(options):
    with Stack(options.bin, config="drain: {lame_duck: 1h}\n") as stack:
        stack.ctl("drain")
        check("a drain by noren ctl is in its lame-duck time", json.loads(stack.get("/-/status"))["drain"] == "lame_duck")
        stack.noren.send_signal(signal.SIGTERM)
        wait_for("SIGTERM to be seen", lambda: "draining, then ending" in stack.noren_log())
        check("SIGTERM leaves it that time", stack.noren.poll() is None and
              json.loads(stack.get("/-/status"))["drain"] == "lame_duck")
    with Stack(options.bin, config="drain: {lame_duck: 1h}\n") as stack:
        stack.ctl("drain")
        stack.noren.send_signal(signal.SIGINT)
        try:
            status = stack.noren.wait(30)
        except subprocess.TimeoutExpired:
            status = "it did not end"
        check("SIGINT ends it at once", status == 0 and "drained" in stack.noren_log(), f"status {status}")


def drain_wait(options):
    """The two preStop hooks of a pod that ends: they run at the same time, the engine's maybe a moment earlier."""
    with Stack(options.bin, config="drain: {lame_duck: 100ms}\n", sim_args=["--ttft", "0.05", "--tps", "100", "--gap", "fixed"]) as stack:
        check("drain-wait without a drain returns at once", stack.get("/-/drain-wait") == "not draining\n")
        ended = {}

        def stream():
            body = json.dumps({"model": "m", "stream": True, "max_tokens": 200, "messages": [{"role": "user", "content": "x"}]})
            request = urllib.request.Request(f"http://127.0.0.1:{stack.port}/v1/chat/completions", body.encode(),
                                             {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                ended["stream"] = (answer.read().endswith(b"data: [DONE]\n\n"), time.monotonic())

        def engine_hook():
            ended["hook"] = (stack.get("/-/drain-wait?begin_within=10"), time.monotonic())

        threads = [threading.Thread(target=stream), threading.Thread(target=engine_hook)]
        for thread in threads:
            thread.start()
        wait_for("the stream to run", lambda: stack.metrics()["noren_running_requests"] == 1)
        check("begin_within begins no drain itself", json.loads(stack.get("/-/status"))["drain"] == "no" and "hook" not in ended)
        check("noren ctl drain", stack.ctl("drain").returncode == 0)
        for thread in threads:
            thread.join(60)
        check("the stream was whole", ended["stream"][0])
        check("the engine's hook returned when the drain was over, not before", ended["hook"][0] == "drained\n" and
              ended["hook"][1] >= ended["stream"][1] - 0.05)
        with socket.create_connection(("127.0.0.1", stack.ops), 20) as client:
            client.sendall(b"GET /-/drain-wait?begin_within=soon HTTP/1.1\r\nHost: t\r\n\r\n")
            answer = client.makefile("rb").read()
        check("a bad value is a 400 that says what is expected",
              answer.startswith(b"HTTP/1.1 400 ") and b"begin_within=SECONDS, 0 to 60" in answer)


class PacedEngine(threading.Thread):
    """Sends an event every 50 ms for five seconds, whoever listens."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(peer,), daemon=True).start()

    @staticmethod
    def answer(peer):
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(100):
            event = b'data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n' % number
            peer.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            time.sleep(0.05)
        peer.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def stopped_for_longer_than_its_limits(options):
    """A machine that sleeps, a debugger, a cgroup that freezes: the time passes, and nobody has done anything wrong."""
    engine = PacedEngine()
    engine.start()
    with Stack(options.bin, engine_port=engine.port, config="timeouts: {upstream_idle: 2s}\nupstream: {health_interval: 0}\n") as stack:
        clients = []
        for _ in range(20):
            client = socket.create_connection(("127.0.0.1", stack.port), timeout=30)
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
            client.recv(1)
            clients.append(client)
        stack.noren.send_signal(signal.SIGSTOP)
        time.sleep(3)  # beyond its limits, and the engine's events wait in the kernel
        stack.noren.send_signal(signal.SIGCONT)
        whole = 0
        for client in clients:
            text = b""
            while piece := client.recv(65536):
                text += piece
            whole += text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        check("stopped for longer than a limit: every stream goes on", whole == len(clients), f"{whole} of {len(clients)} whole")


def descriptor_table(options):
    """It never grows while streams run: a worker would wait for that, 10 ms and more, with all of them."""
    with Stack(options.bin, config="downstream: {max_connections: 5000}\nadmission: {max_concurrency: 500}\n") as stack:
        def size():
            return int(re.search(r"FDSize:\s*(\d+)", pathlib.Path(f"/proc/{stack.noren.pid}/status").read_text())[1])

        at_first = size()
        check("the kernel's table has room for all descriptors from the start", at_first >= 5500, f"{at_first}")
        clients = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(1000)]
        wait_for("all are in", lambda: stack.metrics()['noren_client_connections'] >= len(clients))
        check("... and stays as it is", size() == at_first, f"{size()}")
        for client in clients:
            client.close()


def main():
    options = Options(sys.argv[1])
    for part in (closed_descriptors, reader_gone, reader_stuck, ctl_forms, odd_config_path, check_and_start_agree,
                 check_and_start_agree_on_logs, check_judges_flags_and_variables, second_noren, interrupt_in_lame_duck, problems_in_words, two_signals_at_once,
                 echoes, drain_wait, stopped_for_longer_than_its_limits, descriptor_table):
        part(options)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    threading.excepthook = lambda *_: os._exit(1)
    sys.exit(main())
