"""Reading records: everything that the plots know about a run comes from records.jsonl."""

import json
import math
import os
import sys

import words


class BadFile(Exception):
    """A file is not what it should be; the text names file, place and what was expected."""


def load(path):
    """The records of a run folder, or of a file, in order, without a last line that was cut off.

    Raises OSError for a missing file and BadFile for damage elsewhere.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "records.jsonl")
    # -sig: some editors put a mark at the start.
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        lines = file.read().split("\n")
    while lines and not lines[-1].strip():
        lines.pop()

    records = []
    for number_of_line, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            if number_of_line < len(lines):
                raise BadFile(f"{path}:{number_of_line}: not a record ({error})") from None
            print(f"{path}:{number_of_line}: the last line is cut off; it is left out",
                  file=sys.stderr)
        else:
            records.append(record)
    return records


# ---- Values of a record ----

def get(record, path, default=None):
    """The value at a dotted path; `default` where a part is missing or null."""
    value = record
    for key in path.split("."):
        if not isinstance(value, dict) or value.get(key) is None:
            return default
        value = value[key]
    return value


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(record, path):
    """The finite number at a dotted path, or None."""
    value = get(record, path)
    return value if is_number(value) else None


def series(record, path):
    """The list of numbers at a dotted path; empty where there is none."""
    values = get(record, path)
    return values if isinstance(values, list) and all(map(is_number, values)) else []


def interval(record, path):
    """[low, high] at a dotted path, or None."""
    bounds = series(record, path)
    return bounds if len(bounds) == 2 else None


def engine(record):
    """Canonical name, "contiguous/f16"."""
    return get(record, "case.engine", "unknown")


def context(record):
    """The depth of a decode figure: the prompt, or where there is none the whole length."""
    return number(record, "case.prompt_len") or number(record, "case.gen_len") or 1


def contexts(records):
    return sorted({context(record) for record in records})


def filled(record):
    """Positions before the first timed step: the prompt, or one seeded token."""
    return max(number(record, "case.prompt_len") or 0, 1)


def positions(record):
    """Positions in the cache when a round ends."""
    return filled(record) + (number(record, "case.gen_len") or 1) - 1


def positions_seen(record):
    """Positions that a decode step sees, mean of a round."""
    return filled(record) + (number(record, "case.gen_len") or 0) / 2


# ---- Which records ----

# A gate goes with the engine's format, so it does not part an engine from its group.
ENGINE_KEYS = ("engine", "preset", "gate")
LENGTH_KEYS = ("prompt_len", "gen_len", "seq_len", "max_seq_len")


def machine_of(record):
    return (get(record, "env.cpu"), get(record, "env.cores"), get(record, "env.gpu"))


def last_of_each(records, key):
    """Without rows that a later one with the same key replaces; those without a case id stay."""
    rows = {}
    for record in records:
        rows[key(record) if record.get("case_id") else id(record)] = record
    return list(rows.values())


def latest(records):
    """The rows of a run that count: of a case the last one, as after --resume (run_folder.cc)."""
    return last_of_each(records, key=lambda record: record["case_id"])


def has_figures(record):
    """An ok row, or a correct one that only loses more than its gate allows (report/row.cc)."""
    if record.get("status") != "invalid":
        return record.get("status") == "ok"
    if get(record, "accuracy.correct.passed") is not True:
        return False
    return (get(record, "counters.instructions_per_step") is not None
            or any(value is not None for value in get(record, "latency", {}).values()))


def counting(runs):
    """(rows with figures of some runs, each case once, how many cases several of the runs have).

    Of a case that several runs measured on one machine the row of the last one counts.
    """
    own = [[row for row in latest(run) if has_figures(row)] for run in runs]
    rows = [row for run in own for row in run]
    once = last_of_each(rows, key=lambda row: (row["case_id"], machine_of(row)))
    return once, len(rows) - len(once)


def group(records, apart_from=ENGINE_KEYS):
    """Lists of records whose machines and cases are equal apart from some keys, as they appear.

    At attention level the number of layers does not part them: a plan may let it follow the context
    (`layers: auto`), and what is drawn is of a layer, or a ratio.
    """
    groups = {}
    for record in records:
        case = get(record, "case", {})
        apart = apart_from + (("layers",) if case.get("level") == "attention" else ())
        rest = {key: value for key, value in case.items() if key not in apart}
        groups.setdefault(json.dumps([machine_of(record), rest], sort_keys=True), []).append(record)
    return list(groups.values())


def by_engine(records):
    """Engine → its records by context, in order of appearance."""
    engines = {}
    for record in records:
        engines.setdefault(engine(record), []).append(record)
    for rows in engines.values():
        rows.sort(key=context)
    return engines


def lengths(record):
    """What rows of one length have in common."""
    return tuple(get(record, f"case.{key}") for key in LENGTH_KEYS + ("layers",))


def fullest(records):
    """The records of one length: that with figures of most engines, and of these the longest."""
    found = {}
    for record in records:
        found.setdefault(lengths(record), []).append(record)
    return max(found.values(), default=[],
               key=lambda rows: (len({engine(row) for row in rows}), positions(rows[0])))


def one_length_each(records):
    """Of each context the records of one length, as in fullest()."""
    return [record for at in contexts(records)
            for record in fullest([one for one in records if context(one) == at])]


# ---- Engines of a picture ----

def short_name(name):
    """"int8:g32" of what lies in one piece, "paged:16/int8:g32", as on the page (comparable.cc).

    No presets: "contiguous" is f32 there, and a layout to everybody else.
    """
    layout, _, kind = name.partition("/")
    return words.clipped(kind if layout == "contiguous" and kind else name)


def names(records):
    """Engine → what it is called."""
    return {engine(record): short_name(engine(record)) for record in records}


def generic_beside(records):
    """Engines with the generic kernel, beside others that have one of their own.

    It decodes to f32 first: its time says how far the code is, not what the format can do.
    """
    generic = {engine(r) for r in records if get(r, "kernel") == "generic"}
    return generic if generic < {engine(r) for r in records} else set()


def timed_names(records):
    """names() for pictures of times, where generic kernels are told apart."""
    generic = generic_beside(records)
    return {name: f"{called} (generic kernel)" if name in generic else called
            for name, called in names(records).items()}
