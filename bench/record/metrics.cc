#include "bench/record/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace kvmark {
namespace {

using enum RecordFieldType;
using enum FieldRole;

constexpr RecordField identity_field(std::string_view path, std::string_view title,
                                     std::string_view definition, bool nullable = false,
                                     std::string_view values = "") {
  return {path,       text,   identity, title, "", Better::none, Certainty::exact,
          definition, values, nullable};
}

constexpr RecordField setting_field(std::string_view path, RecordFieldType type,
                                    std::string_view title, std::string_view definition,
                                    std::string_view values = "") {
  return {path, type, setting, title, "", Better::none, Certainty::exact, definition, values};
}

constexpr RecordField env_field(std::string_view path, RecordFieldType type, std::string_view unit,
                                std::string_view definition) {
  return {path,       type, FieldRole::environment, path, unit, Better::none, Certainty::noisy,
          definition, ""};
}

constexpr RecordField detail_field(std::string_view path, RecordFieldType type,
                                   std::string_view unit, std::string_view definition) {
  return {path, type, detail, path, unit, Better::none, Certainty::noisy, definition, ""};
}

constexpr RecordField noisy(std::string_view path, RecordFieldType type, std::string_view title,
                            std::string_view unit, Better better, std::string_view definition) {
  return {path, type, metric, title, unit, better, Certainty::noisy, definition, ""};
}

constexpr RecordField exact(std::string_view path, RecordFieldType type, std::string_view title,
                            std::string_view unit, Better better, std::string_view definition) {
  return {path, type, metric, title, unit, better, Certainty::exact, definition, ""};
}

// A comparison decides by it: beyond `threshold` (relative) and `floor` (in its unit).
constexpr RecordField gated(double threshold, double floor, RecordField field) {
  field.gate = Gate::gated;
  field.threshold = threshold;
  field.floor = floor;
  return field;
}
constexpr RecordField any_change(RecordField field) { return gated(0, 0, field); }
// What a format loses moves a little with the order of sums, which is no fault.
constexpr RecordField loss(RecordField field) { return gated(0.2, 1e-6, field); }

// A time to decide by: what separate runs of one machine differ by is seldom less.
constexpr RecordField time(RecordField field) {
  field.gate = Gate::time;
  field.threshold = 0.1;
  return field;
}

constexpr auto kSmaller = Better::smaller;
constexpr auto kBigger = Better::bigger;
constexpr auto kNone = Better::none;

constexpr RecordField kFields[] = {
    identity_field("schema", "schema", "Version of this format.", false, "kvmark/1"),
    identity_field("run_id", "run", "The run that this row belongs to."),
    identity_field("case_id", "case id",
                   "Hash of the canonical case without defaults and preset: rows with the same one "
                   "measured the same thing."),
    identity_field("group_run", "group",
                   "The group of this run: rows with the same one differ in the engine only and "
                   "were measured side by side.",
                   true),
    identity_field("status", "status",
                   "ok: measured and correct. skipped: not tried. failed: tried, but it died. "
                   "invalid: not correct, and its timings are void; or correct, but not within "
                   "its gate, and its timings are kept.",
                   false, "ok|skipped|failed|invalid"),
    identity_field("reason", "reason", "Why a row is not ok; null for ok.", true),
    identity_field("kernel", "kernel",
                   "The attention kernel: `generic` or the name of a SIMD target.", true),
    identity_field("digest", "digest",
                   "Hash of the bits of the attention outputs of sampled steps: every timed round "
                   "must give the one that was verified.",
                   true),

    setting_field("case.engine", text, "engine", "Canonical name: layout/codec/policy."),
    setting_field("case.preset", text, "preset", "Preset of the engine, empty or null for none."),
    setting_field("case.device", text, "device", "Where the engine runs."),
    setting_field("case.model", text, "model", "Preset, file or folder of the model."),
    setting_field("case.family", text, "family", "Kind of decoder.", "llama|gpt2"),
    setting_field("case.level", text, "level",
                  "model: whole decoder steps. attention: the attention alone, on synthetic "
                  "queries, keys and values.",
                  "model|attention"),
    setting_field("case.weights", text, "weights", "Format of the weights in memory.",
                  "f32|f16|bf16"),
    setting_field("case.layers", integer, "layers", "Decoder layers."),
    setting_field("case.d_model", integer, "d_model", "Width of the residual stream."),
    setting_field("case.heads", integer, "heads", "Query heads."),
    setting_field("case.kv_heads", integer, "KV heads", "Stored heads."),
    setting_field("case.head_dim", integer, "head_dim", "Channels of a head."),
    setting_field("case.prompt_len", integer, "prompt",
                  "Tokens fed before the first generated one; 0 starts from one seeded token."),
    setting_field("case.gen_len", integer, "generated", "Tokens generated in a round."),
    setting_field("case.seq_len", integer, "length", "prompt_len + gen_len, tokens."),
    setting_field("case.max_seq_len", integer, "max_seq_len",
                  "Positions that the cache is made for."),
    setting_field("case.batch", integer, "batch", "Sequences that decode in lockstep."),
    setting_field("case.threads", integer, "threads", "Threads of the worker."),
    setting_field("case.count", text, "count",
                  "callgrind: instructions are counted under valgrind in place of times. Null: "
                  "steps are timed.",
                  "callgrind"),
    setting_field("case.seed", integer, "seed", "Of tokens, or of synthetic q, k and v."),
    setting_field("case.pool_order", text, "pool order",
                  "Order in which a paged engine hands out its blocks.", "fresh|shuffled"),

    setting_field("sampling.rounds", integer, "rounds", "Rounds that were timed."),
    setting_field("sampling.interleaved", boolean, "interleaved",
                  "Its rounds alternated with those of other engines of the group, all in one "
                  "wave."),
    setting_field("sampling.stop_reason", text, "stopped by",
                  "width: the interval was narrow enough. cap: all rounds were done. budget: the "
                  "time was used up. single: one round was asked for.",
                  "width|cap|budget|single"),

    noisy("latency.ttft_ms", summary, "TTFT", "ms", kSmaller,
          "Time to first token: first token minus start, so prefill included; over rounds."),
    noisy("latency.itl_ms", summary, "ITL", "ms", kSmaller,
          "Inter-token latency: each gap between tokens, the first token left out, pooled over "
          "sequences and rounds. Its percentiles describe and never decide: gaps are correlated."),
    time(
        noisy("latency.tpot_ms", summary, "TPOT", "ms", kSmaller,
              "Time per output token of a sequence: (end − first token)/(n − 1); over rounds. Null "
              "where one token is generated.")),
    time(noisy("latency.e2e_ms", summary, "end to end", "ms", kSmaller,
               "From the start to the last token of a round; over rounds.")),
    noisy("latency.attend_ms", summary, "attention", "ms", kSmaller,
          "Time of a decode step inside the attention of all layers, append not included; pooled "
          "over steps and rounds."),

    noisy("throughput.prefill_tok_per_s", number, "prefill", "tokens/s", kBigger,
          "Prompt tokens of all sequences over the time of the prefill, median of the rounds. Null "
          "without a prompt."),
    noisy("throughput.decode_tok_per_s", number, "decode", "tokens/s", kBigger,
          "Generated tokens of all sequences, the first of each left out, over decode wall time; "
          "input tokens are never counted; median of the rounds. Null where one "
          "token is generated."),
    noisy("throughput.decode_tok_per_s_per_seq", number, "decode/seq", "tokens/s", kBigger,
          "The same for one sequence: (n − 1)/(end − first token)."),

    any_change(
        exact("memory.kv_live_bytes", integer, "KV live", "bytes", kSmaller,
              "Bytes of the committed rows by formula, scales included, at the end of a round.")),
    any_change(exact(
        "memory.kv_reserved_bytes", integer, "KV reserved", "bytes", kSmaller,
        "Bytes that the engine's allocator holds at the end of a round: blocks, tables, tails.")),
    any_change(exact("memory.kv_peak_bytes", integer, "KV peak", "bytes", kSmaller,
                     "The largest kv_reserved_bytes, growth and conversion included.")),
    exact("memory.kv_payload_bytes", integer, "KV payload", "bytes", kSmaller,
          "Of kv_live_bytes: the codes."),
    exact("memory.kv_scale_bytes", integer, "KV scales", "bytes", kSmaller,
          "Of kv_live_bytes: scales and zero points."),
    exact("memory.kv_table_bytes", integer, "KV tables", "bytes", kSmaller,
          "Of kv_reserved_bytes: block tables."),
    exact("memory.kv_fragmentation", number, "fragmentation", "", kSmaller,
          "1 − live/reserved: the part that is held but not used. Null for recompute, which keeps "
          "nothing."),
    any_change(exact(
        "memory.kv_bytes_per_token", number, "bytes/token", "bytes", kSmaller,
        "(live + tables)/committed positions of all sequences, so scales and tables included.")),
    exact("memory.kv_bits_per_element", number, "bits/element", "bits", kSmaller,
          "Live bits over stored numbers of K and V, so scales and raw tails included."),
    exact("memory.weight_bytes", integer, "weights", "bytes", kSmaller,
          "Bytes of the model's weights in memory."),
    noisy("memory.peak_rss_bytes", integer, "peak RSS", "bytes", kSmaller,
          "Most physical memory that the worker process ever held, without that of the read "
          "ceiling."),
    noisy("memory.huge_page_bytes", integer, "huge pages", "bytes", kNone,
          "Memory of the worker process in huge pages after the last round: caches and weights "
          "that got them. Null where the system does not tell."),
    noisy("memory.device_peak_bytes", integer, "device peak", "bytes", kSmaller,
          "Most memory that was allocated on the device. Null on the CPU."),
    detail_field("memory.timeline", objects, "bytes",
                 "Bounded list of {position, live_bytes, reserved_bytes, rss_bytes} over a round."),

    exact("accuracy.correct.rel_rms", number, "rel. RMS", "", kSmaller,
          "Relative RMS error of the attention outputs against fp64 attention over the rows that "
          "the engine itself stored: whether the kernel is right."),
    setting_field("accuracy.correct.tolerance", number, "tolerance",
                  "Bound on rel_rms that the kernel declares: 1e-5 for float kernels, more for "
                  "kernels that quantize the query or the probabilities."),
    any_change(exact("accuracy.correct.passed", boolean, "correct", "", kBigger,
                     "rel_rms ≤ tolerance; false makes the row invalid.")),
    setting_field("accuracy.loss.reference", text, "reference",
                  "What the loss compares with: attention over uncompressed f32 rows."),
    loss(exact("accuracy.loss.attend_rel_rms", number, "attention error", "", kSmaller,
               "Relative RMS error of the attention outputs against the reference: what the format "
               "loses.")),
    loss(exact(
        "accuracy.loss.kld_mean", number, "KLD", "nats", kSmaller,
        "Mean Kullback–Leibler divergence of the next-token distribution from the reference's, "
        "over scored positions of real text. Null for seeded weights.")),
    exact("accuracy.loss.kld_p99", number, "KLD p99", "nats", kSmaller,
          "99th percentile of the same."),
    exact("accuracy.loss.kld_max", number, "KLD max", "nats", kSmaller, "Largest of the same."),
    gated(
        0.005, 0,
        exact(
            "accuracy.loss.top1_agreement", number, "top-1", "", kBigger,
            "Part of the scored positions where the most likely token is the reference's. Null for "
            "seeded weights.")),
    exact("accuracy.loss.nll", number, "NLL", "nats", kSmaller,
          "Mean negative log-likelihood of the text's own next token. Null for seeded weights."),
    exact("accuracy.loss.nll_reference", number, "NLL of reference", "nats", kNone,
          "The same of the reference."),
    setting_field("accuracy.loss.positions", integer, "scored", "Scored positions."),
    setting_field("accuracy.loss.gate", object, "gate",
                  "The plan's bounds on the loss; null where it sets none."),
    setting_field("accuracy.loss.passed", boolean, "gate passed",
                  "The loss is within the gate; false makes the row invalid."),
    exact("accuracy.saturated", integer, "saturated", "", kSmaller,
          "Stored values that the codec had to clamp to its range."),

    exact("work.positions_computed", integer, "positions", "", kSmaller,
          "Positions fed through the model by one sequence in one round: n(n + 1)/2 for recompute, "
          "n for a cache. Null where no round was run."),
    exact("work.kv_bytes_read_per_step", number, "KV read/step", "bytes", kSmaller,
          "Stored bytes that the attention of a decode step must read, mean of the steps, by "
          "formula."),
    exact("work.weight_bytes_read_per_step", number, "weights read/step", "bytes", kSmaller,
          "Weight bytes that a decode step must read, by formula."),
    exact("work.flops_per_step", number, "FLOP/step", "FLOP", kSmaller,
          "Floating-point operations of a decode step, mean of the steps, by formula."),
    noisy(
        "work.attend_gb_per_s", number, "attention rate", "GB/s", kBigger,
        "kv_bytes_read_per_step over the mean attend_ms. Null for recompute, which reads no stored "
        "bytes."),
    noisy("work.read_ceiling_gb_per_s", number, "read ceiling", "GB/s", kNone,
          "Read bandwidth of this machine with the case's threads, on as many bytes as a decode "
          "step reads of rows and weights (512 MiB at most), measured right after each round; "
          "median of the rounds. Null for recompute."),
    noisy("work.bandwidth_fraction", number, "of ceiling", "", kBigger,
          "A round's attend_gb_per_s over its own read ceiling, median of the rounds; above 1 it "
          "shows a cache effect or a wrong model."),
    noisy("work.bandwidth_fraction_ci95", interval, "of ceiling CI", "", kNone,
          "95 % interval of bandwidth_fraction over rounds, from order statistics. Null for "
          "n < 6."),
    noisy("work.page_read_ceiling_gb_per_s", number, "page read ceiling", "GB/s", kNone,
          "The read ceiling in pages of the size of a block of one layer, in a random order. Null "
          "unless the pool's order is shuffled."),
    noisy("work.page_bandwidth_fraction", number, "of page ceiling", "", kBigger,
          "As bandwidth_fraction, against the ceiling of pages."),
    noisy("work.page_bandwidth_fraction_ci95", interval, "of page ceiling CI", "", kNone,
          "Its 95 % interval over rounds. Null for n < 6."),
    noisy("work.fma_gflop_per_s", number, "FMA rate", "GFLOP/s", kNone,
          "f32 multiply-adds of this machine with the case's threads and SIMD target, from "
          "registers, measured right after each round; median of the rounds. Null unless "
          "arithmetic bounds the attention: recompute."),
    noisy("work.flop_fraction", number, "of FMA rate", "", kBigger,
          "A round's attention FLOPs by formula over its attention time and FMA rate, median of "
          "the rounds. Null where there is no fma_gflop_per_s."),
    noisy("work.flop_fraction_ci95", interval, "of FMA rate CI", "", kNone,
          "Its 95 % interval over rounds. Null for n < 6."),

    noisy("profile.qkv_ms", number, "qkv", "ms", kSmaller,
          "Mean time of a decode step in the norm and the products that make q, k and v."),
    noisy("profile.append_ms", number, "append", "ms", kSmaller,
          "The same in rotating, encoding and storing new rows."),
    noisy("profile.attend_ms", number, "attend", "ms", kSmaller, "The same in the attention."),
    noisy("profile.out_ms", number, "out", "ms", kSmaller,
          "The same in the product behind the attention."),
    noisy("profile.ffn_ms", number, "ffn", "ms", kSmaller, "The same in the feed-forward part."),
    noisy("profile.lm_head_ms", number, "lm_head", "ms", kSmaller,
          "The same in the last norm and the logits."),
    noisy("profile.other_ms", number, "other", "ms", kSmaller,
          "The rest of the step; all phases together are the step."),

    noisy("probes.wall_ms", number, "wall time", "ms", kNone,
          "Time of all timed rounds together: what the other probes are of."),
    noisy("probes.cpu_ms", number, "CPU time", "ms", kNone,
          "Time that the worker's threads were on a core."),
    noisy("probes.run_delay_ms", number, "run delay", "ms", kSmaller,
          "Time that the worker's threads were ready but waited for a core."),
    noisy("probes.minor_faults", integer, "minor faults", "", kSmaller,
          "Page faults without disk access in the timed rounds."),
    noisy("probes.major_faults", integer, "major faults", "", kSmaller,
          "Page faults that had to read from disk in the timed rounds."),
    noisy("probes.voluntary_switches", integer, "voluntary switches", "", kNone,
          "Context switches because a thread waited."),
    noisy("probes.involuntary_switches", integer, "involuntary switches", "", kSmaller,
          "Context switches because another process wanted the core."),
    noisy("probes.migrations", integer, "migrations", "", kSmaller,
          "Moves of a thread to another core. Null where the kernel does not count them."),
    noisy("probes.machine_busy_ms", number, "machine busy", "ms", kNone,
          "Time that all cores of the machine computed, for this worker or for others: what is "
          "above cpu_ms is the others'. Counted in ticks, mostly of 10 ms."),
    noisy("probes.steal_ms", number, "steal", "ms", kSmaller,
          "Time that the host gave this machine's cores to others while they had work, all cores "
          "together. Counted in ticks. 0 where the host does not tell."),
    noisy("probes.throttled_ms", number, "throttled", "ms", kSmaller,
          "Time that control groups of the worker were held back because their CPU quota was used "
          "up. Null without such groups."),
    noisy("probes.thermal_throttles", integer, "thermal throttles", "", kSmaller,
          "Times that a core or its package was slowed down for its heat. Null where the processor "
          "does not count them, as in virtual machines."),
    noisy(
        "probes.lowest_core_ghz", number, "lowest frequency", "GHz", kNone,
        "Lowest frequency of the core of the worker's main thread, measured before and after each "
        "round by a chain of dependent operations."),
    noisy("probes.highest_core_ghz", number, "highest frequency", "GHz", kNone,
          "The highest of the same."),

    detail_field("events", objects, "",
                 "What happened inside the engine: growth, copies on write, with position and "
                 "bytes."),
    gated(0.01, 0,
          exact("counters.instructions_per_step", number, "instructions/step", "", kSmaller,
                "Instructions of a decode step under callgrind, mean of the steps. Null unless the "
                "case has a `count`.")),
    noisy("counters.hardware.instructions_per_step", number, "instructions/step", "", kNone,
          "Instructions of a decode step by the processor's counters, all threads together and "
          "user space only, waiting for each other included; mean of the steps, median of the "
          "rounds."),
    noisy("counters.hardware.cycles_per_step", number, "cycles/step", "", kSmaller,
          "The same of cycles."),
    noisy("counters.hardware.cache_misses_per_step", number, "cache misses/step", "", kSmaller,
          "The same of misses in the last-level cache."),
    noisy("counters.hardware.running_share", number, "counted share", "", kNone,
          "Part of the time in which the counters ran, the smallest of events and rounds: below 1 "
          "they took turns, and the counts are scaled up."),
    detail_field("counters.hardware.missing_because", text, "",
                 "Why one of the processor's counters is null, in words."),
    detail_field(
        "samples.round", numbers, "ms",
        "TPOT of each timed round in the order of the rounds (end to end where there is no "
        "TPOT)."),
    detail_field("samples.outlier_rounds", integers, "",
                 "Which values of samples.round, counted from 0, lie further than 5 · 1.4826 · MAD "
                 "from their median; they count in every figure."),
    detail_field("samples.itl_ms", numbers, "ms",
                 "Gaps between tokens of one round, the median one, in order; 4,096 values at "
                 "most."),
    detail_field("samples.itl_stride", integer, "",
                 "Gaps that one value of samples.itl_ms stands for; 1 where all are there."),

    env_field("env.git", text, "", "Commit of the build, with -dirty for uncommitted changes."),
    env_field("env.compiler", text, "", "Compiler of the build."),
    env_field("env.flags", text, "", "Compiler flags of the build."),
    env_field("env.os", text, "", "Operating system, its version and the architecture."),
    env_field("env.cpu", text, "", "Processor."),
    env_field("env.simd", text, "", "SIMD target in use."),
    env_field("env.blas", text, "",
              "Processor whose kernels the BLAS library uses for matrix products; null where no "
              "worker told."),
    env_field(
        "env.huge_pages", boolean, "",
        "The kernel gives huge pages to the caches' memory, which asks for them; null where it "
        "does not say."),
    env_field("env.cores", integer, "", "Cores that the process may use."),
    env_field("env.memory_bytes", integer, "bytes",
              "Memory of the machine; null where the system does not tell."),
    env_field("env.governor", text, "", "Frequency governor; null where there is none to see."),
    env_field("env.gpu", text, "", "The GPU in use; null without one."),
    env_field("env.load", number, "",
              "Load average of the minute before the run started, the same in all its rows."),
    env_field("env.container", boolean, "", "Inside a container."),
    env_field("env.vm", boolean, "", "Inside a virtual machine."),
    env_field("env.unstable", texts, "",
              "Reasons to doubt the timings, in words: what was seen in the row's rounds, and "
              "the state of the machine before the run."),
    env_field("env.started", text, "",
              "Start of the case's worker, UTC; null where none was started."),
};

constexpr std::array<std::string_view, 12> kSummaryParts = {
    "n", "mean", "stddev", "mad", "min", "p50", "p50_ci95", "p90", "p95", "p99", "max", "outliers"};

std::string_view direction_text(Better better) {
  switch (better) {
    case Better::smaller:
      return "smaller";
    case Better::bigger:
      return "bigger";
    case Better::none:
      return "–";
  }
  return "";
}

// What a comparison decides by, for the manual.
std::string gate_text(const RecordField& field) {
  switch (field.gate) {
    case Gate::shown:
      return "–";
    case Gate::time:
      return fmt::format("time, {:g} % or 3σ", 100 * field.threshold);
    case Gate::gated:
      if (field.threshold == 0) return "any change";
      return fmt::format("{:g} %{}", 100 * field.threshold,
                         field.floor > 0 ? fmt::format(" and {:g}", field.floor) : "");
  }
  return "";
}

}  // namespace

std::span<const RecordField> record_fields() { return kFields; }

const RecordField* find_record_field(std::string_view path) {
  const auto it = std::find_if(std::begin(kFields), std::end(kFields),
                               [&](const RecordField& field) { return field.path == path; });
  return it == std::end(kFields) ? nullptr : it;
}

std::span<const std::string_view> summary_parts() { return kSummaryParts; }

std::string metrics_markdown() {
  std::string out =
      "| metric | unit | better | kind | compare decides by | definition |\n"
      "|---|---|---|---|---|---|\n";
  for (const RecordField& field : kFields) {
    if (field.role != metric) continue;
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.path,
                       field.unit.empty() ? "–" : field.unit, direction_text(field.better),
                       field.certainty == Certainty::exact ? "exact" : "noisy", gate_text(field),
                       field.definition);
  }
  return out;
}

}  // namespace kvmark
