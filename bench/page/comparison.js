// What came of comparing two runs: the verdict, what differs around them, and each case and metric
// that is not the same.
kvmark.comparison = (() => {
  "use strict";

  const {data, text, plural, el, byId, checkbox} = kvmark;

  // Told apart by a mark and a word as well as by colour; the worst first.
  const VERDICTS = {
    worse: "✗",
    undecided: "?",
    better: "✓",
    same: "=",
    shown: "·",
  };
  const ORDER = Object.keys(VERDICTS);

  function verdictCell(verdict) {
    return el("td", {class: `text verdict ${verdict}`}, `${VERDICTS[verdict] ?? "?"} ${verdict}`);
  }

  function metricRow(one, found) {
    const cells = [found.base_text, found.new_text, found.change_text, found.threshold_text];
    return el("tr", {}, el("th", {scope: "row", class: "name"}, one.label),
        el("td", {class: "text"}, found.title), verdictCell(found.verdict),
        ...cells.map((cell) => el("td", {}, text(cell))),
        el("td", {class: "text note"}, found.note));
  }

  // The metrics of all cases with these verdicts, the worst first; cases stay in order.
  function judged(verdicts) {
    const found =
        data.comparison.cases.flatMap((one) => one.metrics.map((metric) => ({one, metric})));
    return verdicts.flatMap((verdict) => found.filter(({metric}) => metric.verdict === verdict));
  }

  const HEADINGS = [
    ["case", "name"], ["metric", "text"], ["verdict", "text"], ["base"], ["new"], ["change"],
    ["threshold"], ["how it was decided", "text"]
  ];

  function table(verdicts) {
    const rows = judged(verdicts);
    if (rows.length === 0) return el("p", {}, "No metric is worse, better or undecided.");
    const head = HEADINGS.map(([title, kind]) => el("th", {scope: "col", class: kind}, title));
    return el("div",
        {class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Cases and metrics"},
        el("table", {id: "comparison-table"}, el("thead", {}, el("tr", {}, ...head)),
            el("tbody", {}, ...rows.map(({one, metric}) => metricRow(one, metric)))));
  }

  function statusChanges() {
    const changed = data.comparison.cases.filter((one) => one.base_status !== one.status);
    return changed.map(
        (one) => el("li", {class: one.broke ? "worse" : null},
            `${one.broke ? "✗ broke: " : ""}${one.label}: ${one.base_status} → ${one.status}` +
                (one.reason ? `: ${one.reason}` : "")));
  }

  function oneSided() {
    return data.comparison.one_sided.map(({vanished, side: where, label, reason}) => {
      const fate = vanished ? "vanished from the new side" : `only in the ${where}`;
      return el("li", {}, `${fate}: ${label}${reason ? ` (${reason})` : ""}`);
    });
  }

  function list(title, items) {
    if (items.length === 0) return [];
    return [el("h3", {}, title), el("ul", {}, ...items)];
  }

  function countsText({counts}) {
    const parts = ["worse", "undecided", "better", "same"].map((word) => `${counts[word]} ${word}`);
    return `${plural(counts.cases, "case")}; metrics: ${parts.join(", ")}.`;
  }

  return {
    start() {
      const {comparison} = data;
      if (!comparison) return;
      const sides = `Base: ${text(comparison.base)}. New: ${text(comparison.new)}.`;
      const place = el("div", {}, table(ORDER.slice(0, 3)));
      const all = checkbox("comparison-all", "show metrics that are the same, or only shown, too",
          false, (on) => place.replaceChildren(table(on ? ORDER : ORDER.slice(0, 3))));
      byId("comparison").hidden = false;
      byId("comparison-body")
          .replaceChildren(el("p", {class: "answer"}, text(comparison.verdict)),
              el("p", {class: "muted"}, `${sides} ${countsText(comparison)}`),
              ...list("Changed status", statusChanges()), ...list("On one side only", oneSided()),
              ...list(
                  "What differs around them", comparison.notes.map((note) => el("li", {}, note))),
              el("h3", {}, "Cases and metrics"), el("div", {class: "controls"}, all), place);
    },
  };
})();
