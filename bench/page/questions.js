// "Which cache should I use?": ranks the engines that were measured at one setting and fit into a
// budget of memory, and says what the figures do not decide.
kvmark.questions = (() => {
  "use strict";

  const {
    data,
    metrics,
    number,
    bytes,
    figure,
    quantity,
    intervalText,
    titleWithUnit,
    text,
    plural,
    listed,
    el,
    byId,
    refill,
    choice
  } = kvmark;

  const UNITS = {MiB: 2 ** 20, GiB: 2 ** 30};
  const RANKED_BY_DEFAULT =
      ["latency.tpot_ms.p50", "throughput.decode_tok_per_s", "counters.instructions_per_step"];
  const RESERVED_BYTES = "memory.kv_reserved_bytes", PEAK_BYTES = "memory.kv_peak_bytes";
  const WEIGHT_BYTES = "memory.weight_bytes";
  const LOSSES =
      ["accuracy.loss.kld_mean", "accuracy.loss.top1_agreement", "accuracy.loss.attend_rel_rms"];

  // ---- Where: choices, each among what the ones before it leave ----

  const NARROWER = [...kvmark.ENGINE_KEYS, ...kvmark.LENGTH_KEYS, "batch", "threads"];

  const SAID = ["model", "level", "layers", "heads", "kv_heads", "head_dim"];

  // The shape and level of a row, and what else tells the settings of its model apart.
  function settingText(row) {
    const {model, heads, kv_heads: kvHeads, head_dim: headDim, layers, level} = row.case;
    const ofModel = data.rows.filter((other) => other.case.model === model);
    const rest = kvmark.varyingKeys(ofModel, ...NARROWER, ...SAID)
                     .map((key) => `${kvmark.settingTitle(key)} ${text(row.case[key])}`);
    return [
      `${text(model)}, level ${text(level)}`, plural(layers ?? 0, "layer"),
      `heads ${text(heads)}:${text(kvHeads)} of ${text(headDim)}`, ...rest
    ].join(" · ");
  }

  // What is chosen, in this order: `of` tells options apart, `sortedBy` orders them; `last` begins
  // with the last one, else with the first.
  const CHOICES = [
    {
      id: "run",
      title: "Run",
      of: (row) => row.run,
      name: (row) => kvmark.runName(row.run),
      last: true
    },
    {
      id: "setting",
      title: "Model",
      of: (row) => kvmark.caseWithout(row, ...NARROWER),
      name: settingText,
      sortedBy: (row) => row.case.level === "model" ? 0 : 1  // whole steps are what users wait for
    },
    {
      id: "lengths",
      title: "Context (prompt + generated)",
      of: (row) => kvmark.LENGTH_KEYS.map((key) => row.case[key]).join(" "),
      name: contextText,
      sortedBy: (row) => row.case.seq_len ?? row.context,
      last: true
    },
    {
      id: "batch",
      title: "Batch",
      of: (row) => row.case.batch,
      name: (row) => text(row.case.batch),
      sortedBy: (row) => row.case.batch
    },
    {
      id: "threads",
      title: "Threads",
      of: (row) => row.case.threads,
      name: (row) => text(row.case.threads),
      sortedBy: (row) => row.case.threads,
      last: true
    },
  ];

  function contextText(row, among) {
    const {prompt_len: prompt, seq_len: all, max_seq_len: room} = row.case;
    const sum = prompt > 0 && all ? ` = ${all}` : "";
    const name = kvmark.lengthsText(row).replace(" tokens", `${sum} tokens`);
    const alike = among.some((other) => other.case.seq_len === all &&
            other.case.prompt_len === prompt && other.case.max_seq_len !== room);
    return alike ? `${name}, room for ${text(room)}` : name;
  }

  function optionsOf(question, rows) {
    const options = new Map();
    for (const row of rows) {
      const value = String(question.of(row));
      if (!options.has(value)) options.set(value, row);
    }
    const found =
        [...options].map(([value, row]) => ({value, row, text: question.name(row, rows)}));
    if (question.sortedBy)
      found.sort((a, b) => question.sortedBy(a.row) - question.sortedBy(b.row));
    return found;
  }

  // ---- What: the answer ----

  function rankableMetrics(rows) {
    return data.metrics.filter(
        (metric) => metric.better !== "none" && rows.some((row) => metric.path in row.values));
  }

  function defaultMetric(offered) {
    const isOffered = (path) => offered.some((metric) => metric.path === path);
    return RANKED_BY_DEFAULT.find(isOffered) ?? offered[0]?.path ?? null;
  }

  // What the engine held at once: while a cache grows, the old and the new piece.
  function kvBytes(row) {
    const reserved = row.values[RESERVED_BYTES];
    return reserved === undefined ? undefined : Math.max(reserved, row.values[PEAK_BYTES] ?? 0);
  }

  // Bytes that the budget must hold: the KV cache, and the weights where there are some.
  function bytesOf(row) {
    const kv = kvBytes(row);
    return kv === undefined ? undefined : kv + (row.values[WEIGHT_BYTES] ?? 0);
  }

  // Why a row is not ranked; null where it is.
  function objection(row, path, budget) {
    if (row.status !== "ok") return `${row.status}: ${text(row.reason)}`;
    if (!(path in row.values)) return `has no ${metrics.get(path).title}`;
    if (budget === Infinity) return null;
    const needed = bytesOf(row);
    if (needed === undefined) return "its memory is not known";
    if (needed <= budget) return null;
    return `does not fit: ${bytes(needed)}, ${bytes(needed - budget)} too much`;
  }

  // rows: those measured at the place asked for; elsewhere: others of the same setting. Returns
  // {ranked: [row], others: [{row, reason}], path}, best first.
  function rank(rows, elsewhere, path, budget) {
    const sign = metrics.get(path).better === "bigger" ? -1 : 1;
    const judged = rows.map((row) => ({row, reason: objection(row, path, budget)}));
    const ranked = judged.filter(({reason}) => reason === null)
                       .map(({row}) => row)
                       .sort((a, b) => sign * (a.values[path] - b.values[path]));
    const here = new Set(rows.map((row) => row.engine));
    const missing = elsewhere
                        .filter((row, i) => !here.has(row.engine) &&
                                elsewhere.findIndex((r) => r.engine === row.engine) === i)
                        .map((row) => ({row, reason: "not measured there"}));
    return {path, ranked, others: [...judged.filter(({reason}) => reason !== null), ...missing]};
  }

  function overlap(a, b) {
    return a && b && a[0] <= b[1] && b[0] <= a[1];
  }

  function sameTurn(a, b) {
    return a.turn === b.turn && a.turn !== null;
  }

  // Without an interval, or measured at another time, what is so far behind is behind all the same.
  const FAR = 2;

  // The rows that the first one is not known to beat: equal ones of an exact metric; of a noisy one
  // those whose interval overlaps, and those near it that have none or took no turns with it.
  function rivals({ranked, path}) {
    const [first, ...rest] = ranked, best = first.values[path];
    if (!metrics.get(path).noisy) return rest.filter((row) => row.values[path] === best);
    return rest.filter((row) => {
      if (row.intervals[path] && first.intervals[path] && sameTurn(row, first)) {
        return overlap(row.intervals[path], first.intervals[path]);
      }
      const value = row.values[path];
      return Math.max(value, best) < FAR * Math.min(value, best);
    });
  }

  function superlative(metric) {
    if (/^(latency|throughput)\./.test(metric.path)) return "the fastest";
    if (/^memory\./.test(metric.path)) return "the smallest";
    return `the best by ${metric.title}`;
  }

  function roundsText(rows) {
    const rounds = Math.min(...rows.map((row) => row.rounds ?? 1));
    return plural(rounds, "round");
  }

  function sizeSentence(row) {
    const kv = kvBytes(row), weights = row.values[WEIGHT_BYTES];
    if (kv === undefined) return "";
    if (!weights) return ` It reserves ${bytes(kv)} for the KV cache; no weights were loaded.`;
    return ` It takes ${bytes(kv + weights)}: ${bytes(kv)} reserved for the KV cache, ` +
        `${bytes(weights)} of weights.`;
  }

  // Doubts about the rows that the answer is about; those that share theirs together.
  function doubtSentence(rows) {
    const doubts = kvmark.distinct(rows.map((row) => row.doubts.join("; "))).filter(Boolean);
    const named = doubts.map((doubt) => {
      const doubtful = rows.filter((row) => row.doubts.join("; ") === doubt);
      return `${listed(doubtful.map(kvmark.engineInWords))} (${doubt})`;
    });
    return named.length > 0 ? ` In doubt: ${named.join("; ")}.` : "";
  }

  // The answer in words; `limit` is the budget's text, "" for none.
  function sentence(answer, limit) {
    const {ranked, others, path} = answer, metric = metrics.get(path);
    if (ranked.length === 0) return nothingFits(others, limit);
    const [first, second] = ranked;
    const name = kvmark.engineInWords, value = (row) => quantity(metric, row.values[path]);
    const within =
        limit ? ` of the ${ranked.length} that fit into ${limit}` : ` of ${ranked.length}`;
    if (!second) {
      const only = limit ? `Only ${name(first)} fits into ${limit}`
                         : `Only ${name(first)} can be ranked there`;
      return `${only}: ${metric.title} ${value(first)}.${sizeSentence(first)}` +
          doubtSentence([first]);
    }
    const near = rivals(answer);
    if (near.length > 0) {
      return undecided(answer, near, limit) + sizeSentence(first) + doubtSentence([first, ...near]);
    }
    const interval = intervalText(first, path);
    return `${name(first)} is ${superlative(metric)}${within}: ${metric.title} ${value(first)}` +
        `${interval ? ` (95 % interval ${interval})` : ""}, against ${value(second)} of ` +
        `${name(second)}.${sizeSentence(first)}${doubtSentence([first, second])}`;
  }

  function undecided({ranked, path}, near, limit) {
    const metric = metrics.get(path), [first] = ranked;
    const names = listed([first, ...near].map(kvmark.engineInWords));
    const where = limit ? ` of those that fit into ${limit}` : "";
    const best = quantity(metric, first.values[path]), name = kvmark.engineInWords(first);
    if (!metric.noisy) return `${names} are equal${where}: ${metric.title} ${best}.`;
    const decidable = (row) => row.intervals[path] && sameTurn(row, first);
    if (first.intervals[path] && near.every(decidable)) {
      return `Not decided between ${names}${where}: their intervals of ${metric.title} overlap; ` +
          `${name} came out at ${best}.`;
    }
    const others = listed(near.map((row) => quantity(metric, row.values[path])));
    const why = near.every((row) => sameTurn(row, first))
        ? `${roundsText([first, ...near])} without an interval`
        : "Not measured side by side";
    return `${name} came out first${where}: ${metric.title} ${best}, against ${others}. ` +
        `${why}: not decided between ${names}.`;
  }

  function nothingFits(others, limit) {
    const sized = others.filter(({row}) => row.status === "ok" && bytesOf(row) !== undefined)
                      .sort((a, b) => bytesOf(a.row) - bytesOf(b.row));
    if (!limit || sized.length === 0) return "Nothing that was measured there can be ranked.";
    const [{row}] = sized;
    return `Nothing that was measured there fits into ${limit}. The smallest, ` +
        `${kvmark.engineInWords(row)}, takes ${bytes(bytesOf(row))}.`;
  }

  // ---- Showing it ----

  // {bytes, text} of a budget as typed: Infinity and "" for none, NaN for what is no amount.
  function budgetOf(typed, unit) {
    const plain = typed.trim().replace(",", ".");
    if (plain === "") return {bytes: Infinity, text: ""};
    const isAmount = /^\d*\.?\d+$|^\d+\.$/.test(plain);
    return {bytes: isAmount ? Number(plain) * UNITS[unit] : NaN, text: `${plain} ${unit}`};
  }

  function rankedTable(answer, budget) {
    const {ranked, path} = answer, metric = metrics.get(path);
    const losses = LOSSES.filter((loss) => ranked.some((row) => loss in row.values));
    const weights = ranked.some((row) => row.values[WEIGHT_BYTES] > 0);
    const columns = [
      titleWithUnit(metric), "95 % interval", "KV reserved",
      ...(weights ? ["weights", "together"] : []), ...(budget < Infinity ? ["of the budget"] : []),
      ...losses.map((loss) => titleWithUnit(metrics.get(loss)))
    ];
    const head = el("tr", {}, el("th", {scope: "col"}, "rank"),
        el("th", {scope: "col", class: "name"}, "engine"),
        ...columns.map((title) => el("th", {scope: "col"}, title)));
    const body = ranked.map((row, i) => {
      const cells = [
        figure(metric, row.values[path]), intervalText(row, path) ?? kvmark.NOTHING,
        bytes(kvBytes(row)),
        ...(weights ? [bytes(row.values[WEIGHT_BYTES]), bytes(bytesOf(row))] : []),
        ...(budget < Infinity ? [`${number(100 * bytesOf(row) / budget)} %`] : []),
        ...losses.map((loss) => figure(metrics.get(loss), row.values[loss]))
      ];
      return el("tr", {}, el("td", {}, String(i + 1)), kvmark.engineHeader(row),
          ...cells.map((cell) => el("td", {}, cell)));
    });
    return el("div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Engines by rank"},
        el("table", {id: "ranking"}, el("thead", {}, head), el("tbody", {}, ...body)));
  }

  function othersList(others) {
    if (others.length === 0) return null;
    return el("div", {}, el("h3", {}, "Not ranked"),
        el("ul", {id: "not-ranked"},
            ...others.map(({row, reason}) => el("li", {}, el("b", {}, kvmark.engineInWords(row)),
                              ` (${row.engine}): ${reason}`))));
  }

  function layersText(rows) {
    const layers = kvmark.distinct(rows.map((row) => row.case.layers)).map(text).join(" or ");
    return `${layers} layer${layers === "1" ? "" : "s"}`;
  }

  // What a time at attention level must not be taken for.
  function levelText(rows) {
    const alone = rows.every((row) => row.case.level === "attention");
    return alone ? `Attention of ${layersText(rows)} alone: ` : "";
  }

  function countedText(rows) {
    const weights = rows.some((row) => row.values[WEIGHT_BYTES] > 0);
    return "Counted against the budget: the most bytes that the engine held at once for keys and " +
        `values${weights ? ", and the model's weights" : ""}; not ` +
        `${weights ? "" : "the weights, "}the program, its work space and the operating system. ` +
        `All as measured, with ${layersText(rows)} and the batch chosen.`;
  }

  const state = {chosen: {}, metric: null, budget: "", unit: "GiB"};

  function narrowed() {
    const controls = [];
    let rows = data.rows, elsewhere = data.rows;
    for (const question of CHOICES) {
      const options = optionsOf(question, rows);
      const known = options.some(({value}) => value === state.chosen[question.id]);
      if (!known) state.chosen[question.id] = options[question.last ? options.length - 1 : 0].value;
      if (question.id !== "run" || options.length > 1) {
        controls.push(choice(
            `ask-${question.id}`, question.title, options, state.chosen[question.id], (value) => {
              state.chosen[question.id] = value;
              build();
            }));
      }
      rows = rows.filter((row) => String(question.of(row)) === state.chosen[question.id]);
      if (question.id === "run" || question.id === "setting") elsewhere = rows;
    }
    return {controls, rows, elsewhere};
  }

  function budgetControl() {
    const amount = el("input", {
      id: "ask-budget",
      type: "text",
      inputmode: "decimal",
      size: 6,
      value: state.budget,
      placeholder: "no limit",
      oninput: () => {
        state.budget = amount.value;
        show();
      }
    });
    const unit = el("select", {
      id: "ask-unit",
      "aria-label": "unit of the memory budget",
      onchange: () => {
        state.unit = unit.value;
        show();
      }
    },
        ...Object.keys(UNITS).map(
            (name) => el("option", {value: name, selected: name === state.unit}, name)));
    return el("div", {class: "control"}, el("label", {"for": "ask-budget"}, "Memory budget"),
        el("span", {class: "pair"}, amount, unit));
  }

  // The form is built anew only when a choice changes what can be chosen; focus stays where it was.
  function build() {
    const {controls, rows} = narrowed();
    const offered = rankableMetrics(rows);
    if (!offered.some((metric) => metric.path === state.metric)) {
      state.metric = defaultMetric(offered);
    }
    const options = offered.map((metric) => ({
      value: metric.path,
      text: `${titleWithUnit(metric)}, ${metric.better === "bigger" ? "highest" : "lowest"} first`,
    }));
    const rankBy = options.length === 0
        ? null
        : choice("ask-metric", "Rank by", options, state.metric, (path) => {
            state.metric = path;
            show();
          });
    refill(byId("question-form"), ...controls, budgetControl(), rankBy);
    show();
  }

  function show() {
    const {rows, elsewhere} = narrowed(), details = byId("answer-details");
    const {bytes: budget, text: limit} = budgetOf(state.budget, state.unit);
    byId("ask-budget").setAttribute("aria-invalid", Number.isNaN(budget));
    if (Number.isNaN(budget)) {
      byId("answer").textContent = "The memory budget must be a number, like 2 or 0.5.";
      refill(details);
      return;
    }
    if (!state.metric) {
      byId("answer").textContent = "No figures were measured there.";
      refill(details,
          othersList(rows.map((row) => ({row, reason: `${row.status}: ${text(row.reason)}`}))));
      return;
    }
    const answer = rank(rows, elsewhere, state.metric, budget);
    byId("answer").textContent = levelText(rows) + sentence(answer, limit);
    refill(details, answer.ranked.length > 0 ? rankedTable(answer, budget) : null,
        othersList(answer.others), el("p", {class: "muted"}, countedText(rows)));
  }

  return {
    start() {
      if (data.rows.length === 0)
        byId("question").hidden = true;
      else {
        byId("question-form").addEventListener("submit", (event) => event.preventDefault());
        build();
      }
    },
  };
})();
