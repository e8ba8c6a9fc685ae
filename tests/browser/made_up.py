"""Data of a page, made up: every status, overlapping intervals, names that look like HTML."""

HOSTILE = "<img src=x onerror=document.title='run'>&amp;</script>"

METRICS = [
    # path, title, unit, better, noisy
    ("latency.itl_ms.p50", "ITL p50", "ms", "smaller", True),
    ("latency.itl_ms.p99", "ITL p99", "ms", "smaller", True),
    ("latency.tpot_ms.p50", "TPOT p50", "ms", "smaller", True),
    ("latency.attend_ms.p50", "attention p50", "ms", "smaller", True),
    ("throughput.decode_tok_per_s", "decode", "tokens/s", "bigger", True),
    ("memory.kv_live_bytes", "KV live", "bytes", "smaller", False),
    ("memory.kv_reserved_bytes", "KV reserved", "bytes", "smaller", False),
    ("memory.kv_bits_per_element", "bits/element", "bits", "smaller", False),
    ("memory.weight_bytes", "weights", "bytes", "smaller", False),
    ("accuracy.loss.attend_rel_rms", "attention error", "", "smaller", False),
    ("work.read_ceiling_gb_per_s", "read ceiling", "GB/s", "none", True),
    ("work.bandwidth_fraction", "of ceiling", "", "bigger", True),
]
LOSSES = ["accuracy.loss.kld_mean", "accuracy.loss.top1_agreement", "accuracy.loss.attend_rel_rms"]
SETTINGS = ["model", "level", "layers", "heads", "kv_heads", "head_dim", "prompt_len", "gen_len",
            "seq_len", "max_seq_len", "batch", "threads", "device"]

MIB = 2**20
WEIGHTS = 100 * MIB
BITS = {"f32": 32.0, "f16": 16.0, "int8:g32": 8.5, "int4:g32": 4.5}
LOSS = {"f32": 0.0, "f16": 2.7e-4, "int8:g32": 0.0065, "int4:g32": 0.11}
# A step's time at 1,024 positions, in ms: paged is as fast as contiguous, within the intervals.
STEP_MS = {"contiguous/f32": 8.25, "paged:16/f32": 8.375, "contiguous/f16": 4.5,
           "contiguous/int8:g32": 3.125, "contiguous/int4:g32": 2.0625}
PRESETS = {"contiguous/f32": "contiguous", "paged:16/f32": "paged", "contiguous/f16": "fp16"}


def row(engine, context, batch=1, run=0, slower=1.0):
    """A row with figures; bytes and times grow with context and batch."""
    layout, format_ = engine.split("/")
    label = PRESETS.get(engine, engine)
    step = STEP_MS[engine] * context / 1024 * batch * slower
    live = int(context * batch * BITS[format_] * 256)
    return {
        "id": f"{engine}-{context}-{batch}", "run": run, "group": 0 if batch == 1 else 1,
        "label": label, "engine": engine, "layout": layout, "format": format_,
        "name": f"{engine} made-up model at {context}+64", "context": context,
        "status": "ok", "reason": None, "counts": True, "doubts": [], "rounds": 7,
        "turn": "made-up group", "machine": "Made-up 9000 with 2 cores", "generic": False,
        "speeds": [],
        "case": {"engine": engine, "preset": PRESETS.get(engine), "model": "made-up",
                 "level": "model", "device": "cpu", "layers": 4, "heads": 8, "kv_heads": 2,
                 "head_dim": 64, "prompt_len": context, "gen_len": 64, "seq_len": context + 64,
                 "max_seq_len": context + 64, "batch": batch, "threads": 2},
        "values": {
            "latency.itl_ms.p50": step, "latency.itl_ms.p99": 1.5 * step,
            "latency.tpot_ms.p50": step, "latency.attend_ms.p50": 0.75 * step,
            "throughput.decode_tok_per_s": 1000 * batch / step,
            "memory.kv_live_bytes": live, "memory.kv_reserved_bytes": live + MIB,
            "memory.kv_bits_per_element": BITS[format_], "memory.weight_bytes": WEIGHTS,
            "accuracy.loss.attend_rel_rms": LOSS[format_],
            "work.read_ceiling_gb_per_s": 40.5, "work.bandwidth_fraction": 0.625,
        },
        "intervals": {"latency.tpot_ms.p50": [0.96875 * step, 1.03125 * step],
                      "latency.attend_ms.p50": [0.71875 * step, 0.78125 * step],
                      "work.bandwidth_fraction": [0.6, 0.65]},
        "n": {"latency.itl_ms.p50": 441, "latency.tpot_ms.p50": 7},
        "cumulative": {"tokens": [1, 2, 4, 8, 16, 32, 64],
                       "seconds": [n * step / 1000 for n in (1, 2, 4, 8, 16, 32, 64)]},
        "itl_quantiles_ms": [step * (0.9 + 0.002 * i) for i in range(101)],
        "timeline": {"tokens": [context, context + 64], "live_bytes": [live - 4096, live],
                     "reserved_bytes": [live + MIB, live + MIB]},
    }


def held_against(rows, first, second, ratio, interval, verdict):
    """How many times as fast row `first` is as row `second`, round by round, as both rows say."""
    reverse = {"faster": "slower", "slower": "faster"}.get(verdict, verdict)
    rows[first]["speeds"].append({"row": second, "ratio": ratio, "interval": interval,
                                  "verdict": verdict})
    rows[second]["speeds"].append({"row": first, "ratio": 1 / ratio, "verdict": reverse,
                                   "interval": [1 / end for end in reversed(interval)]})


