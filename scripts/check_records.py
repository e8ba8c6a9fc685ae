#!/usr/bin/python3
"""Validates a run's records against the record's JSON Schema.

usage: check_records.py SCHEMA RECORDS.jsonl...

Fails also on an empty file, and on NaN or Infinity, which JSON does not have.
"""

import json
import sys

import jsonschema


def not_json(word):
    raise ValueError(f"{word} is not JSON")


def check_file(path, validator):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    if not lines:
        yield f"{path}: no record"
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line, parse_constant=not_json)
        except ValueError as error:
            yield f"{path}:{number}: {error}"
            continue
        for error in validator.iter_errors(record):
            where = ".".join(str(part) for part in error.absolute_path) or "the record"
            yield f"{path}:{number}: {where}: {error.message}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema)
    problems = [problem for path in sys.argv[2:] for problem in check_file(path, validator)]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
