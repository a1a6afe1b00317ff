"""The means of runs, and their differences."""

from skillhall._internal.evals.reports.model_overview import RunMeans


def test_means_that_are_not_known_have_no_difference() -> None:
    known, unknown = RunMeans(100.0, 2.0, 0.5), RunMeans.parse({"tokens": 1, "seconds": {}})

    assert known.subtract(RunMeans(120.0, 2.0, 0.75)) == (-20.0, 0.0, -0.25)
    assert known.subtract(unknown) == (None, None, None)
