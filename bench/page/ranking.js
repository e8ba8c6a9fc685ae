// Which of the rows at one setting fit into a budget of memory, in what order, and what their
// figures do not decide.
kvmark.ranking = (() => {
  "use strict";

  const {data, metrics, bytes, text} = kvmark;

  const RANKED_BY_DEFAULT =
      ["latency.tpot_ms.p50", "throughput.decode_tok_per_s", "counters.instructions_per_step"];
  const RESERVED_BYTES = "memory.kv_reserved_bytes", PEAK_BYTES = "memory.kv_peak_bytes";
  const WEIGHT_BYTES = "memory.weight_bytes";

  // ---- What can be ranked by ----

  function rankableMetrics(rows) {
    return data.metrics.filter(
        (metric) => metric.is_choice && rows.some((row) => metric.path in row.values));
  }

  function defaultMetric(offered) {
    const isOffered = (path) => offered.some((metric) => metric.path === path);
    return RANKED_BY_DEFAULT.find(isOffered) ?? offered[0]?.path ?? null;
  }

  // ---- Bytes ----

  function weightBytes(row) {
    return row.values[WEIGHT_BYTES] ?? 0;
  }

  // What the engine held at once: while a cache grows, the old and the new piece.
  function kvBytes(row) {
    const reserved = row.values[RESERVED_BYTES];
    return reserved === undefined ? undefined : Math.max(reserved, row.values[PEAK_BYTES] ?? 0);
  }

  // Bytes that the budget must hold: the KV cache, and the weights where there are some.
  function bytesOf(row) {
    const kv = kvBytes(row);
    return kv === undefined ? undefined : kv + weightBytes(row);
  }

  // ---- The order ----

  // Why a row is not ranked; null where it is.
  function objection(row, path, budget) {
    if (row.status !== "ok") return `${row.status}: ${text(row.reason)}`;
    if (!(path in row.values)) return `has no ${metrics.get(path).title}`;
    if (budget === Infinity) return null;
    const needed = bytesOf(row);
    if (needed === undefined) return "its memory is not known";
    if (needed <= budget) return null;
    return `does not fit: ${bytes(needed - budget)} more than the budget, ${bytes(needed)} in all`;
  }

  // What depends on how well the kernel is written, and not on the format alone.
  function dependsOnKernel(path) {
    return /^(latency|throughput|work|counters)\./.test(path);
  }

  // Such figures of a generic kernel stand beside those of others for nothing.
  function isSlowByKernel(row, path, rows) {
    return row.generic && dependsOnKernel(path) &&
        rows.some((other) => path in other.values && !other.generic);
  }

  const SLOW_BY_KERNEL = "its kernel is the generic one, whose cost says nothing of the format";

  // Best first: next comes the one with the best figure among those that none of the rest is known
  // to beat round by round.
  function inOrder(rows, path) {
    const sign = metrics.get(path).better === "bigger" ? -1 : 1;
    const rest = [...rows].sort((a, b) => sign * (a.values[path] - b.values[path])), order = [];
    const beats = (a, b) => speedAgainst(a, b, path)?.verdict === "faster";
    while (rest.length > 0) {
      const next = rest.findIndex((row) => !rest.some((other) => beats(other, row)));
      order.push(...rest.splice(Math.max(next, 0), 1));
    }
    return order;
  }

  // rows: those measured at the place asked for; elsewhere: others of the same setting. Returns
  // {ranked: [row], others, missing: [{row, reason}], path, budget}, best first.
  function rank(rows, elsewhere, path, budget) {
    const judged = rows.map((row) => {
      const slow = isSlowByKernel(row, path, rows) ? SLOW_BY_KERNEL : null;
      return {row, reason: objection(row, path, budget) ?? slow};
    });
    const ranked = inOrder(judged.filter(({reason}) => reason === null).map(({row}) => row), path);
    const here = new Set(rows.map((row) => row.engine));
    const missing = elsewhere
                        .filter((row, i) => !here.has(row.engine) &&
                                elsewhere.findIndex((r) => r.engine === row.engine) === i)
                        .map((row) => ({row, reason: "not measured there"}));
    const others = judged.filter(({reason}) => reason !== null);
    return {path, budget, ranked, others, missing};
  }

  // ---- What is not decided ----

  function overlap(a, b) {
    return a[0] <= b[1] && b[0] <= a[1];
  }

  function sameTurn(a, b) {
    return a.turn === b.turn && a.turn !== null;
  }

  // {ratio, interval, verdict}: how many times as fast row a is as row b; undefined where it is not
  // known round by round, or the metric is no time of a step. Round by round what disturbed the
  // machine falls on both alike.
  function speedAgainst(a, b, path) {
    if (!data.step_times.includes(path)) return undefined;
    return a.speeds.find(({row}) => data.rows[row] === b);
  }

  // Do all rows take as long as each other, but for what is too little to matter?
  function areEquallyFast(rows, path) {
    return rows.every(
        (a, i) => rows.slice(i + 1).every((b) => speedAgainst(a, b, path)?.verdict === "same"));
  }

  function isDecidable(a, b, path) {
    const haveIntervals = Boolean(a.intervals[path] && b.intervals[path]) && sameTurn(a, b);
    return haveIntervals || speedAgainst(a, b, path) !== undefined;
  }

  // The rows that the first one is not known to beat: equal ones of an exact metric; of a step's
  // time those that it did not beat round by round; of another noisy one those whose interval
  // overlaps, and those near it that have none or took no turns with it: what is far behind is
  // behind all the same.
  function rivals({ranked, path}) {
    const [first, ...rest] = ranked, best = first.values[path];
    const {comparable} = kvmark.losses;
    if (!metrics.get(path).noisy) {
      return rest.filter((row) => comparable(path, row.values[path]) === comparable(path, best));
    }
    return rest.filter((row) => {
      const speed = speedAgainst(first, row, path);
      if (speed) return speed.verdict !== "faster";
      if (isDecidable(row, first, path)) return overlap(row.intervals[path], first.intervals[path]);
      const value = row.values[path];
      return value === best || Math.max(value, best) < data.limits.far * Math.min(value, best);
    });
  }

  return {
    rankableMetrics,
    defaultMetric,
    weightBytes,
    kvBytes,
    bytesOf,
    rank,
    dependsOnKernel,
    sameTurn,
    speedAgainst,
    areEquallyFast,
    isDecidable,
    rivals
  };
})();