def without_figures(engine, context, status, reason):
    """A row that has a reason in the place of figures."""
    bare = row(engine, context)
    return {**bare, "status": status, "reason": reason, "counts": False, "rounds": None,
            "values": {}, "intervals": {}, "n": {}, "speeds": [], "cumulative": None,
            "itl_quantiles_ms": None, "timeline": None}


def rows():
    """Two contexts and two batches; a row of every status; one row was disturbed."""
    made = [row(engine, context) for context in (1024, 8192) for engine in STEP_MS]
    made += [row(engine, 1024, batch=4) for engine in ("contiguous/f32", "contiguous/f16")]
    made[2]["doubts"] = ["threads had to wait for a core"]
    over_gate = row("contiguous/int4:g32", 2048)
    over_gate.update(status="invalid", reason="attend_rel_rms 0.11 above the gate of 0.1")
    made += [over_gate, without_figures("contiguous/f16", 2048, "failed", f"died: {HOSTILE}"),
             without_figures("contiguous/f32", 2048, "skipped", "needs 9 GiB, 4 GiB are free")]
    made[-1]["label"] = HOSTILE
    return made


def page(**changes):
    """The data of a page, in the shape that the program writes."""
    return {
        "schema": "kvmark-page/1", "title": "made-up & <b>bold</b>", "kvmark": "kvmark test",
        "made": "2026-01-02T03:04:05Z",
        "runs": [{"name": "results/made-up", "role": None, "started": "2026-01-02T03:00:00Z",
                  "rows": 15, "plan": {"name": "made-up", "engines": [HOSTILE], "seed": None}}],
        "summary": [{"kind": "fact", "text": "int8:g32 keeps 3.8 times the context of f32."},
                    {"kind": "undecided", "text": "paged against contiguous."},
                    {"kind": "warning", "text": f"1 row failed: {HOSTILE}"}],
        "environment": [{"what": "cpu", "values": ["Made-up 9000"]},
                        {"what": "cores", "values": ["2"]},
                        {"what": "load", "values": ["unknown"]}],
        "warnings": ["load 2.8 on 2 cores before the run: all rows"],
        "metrics": [{"path": path, "title": title, "unit": unit, "better": better, "noisy": noisy,
                     "definition": f"What {title} is.",
                     "is_choice": path.split(".")[0] != "work" and "weight" not in path}
                    for path, title, unit, better, noisy in METRICS],
        "settings": [{"key": key, "title": key, "unit": "", "definition": f"What {key} is."}
                     for key in SETTINGS],
        "groups": [{"heading": "made-up · level model · batch 1"},
                   {"heading": "made-up · level model · batch 4"}],
        "rows": rows(), "comparison": None,
        "limits": {"growth_tokens": 64, "interval_rounds": 6, "same_as_f32": 1e-5, "far": 2,
                   "same_speed": 0.01},
        "step_times": ["latency.tpot_ms.p50", "throughput.decode_tok_per_s"],
        "losses": LOSSES, "length_keys": ["prompt_len", "gen_len", "seq_len", "max_seq_len"],
        **changes,
    }


def metric(path, title, unit, verdict, base, new, **changes):
    """A metric of a case; its texts are the program's, and told apart from the figures."""
    texts = {f"{name}_text": f"{title} {name}" for name in ("base", "new", "change", "threshold")}
    return {"metric": path, "title": title, "unit": unit, "verdict": verdict, "base": base,
            "new": new, "change": new / base - 1, "change_interval": None,
            "threshold": None, "note": "", **texts, **changes}


def judged(before, after, verdict):
    """A case of a comparison: a time with that verdict, and bytes that are the same."""
    time, size = "latency.tpot_ms.p50", "memory.kv_live_bytes"
    base, new = before["values"], after["values"]
    change = new[time] / base[time] - 1
    return {
        "case_id": before["id"], "label": before["name"], "base_status": "ok", "status": "ok",
        "reason": "", "broke": False, "case": before["case"],
        "metrics": [metric(time, "TPOT p50", "ms", verdict, base[time], new[time], threshold=0.1,
                           change_interval=[change - 0.05, change + 0.05],
                           note="3σ of 12 earlier runs"),
                    metric(size, "KV live", "bytes", "same", base[size], new[size], threshold=0,
                           change_text="")],
    }


def comparison_page():
    """Two runs: one case slower, one undecided, one faster; one that broke; one on a side alone."""
    base, new = [], []
    for engine, slower in zip(STEP_MS, (1.25, 1.0, 0.75, 1.0, 1.0)):
        base.append(row(engine, 1024))
        new.append(row(engine, 1024, run=1, slower=slower))
    verdicts = ("worse", "undecided", "better", "same", "same")
    cases = [judged(*pair) for pair in zip(base, new, verdicts)]
    cases.append({"case_id": "b", "label": "bf16 at 1024+64", "base_status": "ok",
                  "status": "failed", "reason": f"killed by SIGKILL {HOSTILE}", "broke": True,
                  "metrics": [], "case": {}})
    runs = [{"name": f"results/{role}", "role": role, "started": None, "rows": 5, "plan": None}
            for role in ("base", "new")]
    return page(runs=runs, rows=base + new, comparison={
        "schema": "kvmark-compare/1", "base": "results/base", "new": "results/new",
        "verdict": "broken: 1 case failed", "exit_code": 3,
        "counts": {"cases": 6, "broke": 1, "worse": 1, "undecided": 1, "better": 1, "same": 7,
                   "shown": 0},
        "notes": ["git: aaaa → bbbb"],
        "one_sided": [{"side": "base", "label": f"old engine {HOSTILE}", "reason": "",
                       "vanished": True}],
        "cases": cases})
