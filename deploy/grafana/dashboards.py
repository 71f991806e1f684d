#!/usr/bin/env python3
"""dashboards.py: writes noren's Grafana dashboards (noren-*.json beside it). --check: says whether they are what it would
write, and changes nothing. What a panel asks stands here; what it looks like in panels.py."""
import json
import os
import sys

from panels import (above, against, dashboard, gauge, graph, heatmap, increase, mean, number, percentiles, quantile, rate,
                    steady)

TOKENS = "suffix:tok/s"
GOOD, WARN, BAD = "green", "orange", "red"

FAILED = (f"""({rate("noren_failures_total", where='reason=~"upstream_.*|total_timeout|internal_error"')}"""
          f""" + {rate("noren_upstream_errors_total", where='reason=~"http_5xx|stream_error"')})""")
FAILED_SHARE = f"clamp_max({FAILED} / {rate('noren_requests_total')}, 1)"
ENDED = rate("noren_requests_total", where='endpoint!="passthrough"')
STAGES = ("upload", "queue", "connect", "prefill", "decode", "stall")
REFUSED = rate("noren_queue_rejections_total")
TOKEN_RATE = rate("noren_output_tokens_total")


def service():
    return dashboard("noren-service", "noren / Service", "Golden signals of one LLM service, as seen from its doorway.", [
        ("Now", [
            number("Requests", "Generating requests that ended, refused ones included.", ENDED, "reqps", width=3),
            number("Failed", "Share of all requests that the engine or noren failed. Refusals and clients that left are no failures.",
                   FAILED_SHARE, "percentunit", [(0.005, WARN), (0.05, BAD)], 1, 3),
            number("Refused", "Share of generating requests that got no place: queue full, waited too long, draining.",
                   f"{REFUSED} / {ENDED}", "percentunit", [(0.01, WARN), (0.05, BAD)], 1, 3),
            number("TTFT p95", "Time to first token that 95 of 100 streamed answers stay below.",
                   quantile(0.95, "noren_time_to_first_token_seconds"), "s", [(2.5, WARN), (10, BAD)], width=3),
            number("Median TPS", "Decode speed that half of the streams exceed.", quantile(0.5, "noren_request_output_tokens_per_second"),
                   TOKENS, decimals=0, width=3),
            number("Output tokens", "Output tokens per second of all requests.", TOKEN_RATE, TOKENS, decimals=0, width=3),
            number("Waiting", "Requests in noren's queue.", gauge("noren_queued_requests"), width=3),
            number("Engines up", "Share of the engines that answer their health probe.",
                   gauge("noren_upstream_up", operator="avg"), "percentunit", [(0, BAD), (1, GOOD)], width=3)]),
        ("Traffic and errors", [
            graph("Requests by outcome", "How requests ended. rejected: noren's queue. timeout: anybody was too slow, see failures by reason.",
                  {"{{outcome}}": rate("noren_requests_total", "outcome", 'endpoint!="passthrough"')}, "reqps", stack=True),
            graph("Failed and refused", "Shares of requests. Failed: engine or noren. Refused: the queue. Left: the client went away first.",
                  {"failed": FAILED_SHARE, "refused": f"{REFUSED} / {ENDED}",
                   "left": f"{rate('noren_client_disconnects_total')} / {rate('noren_requests_total')}"}, "percentunit"),
            graph("Refused and ended by noren", "By the word in x-noren-reason; the log has each request.",
                  {"{{reason}}": rate("noren_failures_total", "reason", 'reason!="client_closed"')}, "reqps", stack=True)]),
        ("Latency and speed", [
            graph("Time to first token", "Head of the request read to first token, streamed answers; noren's queue is in it.",
                  percentiles("noren_time_to_first_token_seconds"), "s"),
            graph("Inter-token latency", "Gaps between tokens as they come from the engine.",
                  percentiles("noren_inter_token_latency_seconds"), "s"),
            graph("Request duration", "Whole requests, queue included; refused ones are left out.",
                  percentiles("noren_request_duration_seconds"), "s"),
            graph("TPS per user", "Decode speed of one stream, (N-1)/(t_last - t_first). The slow end is the low percentile.",
                  {"median": quantile(0.5, "noren_request_output_tokens_per_second"),
                   "slowest 5 %": quantile(0.05, "noren_request_output_tokens_per_second"),
                   "slowest 1 %": quantile(0.01, "noren_request_output_tokens_per_second")}, TOKENS),
            graph("Throughput", "Tokens per second over all requests. Prompt tokens are counted when the engine reports them.",
                  {"output": TOKEN_RATE, "prompt": rate("noren_prompt_tokens_total")}, TOKENS),
            graph("Throughput by model", "Output tokens per second.", {"{{model}}": rate("noren_output_tokens_total", "model")},
                  TOKENS, stack=True)]),
        ("Queue", [
            graph("In the engine and waiting", "Permits held, requests that wait for one, and the limit.",
                  {"running": gauge("noren_running_requests"), "waiting": gauge("noren_queued_requests"),
                   "limit": gauge("noren_concurrency_limit")}),
            graph("Queue wait", "Of admitted requests. Those refused after queue_timeout are not in it.",
                  percentiles("noren_queue_wait_seconds"), "s"),
            graph("Refusals", "full: no place to wait. timeout: waited too long. shutdown: draining.",
                  {"{{reason}}": rate("noren_queue_rejections_total", "reason")}, "reqps", stack=True)]),
        ("Objectives (needs the recording rules)", [
            graph("Error budget burn", "1 = the budget of 0.5 % failed requests is used up exactly in time. Pages at 14.4 and 6.",
                  {window: f'namespace_job:noren_failed:ratio_rate{window}{{job=~"$job"}} / 0.005' for window in ("5m", "1h", "6h", "3d")},
                  width=12),
            graph("TTFT budget burn", "1 = the budget of 5 % of first tokens later than 2.5 s is used up exactly in time. Pages at 14.4 and 6.",
                  {window: f'namespace_job:noren_ttft_slow:ratio_rate{window}{{job=~"$job"}} / 0.05' for window in ("5m", "1h", "6h", "3d")},
                  width=12)]),
        ("What is asked for", [
            graph("Prompt tokens per request", "As the engine reports them.", percentiles("noren_request_prompt_tokens")),
            graph("Output tokens per request", "Long answers hold a place long.", percentiles("noren_request_output_tokens")),
            graph("Prefix cache and reasoning", "Prompt tokens from the engine's prefix cache; output tokens that are reasoning.",
                  {"cached of prompt": f"{rate('noren_prompt_cached_tokens_total')} / {rate('noren_prompt_tokens_total')}",
                   "reasoning of output": f"{rate('noren_reasoning_tokens_total')} / {TOKEN_RATE}"}, "percentunit", most=1),
            graph("Finish reasons", "Why answers ended. length: cut at max_tokens. none: the engine gave no reason.",
                  {"{{finish_reason}}": rate("noren_finish_reasons_total", "finish_reason")}, "reqps", 12, stack=True),
            graph("Requests by endpoint", "passthrough: everything that does not generate.",
                  {"{{endpoint}}": rate("noren_requests_total", "endpoint")}, "reqps", 12, stack=True)]),
    ])


