#!/usr/bin/python3
"""Does a model say the same through every exact engine?

usage: check_generation.py KVMARK MODEL [--engine LIST] [--gen-len N] [--near-tie LOGITS]

Lets MODEL continue five prompts greedily through each engine and compares the tokens with those of
the first engine. Where two differ, the first difference is excused only when it is a near-tie: the
two best logits of that step are closer than --near-tie. Exit code 1 when one is not.
"""

import argparse
import json
import subprocess
import sys

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a library at the end of the street,",
    "def fibonacci(n):\n",
    "To make a good cup of tea, first",
    "<|im_start|>user\nWhat does a cache do?<|im_end|>\n<|im_start|>assistant\n",
]


def generate(options, engine, prompt):
    command = [options.kvmark, "generate", "--model", options.model, "--engine", engine,
               "--prompt", prompt, "--gen-len", str(options.gen_len), "--threads", "2", "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def first_difference(a, b):
    for step, (left, right) in enumerate(zip(a["tokens"], b["tokens"])):
        if left != right:
            return step
    shorter = min(len(a["tokens"]), len(b["tokens"]))
    return None if len(a["tokens"]) == len(b["tokens"]) else shorter


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("kvmark")
    parser.add_argument("model")
    parser.add_argument("--engine", default="recompute,contiguous,paged")
    parser.add_argument("--gen-len", type=int, default=64)
    parser.add_argument("--near-tie", type=float, default=1e-3)
    options = parser.parse_args()
    engines = options.engine.split(",")

    failures = 0
    for prompt in PROMPTS:
        spoken = [generate(options, engine, prompt) for engine in engines]
        print(f"{prompt!r} → {spoken[0]['text']!r}")
        for engine, other in zip(engines[1:], spoken[1:]):
            step = first_difference(spoken[0], other)
            if step is None:
                print(f"  {engine}: the same {len(other['tokens'])} tokens as {engines[0]}")
                continue
            margins = [run["margins"][step] for run in (spoken[0], other)
                       if step < len(run["margins"])]
            near_tie = min(margins) < options.near_tie
            failures += not near_tie
            print(f"  {engine}: differs from {engines[0]} at token {step}, where the best logit leads "
                  f"by {min(margins):.3g}: {'a near-tie' if near_tie else 'NOT a near-tie'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
