#!/usr/bin/env python3
"""vLLM's command line for the simulated engine: `engine.py NOREN_SIM [vLLM's arguments]`. Like vLLM without
--shutdown-timeout it aborts every stream on SIGTERM. ENGINE_STARTUP: seconds of loading a model."""
import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("sim")
parser.add_argument("--model")
parser.add_argument("--host", default="0.0.0.0")
parser.add_argument("--port", default="8000")
options, _ = parser.parse_known_args()

time.sleep(float(os.environ.get("ENGINE_STARTUP", "0")))
os.execv(options.sim, [options.sim, "--listen", f"{options.host}:{options.port}", "--model", options.model, "--ttft", "0.05"])
