// "Which cache should I use?": asks for a setting among those measured and for a budget of memory,
// and shows the answer with the ranking behind it.
kvmark.questions = (() => {
  "use strict";

  const {data, metrics, rough, bytes, titleWithUnit, text, plural, losses} = kvmark;
  const {el, byId, refill, choice} = kvmark;
  const {rankableMetrics, defaultMetric, weightBytes, kvBytes, bytesOf, rank} = kvmark.ranking;

  const UNITS = {MiB: 2 ** 20, GiB: 2 ** 30};

  // ---- Where: choices, each among what the ones before it leave ----

  const NARROWER = [...kvmark.ENGINE_KEYS, ...data.length_keys, "batch", "threads"];

  // Equal for rows of one option. Layers that follow the context are none of the setting.
  function settingOf(row) {
    return kvmark.caseWithout(row, ...NARROWER, ...(kvmark.layersFollow(row) ? ["layers"] : []));
  }

  // "4 layers", "4 to 256 layers".
  function layersText(rows) {
    const layers = rows.map((row) => row.case.layers ?? 0);
    const least = Math.min(...layers), most = Math.max(...layers);
    return least === most ? plural(most, "layer") : `${least} to ${most} layers`;
  }

  // The shape and level of a setting's rows.
  function shapeText(rows) {
    const {model, heads, kv_heads: kvHeads, head_dim: headDim, level} = rows[0].case;
    return `${text(model)}, level ${text(level)} · ${layersText(rows)} · ` +
        `heads ${text(heads)}:${text(kvHeads)} of ${text(headDim)}`;
  }

  const rowsOfSetting = new Map();
  for (const row of data.rows) {
    const setting = settingOf(row);
    rowsOfSetting.set(setting, [...(rowsOfSetting.get(setting) ?? []), row]);
  }

  // With what tells settings of the same shape apart.
  function settingText(row) {
    const shape = shapeText(rowsOfSetting.get(settingOf(row)));
    const alike = [...rowsOfSetting.values()].filter((rows) => shapeText(rows) === shape).flat();
    const rest = kvmark.varyingKeys(alike, ...NARROWER, "layers")
                     .map((key) => `${kvmark.settingTitle(key)} ${text(row.case[key])}`);
    return [shape, ...rest].join(" · ");
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
      of: settingOf,
      name: settingText,
      sortedBy: (row) => row.case.level === "model" ? 0 : 1  // whole steps are what users wait for
    },
    {
      id: "lengths",
      title: "Context (prompt + generated)",
      of: (row) => data.length_keys.map((key) => row.case[key]).join(" "),
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
    const name = kvmark.lengthsText(row, {withSum: true});
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

  // ---- Showing it ----

  // {bytes, limit} of a budget as typed, Infinity and "" for none; {problem} of what is no amount.
  // A comma is a decimal point to some and parts thousands to others.
  function budgetOf(typed, unit) {
    const plain = typed.trim();
    if (plain === "") return {bytes: Infinity, limit: ""};
    if (plain.includes(",")) {
      return {problem: "Write the memory budget without a comma, like 1024 or 1.5."};
    }
    if (!/^-?(\d+\.?\d*|\.\d+)$/.test(plain)) {
      return {problem: "The memory budget must be a number, like 2 or 0.5."};
    }
    if (Number(plain) <= 0) return {problem: "The memory budget must be more than 0."};
    return {bytes: Number(plain) * UNITS[unit], limit: `${plain} ${unit}`};
  }

  function rankedTable(answer, budget) {
    const {ranked, path} = answer, metric = metrics.get(path);
    const lost =
        data.losses.filter((loss) => loss !== path && ranked.some((row) => loss in row.values));
    const weights = ranked.some((row) => weightBytes(row) > 0);
    const columns = [
      metric.title, "95 % interval", "KV held at most", ...(weights ? ["weights", "together"] : []),
      ...(budget < Infinity ? ["of the budget"] : []),
      ...lost.map((loss) => metrics.get(loss).title)
    ];
    const head = el("tr", {}, el("th", {scope: "col"}, "rank"),
        el("th", {scope: "col", class: "name"}, "engine"),
        ...columns.map((title) => el("th", {scope: "col"}, title)));
    const body = ranked.map((row, i) => {
      const cells = [
        losses.figure(path, row.values[path]), kvmark.intervalText(row, path) ?? kvmark.NOTHING,
        bytes(kvBytes(row)), ...(weights ? [bytes(weightBytes(row)), bytes(bytesOf(row))] : []),
        ...(budget < Infinity ? [`${rough(100 * bytesOf(row) / budget)} %`] : []),
        ...lost.map((loss) => losses.figure(loss, row.values[loss]))
      ];
      return el("tr", {}, el("td", {}, String(i + 1)), kvmark.engines.header(row),
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

  // What a time at attention level must not be taken for.
  function levelText(rows) {
    const alone = rows.every(kvmark.isAttention);
    return alone ? `Attention of ${layersText(rows)} alone: ` : "";
  }

  function countedText(rows) {
    const weights = rows.some((row) => weightBytes(row) > 0);
    return "Counted against the budget: the most bytes that the engine held at once for keys and " +
        `values${weights ? ", and the model's weights" : ""}; not ` +
        `${weights ? "" : "the weights, "}the program, its work space and the operating system. ` +
        `All as measured, with ${layersText(rows)} and the batch chosen.`;
  }

  // `chosen`, by question; `asked`, what each question offers; the rows that the choices leave;
  // `elsewhere`, those that run and model alone leave; `offered`, metrics to rank by.
  const state = {
    chosen: {},
    asked: [],
    rows: [],
    elsewhere: [],
    offered: [],
    metric: null,
    budget: "",
    unit: "GiB"
  };

  // Follows the choices; one that is not offered any more gives way to the usual one.
  function choose() {
    state.asked = [];
    state.rows = data.rows;
    for (const question of CHOICES) {
      const options = optionsOf(question, state.rows);
      const usual = options[question.last ? options.length - 1 : 0];
      const {value} = options.find((option) => option.value === state.chosen[question.id]) ?? usual;
      state.chosen[question.id] = value;
      state.asked.push({question, options});
      state.rows = state.rows.filter((row) => String(question.of(row)) === value);
      if (question.id === "setting") state.elsewhere = state.rows;
    }
    state.offered = rankableMetrics(state.rows);
    if (!state.offered.some(({path}) => path === state.metric)) {
      state.metric = defaultMetric(state.offered);
    }
  }

  function placeControls() {
    return state.asked.filter(({question, options}) => question.id !== "run" || options.length > 1)
        .map(({question: {id, title}, options}) =>
                 choice(`ask-${id}`, title, options, state.chosen[id], (value) => {
                   state.chosen[id] = value;
                   build();
                 }));
  }

  function budgetControl() {
    const amount = el("input", {
      id: "ask-budget",
      type: "text",
      inputmode: "decimal",
      size: 6,
      value: state.budget,
      placeholder: "no limit",
      "aria-describedby": "answer",
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

  function metricControl() {
    if (state.offered.length === 0) return null;
    const options = state.offered.map((metric) => ({
      value: metric.path,
      text: `${titleWithUnit(metric)}, ${metric.better === "bigger" ? "highest" : "lowest"} first`,
    }));
    return choice("ask-metric", "Rank by", options, state.metric, (path) => {
      state.metric = path;
      show();
    });
  }

  // The form is built anew only when a choice changes what can be chosen; focus stays where it was.
  function build() {
    choose();
    refill(byId("question-form"), ...placeControls(), budgetControl(), metricControl());
    show();
  }

  function showAnswer(lead, lines = []) {
    const {title, definition} = metrics.get(state.metric) ?? {};
    const items =
        lines.map(([term, words]) => el("div", {}, el("dt", {}, term), el("dd", {}, words)));
    refill(byId("answer"), el("p", {}, lead),
        ...(lines.length > 0
                ? [el("dl", {}, ...items), el("p", {class: "muted"}, `${title}: ${definition}`)]
                : []));
  }

  function show() {
    const {rows, elsewhere} = state, details = byId("answer-details");
    const {bytes: budget, limit, problem} = budgetOf(state.budget, state.unit);
    byId("ask-budget").setAttribute("aria-invalid", Boolean(problem));
    if (problem) {
      showAnswer(problem);
      refill(details);
      return;
    }
    if (!state.metric) {
      showAnswer("No figures were measured there.");
      refill(details,
          othersList(rows.map((row) => ({row, reason: `${row.status}: ${text(row.reason)}`}))));
      return;
    }
    const answer = rank(rows, elsewhere, state.metric, budget);
    const {lead, lines} = kvmark.answer.inWords(answer, limit);
    showAnswer(levelText(rows) + lead, lines);
    refill(details, answer.ranked.length > 0 ? rankedTable(answer, budget) : null,
        othersList([...answer.others, ...answer.missing]),
        el("p", {class: "muted"}, countedText(rows)));
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
