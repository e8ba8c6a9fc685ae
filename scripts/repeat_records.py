#!/usr/bin/python3
"""Repeats the records of a file under new case ids until there are COUNT: a run of any size.

usage: repeat_records.py RECORDS.jsonl COUNT OUTPUT.jsonl
"""

import itertools
import json
import sys


def main():
    if len(sys.argv) != 4 or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        for number, record in enumerate(itertools.islice(itertools.cycle(records), int(sys.argv[2]))):
            file.write(json.dumps({**record, "case_id": f"{number:016x}"}) + "\n")


if __name__ == "__main__":
    main()
