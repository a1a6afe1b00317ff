import pytest

from skillhall._internal.catalog.duplicates.duplicate_report import SkillDifferences


@pytest.mark.parametrize(
    ("differences", "text"),
    [
        (SkillDifferences(), ""),
        (SkillDifferences(fields=("name",)), "name differs"),
        (SkillDifferences(fields=("name", "license")), "name and license differ"),
        (SkillDifferences(added_lines=1, removed_lines=2), "1 line added, 2 lines removed"),
        (SkillDifferences(files=("a.py", "b.py", "c.py")), "a.py, b.py and c.py differ"),
    ],
)
def test_differences_are_one_line(differences: SkillDifferences, text: str) -> None:
    assert differences.describe() == text
