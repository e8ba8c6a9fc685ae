// What a cache loses against uncompressed f32: which figures tell it, and how they are written.
kvmark.losses = (() => {
  "use strict";

  const {data, metrics, rough, quantity, listed} = kvmark;
  const words = kvmark.engineInWords;

  const [KLD, TOP1, ATTENTION_ERROR] = data.losses;
  const SAME = "the same as f32 up to the order of sums";
  const LARGE_ERROR = 0.3;

  // The best loss that all rows have: a text says more than random data.
  function pathOf(rows) {
    return [KLD, ATTENTION_ERROR].find((path) => rows.every((row) => path in row.values));
  }

  function isOrderOfSums(path, value) {
    return path === ATTENTION_ERROR && value < data.limits.same_as_f32;
  }

  // To order rows by and to tell equal ones, never to show.
  function comparable(path, value) {
    return isOrderOfSums(path, value) ? 0 : value;
  }

  // 100 % is all of them, and never rounded up to.
  function agreement(part) {
    if (part === 1) return "100 %";
    return part >= 0.9995 ? "more than 99.9 %" : `${(100 * part).toFixed(1)} %`;
  }

  // Written as the summary writes it; with its unit as ever where the summary does not.
  function figure(path, value) {
    if (path === TOP1 && value !== undefined) return agreement(value);
    if (path === KLD && value > 0) return `${rough(value)} nats`;
    if (path === ATTENTION_ERROR && value > 0) return `${rough(100 * value)} %`;
    return quantity(metrics.get(path), value);
  }

  // Of an attention error that no reader should take for little; "" of others.
  function warning(path, value) {
    const isLarge = path === ATTENTION_ERROR && value > LARGE_ERROR;
    return isLarge ? "large: much of the output is error" : "";
  }

  // "attention error 4.7 %".
  function named(path, value) {
    if (value > 0 && isOrderOfSums(path, value)) return SAME;
    return `${metrics.get(path).title} ${figure(path, value)}`;
  }

  const MORE = "a real model and a text tell more: make model, configs/smollm2.yaml";

  // What was computed to tell the loss.
  function basis(row, path) {
    if (path === KLD) return `on the text ${row.case["score.text"]}`;
    const isReal = row.case["source.kind"] === "file" && !kvmark.isAttention(row);
    const about = "which ranks formats and says nothing of a text";
    return isReal ? about : `on random data, ${about}; ${MORE}`;
  }

  function ofRow(row) {
    const path = pathOf([row]), error = row.values[ATTENTION_ERROR];
    if (!path) return "not measured";
    if (error === 0 || (error === undefined && row.values[KLD] === 0)) {
      return "none: it computes what uncompressed f32 does";
    }
    if (isOrderOfSums(ATTENTION_ERROR, error)) return `none: ${SAME}`;
    const agreed = path === KLD && TOP1 in row.values ? [named(TOP1, row.values[TOP1])] : [];
    const large = warning(path, row.values[path]);
    return `${[named(path, row.values[path]), ...agreed].join(", ")} against uncompressed f32` +
        `${large && ` (${large})`}, ${basis(row, path)}`;
  }

  // Which of the rows lose least and most.
  function ofRows(rows) {
    const path = pathOf(rows);
    if (!path) return "not measured of all of them";
    const loss = (row) => comparable(path, row.values[path]);
    const ordered = [...rows].sort((a, b) => loss(a) - loss(b));
    const least = ordered[0], most = ordered[ordered.length - 1];
    if (loss(least) === loss(most)) return ofRow(least);
    const like = (row) => rows.filter((other) => loss(other) === loss(row));
    const names = (row) => listed(like(row).map(words));
    const largest = Math.max(...like(least).map((row) => row.values[path]));
    const large = warning(path, most.values[path]);
    return `least with ${names(least)} (${named(path, largest)}), most with ${names(most)} ` +
        `(${figure(path, most.values[path])}${large && `, ${large}`}), against uncompressed f32, ${
            basis(least, path)}`;
  }

  return {KLD, ATTENTION_ERROR, comparable, figure, ofRow, ofRows};
})();
