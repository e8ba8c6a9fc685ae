// The table of all rows: sorts, filters, and shows the columns that are wanted. Rows without
// figures stand in it with their reasons.
kvmark.table = (() => {
  "use strict";

  const {data, metrics, figure, exact, intervalText, text, distinct, plural} = kvmark;
  const {el, byId, refill, choice, checkbox} = kvmark;

  const SHOWN_SETTINGS = ["model", "level", "heads", "kv_heads", "batch", "threads", "pool_order"];
  const SHOWN_METRICS = [
    "latency.tpot_ms.p50", "throughput.decode_tok_per_s", "memory.kv_reserved_bytes",
    "memory.kv_bytes_per_token", "work.bandwidth_fraction", ...data.losses,
    "counters.instructions_per_step"
  ];

  const MARKS = {ok: "✓", failed: "✗", skipped: "–", invalid: "!"};

  function statusCell(row) {
    return el("td", {class: `status ${row.status}`}, `${MARKS[row.status] ?? "?"} ${row.status}`);
  }

  // ---- Columns ----
  // {id, title, unit, about, of, cell, metric}: `of` gives what a row is sorted by.

  function settingColumn(key) {
    return {
      id: `case.${key}`,
      title: kvmark.settingTitle(key),
      about: kvmark.settings.get(key)?.definition,
      of: (row) => row.case[key],
      cell: (row) => el("td", {}, text(row.case[key]))
    };
  }

  function metricColumn(metric) {
    return {
      id: metric.path,
      title: metric.title,
      unit: metric.unit === "bytes" ? "" : metric.unit,
      about: `${metric.path}: ${metric.definition}`,
      metric: true,
      of: (row) => row.values[metric.path],
      cell: (row) => metricCell(row, metric)
    };
  }

  function metricCell(row, metric) {
    const interval = state.intervals ? intervalText(row, metric.path) : null;
    const value = row.values[metric.path];
    return el("td", {title: value === undefined ? null : exact(metric, value)},
        figure(metric, value), interval && el("span", {class: "interval"}, interval));
  }

  // What stands beside the figures: why they miss a gate, what disturbed them.
  function notesOf(row) {
    const reason = row.reason && (row.counts || !shownColumns().some(({metric}) => metric));
    return [...(reason ? [row.reason] : []), ...kvmark.remarks(row)].join("; ");
  }

  const varying = kvmark.varyingKeys(data.rows, ...kvmark.ENGINE_KEYS);
  const settingKeys = distinct(data.rows.flatMap((row) => Object.keys(row.case)))
                          .filter((key) => !kvmark.ENGINE_KEYS.includes(key));

  const ENGINE =
      {id: "engine", title: "engine", of: (row) => row.label, cell: kvmark.engines.header};
  const RUN = {
    id: "run",
    title: "run",
    of: (row) => row.run,
    cell: (row) => el("td", {class: "text"}, kvmark.runMark(row.run))
  };
  const CONTEXT = {
    id: "context",
    title: "tokens",
    unit: "prompt + generated",
    of: (row) => row.case.seq_len ?? row.context,
    cell: (row) => el("td", {}, `${text(row.case.prompt_len)} + ${text(row.case.gen_len)}`)
  };
  const STATUS = {id: "status", title: "status", of: (row) => row.status, cell: statusCell};
  const NOTES = {
    id: "notes",
    title: "notes",
    of: notesOf,
    cell: (row) => el("td", {class: "text note"}, notesOf(row))
  };
  const SETTINGS = settingKeys.map(settingColumn);
  const METRICS = data.metrics.map(metricColumn);

  const COLUMNS = [ENGINE, RUN, ...SETTINGS, CONTEXT, STATUS, ...METRICS, NOTES];

  const state = {
    sort: null,
    descending: false,
    words: [],
    status: "all",
    intervals: false,
    shown: new Set([
      ENGINE.id, CONTEXT.id, STATUS.id, NOTES.id, ...(data.runs.length > 1 ? [RUN.id] : []),
      ...SHOWN_SETTINGS.filter((key) => varying.includes(key)).map((key) => `case.${key}`),
      ...SHOWN_METRICS.filter((path) => metrics.has(path))
    ]),
  };

  function shownColumns() {
    return COLUMNS.filter((column) => state.shown.has(column.id));
  }

  // ---- Rows ----

  const haystacks = data.rows.map(
      (row) => [row.name, row.label, row.engine, row.status, row.reason, kvmark.runName(row.run),
          data.groups[row.group]?.heading, ...kvmark.remarks(row)]
                   .filter(Boolean)
                   .join(" ")
                   .toLowerCase());

  // The words of a filter, in small letters; 8,160 is 8160.
  function wordsOf(typed) {
    return typed.toLowerCase().replace(/(\d),(?=\d{3})/g, "$1").split(/\s+/).filter(Boolean);
  }

  function wantedRows() {
    return data.rows.filter((row, i) => (state.status === "all" || row.status === state.status) &&
            state.words.every((word) => haystacks[i].includes(word)));
  }

  function order(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", {numeric: true});
  }

  // Rows without a value come last in both directions.
  function sorted(rows) {
    const column = COLUMNS.find(({id}) => id === state.sort);
    if (!column) return rows;
    const isMissing = (value) => value === undefined || value === null || value === "";
    const keyed = rows.map((row) => ({row, key: column.of(row)}));
    const known = keyed.filter(({key}) => !isMissing(key)).sort((a, b) => order(a.key, b.key));
    if (state.descending) known.reverse();
    return [...known, ...keyed.filter(({key}) => isMissing(key))].map(({row}) => row);
  }

  function rowElement(row, columns) {
    const figures = columns.filter(({metric}) => metric).length;
    if (row.counts || figures === 0)
      return el("tr", {}, ...columns.map((column) => column.cell(row)));
    const reason =
        el("td", {class: "reason", colspan: figures}, `${row.status}: ${text(row.reason)}`);
    const before = columns.filter(({metric, id}) => !metric && id !== NOTES.id);
    const notes = columns.includes(NOTES) ? NOTES.cell(row) : null;
    return el("tr", {class: "without"}, ...before.map((column) => column.cell(row)), reason, notes);
  }

  // ---- Showing it ----

  const bodyRows = new Map();  // row → its element with the columns shown now

  function sortBy(id) {
    state.descending = state.sort === id && !state.descending;
    state.sort = id;
    for (const header of byId("table").tHead.rows[0].cells) {
      const direction = state.descending ? "descending" : "ascending";
      header.setAttribute("aria-sort", header.dataset.column === id ? direction : "none");
    }
    showRows();
  }

  function headerCell(column) {
    const isSorted = state.sort === column.id;
    const kind = column === ENGINE ? "name" : column === NOTES || column === RUN ? "text" : null;
    return el("th", {
      scope: "col",
      "data-column": column.id,
      class: kind,
      title: column.about,
      "aria-sort": isSorted ? (state.descending ? "descending" : "ascending") : "none"
    },
        el("button", {type: "button", class: "sort", onclick: () => sortBy(column.id)},
            el("span", {class: "title"}, column.title),
            column.unit ? el("span", {class: "unit"}, column.unit) : null));
  }

  function showRows() {
    const rows = sorted(wantedRows());
    byId("table").tBodies[0].replaceChildren(...rows.map((row) => bodyRows.get(row)));
    byId("table-count").textContent = countText(rows);
  }

  function countText(rows) {
    const others =
        distinct(data.rows.map(({status}) => status))
            .filter((status) => status !== "ok")
            .map((status) => `${rows.filter((row) => row.status === status).length} ${status}`);
    return [`${rows.length} of ${plural(data.rows.length, "row")}`, ...others].join(", ");
  }

  function showTable() {
    const columns = shownColumns();
    bodyRows.clear();
    for (const row of data.rows) bodyRows.set(row, rowElement(row, columns));
    byId("table").replaceChildren(
        el("thead", {}, el("tr", {}, ...columns.map(headerCell))), el("tbody"));
    showRows();
  }

  function columnBoxes(title, columns) {
    const toggle = (id) => (on) => {
      state.shown[on ? "add" : "delete"](id);
      showTable();
    };
    const boxes = columns.map((column) => checkbox(`column-${column.id}`, column.title,
                                  state.shown.has(column.id), toggle(column.id)));
    return el("fieldset", {}, el("legend", {}, title), ...boxes);
  }

  function showControls() {
    const filter = el("input", {
      id: "table-filter",
      type: "search",
      placeholder: "engine, model, reason …",
      oninput: () => {
        state.words = wordsOf(filter.value);
        showRows();
      }
    });
    const statuses = [
      {value: "all", text: "all"},
      ...distinct(data.rows.map(({status}) => status))
          .map((status) => ({value: status, text: status}))
    ];
    refill(byId("table-form"),
        el("div", {class: "control"}, el("label", {"for": "table-filter"}, "Rows that contain"),
            filter),
        choice("table-status", "Status", statuses, state.status,
            (value) => {
              state.status = value;
              showRows();
            }),
        checkbox("table-intervals", "show 95 % intervals", state.intervals,
            (on) => {
              state.intervals = on;
              showTable();
            }),
        el("details", {class: "columns"}, el("summary", {}, "Columns"),
            columnBoxes("Settings", [...(data.runs.length > 1 ? [RUN] : []), CONTEXT, ...SETTINGS]),
            columnBoxes("Figures", METRICS), columnBoxes("Others", [STATUS, NOTES])));
  }

  return {
    start() {
      byId("table-form").addEventListener("submit", (event) => event.preventDefault());
      showControls();
      showTable();
    },
  };
})();
