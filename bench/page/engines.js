// How the page shows an engine: its colour, marker and line, and its name at the head of a row.
kvmark.engines = (() => {
  "use strict";

  const {el} = kvmark;

  // ---- The colours of the page, light or dark ----

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    return {
      text: colour("--text"),
      muted: colour("--muted"),
      grid: colour("--line"),
      paper: colour("--paper"),
      worse: colour("--worse"),
      better: colour("--better"),
      undecided: colour("--undecided"),
      isDark: style.colorScheme === "dark"
    };
  }

  // ---- The look: as in plots/style.py, as far as Chart.js has its marks ----

  // Okabe & Ito's palette, safe for colour-blind readers; orange and sky blue are darker, to be
  // seen on white.
  const ORANGE = "#C48700";
  const FAMILIES = {
    __proto__: null,  // a format may have the name of what every object has
    f32: "#0072B2",
    f16: "#009E73",
    bf16: "#4999C6",
    fp8: "#8C6D31",
    int8: "#D55E00",
    int4: "#CC79A7"
  };
  const OTHERS = ["#882255", "#999933", "#3D998A", "#332288"];  // K and V in different formats

  const CIRCLE = {pointStyle: "circle", glyph: "●"};
  const MARKERS = {
    __proto__: null,
    "f32": {pointStyle: "rect", glyph: "■"},
    "f16": {pointStyle: "triangle", glyph: "▲"},
    "bf16": {pointStyle: "triangle", pointRotation: 180, glyph: "▼"},
    "fp8:e4m3": {pointStyle: "cross", glyph: "✚"},
    "int8:g32": {pointStyle: "rectRot", glyph: "◆"},
    "int8:g64": {pointStyle: "rectRounded", glyph: "▬"},
    "int4:g32": {pointStyle: "crossRot", glyph: "✖"},
    "int4:g64": {pointStyle: "star", glyph: "✱"},
  };

  // CRC-32 of a text, as plots/style.py uses it to choose among the other colours.
  function crc32(string) {
    let crc = ~0;
    for (const byte of new TextEncoder().encode(string)) {
      crc ^= byte;
      for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc >>> 0;
  }

  // Short, mixed or dotted dashes for small, middle and large pages.
  function pageDash(layout) {
    const block = Number(layout.replace(/\D/g, "")) || 16;
    if (block <= 32) return [6, 4];
    return block <= 256 ? [8, 3, 2, 3] : [2, 3];
  }

  // {color, dash, hollow, pointStyle, pointRotation, glyph} of an engine's canonical name: the
  // family of the format gives the colour, other shades where it is paged; the format the marker,
  // hollow with a zero point; the layout the line.
  function look(engine, colours = theme()) {
    const [layout, codec = "", policy] = engine.split("/");
    if (layout === "recompute") return {color: colours.text, dash: [], hollow: false, ...CIRCLE};
    const base = codec.replace(/:asym$/, ""), paged = layout.startsWith("paged");
    const family = FAMILIES[base.split(":")[0]] ?? OTHERS[crc32(codec) % OTHERS.length];
    const plain = paged && base === "f32" ? ORANGE : family;
    const share = colours.isDark ? 0.3 : 0, ofPages = plain === family ? 0.35 : 0;
    return {
      color: mixed(plain, colours.isDark ? 255 : 0, share + (paged ? ofPages : 0)),
      dash: paged  ? pageDash(layout)
          : policy ? [8, 2, 2, 2, 2, 2]
                   : [],
      hollow: base !== codec,
      ...(MARKERS[base] ?? CIRCLE)
    };
  }

  // "#rrggbb" with a share of black (0) or white (255).
  function mixed(colour, end, share) {
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const part = (value) => Math.round((1 - share) * value + share * end);
    return `#${parts.map((value) => part(value).toString(16).padStart(2, "0")).join("")}`;
  }

  // ---- In lists and tables ----

  // A piece of line with the engine's marker, for lists.
  function swatch(engine) {
    const {dash, glyph} = look(engine);
    const line = () => el("span", {class: dash.length > 0 ? "line dashed" : "line"});
    const node = el("span", {class: "swatch", "data-engine": engine, "aria-hidden": "true"}, line(),
        glyph, line());
    node.style.color = look(engine).color;
    return node;
  }

  // After the page has turned dark or light.
  function recolourSwatches() {
    for (const node of document.querySelectorAll(".swatch")) {
      node.style.color = look(node.dataset.engine).color;
    }
  }

  function doubtMark(row) {
    const remarks = kvmark.remarks(row);
    if (remarks.length === 0) return null;
    const words = `doubtful: ${remarks.join("; ")}`;
    return el("span", {class: "doubt", title: words, role: "img", "aria-label": words}, " ⚠\uFE0E");
  }

  // The cell that names a row.
  function header(row) {
    const more = row.label === row.engine ? null : el("span", {class: "muted"}, ` ${row.engine}`);
    return el("th", {scope: "row", class: "name", title: row.name}, swatch(row.engine), row.label,
        more, doubtMark(row));
  }

  return {look, theme, swatch, recolourSwatches, header};
})();
