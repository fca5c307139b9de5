"""A pytest plugin: one line for each test, `outcome id`, in the file that SUITE_RESULTS names.

Lines are written as tests end, so that a run which dies half-way says how far it came.
"""

import os

OUTCOMES = {}


def pytest_runtest_logreport(report):
    before = OUTCOMES.get(report.nodeid)
    if report.failed or before == "failed":
        OUTCOMES[report.nodeid] = "failed"
    elif report.skipped or before == "skipped":
        OUTCOMES[report.nodeid] = "skipped"
    else:
        OUTCOMES[report.nodeid] = "passed"
    if report.when == "teardown":
        with open(os.environ["SUITE_RESULTS"], "a", encoding="utf-8") as results:
            results.write(f"{OUTCOMES[report.nodeid]} {report.nodeid}\n")
