// What all charts share: axes, error bars, series as Chart.js draws them.
kvmark.parts = (() => {
  "use strict";

  const {look, theme} = kvmark.engines;

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
    const first = Math.log10(low), last = Math.log10(high), decades = last - first;
    const steps = decades < 3 ? [1, 2, 5] : [1];
    const every = Math.ceil(decades / 8);
    const ticks = [];
    for (let power = Math.floor(first); power <= last; power += 1) {
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
    const isLog = axis.log && values.some((value) => value >= LEAST);
    return isLog ? logScale(options, axis, values) : linearScale(options, axis, values);
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

  const LEAST = 1e-300;  // below it Chart.js finds no decades

  // Whatever the values, the limits are numbers.
  function logScale(options, axis, values) {
    const seen = values.filter((value) => value >= LEAST);
    const low = Math.min(...seen), high = Math.max(...seen);
    const margin = Math.max(10 ** (0.04 * (Math.log10(high) - Math.log10(low))), 1.04);
    const limits = {
      min: Math.max(low / margin, LEAST),
      max: Math.min(high * margin, Number.MAX_VALUE)
    };
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
  // series: {name, engine, points, line, strength, stepped, thin, dash, colors, base, bar}; the
  // last three are of bars. points: {x, y, xlo, xhi, ylo, yhi, head, tip, engine, strength, plain}:
  // head and tip are what hovering shows, plain ones have no marker. A strength below 1 is pale.
  // Returns the configuration for Chart.
  function configuration(view) {
    const colours = theme();
    const ofAll = (...keys) => view.series.flatMap(
        ({points}) =>
            points.flatMap((point) => keys.map((key) => point[key]).filter(kvmark.isDrawable)));
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

  // "#rrggbb", or "#rrggbbaa" of what is pale.
  function faded(colour, strength = 1) {
    if (strength === 1) return colour;
    return `${colour}${Math.round(255 * strength).toString(16).padStart(2, "0")}`;
  }

  function dataset(series, view, colours) {
    const common = {label: series.name, data: series.points};
    if (view.bars) {
      const ofEngines = () =>
          series.points.map(({engine, strength}) => faded(look(engine, colours).color, strength));
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
    const stroke = faded(color, series.strength);
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

  return {configuration};
})();
