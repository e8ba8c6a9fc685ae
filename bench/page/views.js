// What the charts can show: each view turns rows into axes and series. Charts.js offers them.
kvmark.views = (() => {
  "use strict";

  const {data, metrics, exact, isDrawable, byteUnit, intervalText, titleWithUnit, text, plural} =
      kvmark;

  const counted = data.rows.filter((row) => row.counts);

  // ---- Runs and machines: an engine looks alike in all of them, but the last is not pale ----

  const severalRuns = data.runs.length > 1;
  const severalMachines = kvmark.distinct(counted.map((row) => row.machine)).length > 1;

  // "new", "results/a, AMD EPYC with 2 cores"; "" where there is one run and machine.
  function originOf(row) {
    const parts = [severalRuns ? kvmark.runMark(row.run) : "", severalMachines ? row.machine : ""];
    return parts.filter(Boolean).join(", ");
  }

  const origins = kvmark.distinct(counted.map(originOf));

  function strengthOf(row) {
    const last = origins.length - 1;
    return last === 0 ? 1 : 0.5 + 0.5 * origins.indexOf(originOf(row)) / last;
  }

  function paleText(rows) {
    const shown = kvmark.distinct(rows.map(originOf));
    const ordered = origins.filter((origin) => shown.includes(origin));
    return ordered.length > 1 ? `From pale to full: ${ordered.join("; ")}.` : "";
  }

  // ---- What hovering shows ----

  function metricLines(row, path) {
    const metric = metrics.get(path), interval = intervalText(row, path);
    const unit = metric.unit === "bytes" || !metric.unit ? "" : ` ${metric.unit}`;
    const lines = [`${metric.title}: ${exact(metric, row.values[path])}`];
    if (interval) lines.push(`95 % interval ${interval}${unit}`);
    if (row.n[path] !== undefined) lines.push(`n = ${row.n[path]}`);
    return lines;
  }

  function rowLines(row) {
    const rounds = row.rounds ? [plural(row.rounds, "round")] : [];
    const miss = row.status === "ok" ? [] : [`${row.status}: ${text(row.reason)}`];
    return [...rounds, ...miss, ...kvmark.remarks(row).map((remark) => `doubt: ${remark}`)];
  }

  function headOf(row) {
    return `${nameOf(row)} at ${kvmark.lengthsText(row)}${behindComma(originOf(row))}`;
  }

  function behindComma(words) {
    return words && `, ${words}`;
  }

  function nameOf(row) {
    return row.label === row.engine ? row.engine : `${row.label} (${row.engine})`;
  }

  // ---- Axes that a row has a place on ----

  // What changes together when heads do, and what follows from other settings.
  const SHAPE_KEYS = ["heads", "kv_heads", "head_dim", "d_model", "ffn"];
  const FOLLOWERS = ["layers", "d_model", "ffn", "seq_len", "max_seq_len"];

  // {name, title, of, path, metric, keys, own}: `of` gives a row's place. Of a metric, `path` and
  // `metric`; of a setting, `keys` of the case that may change along the axis, and `own`, those
  // that are its place.
  function axisOf(name) {
    const metric = metrics.get(name);
    if (metric) {
      const of = (row) => row.values[name];
      return {name: metric.title, title: titleWithUnit(metric), of, path: name, metric};
    }
    if (name === "context") {
      const keys = data.length_keys, own = ["prompt_len", "seq_len"];
      return {name, title: "context (tokens)", of: (row) => row.context, keys, own};
    }
    const title = kvmark.settingTitle(name), keys = SHAPE_KEYS.includes(name) ? SHAPE_KEYS : [name];
    return {name: title, title, of: (row) => row.case[name], keys, own: [name]};
  }

  // What goes with a model's name is no axis: along it there is one place only.
  function followsModel(key) {
    const models = kvmark.distinct(counted.map((row) => row.case.model));
    return models.every(
        (model) =>
            kvmark
                .distinct(
                    counted.filter((row) => row.case.model === model).map((row) => row.case[key]))
                .length === 1);
  }

  // Names of the axes: settings that differ between rows, and metrics. "context" is how much a row
  // has seen, never the most that its model can; parts of objects, like rope.dims, follow others.
  function axisNames() {
    const numeric =
        kvmark.varyingKeys(counted, ...kvmark.ENGINE_KEYS, ...data.length_keys, "context")
            .filter((key) => counted.every((row) => typeof (row.case[key] ?? 0) === "number"))
            .filter((key) => !key.includes(".") && !followsModel(key));
    const several = kvmark.distinct(counted.map((row) => row.context)).length > 1;
    return {
      settings: [...(several ? ["context"] : []), ...numeric],
      metrics: data.metrics.map((metric) => metric.path)
    };
  }

  // ---- How an axis is drawn ----

  const GROWS_WITH_LAYERS = ["ms", "bytes", "FLOP"];

  // Attention of different numbers of layers is compared a layer.
  function isPerLayer({metric}, rows) {
    return GROWS_WITH_LAYERS.includes(metric?.unit) && rows.every(kvmark.isAttention) &&
        kvmark.layersDiffer(rows);
  }

  // {name, title, at, ends} for some rows: `at` gives the place of a row as it is drawn, `ends`
  // those of its interval, null without one. Bytes are drawn in the binary unit of the largest.
  function drawn(axis, rows) {
    const perLayer = isPerLayer(axis, rows), isBytes = axis.metric?.unit === "bytes";
    const layers = (row) => perLayer ? row.case.layers : 1;
    const largest = Math.max(...rows.map((row) => axis.of(row) / layers(row)));
    const {unit, size} = isBytes ? byteUnit(largest) : {unit: axis.metric?.unit, size: 1};
    const scaled = (row, value) => value / layers(row) / size;
    return {
      name: perLayer ? `${axis.name} a layer` : axis.name,
      title: unit ? `${axis.name} (${unit}${perLayer ? " a layer" : ""})` : axis.title,
      at: (row) => scaled(row, axis.of(row)),
      ends: (row) => row.intervals[axis.path]?.map((end) => scaled(row, end))
    };
  }

  // ---- Rows → series ----

  // An engine's rows in parts, each with one row at most at a place of the axis: parted by run and
  // machine, then by as many settings as it takes.
  function parted(rows, axis) {
    const settings = kvmark.varyingKeys(rows, ...kvmark.ENGINE_KEYS, ...axis.own)
                         .sort((a, b) => FOLLOWERS.indexOf(a) - FOLLOWERS.indexOf(b))
                         .map((key) => ({
                           of: (row) => row.case[key],
                           name: (row) => `${kvmark.settingTitle(key)} ${text(row.case[key])}`
                         }));
    let parts = byOrigin(rows);
    for (const setting of settings) {
      if (parts.every((part) => isUnique(part.rows, axis))) break;
      parts = split(parts, setting);
    }
    return parts;
  }

  function isUnique(rows, axis) {
    return kvmark.distinct(rows.map(axis.of)).length === rows.length;
  }

  function split(parts, {of, name}) {
    return parts.flatMap((part) => kvmark.distinct(part.rows.map(of)).map((value) => {
      const rows = part.rows.filter((row) => of(row) === value);
      return {name: part.name + behindComma(name(rows[0])), rows};
    }));
  }

  function byOrigin(rows) {
    return split([{name: "", rows}], {of: originOf, name: originOf});
  }

  function byEngine(rows) {
    return kvmark.distinct(rows.map((row) => row.engine))
        .map((engine) => ({engine, rows: rows.filter((row) => row.engine === engine)}));
  }

  // Where a row is drawn along an axis, "x" or "y", under the names that the error bars look for.
  function place(row, name, axis) {
    const ends = axis.ends(row);
    return {
      [name]: axis.at(row),
      ...(ends ? {[`${name}lo`]: ends[0], [`${name}hi`]: ends[1]} : {})
    };
  }

  // ---- Views ----

  // Points of rows: any axis against any metric. A line joins points along a setting; metrics are
  // drawn against each other as points alone.
  function axes(rows, {x: xName, y: yName, xlog, ylog}) {
    const x = axisOf(xName), y = axisOf(yName);
    const known = rows.filter((row) => isDrawable(x.of(row)) && isDrawable(y.of(row)));
    const placed = known.filter((row) => (!xlog || x.of(row) > 0) && (!ylog || y.of(row) > 0));
    const across = drawn(x, placed), up = drawn(y, placed);
    const layers = isPerLayer(x, placed) || isPerLayer(y, placed);
    const point = (row) => ({
      ...place(row, "x", across),
      ...place(row, "y", up),
      head: headOf(row),
      tip: [
        ...metricLines(row, yName), ...(x.path && xName !== yName ? metricLines(row, xName) : []),
        ...(x.path || xName === "context" ? [] : [`${x.title} ${x.of(row)}`]),
        ...(layers ? [`of ${plural(row.case.layers, "layer")}`] : []), ...rowLines(row)
      ],
    });
    const series = byEngine(placed).flatMap(({engine, rows: own}) => {
      const parts = x.path ? byOrigin(own) : parted(own, x);
      return parts.map((part) => ({
        engine,
        name: nameOf(own[0]) + part.name,
        line: !x.path,
        strength: strengthOf(part.rows[0]),
        points: part.rows.map(point).sort((a, b) => a.x - b.x),
      }));
    });
    const at = x.path ? null : kvmark.distinct(placed.map(x.of)).sort((a, b) => a - b);
    return {
      title: `${up.name} against ${across.name}`,
      left: rows.length - known.length,
      notAbove0: known.filter((row) => !placed.includes(row)),
      x: {title: across.title, log: xlog, at},
      y: {title: up.title, log: ylog},
      series
    };
  }

  // A bar for each row; the names of engines stand beside them.
  function bars(rows, {y: yName, ylog}) {
    const axis = axisOf(yName);
    const known = rows.filter((row) => isDrawable(axis.of(row)));
    const placed = known.filter((row) => !ylog || axis.of(row) > 0);
    const along = drawn(axis, placed);
    const name = (row) => nameOf(row) + behindComma(originOf(row));
    const points = placed.map((row, i) => ({
      ...place(row, "x", along),
      y: i,
      engine: row.engine,
      strength: strengthOf(row),
      head: headOf(row),
      tip: [...metricLines(row, yName), ...rowLines(row)],
    }));
    return {
      title: `${along.name}, by engine`,
      bars: true,
      left: rows.length - known.length,
      notAbove0: known.filter((row) => !placed.includes(row)),
      x: {title: along.title, log: ylog},
      y: {labels: placed.map(name)},
      series: [{name: axis.title, engine: "", points}]
    };
  }

  // A line of its own for a row.
  function curve(row, points, changes = {}) {
    return {
      engine: row.engine,
      name: headOf(row),
      line: true,
      strength: strengthOf(row),
      points: points.map((point) => ({...point, head: headOf(row)})),
      ...changes
    };
  }

  // Time since the start against tokens.
  function growth(rows, {xlog, ylog}) {
    const own = rows.filter((row) => row.cumulative);
    return {
      title: "Time to generate n tokens",
      left: rows.length - own.length,
      x: {title: "generated tokens n", log: xlog},
      y: {title: "time since the start (s)", log: ylog},
      series: own.map((row) => {
        const {tokens, seconds} = row.cumulative;
        return curve(row, tokens.map((n, i) => ({
          x: n,
          y: seconds[i],
          plain: i % 8 !== 0 && i + 1 < tokens.length,
          tip: [`${plural(n, "token")}: ${seconds[i]} s`, ...rowLines(row)],
        })));
      }),
    };
  }

  // The part of the steps that took no longer than a time.
  function distribution(rows, {xlog}) {
    const own = rows.filter((row) => row.itl_quantiles_ms);
    const isNamed = (row, percent) =>
        percent === 50 || (percent === 99 && "latency.itl_ms.p99" in row.values);
    return {
      title: "How long the steps of one round took (markers at p50 and p99)",
      left: rows.length - own.length,
      x: {title: "time of a step (ms)", log: xlog, fromZero: false},
      y: {title: "part of the steps (%)", max: 100},
      series: own.map((row) => curve(row, row.itl_quantiles_ms.map((ms, percent) => ({
        x: ms,
        y: percent,
        plain: !isNamed(row, percent),
        tip: [`${percent} % of the steps took up to ${ms} ms`, ...rowLines(row)],
      })))),
    };
  }

  // Reserved bytes jump, and are drawn beside what they are reserved for.
  const RESERVED = {thin: true, stepped: true, dash: [2, 2]};

  function timelinePoints(row, key, kind, size) {
    return row.timeline.tokens.map((tokens, i) => {
      const amount = exact({unit: "bytes"}, row.timeline[key][i]);
      return {
        x: tokens,
        y: row.timeline[key][i] / size,
        plain: i % 16 !== 0,
        tip: [`${plural(tokens, "token")}, ${kind}: ${amount}`, ...rowLines(row)]
      };
    });
  }

  // Bytes of the cache as a round goes on.
  function memory(rows) {
    const own = rows.filter((row) => row.timeline);
    const {unit, size} =
        byteUnit(Math.max(1, ...own.flatMap((row) => row.timeline.reserved_bytes)));
    return {
      title: "KV cache as tokens are generated: live rows, and reserved (thin dots)",
      left: rows.length - own.length,
      x: {title: "tokens in the cache", fromZero: false},
      y: {title: `KV cache (${unit})`},
      series: own.flatMap(
          (row) => [curve(row, timelinePoints(row, "live_bytes", "live rows", size)),
              curve(row, timelinePoints(row, "reserved_bytes", "reserved", size), RESERVED),
    ]),
    };
  }

  // New over base for one metric, a bar for each case, in the colours of the verdicts.
  function ratios(_, {ratioOf}) {
    const cases =
        data.comparison.cases
            .map((one) => ({one, found: one.metrics.find(({metric}) => metric === ratioOf)}))
            .filter(({found}) => found && Number.isFinite(found.change));
    const colours = kvmark.engines.theme();
    const points = cases.map(({one, found}, i) => ({
      x: 1 + found.change,
      y: i,
      engine: one.case?.engine ?? "",
      ...(found.change_interval
              ? {xlo: 1 + found.change_interval[0], xhi: 1 + found.change_interval[1]}
              : {}),
      head: one.label,
      tip: [
        `${found.verdict}: ${found.base} → ${found.new} ${found.unit}`,
        `new / base = ${1 + found.change}`, ...(found.note ? [found.note] : [])
      ],
    }));
    const band = cases.map(({found}, i) => ({
      y: i,
      x: [1 / (1 + (found.threshold ?? 0)), 1 + (found.threshold ?? 0)],
      head: "threshold",
      tip: []
    }));
    const title = cases[0]?.found.title ?? metrics.get(ratioOf)?.title ?? "";
    return {
      title: `${title}: new / base for each case (grey: within the threshold)`,
      bars: true,
      left: 0,
      x: {title: "new / base", fromZero: false},
      y: {labels: cases.map(({one}) => one.label)},
      series: [
        {
          name: title,
          engine: "",
          points,
          base: 1,
          colors: cases.map(({found}) => colours[found.verdict] ?? colours.muted),
          bar: {order: 1, barPercentage: 0.5}
        },
        {name: "threshold", engine: "", points: band, colors: colours.grid, bar: {order: 2}}
      ],
    };
  }

  return {
    counted,
    axisNames,
    axisOf,
    nameOf,
    paleText,
    makers: {axes, bars, growth, distribution, memory, ratios}
  };
})();
