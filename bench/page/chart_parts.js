// What all charts share: an engine's look, the colours of the page, axes, error bars. Drawn by
// Chart.js.
kvmark.parts = (() => {
  "use strict";

  const {el} = kvmark;

  // ---- An engine looks as in the pictures of plots/style.py ----

  // Okabe & Ito's palette, safe for colour-blind readers.
  const BLUE = "#0072B2", ORANGE = "#E69F00", GREEN = "#009E73", RED = "#D55E00",
        PURPLE = "#CC79A7", SKY = "#56B4E9", BROWN = "#8C6D31";

  const MARKERS = {
    circle: {pointStyle: "circle", glyph: "●"},
    square: {pointStyle: "rect", glyph: "■"},
    up: {pointStyle: "triangle", glyph: "▲"},
    down: {pointStyle: "triangle", rotation: 180, glyph: "▼"},
    plus: {pointStyle: "cross", glyph: "✚"},
    diamond: {pointStyle: "rectRot", glyph: "◆"},
    cross: {pointStyle: "crossRot", glyph: "✖"},
    star: {pointStyle: "star", glyph: "✱"},
  };

  const CODECS = {
    f32: [BLUE, "square"],
    f16: [GREEN, "up"],
    bf16: [SKY, "down"],
    fp8: [BROWN, "plus"],
    int8: [RED, "diamond"],
    int4: [PURPLE, "cross"],
  };
  const PAGED_F32 = [ORANGE, "circle"];
  const OTHERS = [SKY, BROWN, PURPLE, GREEN];

  // CRC-32 of a text, as plots/style.py uses it to choose among the other colours.
  function crc32(string) {
    let crc = ~0;
    for (const byte of new TextEncoder().encode(string)) {
      crc ^= byte;
      for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc >>> 0;
  }

  // {color, dash, pointStyle, rotation, glyph} of an engine's canonical name; color is null for the
  // colour of text.
  function look(engine) {
    const [layout, format = ""] = engine.split("/");
    if (layout === "recompute") return {color: null, dash: [], ...MARKERS.circle};
    const codec = format.split(":")[0], paged = layout.startsWith("paged");
    const [color, marker] = paged && codec === "f32"
        ? PAGED_F32
        : CODECS[codec] ?? [OTHERS[crc32(engine) % OTHERS.length], "star"];
    return {color, dash: paged ? [6, 4] : [], ...MARKERS[marker]};
  }

  // A piece of line with the engine's marker, for lists.
  function swatch(engine) {
    const {color, dash, glyph} = look(engine);
    const line = () => el("span", {class: dash.length > 0 ? "line dashed" : "line"});
    const node = el("span", {class: "swatch", "aria-hidden": "true"}, line(), glyph, line());
    if (color) node.style.color = color;
    return node;
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
      undecided: colour("--undecided")
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
    if (!axis.log) {
      return {
        ...options,
        type: "linear",
        beginAtZero: axis.fromZero !== false,
        max: axis.max,
        suggestedMin: Math.min(...values),
        suggestedMax: Math.max(...values)
      };
    }
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

  // view: {title, x, y, bars, series}; x and y are axes as in scale(), bars lie on their side.
  // series: {name, engine, points, line, hollow, stepped, thin, dash, colors, base, bar}; the last
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
              title: (items) => kvmark.distinct(items.map((item) => item.raw.head)),
              label: (item) => item.raw.tip
            },
          },
        },
      },
    };
  }

  function dataset(series, view, colours) {
    const {color, dash, pointStyle, rotation} = look(series.engine);
    const stroke = series.color ?? color ?? colours.text;
    const common = {label: series.name, data: series.points};
    if (view.bars) {
      const fill =
          series.colors ?? series.points.map((point) => look(point.engine).color ?? colours.text);
      return {
        ...common,
        backgroundColor: fill,
        borderColor: colours.text,
        errorColor: colours.text,
        barPercentage: 0.8,
        categoryPercentage: 0.85,
        maxBarThickness: 28,
        grouped: false,
        base: series.base,
        ...series.bar
      };
    }
    const radius = series.thin ? 0 : 4.5;
    return {
      ...common,
      borderColor: stroke,
      showLine: series.line,
      backgroundColor: series.hollow ? colours.paper : stroke,
      borderDash: series.dash ?? dash,
      borderWidth: series.thin ? 1.2 : 1.8,
      pointStyle,
      pointRotation: rotation ?? 0,
      pointBorderWidth: 1.8,
      tension: 0,
      stepped: series.stepped ?? false,
      pointRadius: series.points.map((point) => point.plain ? 0 : radius),
      pointHoverRadius: 7,
      pointHitRadius: 12
    };
  }

  return {look, swatch, theme, configuration, tickText};
})();
