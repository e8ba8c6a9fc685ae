// The answer to "Which cache should I use?" in words: the engine, its figure, its bytes, what it
// loses, and what is not decided.
kvmark.answer = (() => {
  "use strict";

  const {metrics, number, bytes, quantity, intervalText, plural, listed} = kvmark;
  const {weightBytes, kvBytes, bytesOf, rivals, sameTurn, speedAgainst, isDecidable} =
      kvmark.ranking;
  const words = kvmark.engineInWords;

  // "f16 in one piece (contiguous/f16)": the name is what `kvmark run --engine` takes.
  function named(row) {
    return row.layout === "recompute" ? words(row) : `${words(row)} (${row.engine})`;
  }

  function valueText(row, path) {
    const interval = intervalText(row, path);
    const value = quantity(metrics.get(path), row.values[path]);
    return interval ? `${value} (95 % interval ${interval})` : value;
  }

  function valueOf(row, path) {
    return `${quantity(metrics.get(path), row.values[path])} of ${words(row)}`;
  }

  // ": 1.36 times as fast, round by round (95 % interval 1.20 to 1.52)"; "" where that is not
  // known.
  function speedText(first, row, path) {
    const speed = speedAgainst(first, row, path);
    if (!speed) return "";
    const [low, high] = speed.interval.map((end) => end.toFixed(2));
    return `: ${speed.ratio.toFixed(2)} times as fast, round by round (95 % interval ${low} to ` +
        `${high})`;
  }

  // ---- Who comes first ----

  const SUPERLATIVES = [
    [/^latency\.ttft/, "the fastest to the first token"],
    [/^throughput\.prefill/, "the fastest at the prompt"],
    [/^(latency|throughput)\./, "the fastest"], [/^memory\./, "the smallest"]
  ];

  function superlative({path, title}) {
    return SUPERLATIVES.find(([which]) => which.test(path))?.[1] ?? `the best by ${title}`;
  }

  // {lead, figure}: the sentence that answers, and the figures that it rests on.
  function ranking(answer, near, limit) {
    const {ranked, others, path} = answer, [first, second] = ranked;
    const metric = metrics.get(path);
    if (!second) {
      const onlyFits = limit && others.every(({row}) => bytesOf(row) > answer.budget);
      const lead = onlyFits ? `Only ${named(first)} fits into ${limit}.`
                            : `Only ${named(first)} can be ranked there.`;
      return {lead, figure: valueText(first, path)};
    }
    if (near.length > 0) return undecided(answer, near, limit);
    const of = `${ranked.length}${limit ? ` that fit into ${limit}` : ""}`;
    return {
      lead: `${named(first)} is ${superlative(metric)} of ${limit ? "the " : ""}${of}.`,
      figure: `${valueText(first, path)}, against ${valueOf(second, path)}` +
          speedText(first, second, path)
    };
  }

  function undecided({ranked, path}, near, limit) {
    const [first] = ranked, names = listed([first, ...near].map(named));
    const where = limit ? ` of those that fit into ${limit}` : "";
    if (!metrics.get(path).noisy) {
      return {lead: `${names} are equal${where}.`, figure: valueText(first, path)};
    }
    const others = listed(near.map((row) => valueOf(row, path) + speedText(first, row, path)));
    const why = whyUndecided(first, near, path);
    return {
      lead: `Not decided between ${names}${where}.`,
      figure: `${words(first)} came out first with ${valueText(first, path)}, against ${others}` +
          `${why && `; ${why}`}`
    };
  }

  // "" where the ratios say it.
  function whyUndecided(first, near, path) {
    if (near.every((row) => speedAgainst(first, row, path))) return "";
    if (near.every((row) => isDecidable(row, first, path))) return "the intervals overlap";
    if (!near.every((row) => sameTurn(row, first))) return "not measured side by side";
    const rounds = Math.min(...[first, ...near].map((row) => row.rounds ?? 1));
    return `${plural(rounds, "round")} without an interval`;
  }

  // ---- Bytes ----

  function memoryText(row, {budget}) {
    const kv = kvBytes(row), weights = weightBytes(row);
    if (kv === undefined) return "not known";
    const share =
        budget < Infinity ? `, ${number(100 * bytesOf(row) / budget)} % of the budget` : "";
    if (weights === 0) return `${bytes(kv)} for the KV cache${share}; no weights were loaded`;
    return `${bytes(kv + weights)}${share}: ${bytes(kv)} for the KV cache, ` +
        `${bytes(weights)} of weights`;
  }

  // Of rows between which speed does not decide, who takes least; "" where it is the first.
  function smallestText([first, ...near]) {
    const known = [first, ...near].filter((row) => bytesOf(row) !== undefined);
    const [smallest] = [...known].sort((a, b) => bytesOf(a) - bytesOf(b));
    if (!smallest || bytesOf(smallest) === bytesOf(first)) return "";
    return `; least of them with ${words(smallest)}: ${bytes(bytesOf(smallest))}`;
  }

  // ---- What is lost ----

  const KLD = "accuracy.loss.kld_mean", TOP1 = "accuracy.loss.top1_agreement";
  const ATTENTION_ERROR = "accuracy.loss.attend_rel_rms";
  const ORDER_OF_SUMS = 1e-5;  // an attention error that other orders of f32 sums have too

  // The losses that are known, the best first: a text says more than random data.
  function lossPath(rows) {
    return [KLD, ATTENTION_ERROR].find((path) => rows.every((row) => path in row.values));
  }

  // What was computed to tell the loss.
  function basis(row, path) {
    if (path === KLD) return `on the text ${row.case["score.text"]}`;
    const isReal = row.case["source.kind"] === "file" && !kvmark.isAttention(row);
    return `${isReal ? "" : "on random data, "}which ranks formats and says nothing of a text`;
  }

  function lossText(row) {
    const path = lossPath([row]), error = row.values[ATTENTION_ERROR];
    if (!path) return "not measured";
    if (error === 0 || (error === undefined && row.values[KLD] === 0)) {
      return "none: it computes what uncompressed f32 does";
    }
    if (error < ORDER_OF_SUMS) return "none: the same as f32 up to the order of sums";
    const top1 = TOP1 in row.values && path === KLD
        ? `, top-1 agreement ${number(100 * row.values[TOP1])} %`
        : "";
    return `${metrics.get(path).title} ${quantity(metrics.get(path), row.values[path])}${top1} ` +
        `against uncompressed f32, ${basis(row, path)}`;
  }

  // Of rows between which speed does not decide, who loses least.
  function lossesText(rows) {
    const path = lossPath(rows);
    if (!path) return "not measured of all of them";
    const isSums = (value) => path === ATTENTION_ERROR && value < ORDER_OF_SUMS;
    const loss = (row) => isSums(row.values[path]) ? 0 : row.values[path];
    const least = Math.min(...rows.map(loss)), most = Math.max(...rows.map(loss));
    if (least === most) return lossText(rows[0]);
    const of = (value) => listed(rows.filter((row) => loss(row) === value).map(words));
    const metric = metrics.get(path);
    return `least with ${of(least)} (${metric.title} ${quantity(metric, least)}), most with ` +
        `${of(most)} (${quantity(metric, most)}), against uncompressed f32, ${
            basis(rows[0], path)}`;
  }

  // ---- What stands in the way ----

  // Remarks on the rows that the answer is about; those that share theirs together.
  function doubtText(rows) {
    const of = (row) => kvmark.remarks(row).join("; ");
    const named = kvmark.distinct(rows.map(of)).filter(Boolean).map((doubt) => {
      const doubtful = rows.filter((row) => of(row) === doubt);
      return `${listed(doubtful.map(words))} (${doubt})`;
    });
    return named.join("; ");
  }

  function nothing({others, budget}, limit) {
    const sized = others.filter(({row}) => row.status === "ok" && bytesOf(row) !== undefined)
                      .sort((a, b) => bytesOf(a.row) - bytesOf(b.row));
    if (sized.length === 0 || bytesOf(sized[0].row) <= budget) {
      return `Nothing that was measured there${limit && ` and fits into ${limit}`} can be ranked.`;
    }
    const [{row}] = sized;
    return `Nothing that was measured there fits into ${limit}. The smallest, ${named(row)}, ` +
        `takes ${bytes(bytesOf(row))}.`;
  }

  // ---- All of it ----

  // {lead, lines: [[term, text]]} of what rank() gave; `limit` is the budget's text, "" for none.
  function inWords(answer, limit) {
    const {ranked, path} = answer;
    if (ranked.length === 0) return {lead: nothing(answer, limit), lines: []};
    const [first, second] = ranked, near = rivals(answer), metric = metrics.get(path);
    const {lead, figure} = ranking(answer, near, limit);
    const tied = [first, ...near], spoken = near.length > 0 || !second ? tied : [first, second];
    const lines = [
      [metric.title, figure], ["Memory", memoryText(first, answer) + smallestText(tied)],
      ["Loss", near.length > 0 ? lossesText(tied) : lossText(first)]
    ];
    const doubts = metric.noisy ? doubtText(spoken) : "";
    return {lead, lines: doubts ? [...lines, ["In doubt", doubts]] : lines};
  }

  return {inWords};
})();
