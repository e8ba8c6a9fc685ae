// The rest of the page, from its head to its foot, and the start of everything.
(() => {
  "use strict";

  const {data, text, plural, distinct, el, byId} = kvmark;

  // ---- Head ----

  function environmentValue(name) {
    const entry = data.environment.find(({what}) => what === name);
    // A row that was skipped knows nothing of the machine.
    return entry && entry.values.filter((value) => value !== "unknown").join(" / ");
  }

  function machineText() {
    const cores = environmentValue("cores");
    const days = distinct(data.runs.map(({started}) => started?.slice(0, 10)).filter(Boolean));
    return [
      environmentValue("cpu"), environmentValue("gpu"),
      cores && `${cores} ${cores === "1" ? "core" : "cores"}`, environmentValue("simd"),
      environmentValue("os"), days.join(", ")
    ].filter(Boolean)
        .join(" · ");
  }

  const KINDS = {
    fact: {mark: "●", word: null},
    undecided: {mark: "?", word: "Undecided: "},
    warning: {mark: "⚠\uFE0E", word: "Warning: "}
  };

  // A sentence with its mark, behind a word that says what kind it is.
  function item(kind, word, words) {
    return el("li", {class: kind},
        el("span", {class: "mark", "aria-hidden": "true"}, KINDS[kind].mark),
        el("span", {}, word && el("b", {}, word), words));
  }

  function showHead() {
    byId("title").textContent = text(data.title);
    byId("machine").textContent = machineText();
    byId("caveat").hidden =
        data.rows.length === 0 || !data.rows.every((row) => row.case.device === "cpu");
    byId("sentences").replaceChildren(...data.summary.map(({kind,
      text: words}) => item(kind, KINDS[kind].word, words)));
    byId("warnings").replaceChildren(...data.warnings.map((words) => item("warning", null, words)));
    byId("warnings-title").hidden = data.warnings.length === 0;
    byId("summary").hidden = data.summary.length + data.warnings.length === 0;
  }

  // ---- Foot ----

  const DIRECTIONS = {smaller: "smaller is better", bigger: "bigger is better"};

  function definition(title, code, about, words) {
    return el("div", {},
        el("dt", {}, title, " ", el("code", {}, code),
            about ? el("span", {class: "muted"}, ` ${about}`) : null),
        el("dd", {}, text(words)));
  }

  function showDefinitions() {
    const ofMetrics =
        data.metrics.map((metric) => definition(metric.title, metric.path,
                             [metric.unit, DIRECTIONS[metric.better]].filter(Boolean).join(", "),
                             metric.definition));
    const ofSettings = data.settings.map(
        (setting) => definition(setting.title, setting.key, setting.unit, setting.definition));
    const part = (title, entries) => entries.length === 0
        ? null
        : el("details", {}, el("summary", {}, `${title} (${entries.length})`),
              el("dl", {}, ...entries));
    kvmark.refill(
        byId("definitions-body"), part("Figures", ofMetrics), part("Settings", ofSettings));
  }

  function showEnvironment() {
    const rows = data.environment.map(
        ({what, values}) => el("tr", {}, el("th", {scope: "row", class: "text"}, what),
            el("td", {class: "text"}, values.join(" / "))));
    byId("environment-body")
        .replaceChildren(
            el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Environment"},
                el("table", {}, el("tbody", {}, ...rows))));
  }

  function showPlans() {
    const plans = data.runs.map((run, i) => run.plan
            ? el("details", {}, el("summary", {}, kvmark.runName(i)),
                  el("pre", {tabindex: "0"}, JSON.stringify(run.plan, null, 2)))
            : el("p", {class: "muted"}, `${kvmark.runName(i)} came without its plan.`));
    byId("plan-body").replaceChildren(...plans);
  }

  function showMaking() {
    const runs = data.runs.map((run, i) => `${kvmark.runName(i)} (${plural(run.rows, "row")}` +
            (run.started ? `, started ${run.started})` : ")"));
    const origin = `Written by ${data.kvmark} at ${data.made}, of ${kvmark.listed(runs)}.`;
    const parts = "The whole page is this one file: it loads nothing and sends nothing. Charts " +
        `are drawn by Chart.js ${Chart.version} (MIT licence), which is part of it.`;
    byId("about-body").replaceChildren(el("p", {}, origin), el("p", {}, parts));
  }

  // ---- Paper has no controls, but what was chosen with them ----

  function chosen(control) {
    const title = control.querySelector("label, .label").textContent;
    const values = [...control.querySelectorAll("select, input:not([type=checkbox]), .fixed")].map(
        (node) => node.selectedOptions?.[0].text ?? node.value ?? node.textContent);
    return values[0] ? `${title}: ${values.join(" ")}` : "";
  }

  function sayChoices() {
    for (const line of document.querySelectorAll(".on-paper")) {
      const controls = [...byId(line.dataset.form).querySelectorAll(".control")];
      line.textContent = controls.map(chosen).filter(Boolean).join(" · ");
    }
  }

  addEventListener("beforeprint", sayChoices);

  showHead();
  kvmark.comparison.start();
  kvmark.questions.start();
  kvmark.charts.start();
  kvmark.table.start();
  showDefinitions();
  showEnvironment();
  showPlans();
  showMaking();
})();
