"""Records made up for the tests, and what they look for in a figure."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from matplotlib.text import Text  # noqa: E402

import style  # noqa: E402

PRESETS = {"recompute": "recompute", "contiguous/f32": "contiguous", "paged:16/f32": "paged",
           "contiguous/f16": "fp16", "contiguous/int8:g32": "compressed"}
BITS = {"recompute": None, "contiguous/f32": 32, "paged:16/f32": 32, "contiguous/f16": 16,
        "contiguous/int8:g32": 8.5, "contiguous/int4:g32": 4.5}
LOSS = {"recompute": 2e-6, "contiguous/f32": 0, "paged:16/f32": 0, "contiguous/f16": 5e-4,
        "contiguous/int8:g32": 2e-2, "contiguous/int4:g32": 4e-1}
CACHES = [engine for engine in BITS if engine != "recompute"]

# A list as long as they get: every codec of the manual, pages, and no cache.
LONG = ["recompute"] + [f"contiguous/{codec}" for codec in (
    "f32", "f16", "bf16", "fp8:e4m3", *(f"{family}:g{size}{zero}" for family in ("int8", "int4")
                                        for zero in ("", ":asym") for size in (32, 64, 128)))] + [
    "paged:16/f32"]


def summary(value, width=0.0, n=7):
    return {"n": n, "mean": value, "p50": value, "p99": 1.2 * value if n >= 200 else None,
            "p50_ci95": [value * (1 - width), value * (1 + width)] if n >= 6 else None}


def record(engine, prompt=0, generated=511, level="model", ms=1.0, rounds=3, **case):
    """An ok row. A cached step costs `ms`, a recomputed one 0.1 ms a token."""
    gaps = [0.1 * (n + 1) if engine == "recompute" else ms for n in range(1, generated)]
    live = int((BITS.get(engine, 8) or 0) * 128 * (prompt + generated))
    bits = BITS.get(engine, 8)
    return {
        "case_id": f"{engine} {prompt} {generated} {level} {sorted(case.items())}",
        "group_run": f"{prompt} {generated} {level} {sorted(case.items())}",
        "status": "ok",
        "kernel": "AVX2",
        "case": {"engine": engine, "preset": PRESETS.get(engine), "device": "cpu",
                 "model": "seed-gqa", "level": level, "weights": "f32", "layers": 4, "heads": 8,
                 "kv_heads": 2, "head_dim": 64, "prompt_len": prompt, "gen_len": generated,
                 "seq_len": prompt + generated, "max_seq_len": 1024, "batch": 1, "threads": 2,
                 **case},
        "sampling": {"rounds": rounds, "interleaved": True},
        "latency": {"ttft_ms": summary(1.0, n=rounds) if level == "model" else None,
                    "tpot_ms": summary(ms, 0.05, rounds),
                    "itl_ms": summary(ms, 0.01, len(gaps)),
                    "attend_ms": summary(0.01 * (prompt + 1) * (live + 500) / 4096, 0.05)},
        "throughput": {"decode_tok_per_s": 1000 / ms * case.get("batch", 1),
                       "decode_tok_per_s_per_seq": 1000 / ms},
        "memory": {"kv_live_bytes": live, "kv_reserved_bytes": max(live, 1 << 19),
                   "kv_bytes_per_token": live / (prompt + generated),
                   "kv_bits_per_element": bits,
                   "weight_bytes": 0 if level == "attention" else 9 << 20,
                   "timeline": [{"position": at, "live_bytes": live * at // 8,
                                 "reserved_bytes": live + 4096} for at in range(1, 9)]},
        "accuracy": {"correct": {"passed": True},
                     "loss": {"attend_rel_rms": LOSS.get(engine, 0.1), "kld_mean": None}},
        "work": {"kv_bytes_read_per_step": live, "weight_bytes_read_per_step": 8 << 20,
                 "bandwidth_fraction": None if engine == "recompute" else 0.5,
                 "bandwidth_fraction_ci95": [0.45, 0.55], "read_ceiling_gb_per_s": 40.0},
        "profile": {"qkv_ms": 0.2 * ms, "append_ms": 0.1 * ms, "attend_ms": 0.3 * ms,
                    "out_ms": 0.1 * ms, "ffn_ms": 0.3 * ms, "lm_head_ms": None, "other_ms": 0.0},
        "events": [],
        "samples": {"round": [ms] * rounds, "itl_ms": gaps, "itl_stride": 1},
        "env": {"cpu": "Some CPU @ 2.0 GHz", "cores": 2, "compiler": "gcc", "git": "0123456789ab",
                "started": "2026-01-31T12:00:00Z"},
    }


def failed(engine, **case):
    """What a worker that died leaves."""
    row = record(engine, **case)
    row.update({"status": "failed", "reason": "killed by signal 9", "work": None, "profile": None,
                "latency": {"ttft_ms": None}, "samples": {"itl_ms": None}, "memory": {},
                "accuracy": None, "events": None})
    return row


def bare(engine):
    """An ok row that lacks every figure."""
    return {"status": "ok", "case": record(engine)["case"]}


def quickstart():
    return [record(engine) for engine in PRESETS]


def over_contexts(engines=tuple(CACHES), level="attention", prompts=(1024, 4096, 16384), **case):
    return [record(engine, prompt, 16, level, **case) for prompt in prompts for engine in engines]


# ---- What to look for ----

def texts(figure):
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in axes.texts]
    return found


def drawn(axes):
    """The curves that have a marker at their points: a series each."""
    return [line for line in axes.lines if len(line.get_xdata()) > 1
            and line.get_marker() not in ("None", "", None, "_", "|")]


def ticks(axis):
    """The labels of an axis that are in view."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


class PlotTest(unittest.TestCase):
    def check_picture(self, figure, height=None):
        """All words lie inside the picture, which is as wide as any, and no labels overlap."""
        width, tall = figure.get_size_inches()
        self.assertEqual(width, style.WIDTH)
        if height:
            self.assertAlmostEqual(tall, height, delta=0.5)
        figure.canvas.draw()
        frame = figure.bbox
        for axes in [None, *figure.axes]:
            if axes and not axes.get_visible():
                continue
            words = figure.texts if axes is None else [
                *axes.texts, axes.xaxis.label, axes.yaxis.label, *ticks(axes.xaxis),
                *ticks(axes.yaxis)]
            for text in words:
                if not text.get_text():
                    continue
                # Of the text alone: an annotation's own extent has its line in it.
                box = Text.get_window_extent(text)
                self.assertTrue(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= frame.x1 + 1
                                and box.y1 <= frame.y1 + 1, f"{text.get_text()}: {box} in {frame}")
        for axes in figure.axes:
            boxes = [(Text.get_window_extent(text), text.get_text()) for text in axes.texts]
            for i, (one, name) in enumerate(boxes):
                for other, beside in boxes[:i]:
                    shared_x = min(one.x1, other.x1) - max(one.x0, other.x0)
                    shared_y = min(one.y1, other.y1) - max(one.y0, other.y0)
                    self.assertFalse(shared_x > 2 and shared_y > 2, f"{name} over {beside}")

    def check_robust(self, plot, rows):
        """Failed rows and rows without figures change nothing, and alone they give no picture."""
        empty = [bare("contiguous/f16"), failed("contiguous/f16"), failed("recompute"),
                 {"status": "ok"}, {"status": "ok", "case": None}]
        self.assertIsNone(plot([]))
        self.assertIsNone(plot(empty))
        with_others = plot(rows + empty)
        self.assertEqual([len(drawn(axes)) for axes in with_others.axes],
                         [len(drawn(axes)) for axes in plot(rows).axes])