def where_time_goes():
    seconds = "noren_request_stage_seconds_sum"
    requests = rate("noren_request_stage_seconds_count", where='stage="queue"')
    in_stage = {stage: rate(seconds, where=f'stage="{stage}"') for stage in STAGES}
    queue, engine, noren = (mean(name) for name in ("noren_queue_wait_seconds", "noren_upstream_time_to_first_token_seconds",
                                                    "noren_proxy_overhead_seconds"))
    return dashboard("noren-time", "noren / Where the time goes",
                     "Where a request's time went. Stages, queue wait and overhead are of all models.", [
        ("Stages: at every moment a request is in exactly one", [
            graph("Mean request, by stage", "A slow answer is a queue, a prefill, a decode or a slow client (stall): the thick band says which.",
                  {stage: f"{time} / {requests}" for stage, time in in_stage.items()}, "s", 12, stack=True),
            graph("Share of the time, by stage", "The same as parts of one.",
                  {stage: f"{time} / {rate(seconds)}" for stage, time in in_stage.items()}, "percentunit", 12, stack=True, most=1),
            graph("Stage p95", "Each stage by itself; percentiles do not add up.",
                  {stage: quantile(0.95, "noren_request_stage_seconds", f'stage="{stage}"') for stage in STAGES}, "s", 12),
            graph("Requests in each stage", "Request-seconds per second, so the mean number of requests that were in the stage (Little's law).",
                  in_stage, "short", 12, stack=True)]),
        ("Time to first token", [
            graph("Mean TTFT, split", "queue: noren's. engine: its own queue and prefill. noren: what noren adds. upload and connect: the rest.",
                  {"queue": queue, "engine": engine, "noren": noren,
                   "upload and connect": "clamp_min(" + " - ".join((mean("noren_time_to_first_token_seconds"), queue, engine, noren)) + ", 0)"},
                  "s", stack=True),
            graph("TTFT p95: client's and engine's", "Apart: the time is spent in front of the engine. Together: in the engine.",
                  {"client's": quantile(0.95, "noren_time_to_first_token_seconds"),
                   "engine's": quantile(0.95, "noren_upstream_time_to_first_token_seconds"),
                   "queue wait": quantile(0.95, "noren_queue_wait_seconds")}, "s"),
            graph("Time per output token", "After the first one, (t_last - t_first)/(N-1): the mean gap of each stream, 1/TPS.",
                  percentiles("noren_time_per_output_token_seconds"), "s")]),
        ("Slow clients", [
            graph("Held back now", "Running requests whose engine has to wait, because their client does not read.",
                  {"held back": gauge("noren_stalled_requests"), "running": gauge("noren_running_requests")}, width=6),
            graph("Time lost on slow clients", "Share of all request time in which the engine's bytes were there and the client took none.",
                  {"stall": f"{in_stage['stall']} / {rate(seconds)}"}, "percentunit", 6, most=1),
            graph("Requests that stalled", "Share of requests whose client kept noren waiting so long in all.",
                  {"over 0.5 s": above(0.5, "noren_write_stall_seconds"), "over 2.5 s": above(2.5, "noren_write_stall_seconds")},
                  "percentunit", 6),
            graph("Clients that left or were cut", "Left, by where the request was; cut after downstream.stall_timeout.",
                  {"left in {{phase}}": rate("noren_client_disconnects_total", "phase"),
                   "cut": rate("noren_failures_total", where='reason="stall_timeout"')}, "reqps", 6)]),
        ("Distributions", [
            heatmap("Time to first token", "A second band is a second kind of request, or a queue.", "noren_time_to_first_token_seconds"),
            heatmap("Inter-token latency", "A band far above the others is prefill of others in between, or preemption.",
                    "noren_inter_token_latency_seconds"),
            heatmap("Queue wait", "Of admitted requests.", "noren_queue_wait_seconds"),
            heatmap("Request duration", "Whole requests.", "noren_request_duration_seconds")]),
        ("Connections to the engine", [
            graph("Connect time", "New connections only.", percentiles("noren_upstream_connect_seconds"), "s"),
            graph("Connections reused", "Share of generating requests that needed no new connection.",
                  {"reused": f"clamp_min(1 - {rate('noren_upstream_connects_total')} / {ENDED}, 0)"}, "percentunit", most=1),
            graph("Faults of the engine", "What went wrong on its side.",
                  {"{{reason}}": rate("noren_upstream_errors_total", "reason")}, "reqps", stack=True)]),
    ])


