// The chart and its controls: which view, which axes, which rows, which engines.
kvmark.charts = (() => {
  "use strict";

  const {data, metrics, titleWithUnit, plural, distinct, listed} = kvmark;
  const {el, byId, refill, choice, checkbox} = kvmark;
  const {counted, axisNames, axisOf, nameOf, paleText, makers} = kvmark.views;

  const ALL = "all";
  const {KLD, ATTENTION_ERROR} = kvmark.losses;

  // What each view can be asked: logarithmic axes, and whether it shows one context at a time.
  const CAN = {
    axes: {logs: ["x", "y"]},
    bars: {logs: ["y"], oneContext: true},
    growth: {logs: ["x", "y"], oneContext: true},
    distribution: {logs: ["x"], oneContext: true},
    memory: {logs: [], oneContext: true},
    ratios: {logs: []},
  };

  // ---- Useful views ----

  const has = (path) => (row) => path in row.values;
  const anywhere = (...paths) => (rows) =>
      rows.some((row) => paths.every((path) => path in row.values));
  const overContexts = (path) => (rows) =>
      distinct(rows.filter(has(path)).map((row) => row.context)).length > 1;
  const loss = counted.some(has(KLD)) ? KLD : ATTENTION_ERROR;

  // {title, when, set}: offered where `when` holds for the rows of a group; `set` goes into the
  // state.
  const VIEWS = [
    {
      title: "time against tokens",
      when: (rows) =>
          rows.some((row) => row.cumulative?.tokens.at(-1) >= data.limits.growth_tokens),
      set: {view: "growth", xlog: true, ylog: true}
    },
    {
      title: "step time against context",
      when: overContexts("latency.tpot_ms.p50"),
      set: {view: "axes", x: "context", y: "latency.tpot_ms.p50", xlog: true, ylog: true}
    },
    {
      title: "attention time against context",
      when: overContexts("latency.attend_ms.p50"),
      set: {view: "axes", x: "context", y: "latency.attend_ms.p50", xlog: true, ylog: true}
    },
    ...["kv_heads", "batch", "threads"]
        .filter((key) => axisNames().settings.includes(key))
        .map((key) => ({
          title: `attention time against ${kvmark.settingTitle(key)}`,
          when: (rows) => places(along(rows.filter(has("latency.attend_ms.p50")), axisOf(key)),
                              axisOf(key)) > 1,
          set: {view: "axes", x: key, y: "latency.attend_ms.p50", xlog: true, ylog: true}
        })),
    {
      title: "KV bytes against context",
      when: overContexts("memory.kv_reserved_bytes"),
      set: {view: "axes", x: "context", y: "memory.kv_reserved_bytes", xlog: true, ylog: true}
    },
    {
      title: "loss against bits",
      when: anywhere("memory.kv_bits_per_element", loss),
      set: {view: "axes", x: "memory.kv_bits_per_element", y: loss, xlog: false, ylog: true}
    },
    {
      title: "fraction of the ceiling",
      when: anywhere("work.bandwidth_fraction"),
      set: {view: "bars", y: "work.bandwidth_fraction", ylog: false}
    },
    {
      title: "step times",
      when: (rows) => rows.some((row) => row.itl_quantiles_ms),
      set: {view: "distribution", xlog: false}
    },
    {
      title: "memory over tokens",
      when: (rows) => rows.some((row) => row.timeline),
      set: {view: "memory"}
    },
  ];

  const state = {
    view: "axes",
    x: null,
    y: null,
    xlog: false,
    ylog: false,
    group: 0,
    lengths: null,
    ratioOf: null,
    hidden: new Set()
  };

  function inGroup(group) {
    return counted.filter((row) => row.group === group);
  }

  function offeredViews() {
    const groups = data.groups.map((_, group) => inGroup(group));
    const offered = VIEWS.filter(({when}) => groups.some(when));
    if (ratioMetrics().length === 0) return offered;
    return [{title: "new against base", when: () => true, set: {view: "ratios"}}, ...offered];
  }

  function isShown({set}) {
    return Object.entries(set).every(([key, value]) => key.endsWith("log") || state[key] === value);
  }

  // Goes to a group that has what the view shows, if this one has not; along another axis the
  // context is chosen anew.
  function showView({when, set}) {
    Object.assign(state, set, set.x ? {lengths: null} : {});
    if (!when(inGroup(state.group))) {
      state.group = data.groups.findIndex((_, group) => when(inGroup(group)));
    }
    build();
  }

  // ---- Which rows ----

  const lengthsOf = (row) => `${row.case.prompt_len} ${row.case.gen_len}`;

  // The rows of a group; where the axis is a setting that parts groups, those of its neighbours
  // along it too.
  function along(rows, axis) {
    if (axis.path || axis.name === "context" || rows.length === 0) return rows;
    const apart = [...kvmark.ENGINE_KEYS, ...data.length_keys, ...axis.keys];
    const like = kvmark.caseWithout(rows[0], ...apart);
    return counted.filter((row) => kvmark.caseWithout(row, ...apart) === like);
  }

  function places(rows, axis) {
    return distinct(rows.map(axis.of)).length;
  }

  function offeredRows() {
    const rows = inGroup(state.group);
    return state.view === "axes" ? along(rows, axisOf(state.x)) : rows;
  }

  function choosesContext() {
    return CAN[state.view].oneContext || (state.view === "axes" && state.x !== "context");
  }

  function lengthOptions(rows) {
    const first = new Map();
    for (const row of rows)
      if (!first.has(lengthsOf(row))) first.set(lengthsOf(row), row);
    const byContext = [...first].sort(([, a], [, b]) => a.context - b.context);
    const options = byContext.map(([value, row]) => ({value, text: kvmark.lengthsText(row)}));
    if (state.view === "axes" && options.length > 1) options.push({value: ALL, text: "all"});
    return options;
  }

  // The longest context; along a setting, of those with most places.
  function usualLengths() {
    const rows = [...offeredRows()].sort((a, b) => b.context - a.context);
    if (state.view !== "axes" || rows.length === 0)
      return rows.length > 0 ? lengthsOf(rows[0]) : null;
    const count = (lengths) =>
        places(rows.filter((row) => lengthsOf(row) === lengths), axisOf(state.x));
    const all = distinct(rows.map(lengthsOf));
    return all.reduce((best, lengths) => count(lengths) > count(best) ? lengths : best);
  }

  function chosenRows() {
    const rows = offeredRows();
    if (!choosesContext() || state.lengths === ALL) return rows;
    return rows.filter((row) => lengthsOf(row) === state.lengths);
  }

  // ---- Controls ----

  function set(changes) {
    Object.assign(state, changes);
    build();
  }

  function viewButtons() {
    const own = {title: "choose axes", when: () => true, set: {view: "axes"}};
    const offered = offeredViews(), shown = offered.find(isShown);
    return [...offered, own].map((view, i) => el("button", {
      type: "button",
      id: `view-${i}`,
      onclick: () => showView(view),
      "aria-pressed": String(view === (shown ?? (state.view === "axes" ? own : null))),
    },
                                     view.title));
  }

  function metricOptions(paths) {
    return paths.map((path) => ({value: path, text: titleWithUnit(metrics.get(path))}));
  }

  function axisChoices() {
    if (state.view !== "axes" && state.view !== "bars") return [];
    const names = axisNames();
    const x = [
      {value: "engine", text: "engine, as bars"},
      ...names.settings.map((name) => ({value: name, text: axisOf(name).title})),
      ...metricOptions(names.metrics)
    ];
    return [
      choice("chart-x", "Horizontal axis", x, state.view === "bars" ? "engine" : state.x,
          (value) => set(value === "engine" ? {view: "bars"} : {view: "axes", x: value})),
      choice("chart-y", state.view === "bars" ? "Figure" : "Vertical axis",
          metricOptions(names.metrics), state.y, (value) => set({y: value})),
    ];
  }

  function logBoxes() {
    const names = {x: "horizontal", y: state.view === "bars" ? "figure" : "vertical"};
    const boxes =
        CAN[state.view].logs.map((axis) => checkbox(`chart-${axis}log`, names[axis],
                                     state[`${axis}log`], (on) => set({[`${axis}log`]: on})));
    if (boxes.length === 0) return null;
    return el("div", {class: "control", role: "group", "aria-label": "Logarithmic axes"},
        el("span", {class: "label"}, "Logarithmic"), el("span", {class: "pair"}, ...boxes));
  }

  function controls() {
    if (state.view === "ratios") {
      return [choice("chart-ratio", "Metric", ratioMetrics(), state.ratioOf,
          (value) => set({ratioOf: value}))];
    }
    const groups = data.groups.map(({heading}, group) => ({value: group, text: heading}))
                       .filter(({value}) => inGroup(value).length > 0);
    const parts = [
      choice("chart-group", "Setting", groups, state.group, (value) => set({group: Number(value)})),
      ...axisChoices()
    ];
    if (choosesContext()) {
      const options = lengthOptions(offeredRows());
      if (!options.some(({value}) => value === state.lengths)) state.lengths = usualLengths();
      if (options.length > 0) {
        parts.push(choice("chart-lengths", "Tokens: prompt + generated", options, state.lengths,
            (value) => set({lengths: value})));
      }
    }
    return [...parts, logBoxes()];
  }

  // Metrics that the comparison judged, the others behind them.
  function ratioMetrics() {
    const found = new Map();
    for (const {metrics: compared} of data.comparison?.cases ?? []) {
      for (const {metric, title, verdict, change} of compared) {
        if (change === null || change === undefined) continue;
        const judged = verdict !== "shown";
        if (judged || !found.has(metric)) found.set(metric, {value: metric, text: title, judged});
      }
    }
    const all = [...found.values()];
    return [...all.filter(({judged}) => judged), ...all.filter(({judged}) => !judged)];
  }

  function engineBoxes(rows) {
    const engines = distinct(rows.map((row) => row.engine));
    const show = (names) => {
      state.hidden = new Set(engines.filter((engine) => !names.includes(engine)));
      build();
    };
    const boxes = engines.map((engine, i) => {
      const box = checkbox(`engine-${i}`, nameOf(rows.find((row) => row.engine === engine)),
          !state.hidden.has(engine), (on) => {
            state.hidden[on ? "delete" : "add"](engine);
            build();
          });
      box.firstChild.after(kvmark.engines.swatch(engine));
      return box;
    });
    const button = (id, title, names) =>
        el("button", {type: "button", id, class: "small", onclick: () => show(names)}, title);
    return [
      el("legend", {}, "Engines"), ...boxes,
      el("span", {class: "pair"}, button("engines-all", "all", engines),
          button("engines-none", "none", []))
    ];
  }

  // ---- Drawing ----

  let chart = null;

  function noteOf(view, visible, hidden) {
    const notes = [], points = view.series.flatMap((series) => series.points);
    if (points.length === 0) notes.push("Nothing to draw here.");
    if (view.left > 0) {
      const rows = plural(view.left, "row"), are = view.left === 1 ? "is" : "are";
      notes.push(`${rows} with no figure for this view ${are} left out.`);
    }
    if (view.notAbove0?.length > 0) {
      const names = listed(distinct(view.notAbove0.map(nameOf)));
      notes.push(`Not above 0, so not on a logarithmic axis: ${names}.`);
    }
    if (hidden > 0) notes.push(`${plural(hidden, "engine")} switched off.`);
    if (state.view !== "ratios") notes.push(paleText(visible));
    if (points.some(({xlo, ylo}) => xlo !== undefined || ylo !== undefined)) {
      notes.push(state.view === "ratios" ? "Error bars: intervals of the change."
                                         : "Error bars: 95 % intervals.");
    }
    return notes.filter(Boolean).join(" ");
  }

  function draw() {
    const rows = chosenRows(), visible = rows.filter((row) => !state.hidden.has(row.engine));
    const hidden = distinct(rows.map((row) => row.engine)).length -
        distinct(visible.map((row) => row.engine)).length;
    const view = makers[state.view](visible, state);
    const isEmpty = view.series.every(({points}) => points.length === 0);
    byId("chart-title").textContent = view.title;
    byId("chart-note").textContent = noteOf(view, visible, hidden);
    byId("chart").setAttribute(
        "aria-label", `${view.title}. The table of all rows has the figures.`);
    byId("chart-box").hidden = isEmpty;
    chart?.destroy();
    chart = null;
    if (isEmpty) return;
    const count = view.bars ? view.y.labels.length : 0;
    byId("chart-box").style.height = view.bars ? `${90 + 34 * count}px` : "";
    chart = new Chart(byId("chart"), kvmark.parts.configuration(view));
  }

  function build() {
    refill(byId("views"), ...viewButtons());
    refill(byId("chart-form"), ...controls());
    const rows = state.view === "ratios" ? [] : chosenRows();
    byId("engines").hidden = rows.length === 0;
    refill(byId("engines"), ...engineBoxes(rows));
    draw();
  }

  // ---- Start ----

  // Paper is white, whatever the screen was.
  function followLight() {
    const repaint = () => {
      kvmark.engines.recolourSwatches();
      draw();
    };
    const printing = (on) => () => {
      document.documentElement.classList.toggle("printing", on);
      repaint();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    addEventListener("beforeprint", printing(true));
    addEventListener("afterprint", printing(false));
  }

  return {
    start() {
      if (counted.length === 0) {
        byId("charts").hidden = true;
        return;
      }
      const font = getComputedStyle(document.body);
      Chart.defaults.font.family = font.fontFamily;
      Chart.defaults.font.size = 13;
      state.ratioOf = ratioMetrics()[0]?.value ?? null;
      state.group = (kvmark.questions.rows().find((row) => row.counts) ?? counted[0]).group;
      state.x = axisNames().settings[0] ?? axisNames().metrics[0];
      state.y = data.metrics.find(({path}) => path === "latency.tpot_ms.p50")?.path ??
          data.metrics[0]?.path;
      byId("chart-form").addEventListener("submit", (event) => event.preventDefault());
      const offered = offeredViews();
      const first = offered.find(({when}) => when(inGroup(state.group))) ?? offered[0];
      if (first)
        showView(first);
      else
        build();
      followLight();
    },
  };
})();
