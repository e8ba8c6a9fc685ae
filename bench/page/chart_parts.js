// What all charts share: an engine's look, the colours of the page, axes, error bars. Drawn by
// Chart.js.
kvmark.parts = (() => {
  "use strict";

  const {el} = kvmark;

  // ---- An engine looks as in the pictures of plots/style.py, as far as Chart.js has its marks
  // ----

  // Okabe & Ito's palette, safe for colour-blind readers.
  const ORANGE = "#E69F00";
  const FAMILIES = {
    f32: "#0072B2",
    f16: "#009E73",
    bf16: "#56B4E9",
    fp8: "#8C6D31",
    int8: "#D55E00",
    int4: "#CC79A7"
  };
  const OTHERS = ["#882255", "#999933", "#44AA99", "#332288"];  // K and V in different formats

  const CIRCLE = {pointStyle: "circle", glyph: "●"};
  const MARKERS = {
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
    const share = colours.isDark ? 0.15 : 0, ofPages = plain === family ? 0.35 : 0;
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

  // ---- Axes ----

  function tickText(value) {
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7)) {
      return value.toExponential().replace("e+", "e");
    }
    return String(Number(value.toPrecision(6)));
  }

  // Ticks of a logarithmic axis: 1, 2 and 5 of each decade where it spans few, else every decade or
  // every second.
  function logTicks(low, high) {
    const decades = Math.log10(high / low);
    const steps = decades < 3 ? [1, 2, 5] : [1];
    const every = Math.ceil(decades / 8);
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      if (power % every !== 0) continue;
      for (const step of steps) {
        const value = Number(`${step}e${power}`);
        if (value >= low && value <= high) ticks.push(value);
      }
    }
    return ticks;
  }

  // axis: {title, log, labels, at, fromZero, max}; `labels` of categories, `at` ticks to prefer,
  // `fromZero` false where 0 need not be seen. values: all that must be seen, one at least. Returns
  // the options of Chart.js.
  function scale(axis, values, colours) {
    const options = {
      title: {display: Boolean(axis.title), text: axis.title, color: colours.text},
      grid: {color: colours.grid, borderColor: colours.muted},
      ticks: {color: colours.text, maxRotation: 0, callback: tickText},
    };
    if (axis.labels) return categories(options, axis.labels);
    return axis.log ? logScale(options, axis, values) : linearScale(options, axis, values);
  }

  function linearScale(options, axis, values) {
    const low = Math.min(...values), high = Math.max(...values), margin = 0.03 * (high - low);
    const beginAtZero = axis.fromZero !== false;
    return {
      ...options,
      type: "linear",
      beginAtZero,
      max: axis.max,
      suggestedMin: beginAtZero ? low : low - margin,
      suggestedMax: high + margin
    };
  }

  function logScale(options, axis, values) {
    const seen = values.filter((value) => value > 0);
    const low = Math.min(...seen), high = Math.max(...seen);
    const margin = Math.max((high / low) ** 0.04, 1.04);
    const limits = {min: low / margin, max: high * margin};
    const few = axis.at && axis.at.length <= 12 ? axis.at.filter((value) => value > 0) : null;
    let ticks = few ?? logTicks(limits.min, limits.max);
    if (ticks.length < 2) ticks = low === high ? [low] : [low, high];
    return {
      ...options,
      type: "logarithmic",
      bounds: "data",
      ...limits,
      afterBuildTicks: (built) => {
        built.ticks = ticks.map((value) => ({value}));
      }
    };
  }

  // Long names are cut where the chart is narrow; hovering shows them in full.
  function categories(options, labels) {
    return {
      ...options,
      type: "category",
      labels,
      grid: {...options.grid, display: false},
      ticks: {
        ...options.ticks,
        autoSkip: false,
        callback(value) {
          const label = labels[value], room = Math.max(12, Math.floor(this.chart.width / 16));
          return label.length > room ? `${label.slice(0, room - 1)}…` : label;
        },
      },
    };
  }

  // ---- Error bars ----

  const CAP = 3;  // half the length of the strokes at both ends, in pixels

  // One bar between two pixels, at a third one across.
  function errorBar(ctx, [low, high], at, upright) {
    const place = (along, across) => (upright ? [at + across, along] : [along, at + across]);
    const stroke = (from, to) => {
      ctx.moveTo(...place(...from));
      ctx.lineTo(...place(...to));
    };
    stroke([low, -CAP], [low, CAP]);
    stroke([low, 0], [high, 0]);
    stroke([high, -CAP], [high, CAP]);
  }

  // Pixels of an interval's ends; what lies off the axis ends at its edge.
  function ends(axis, low, high) {
    return [low, high].map(
        (value) => axis.getPixelForValue(Math.min(Math.max(value, axis.min), axis.max)));
  }

  // Draws the intervals of points that have `xlo` and `xhi`, or `ylo` and `yhi`.
  const errorBars = {
    id: "errorBars",
    afterDatasetsDraw(chart) {
      const {ctx, scales: {x, y}} = chart;
      ctx.save();
      ctx.lineWidth = 1.4;
      chart.data.datasets.forEach((dataset, i) => {
        ctx.strokeStyle = dataset.errorColor ?? dataset.borderColor;
        ctx.beginPath();
        chart.getDatasetMeta(i).data.forEach((point, j) => {
          const {xlo, xhi, ylo, yhi} = dataset.data[j];
          if (ylo !== undefined) errorBar(ctx, ends(y, ylo, yhi), point.x, true);
          if (xlo !== undefined) errorBar(ctx, ends(x, xlo, xhi), point.y, false);
        });
        ctx.stroke();
      });
      ctx.restore();
    },
  };

  // ---- A chart ----

  const LETTER = 7.5;  // pixels, about

  // A line of a tooltip in lines that fit into a chart of that width, broken between words.
  function wrapped(line, width) {
    const most = Math.min(90, Math.floor((width - 50) / LETTER)), lines = [];
    for (const word of line.split(" ")) {
      const last = lines[lines.length - 1];
      if (last !== undefined && last.length + 1 + word.length <= most)
        lines[lines.length - 1] = `${last} ${word}`;
      else
        lines.push(word);
    }
    return lines;
  }

  // view: {title, x, y, bars, series}; x and y are axes as in scale(), bars lie on their side.
  // series: {name, engine, points, line, pale, stepped, thin, dash, colors, base, bar}; the last
  // three are of bars. points: {x, y, xlo, xhi, ylo, yhi, head, tip, engine, plain}: head and tip
  // are what hovering shows, plain ones have no marker. Returns the configuration for Chart.
  function configuration(view) {
    const colours = theme();
    const ofAll = (...keys) =>
        view.series.flatMap(({points}) => points.flatMap(
                                (point) => keys.map((key) => point[key]).filter(Number.isFinite)));
    return {
      type: view.bars ? "bar" : "line",
      data: {datasets: view.series.map((series) => dataset(series, view, colours))},
      plugins: [errorBars],
      options: {
        animation: false,
        maintainAspectRatio: false,
        indexAxis: view.bars ? "y" : "x",
        interaction: {mode: "nearest", axis: view.bars ? "y" : "xy", intersect: false},
        scales: {
          x: scale(view.x, ofAll("x", "xlo", "xhi"), colours),
          y: scale(view.y, ofAll("y", "ylo", "yhi"), colours)
        },
        plugins: {
          legend: {display: false},
          tooltip: {
            boxPadding: 4,
            caretPadding: 8,
            usePointStyle: true,
            filter: (item) => item.raw.tip.length > 0,
            callbacks: {
              title: (items) =>
                  kvmark.distinct(items.flatMap(({raw, chart}) => wrapped(raw.head, chart.width))),
              label: ({raw, chart}) => raw.tip.flatMap((line) => wrapped(line, chart.width))
            },
          },
        },
      },
    };
  }

  function dataset(series, view, colours) {
    const common = {label: series.name, data: series.points};
    if (view.bars) {
      const ofEngines = () => series.points.map((point) => look(point.engine, colours).color);
      return {
        ...common,
        backgroundColor: series.colors ?? ofEngines(),
        errorColor: colours.text,
        barPercentage: 0.8,
        categoryPercentage: 0.85,
        maxBarThickness: 28,
        grouped: false,
        base: series.base,
        ...series.bar
      };
    }
    const {color, dash, hollow, pointStyle, pointRotation} = look(series.engine, colours);
    const stroke = series.pale ? `${color}80` : color;
    return {
      ...common,
      borderColor: stroke,
      backgroundColor: hollow ? colours.paper : stroke,
      showLine: series.line,
      borderDash: series.dash ?? dash,
      borderWidth: series.thin ? 1.2 : 1.8,
      pointStyle,
      pointRotation,
      pointBorderWidth: 1.8,
      stepped: series.stepped,
      pointRadius: series.points.map((point) => series.thin || point.plain ? 0
              : series.line                                                ? 4.5
                                                                           : 6.5),
      pointHoverRadius: 7,
      pointHitRadius: 12
    };
  }

  return {look, swatch, recolourSwatches, theme, configuration};
})();
