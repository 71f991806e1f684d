#!/usr/bin/env python3
"""Holds FIELD-REPORTS.md to the tests: each row has a test or says why it does not apply, and each test that is named is there,
a C++ one as a TEST_CASE, another in a file that says those words. Ends with "N passed, N failed"."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
ROW = re.compile(r"^\| ([A-J]\d+) \|(.*)\|(.*)\|(.*)\|$", re.M)
NAMED = re.compile(r'`(tests/[^`]+)`(?:: "([^"]+)")?')


def is_there(path, name):
    path = os.path.join(TOP, path)
    if not os.path.isfile(path):
        return False
    if not name:
        return path.endswith(".json")  # a case: the file is the test
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.search(r'TEST_CASE\(\s*"' + re.escape(name) + '"', text) if path.endswith(".cpp") else name in text


def main():
    with open(os.path.join(HERE, "FIELD-REPORTS.md"), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    passed, failed, named = 0, [], 0
    for entry, _, here, shown in rows:
        tests = NAMED.findall(shown)
        named += len(tests)
        wrong = [f"{entry}: {path}: \"{name}\" is not there" for path, name in tests if not is_there(path, name)]
        if bool(tests) == here.strip().startswith("does not apply"):
            wrong.append(f"{entry}: a test, or why it does not apply")
        if [row[0] for row in rows].count(entry) > 1:
            wrong.append(f"{entry}: twice")
        failed += wrong
        passed += not wrong
    print(*failed, sep="\n", end="\n" if failed else "")
    print(f"{len(rows)} reports, {named} tests named")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
