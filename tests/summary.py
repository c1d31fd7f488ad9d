#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up a ctest run: the output of what failed, the reason of each skip, what
was left behind, and last the line `N passed, N failed, N skipped`.

usage: summary.py RESULTS.xml TMPDIR BUILD
"""
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

LINES = 60  # of a failing test's output


def reason_of(output):
    lines = [line for line in output.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("skip:")]
    return (said or lines or ["skip: no reason given"])[-1].removeprefix("skip: ")


def main():
    results, tmp, build = sys.argv[1:]
    passed = failed = skipped = 0
    try:
        cases = xml.parse(results).getroot().iter("testcase")
    except (OSError, xml.ParseError) as error:
        print(f"no test results: {error}")
        print("0 passed, 1 failed, 0 skipped")
        return 1
    reasons = []
    for case in cases:
        name = case.get("name")
        output = case.findtext("system-out") or ""
        status = case.get("status")
        if case.find("skipped") is not None or status == "disabled":
            skipped += 1
            reasons.append(f"skipped: {name}: {reason_of(output)}")
        elif status == "run" and case.find("failure") is None:
            passed += 1
        else:
            failed += 1
            print(f"--- failed: {name} ({case.get('time')} s)")
            lines = output.splitlines()
            if len(lines) > LINES:
                print(f"(the last {LINES} of {len(lines)} lines)")
            print("\n".join(lines[-LINES:]))
    for line in reasons:
        print(line)
    here = os.path.dirname(os.path.abspath(__file__))
    left = subprocess.run(
        [sys.executable, os.path.join(here, "leftovers.py"), "after", tmp, build],
        stdout=subprocess.PIPE, text=True, check=False)
    if left.returncode == 0:
        passed += 1
    else:
        failed += 1
        print("--- failed: something was left behind by the tests")
        print(left.stdout)
    if passed == 1 and failed == 0:
        print("no test was run")
        failed = 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
