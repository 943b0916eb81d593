#!/usr/bin/env python3
"""compare_with_sqlite.py FINGERPOST SEGMENT DIRECTORY [UNLISTED-ID...]

Asks the segment for every id that is in the directory, as this program reads it with a SQLite of
its own, and for ids that are not: those must be where a bucket row says. Prints what differs; exit
status 0 if nothing does.
"""
import json
import sqlite3
import subprocess
import sys


def resolve(program, segment, ids):
    """What `fingerpost resolve --json` says of each id."""
    answers = {}
    for at in range(0, len(ids), 500):
        ran = subprocess.run(
            [program, "resolve", segment, *ids[at : at + 500], "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in ran.stdout.splitlines():
            answer = json.loads(line)
            answers[answer["id"]] = answer
    return answers


def main():
    program, segment, directory, *unlisted = sys.argv[1:]
    rows = (
        sqlite3.connect(directory)
        .execute("SELECT entry_id, shard_id, state, epoch FROM shard_directory")
        .fetchall()
    )
    tenants = {row[0]: row[1:] for row in rows if not row[0].startswith("bucket:")}
    buckets = {row[1:] for row in rows if row[0].startswith("bucket:")}
    answers = resolve(program, segment, [*tenants, *unlisted])
    faults = []
    for entry, (shard, state, epoch) in tenants.items():
        answer = answers.get(entry, {})
        wanted = ("deleted", None) if state == "DELETED" else ("found", shard)
        if (answer.get("status"), answer.get("shard")) != wanted or answer.get("epoch") != epoch:
            faults.append(f"{entry}: {wanted}, epoch {epoch}, but the segment says {answer}")
    for entry in unlisted:
        answer = answers.get(entry, {})
        found = (answer.get("shard"), answer.get("state"), answer.get("epoch"))
        if answer.get("source") != "bucket" or found not in buckets:
            faults.append(f"{entry}: in no bucket's row, but the segment says {answer}")
    print("\n".join(faults) or f"equal: {len(tenants)} entries, {len(unlisted)} by bucket")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
