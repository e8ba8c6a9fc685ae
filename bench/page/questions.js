// "Which cache should I use?": asks for a setting among those measured and for a budget of memory,
// and shows the answer with the ranking behind it.
kvmark.questions = (() => {
  "use strict";

  const {data, metrics, rough, bytes, exact, titleWithUnit, text, plural, losses} = kvmark;
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

  const LEVELS = new Map([["model", "whole steps"], ["attention", "attention alone"]]);

  // The level and shape of a setting's rows; a narrow screen shows the beginning.
  function shapeText(rows) {
    const {model, heads, kv_heads: kvHeads, head_dim: headDim, level} = rows[0].case;
    return `${LEVELS.get(level) ?? `level ${text(level)}`} · ${text(model)} · ` +
        `${text(heads)}:${text(kvHeads)} heads of ${text(headDim)} · ${layersText(rows)}`;
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
  // with the last one, else with the first; `isLike` finds what takes the place of a wish that is
  // not offered; `rare` ones are asked only where there are several options.
  const CHOICES = [
    {
      id: "run",
      title: "Run",
      of: (row) => row.run,
      name: (row) => kvmark.runName(row.run),
      last: true,
      rare: true
    },
    {id: "machine", title: "Machine", of: kvmark.machineOf, name: kvmark.machineOf, rare: true},
    {
      id: "setting",
      title: "Model",
      of: settingOf,
      name: settingText,
      sortedBy: (row) => row.case.level === "model" ? 0 : 1  // whole steps are what users wait for
    },
    {
      id: "lengths",
      title: "Tokens: prompt + generated",
      of: (row) => data.length_keys.map((key) => row.case[key]).join(" "),
      name: contextText,
      sortedBy: (row) => row.case.seq_len ?? row.context,
      last: true,
      // Each level may have room of its own.
      isLike: (a, b) => kvmark.lengthsText(a) === kvmark.lengthsText(b)
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
    if (/^[\d.]+\s*([kmgt]i?b?|b|bytes)$/i.test(plain)) {
      return {problem: "Write the number of the memory budget alone; the unit stands beside it."};
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
    const weights = loadsWeights(ranked);
    const columns = [
      metric.title, "95 % interval", ...lost.map((loss) => metrics.get(loss).title),
      "KV held at most", ...(weights ? ["weights", "together"] : []),
      ...(budget < Infinity ? ["of the budget"] : [])
    ];
    const head = el("tr", {}, el("th", {scope: "col"}, "rank"),
        el("th", {scope: "col", class: "name"}, "engine"),
        ...columns.map((title) => el("th", {scope: "col"}, title)));
    const body = ranked.map((row, i) => {
      const cells = [
        losses.figure(path, row.values[path]), kvmark.intervalText(row, path) ?? kvmark.NOTHING,
        ...lost.map((loss) => losses.figure(loss, row.values[loss]))
      ];
      const sizes = [kvBytes(row), ...(weights ? [weightBytes(row), bytesOf(row)] : [])];
      const share = budget < Infinity ? [`${rough(100 * bytesOf(row) / budget)} %`] : [];
      return el("tr", {}, el("td", {}, String(i + 1)), kvmark.engines.header(row),
          ...cells.map((cell) => el("td", {}, cell)), ...sizes.map(bytesCell),
          ...share.map((cell) => el("td", {}, cell)));
    });
    return el("div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Engines by rank"},
        el("table", {id: "ranking"}, el("thead", {}, head), el("tbody", {}, ...body)));
  }

  function bytesCell(value) {
    const title = value === undefined ? null : exact({unit: "bytes"}, value);
    return el("td", {title}, bytes(value));
  }

  function othersList(others) {
    if (others.length === 0) return null;
    return el("div", {}, el("h3", {}, "Not ranked"),
        el("ul", {id: "not-ranked"},
            ...others.map(({row, reason}) => el("li", {}, el("b", {}, kvmark.engineInWords(row)),
                              ` (${row.engine}): ${reason}`))));
  }

  function loadsWeights(rows) {
    return rows.some((row) => weightBytes(row) > 0);
  }

  // What a time at attention level must not be taken for.
  function levelText(rows) {
    const alone = rows.every(kvmark.isAttention);
    return alone ? `Attention of ${layersText(rows)} alone: ` : "";
  }

  function countedText(rows) {
    const weights = loadsWeights(rows);
    return "Counted against the budget: the most bytes that the engine held at once for keys and " +
        `values${weights ? ", and the model's weights" : ""}; not ` +
        `${weights ? "" : "the weights, "}the program, its work space and the operating system. ` +
        `All as measured, with ${layersText(rows)} and the batch chosen.`;
  }

  // `wanted`, the option that the reader last chose of each question, or found there first;
  // `asked`, what each question offers and the option `taken`; the rows that these leave;
  // `elsewhere`, those that run, machine and model alone leave; `offered`, metrics to rank by,
  // `wantedMetric` and the one that is taken.
  const state = {
    wanted: {},
    asked: [],
    rows: [],
    elsewhere: [],
    offered: [],
    wantedMetric: null,
    metric: null,
    budget: "",
    unit: "GiB"
  };

  // The option that was wanted, one like it, or the usual one.
  function takenOf({id, last, isLike}, options) {
    const wanted = state.wanted[id];
    const alike = (option) => wanted && isLike?.(option.row, wanted.row);
    return options.find(({value}) => value === wanted?.value) ?? options.find(alike) ??
        options[last ? options.length - 1 : 0];
  }

  // Follows the wishes; one that is not offered now comes back when it is.
  function choose() {
    state.asked = [];
    state.rows = data.rows;
    for (const question of CHOICES) {
      const options = optionsOf(question, state.rows);
      const taken = takenOf(question, options);
      state.wanted[question.id] ??= taken;
      state.asked.push({question, options, taken});
      state.rows = state.rows.filter((row) => String(question.of(row)) === taken.value);
      if (question.id === "setting") state.elsewhere = state.rows;
    }
    state.offered = rankableMetrics(state.rows);
    const isWanted = ({path}) => path === state.wantedMetric;
    state.metric = state.offered.some(isWanted) ? state.wantedMetric : defaultMetric(state.offered);
  }

  function placeControls() {
    return state.asked.filter(({question, options}) => !question.rare || options.length > 1)
        .map(({question: {id, title}, options, taken}) =>
                 choice(`ask-${id}`, title, options, taken.value, (chosen) => {
                   state.wanted[id] = options.find(({value}) => value === chosen);
                   build();
                 }));
  }

  function budgetControl() {
    const amount = el("input", {
      id: "ask-budget",
      type: "text",
      inputmode: "decimal",
      size: 6,
      maxlength: 12,
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
    const counted = loadsWeights(state.rows) ? "KV cache and weights" : "KV cache";
    return el("div", {class: "control"},
        el("label", {"for": "ask-budget"}, `Memory budget (${counted})`),
        el("span", {class: "pair"}, amount, unit));
  }

  function metricControl() {
    if (state.offered.length === 0) return null;
    const options = state.offered.map((metric) => ({
      value: metric.path,
      text: `${titleWithUnit(metric)}, ${metric.better === "bigger" ? "highest" : "lowest"} first`,
    }));
    return choice("ask-metric", "Rank by", options, state.metric, (path) => {
      state.wantedMetric = state.metric = path;
      show();
    });
  }

  // The form is built anew only when a choice changes what can be chosen; focus stays where it was.
  function build() {
    choose();
    refill(byId("question-form"), ...placeControls(), budgetControl(), metricControl());
    show();
  }

  function line(term, words) {
    return el("div", {}, el("dt", {}, term), el("dd", {}, words));
  }

  function showAnswer(lead, {lines = [], engines = [], note} = {}) {
    const use = el("code", {}, `kvmark run PLAN --engine ${engines.join(",")}`);
    const purpose = engines.length > 1 ? "To measure them again" : "To use it";
    refill(byId("answer"), el("p", {}, lead), ...(lines.length === 0 ? [] : [
      el("dl", {}, ...lines.map(([term, words]) => line(term, words)), line(purpose, use)),
      el("p", {class: "muted"}, note)
    ]));
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
    const {lead, ...more} = kvmark.answer.inWords(answer, limit);
    showAnswer(levelText(rows) + lead, more);
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
        const levels = kvmark.distinct(data.rows.map((row) => row.case.level));
        byId("levels").hidden = ![...LEVELS.keys()].every((level) => levels.includes(level));
        build();
      }
    },
    // Of the setting that is asked for.
    rows: () => state.rows,
  };
})();