def capacity():
    running = ("running", steady("noren_running_requests"))
    return dashboard("noren-capacity", "noren / Capacity", "How much fits into the engine, and where the limit should be.", [
        ("Now", [
            number("Limit", "Of all pods together.", gauge("noren_concurrency_limit"), width=3),
            number("Overridden", "Pods whose limit was set by noren ctl limit and is not the file's.",
                   gauge("noren_concurrency_limit_overridden"), steps=[(1, WARN)], width=3),
            number("Running", "Requests in the engine: permits held.", gauge("noren_running_requests"), width=3),
            number("Waiting", "Requests in noren's queue.", gauge("noren_queued_requests"), width=3),
            number("Saturation", "(running + waiting) / limit of the fullest pod. Above 1 somebody waits.",
                   gauge("noren_saturation_ratio", operator="max"), "percentunit", [(0.8, WARN), (1.001, BAD)], 0),
            number("Tokens per place", "Output tokens per second of one running request.",
                   f"{TOKEN_RATE} / {running[1]}", TOKENS, decimals=1),
            number("Refused", "Requests per second without a place.", REFUSED, "reqps", [(0.001, WARN)])]),
        ("Occupancy", [
            graph("Running, waiting, limit",
                  "Running at the limit with nobody waiting: just right. Waiting grows: find out whether the engine could take more.",
                  {"running": gauge("noren_running_requests"), "waiting": gauge("noren_queued_requests"),
                   "without output yet": gauge("noren_awaiting_first_token_requests"), "limit": gauge("noren_concurrency_limit")},
                  width=12),
            graph("Saturation by pod", "A pod far above the others gets more than its share.",
                  {"{{pod}}": gauge("noren_saturation_ratio", "pod", operator="max")}, "percentunit", 6),
            graph("Wait queue filled, by pod", "Waiting / admission.max_queue. At 1 requests are refused.",
                  {"{{pod}}": f"{gauge('noren_queued_requests', 'pod')} / {gauge('noren_queue_capacity', 'pod')}"}, "percentunit", 6)]),
        ("The limit: where more concurrency stops paying", [
            against("Throughput against concurrency", "Rises while the engine has room; where it bends is the limit to have.",
                    running, ("tokens per second", TOKEN_RATE), TOKENS),
            against("Speed of one stream against concurrency", "What each user pays for it.",
                    running, ("tokens per second of a stream", quantile(0.5, "noren_request_output_tokens_per_second")), TOKENS),
            graph("Throughput and speed of a stream", "The same over time: more running, more throughput, slower streams.",
                  {"throughput": TOKEN_RATE, "one stream (right)": quantile(0.5, "noren_request_output_tokens_per_second")}, TOKENS,
                  right=("one stream (right)", TOKENS)),
            graph("TTFT p95", "In front of the engine (queue wait) and in it. A limit too high moves the wait into the engine.",
                  {"queue wait": quantile(0.95, "noren_queue_wait_seconds"),
                   "engine": quantile(0.95, "noren_upstream_time_to_first_token_seconds")}, "s"),
            graph("Inter-token latency", "Rises with what runs at once.", percentiles("noren_inter_token_latency_seconds"), "s")]),
        ("Engine, as it says itself (engine_metrics.figures: on)", [
            graph("Queued and running in the engine",
                  "Queued there while noren's limit is not reached: the limit is above what the engine batches. Much less running "
                  "there than in noren: answers are read slowly, or requests wait for their prefill.",
                  {"queued, {{engine}}": gauge("noren_engine_queued_requests", "engine"),
                   "running, {{engine}}": gauge("noren_engine_running_requests", "engine"),
                   "running in noren": gauge("noren_running_requests")}),
            graph("KV cache in use", "Near 100 % requests are put off or begun again: lower the limit.",
                  {"{{engine}}": gauge("noren_engine_kv_cache_usage_ratio", "engine", operator="avg")}, "percentunit", most=1),
            graph("Prefix cache hits", "Share of what was looked up; vLLM and SGLang count tokens, TensorRT-LLM blocks.",
                  {"{{engine}}": f"{rate('noren_engine_prefix_cache_hits_total', 'engine')} / "
                                 f"{rate('noren_engine_prefix_cache_queries_total', 'engine')}"}, "percentunit", most=1),
            graph("Looks at the engine's page", "By how they ended; shared: requests for the page that cost the engine nothing.",
                  {"{{result}}": rate("noren_engine_page_fetches_total", "result"),
                   "shared": rate("noren_engine_page_shares_total")}, "cps", 12),
            graph("Age of the figures", "Since the engine was asked for them. Above engine_metrics.max_age they are left out.",
                  {"{{pod}}": gauge("noren_engine_metrics_age_seconds", "pod", operator="max")}, "s", 6),
            graph("Figures to be had, by pod", "0: the engine's page cannot be read, or is of an engine that noren does not know.",
                  {"{{pod}}": gauge("noren_engine_metrics_up", "pod")}, width=6, most=1)]),
        ("Little's law: arrival rate x mean time in system = number in system", [
            graph("Little's law check",
                  "In steady state the lines agree. In flight above running + waiting: uploads, slow readers. Rate x time lags "
                  "when the load changes, and lacks the waits that ended in a refusal.",
                  {"arrival rate x mean time": rate("noren_request_duration_seconds_sum"),
                   "running + waiting": f"{running[1]} + {steady('noren_queued_requests')}",
                   "in flight": steady("noren_inflight_requests")}, width=12),
            graph("Arrival rate and mean time", "The two factors of the law. Refused requests are in neither.",
                  {"arrival rate": rate("noren_request_duration_seconds_count"),
                   "mean time (right)": mean("noren_request_duration_seconds")}, "reqps", 6, right=("mean time (right)", "s")),
            graph("Connections", "Open ones: of clients, and to the engine.",
                  {"clients": gauge("noren_client_connections"), "engine, {{state}}": gauge("noren_upstream_connections", "state")}, width=6)]),
    ])


