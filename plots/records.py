"""Reading records: everything that the plots know about a run comes from records.jsonl."""

import json
import os
import sys


def load(path):
    """The records of a run folder, or of a file, in order. A last line that was cut off is left out.

    Raises OSError for a missing file and ValueError naming file:line for damage elsewhere.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "records.jsonl")
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n")
    while lines and not lines[-1].strip():
        lines.pop()

    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            if number < len(lines):
                raise ValueError(f"{path}:{number}: not a record ({error})") from None
            print(f"{path}:{number}: the last line is cut off; it is left out", file=sys.stderr)
        else:
            records.append(record)
    return records


def get(record, path, default=None):
    """The value at a dotted path; `default` where a part is missing or null."""
    value = record
    for key in path.split("."):
        if not isinstance(value, dict) or value.get(key) is None:
            return default
        value = value[key]
    return value


def measured(records):
    """The rows whose figures count."""
    return [record for record in records if record.get("status") == "ok"]


# A gate goes with the engine's format, so it does not part an engine from its group.
ENGINE_KEYS = ("engine", "preset", "gate")
LENGTH_KEYS = ("prompt_len", "gen_len", "seq_len", "max_seq_len")


def group(records, apart_from=ENGINE_KEYS):
    """Lists of records whose cases are equal apart from some keys, in order of appearance."""
    groups = {}
    for record in records:
        case = get(record, "case", {})
        rest = {key: value for key, value in case.items() if key not in apart_from}
        groups.setdefault(json.dumps(rest, sort_keys=True), []).append(record)
    return list(groups.values())


def label(record):
    """What an engine is called: its preset, else its name."""
    return get(record, "case.preset") or get(record, "case.engine", "unknown")
