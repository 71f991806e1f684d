"""aiperf, a load generator as its makers publish it, through noren: its report against noren's account."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

from behaviour import Skip, behaviour, same, within

PROGRAM = pathlib.Path(sys.prefix).parent / "aiperf" / "bin" / "aiperf"
NO_HUB = "http://127.0.0.1:9"  # offline by its own word, it would not take a tokenizer from a folder
REQUESTS, CLIENTS, TOKENS = 12, 4, 12


@behaviour("aiperf", f"{REQUESTS} streams by {CLIENTS} clients with cap 1: its counts are noren's, none failed")
def aiperf(stack):
    if not PROGRAM.exists():
        raise Skip("not installed: run.sh could not, and said why")
    tokenizer = stack.folder / "tokenizer"
    subprocess.run([PROGRAM.with_name("python"), str(pathlib.Path(__file__).with_name("vllm_model.py")), str(tokenizer)], check=True)
    artifacts = stack.folder / "aiperf"
    before = stack.noren.metrics()
    logged = len(stack.noren.exchanges())
    command = [PROGRAM, "profile", "--model", stack.engine.model, "--url", stack.noren.url, "--endpoint-type", "chat", "--streaming",
               "--tokenizer", str(tokenizer), "--use-server-token-count", "--request-count", str(REQUESTS),
               "--concurrency", str(CLIENTS), "--synthetic-input-tokens-mean", "8", "--output-tokens-mean", str(TOKENS),
               "--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0", "--output-artifact-dir", str(artifacts),
               "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400,
                          env={**os.environ, "HF_ENDPOINT": NO_HUB}, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-800:]
    report = json.loads((artifacts / "profile_export_aiperf.json").read_text())
    after = stack.noren.metrics()
    lines = [line for line in stack.noren.exchanges()[logged:] if line["endpoint"] == "chat_completions"]
    same("answered", (int(report["request_count"]["avg"]), [line["outcome"] for line in lines]), (REQUESTS, ["ok"] * REQUESTS))
    tokens = after.total("noren_output_tokens_total") - before.total("noren_output_tokens_total")
    same("output tokens", tokens, REQUESTS * TOKENS)
    waited = sum(line["queue_ms"] > 1 for line in lines)
    within("of them waited in noren", REQUESTS - CLIENTS, waited, REQUESTS)
    ours, theirs = statistics.median(line["ttft_ms"] for line in lines), report["time_to_first_token"]["p50"]
    within("median TTFT: noren's within aiperf's, by no more than a busy machine's delay", theirs - 500, ours, theirs)
    return f"{tokens:.0f} tokens, {waited} waited, median TTFT: noren {ours:.0f} ms, aiperf {theirs:.0f} ms"