def itself():
    per_pod = "{{pod}}"
    return dashboard("noren-itself", "noren / noren itself", "What noren costs and whether it is well.", [
        ("Now", [
            number("Pods", "That answer the scrape.", gauge("noren_build_info")),
            number("Versions", "More than 1: a rollout is on, or stuck.", f"count({gauge('noren_build_info', 'version, revision')})",
                   steps=[(2, WARN)]),
            number("Up for", "Of the youngest pod.", f"time() - {gauge('process_start_time_seconds', operator='max')}", "s"),
            number("Config in force for", "Of the pod that changed last.",
                   f"time() - {gauge('noren_config_last_reload_success_timestamp_seconds', operator='max')}", "s"),
            number("Broken config", "Pods whose last reload failed: they run on with the old one.",
                   f"{gauge('noren_build_info')} - {gauge('noren_config_last_reload_successful')}", steps=[(1, BAD)]),
            number("Restart required", "Pods whose file differs in a key that needs a restart.",
                   gauge("noren_config_restart_required"), steps=[(1, WARN)])]),
        ("Cost", [
            graph("CPU", "Cores.", {per_pod: rate("process_cpu_seconds_total", "pod")}),
            graph("Memory", "Resident.", {per_pod: gauge("process_resident_memory_bytes", "pod")}, "bytes"),
            graph("CPU per output token", "All CPU time over all output tokens: rises when there are few tokens to share it.",
                  {"per token": f"{rate('process_cpu_seconds_total')} / {TOKEN_RATE}"}, "s"),
            graph("Delay added", "What noren adds between having a place and a connection and the request being sent.",
                  percentiles("noren_proxy_overhead_seconds"), "s"),
            graph("Descriptors used", "Open of allowed; each running request takes two.",
                  {per_pod: f"{gauge('process_open_fds', 'pod')} / {gauge('process_max_fds', 'pod')}"}, "percentunit"),
            graph("Threads and client connections", "Threads stay constant; connections follow the clients.",
                  {"threads": gauge("process_threads"), "connections": gauge("noren_client_connections"),
                   "tunnels": gauge("noren_tunnels")}),
            graph("Bytes", "Body bytes: from clients and the engine, to clients and the engine; counted when a request ends.",
                  {"from {{side}}": rate("noren_received_bytes_total", "side"), "to {{side}}": rate("noren_sent_bytes_total", "side")},
                  "Bps", 12),
            graph("Scrape time", "As Prometheus measured it.", {per_pod: gauge("scrape_duration_seconds", "pod", operator="max")}, "s", 6),
            graph("Series", "Samples in one scrape; grows with the number of models.",
                  {per_pod: gauge("scrape_samples_scraped", "pod", operator="max")}, width=6)]),
        ("Health", [
            graph("Log lines dropped", "The log's reader was too slow. Requests never wait for it.",
                  {per_pod: rate("noren_log_lines_dropped_total", "pod")}, "cps"),
            graph("Answers not understood",
                  "Events relayed unread, answers that are compressed, requests for models beyond metrics.max_models.",
                  {"events unread": rate("noren_stream_parse_errors_total"),
                   "answers, {{reason}}": rate("noren_unobserved_responses_total", "reason"),
                   "models as other": rate("noren_metrics_label_overflow_total")}, "cps"),
            graph("Reloads", "In the last 10 minutes.", {"{{result}}": increase("noren_config_reloads_total", "result", "10m")}),
            graph("Engine up, by pod", "1 while the health probe is answered.", {per_pod: gauge("noren_upstream_up", "pod")}, most=1),
            graph("Draining, by pod", "1 while a drain is on.", {per_pod: gauge("noren_draining", "pod")}, most=1),
            graph("Connections refused and switched",
                  "Refused as soon as they came: downstream.max_connections (of one client: client_limit), or no descriptor left. Switched: to WebSocket or another protocol.",
                  {"refused, {{reason}}": rate("noren_client_connections_refused_total", "reason"),
                   "switched to {{protocol}}": rate("noren_upgrades_total", "protocol")}, "cps"),
            graph("TLS", "Handshakes with clients, by result, and certificates that were renewed; all 0 where clients come without TLS.",
                  {"handshakes, {{result}}": rate("noren_tls_handshakes_total", "result"),
                   "renewals, {{result}}": rate("noren_tls_certificate_reloads_total", "result")}, "cps"),
            graph("Certificates end in", "Time left to the certificate shown to clients, and to the one shown to the engine; nothing without TLS.",
                  {"{{pod}}, {{side}}": f"{gauge('noren_tls_certificate_expiry_timestamp_seconds', 'pod, side', operator='min')} - time()"},
                  "s")]),
    ])


def main(arguments):
    folder = os.path.dirname(os.path.abspath(__file__))
    stale = []
    for made in (service(), where_time_goes(), capacity(), itself()):
        path, text = os.path.join(folder, made["uid"] + ".json"), json.dumps(made, indent=1) + "\n"
        if "--check" not in arguments:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        on_disk = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        stale += [] if on_disk == text else [os.path.basename(path)]
    for name in stale:
        print(f"{name} is not what dashboards.py writes: run it, and commit both")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
