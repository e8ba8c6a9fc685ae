// The answer to "Which cache should I use?" in words: the engine, its figure, its bytes, what it
// loses, and what is not decided.
kvmark.answer = (() => {
  "use strict";

  const {data, metrics, number, rough, bytes, intervalText, plural, listed, losses} = kvmark;
  const {weightBytes, kvBytes, bytesOf, rivals, sameTurn, speedAgainst} = kvmark.ranking;
  const words = kvmark.engineInWords;

  // "f16 in one piece (contiguous/f16)": the name is what `kvmark run --engine` takes.
  function named(row) {
    return row.layout === "recompute" ? words(row) : `${words(row)} (${row.engine})`;
  }

  function valueText(row, path) {
    const interval = intervalText(row, path);
    const value = losses.figure(path, row.values[path]);
    return interval ? `${value} (95 % interval ${interval})` : value;
  }

  function valueOf(row, path) {
    return `${losses.figure(path, row.values[path])} of ${words(row)}`;
  }

  // With as many digits as it takes to differ from 1, as in the summary.
  function times(ratio) {
    const off = Math.abs(ratio - 1);
    return ratio.toFixed(off < 0.0005 ? 4 : off < 0.005 ? 3 : 2);
  }

  // ": 1.36 times as fast, round by round (95 % interval 1.20 to 1.52)"; "" where that is not
  // known.
  function speedText(first, row, path) {
    const speed = speedAgainst(first, row, path);
    if (!speed) return "";
    const [low, high] = speed.interval.map(times);
    return `: ${times(speed.ratio)} times as fast, round by round (95 % interval ${low} to ${
        high})`;
  }

  // ---- Who comes first ----

  // What the first one does better than the others: "… is the fastest of 5".
  const SUPERLATIVES = [
    [/^latency\.ttft/, "is the fastest to the first token"],
    [/^latency\.attend/, "is the fastest in the attention"],
    [/^latency\.e2e/, "is the fastest from the prompt to the last token"],
    [/^throughput\.prefill/, "is the fastest at the prompt"],
    [/^(latency|throughput)\./, "is the fastest"], [/^memory\./, "is the smallest"],
    [/^accuracy\.loss\.top1/, "agrees with f32 most often"], [/^accuracy\.loss\./, "loses least"],
    [/^work\.bandwidth/, "comes nearest to the read ceiling"],
    [/^work\.flop/, "comes nearest to the FMA rate"],
    [/^counters\.instructions/, "takes the fewest instructions"]
  ];

  function superlative({path, title}) {
    const words = SUPERLATIVES.find(([which]) => which.test(path))?.[1];
    return `${words ?? `comes first by ${title}`}${path.endsWith(".p99") ? " at p99" : ""}`;
  }

  // {of, fit, isPart}: "5" and "; all of them fit into 2 GiB", or "the 2 that fit into 120 MiB" and
  // "; 3 do not" where the budget leaves a part of them.
  function ofHowMany({ranked, others, budget}, limit) {
    const count = ranked.length;
    if (!limit) return {of: String(count), fit: "", isPart: false};
    const sizes = others.filter(({row}) => row.status === "ok").map(({row}) => bytesOf(row));
    const tooLarge = sizes.filter((size) => size > budget).length;
    if (tooLarge === 0) {
      const all = count === 2 ? "both of them" : "all of them";
      return {of: String(count), fit: `; ${all} fit into ${limit}`, isPart: false};
    }
    const fitting = count + sizes.filter((size) => size <= budget).length;
    return {
      of: `the ${fitting > count ? `${count} ranked of ${fitting}` : count} that fit into ${limit}`,
      fit: `; ${tooLarge} ${tooLarge === 1 ? "does" : "do"} not`,
      isPart: true
    };
  }

  // {lead, figure}: the sentence that answers, and the figures that it rests on.
  function ranking(answer, near, limit) {
    const {ranked, path} = answer, [first, second] = ranked;
    if (!second) return {lead: onlyOne(answer, limit), figure: valueText(first, path)};
    if (near.length > 0) return tied(answer, near, limit);
    const {of, fit} = ofHowMany(answer, limit);
    return {
      lead: `${named(first)} ${superlative(metrics.get(path))} of ${of}${fit}.`,
      figure: `${valueText(first, path)}, against ${valueOf(second, path)}` +
          speedText(first, second, path)
    };
  }

  function onlyOne({ranked: [first], others, budget}, limit) {
    if (others.length === 0) {
      return `Only ${named(first)} was measured there${limit && `; it fits into ${limit}`}.`;
    }
    const onlyFits = limit && others.every(({row}) => bytesOf(row) > budget);
    return `Only ${named(first)} ${onlyFits ? `fits into ${limit}` : "can be ranked there"}.`;
  }

  // Of a first one that is not known to beat those near it.
  function tied(answer, near, limit) {
    const {ranked, path} = answer, [first] = ranked;
    const all = [first, ...near], names = listed(all.map(named));
    const metric = metrics.get(path), {of, fit, isPart} = ofHowMany(answer, limit);
    const where = isPart || all.length < ranked.length ? ` of ${of}` : "";
    if (!metric.noisy) {
      return {
        lead: `${names} share the first place by ${metric.title}${where}${fit}.`,
        figure: valueText(first, path)
      };
    }
    const others = listed(near.map((row) => valueOf(row, path) + speedText(first, row, path)));
    const why = whyUndecided(first, near, path), within = number(100 * data.limits.same_speed);
    return {
      lead: kvmark.ranking.areEquallyFast(all, path)
          ? `The fastest of ${of} are ${names}, equally fast to within ${within} %${fit}.`
          : `Not decided between ${names}${where && `,${where}`}${fit}.`,
      figure: `${valueText(first, path)} of ${words(first)}, against ${others}${why && `; ${why}`}`
    };
  }

  // "" where the ratios say it.
  function whyUndecided(first, near, path) {
    if (near.every((row) => speedAgainst(first, row, path))) return "";
    if (near.every((row) => kvmark.ranking.isDecidable(row, first, path)))
      return "the intervals overlap";
    if (!near.every((row) => sameTurn(row, first))) return "not measured side by side";
    const rounds = Math.min(...[first, ...near].map((row) => row.rounds ?? 1));
    return rounds < data.limits.interval_rounds ? `${plural(rounds, "round")} without an interval`
                                                : "this figure has no interval";
  }

  // ---- Bytes ----

  function memoryText(row, {budget}) {
    const kv = kvBytes(row), weights = weightBytes(row);
    if (kv === undefined) return "not known";
    const share =
        budget < Infinity ? `, ${rough(100 * bytesOf(row) / budget)} % of the budget` : "";
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

  const ROUND_BY_ROUND = "Round by round: the median of the ratios of rounds that took turns, so " +
      "that what disturbed the machine falls on both.";

  // What the words above it mean.
  function explained([first, ...rest], path) {
    const {title, definition} = metrics.get(path);
    const isByRounds = rest.some((row) => speedAgainst(first, row, path));
    return `${title}: ${definition}${isByRounds ? ` ${ROUND_BY_ROUND}` : ""}`;
  }

  // {lead, lines: [[term, text]], engines, note} of what rank() gave; `limit` is the budget's text,
  // "" for none; `engines`, those that may be used.
  function inWords(answer, limit) {
    const {ranked, path} = answer;
    if (ranked.length === 0) return {lead: nothing(answer, limit), lines: [], engines: []};
    const [first, second] = ranked, near = rivals(answer), metric = metrics.get(path);
    const {lead, figure} = ranking(answer, near, limit);
    const equals = [first, ...near], spoken = near.length > 0 || !second ? equals : [first, second];
    const lines = [
      [metric.title, figure], ["Memory", memoryText(first, answer) + smallestText(equals)],
      ["Loss", near.length > 0 ? losses.ofRows(equals) : losses.ofRow(first)]
    ];
    const doubts = kvmark.ranking.dependsOnKernel(path) ? doubtText(spoken) : "";
    const side = data.runs.length > 1 ? `, ${kvmark.runMark(first.run)}` : "";
    return {
      lead,
      lines: doubts ? [...lines, [`In doubt${side}`, doubts]] : lines,
      engines: equals.map((row) => row.engine),
      note: explained(spoken, path)
    };
  }

  return {inWords};
})();
