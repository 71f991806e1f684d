"""aiperf, a load generator as its makers publish it, through noren: its report against noren's account."""
import json
import os
import pathlib
import subprocess
import sys

from behaviour import Skip, behaviour, same, within

PROGRAM = pathlib.Path(sys.prefix).parent / "aiperf" / "bin" / "aiperf"
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
                          env={**os.environ, "HF_HUB_OFFLINE": "1", "AIPERF_SERVICE_CPU": "1"}, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-800:]
    report = json.loads((artifacts / "profile_export_aiperf.json").read_text())
    after = stack.noren.metrics()
    lines = [line for line in stack.noren.exchanges()[logged:] if line["endpoint"] == "chat_completions"]
    same("answered", (int(report["request_count"]["avg"]), [line["outcome"] for line in lines]), (REQUESTS, ["ok"] * REQUESTS))
    tokens = after.total("noren_output_tokens_total") - before.total("noren_output_tokens_total")
    same("output tokens", tokens, REQUESTS * TOKENS)
    same("most at once in the engine", stack.noren.admission["max_concurrency"], 1)
    ours = sorted(line["ttft_ms"] for line in lines)
    within("TTFT p50: noren's is within aiperf's", 0, ours[REQUESTS // 2 - 1], report["time_to_first_token"]["p50"])
    return f"{tokens:.0f} tokens, TTFT p50: noren {ours[REQUESTS // 2]:.0f}, aiperf {report['time_to_first_token']['p50']:.0f} ms"
