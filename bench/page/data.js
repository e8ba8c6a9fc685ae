// What the page knows, how it writes figures, and how it builds elements. The other files add to
// `kvmark`. Text from records reaches the document as text only, never as HTML.
const kvmark = (() => {
  "use strict";

  // Where figures have the same title, the parts of their paths that differ tell them apart.
  function toldApart(figures) {
    return figures.map((figure) => {
      const alike = figures.filter((other) => other !== figure && other.title === figure.title);
      const parts = figure.path.split(".").filter(
          (part) => alike.some(({path}) => !path.split(".").includes(part)));
      return parts.length > 0 ? {...figure, title: `${figure.title} (${parts.join(" ")})`} : figure;
    });
  }

  const data = JSON.parse(document.getElementById("kvmark-data").textContent);
  data.metrics = toldApart(data.metrics);
  const metrics = new Map(data.metrics.map((metric) => [metric.path, metric]));
  const settings = new Map(data.settings.map((setting) => [setting.key, setting]));

  // ---- Figures as text: decimal points wherever the page is read ----

  const NOTHING = "—";

  // Four significant digits; all digits before the point.
  function number(value) {
    if (!Number.isFinite(value)) return NOTHING;
    const size = Math.abs(value);
    if (size >= 1e15 || (size > 0 && size < 1e-3)) return value.toExponential(3);
    if (Number.isInteger(value)) return String(value);
    return size >= 1000 ? String(Math.round(value)) : value.toPrecision(4);
  }

  // Beyond it the ends of an axis would be no numbers.
  function isDrawable(value) {
    return Number.isFinite(value) && Math.abs(value) <= 1e308;
  }

  // Two significant digits; all digits before the point.
  function rough(value) {
    const rounded = Number(value.toPrecision(2));
    return Math.abs(rounded) < 10 ? value.toPrecision(2) : String(rounded);
  }

  const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

  // The unit for figures of up to `largest` bytes, and how many bytes it has.
  function byteUnit(largest) {
    const at = largest < 1024 ? 0 : Math.floor(Math.log2(largest) / 10);
    const index = Math.min(at, BYTE_UNITS.length - 1);
    return {unit: BYTE_UNITS[index], size: 1024 ** index};
  }

  // Three significant digits, without zeros behind the point; all digits before it.
  function bytes(value) {
    if (!Number.isFinite(value)) return NOTHING;
    const {unit, size} = byteUnit(Math.abs(value)), amount = value / size;
    const isSmall = Math.abs(amount) < 100;
    return `${isSmall ? Number(amount.toPrecision(3)) : Math.round(amount)} ${unit}`;
  }

  // All digits, as the record has them, with the unit.
  function exact(metric, value) {
    if (metric.unit === "bytes") return `${value} bytes (${bytes(value)})`;
    return metric.unit ? `${value} ${metric.unit}` : String(value);
  }

  // A figure of a metric, without its unit but for bytes.
  function figure(metric, value) {
    return metric && metric.unit === "bytes" ? bytes(value) : number(value);
  }

  // The same with its unit.
  function quantity(metric, value) {
    const text = figure(metric, value);
    if (text === NOTHING || !metric.unit || metric.unit === "bytes") return text;
    return `${text} ${metric.unit}`;
  }

  // "8.93 to 9.12", or null where the row has no interval.
  function intervalText(row, path) {
    const interval = row.intervals[path];
    if (!interval) return null;
    const metric = metrics.get(path);
    return `${figure(metric, interval[0])} to ${figure(metric, interval[1])}`;
  }

  function titleWithUnit(metric) {
    return metric.unit && metric.unit !== "bytes" ? `${metric.title} (${metric.unit})`
                                                  : metric.title;
  }

  // What `kvmark` found, whatever it is, as text.
  function text(value) {
    if (value === null || value === undefined || value === "") return NOTHING;
    if (typeof value === "number") return Number.isInteger(value) ? String(value) : number(value);
    return String(value);
  }

  function plural(count, noun) {
    return `${count} ${noun}${count === 1 ? "" : "s"}`;
  }

  function distinct(values) {
    return [...new Set(values)];
  }

  // "A", "A and B", "A, B and C".
  function listed(names) {
    if (names.length < 2) return names.join("");
    return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
  }

  // ---- Rows ----

  const ENGINE_KEYS = ["engine", "preset"];

  // The case without some keys, as text: equal for rows that are equal otherwise.
  function caseWithout(row, ...keys) {
    const rest = Object.entries(row.case).filter(([key]) => !keys.includes(key));
    return JSON.stringify(rest.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  // Keys of the case, but for `keys`, that differ between rows.
  function varyingKeys(rows, ...keys) {
    const all = distinct(rows.flatMap((row) => Object.keys(row.case)));
    return all.filter((key) => !keys.includes(key) &&
            distinct(rows.map((row) => row.case[key] ?? null)).length > 1);
  }

  // The level of attention has no weights, so that a plan may let the number of layers follow the
  // context: rows of one group then differ in it.
  function isAttention(row) {
    return row.case.level === "attention";
  }

  function layersDiffer(rows) {
    return distinct(rows.map((row) => row.case.layers)).length > 1;
  }

  const groupsOfManyLayers =
      data.groups.map((_, group) => layersDiffer(
                          data.rows.filter((row) => isAttention(row) && row.group === group)));

  function layersFollow(row) {
    return isAttention(row) && groupsOfManyLayers[row.group];
  }

  // What a reader must know beside the figures of a row.
  function remarks(row) {
    return row.generic ? [...row.doubts, "generic kernel"] : row.doubts;
  }

  // Where two settings have the same title, the key tells them apart.
  function settingTitle(key) {
    const title = settings.get(key)?.title ?? key;
    return data.settings.filter((setting) => setting.title === title).length > 1 ? key : title;
  }

  function runName(index) {
    const run = data.runs[index];
    if (!run) return NOTHING;
    return run.role ? `${run.role}: ${run.name}` : run.name;
  }

  // Of a row without figures, which may know none, that of its run.
  function machineOf(row) {
    const measured = (other) => other.run === row.run && other.counts;
    return (row.counts ? row : data.rows.find(measured) ?? row).machine;
  }

  // Where a row's name needs its run: "base" or "new" says it in a comparison.
  function runMark(index) {
    return data.runs[index]?.role ?? runName(index);
  }

  // "8160 + 32 tokens", prompt and generated; with their sum "8160 + 32 = 8192 tokens".
  function lengthsText(row, {withSum = false} = {}) {
    const {prompt_len: prompt, gen_len: generated} = row.case;
    if (prompt === undefined || generated === undefined) return text(row.context);
    if (prompt === 0) return `${generated} tokens from empty`;
    return `${prompt} + ${generated}${withSum ? ` = ${prompt + generated}` : ""} tokens`;
  }

  // "int8:g32 in pages of 16".
  function engineInWords(row) {
    if (row.layout === "recompute") return "recompute (no cache)";
    const pages = /^paged:(\d+)$/.exec(row.layout);
    if (pages) return `${row.format} in pages of ${pages[1]}`;
    return row.layout === "contiguous" ? `${row.format} in one piece`
                                       : `${row.format} in ${row.layout}`;
  }

  // ---- Elements ----

  // el("p", {class: "muted"}, "text", node): attributes named on… are listeners; children that are
  // null are left out.
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on"))
        node.addEventListener(name.slice(2), value);
      else
        node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  function byId(id) {
    return document.getElementById(id);
  }

  // A labelled choice; a single option stands as text. options: [{value, text}]; values are
  // compared as text.
  function choice(id, title, options, chosen, onchange) {
    if (options.length === 1) {
      return el("div", {class: "control known"}, el("span", {class: "label"}, title),
          el("span", {class: "fixed", id}, options[0].text));
    }
    const select = el("select", {id, onchange: () => onchange(select.value)});
    for (const option of options) {
      select.append(el("option",
          {value: option.value, selected: String(option.value) === String(chosen)}, option.text));
    }
    return el("div", {class: "control"}, el("label", {"for": id}, title), select);
  }

  // Puts other children into a node; focus stays on the control of the same id.
  function refill(node, ...children) {
    const focused = node.contains(document.activeElement) ? document.activeElement.id : "";
    node.replaceChildren(...children.filter((child) => child !== null));
    if (focused) byId(focused)?.focus();
  }

  function checkbox(id, title, checked, onchange) {
    const listener = () => onchange(box.checked);
    const box = el("input", {type: "checkbox", id, checked, onchange: listener});
    return el("label", {class: "check", "for": id}, box, " ", title);
  }

  return {
    data,
    metrics,
    settings,
    NOTHING,
    number,
    isDrawable,
    rough,
    bytes,
    byteUnit,
    figure,
    quantity,
    exact,
    intervalText,
    titleWithUnit,
    text,
    plural,
    listed,
    ENGINE_KEYS,
    caseWithout,
    distinct,
    varyingKeys,
    isAttention,
    layersDiffer,
    layersFollow,
    remarks,
    settingTitle,
    runName,
    machineOf,
    runMark,
    lengthsText,
    engineInWords,
    el,
    byId,
    refill,
    choice,
    checkbox
  };
})();
