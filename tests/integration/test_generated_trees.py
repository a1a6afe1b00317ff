"""The benchmarks' generated trees have the shares and sizes of the collections they imitate."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from benchmarks.trees import TreeSpec, ensure_tree

SKILLS = 1200
_STYLES = {'"': "double", "'": "single", "|": "block", ">": "block"}


class Survey:
    """What is on disk, measured without the generator and without Skillhall."""

    def __init__(self, root: Path) -> None:
        self.count = 0
        self.seen: Counter[str] = Counter()
        self.sizes: list[int] = []
        self.blocks: list[int] = []
        self.descriptions: list[int] = []
        self.keys: list[int] = []
        self.files: list[int] = []
        self._names: set[str] = set()
        for folder, _, files in sorted(os.walk(root)):
            if "SKILL.md" in files:
                self._add(root, Path(folder))

    def _add(self, root: Path, folder: Path) -> None:
        self.count += 1
        data = (folder / "SKILL.md").read_bytes()
        self.sizes.append(len(data))
        relative = folder.relative_to(root)
        self.seen["hidden"] += any(part.startswith(".") for part in relative.parts)
        self.seen["nested"] += any((root / p / "SKILL.md").exists() for p in relative.parents)
        below = [
            files
            for path, _, files in os.walk(folder)
            if path == str(folder)
            or (
                Path(path).name in {"scripts", "references", "assets"}
                and Path(path).parent == folder
            )
        ]
        self.files.append(sum(map(len, below)))
        match = re.match(r"---\n(.*?\n)---\n", data.decode(), re.DOTALL)
        if match is None:
            self.seen["no frontmatter"] += 1
            return
        self._add_frontmatter(match[1], folder.name)

    def _add_frontmatter(self, block: str, folder: str) -> None:
        self.blocks.append(len(block.encode()))
        name = re.search(r"^name: (.*)$", block, re.MULTILINE)
        written = re.search(r"^description: (.*)$", block, re.MULTILINE)
        assert name is not None
        self.seen["name is folder"] += name[1] == folder
        self.seen["repeated name"] += name[1] in self._names
        self._names.add(name[1])
        self.seen["nested lines"] += re.search(r"^metadata:\n  ", block, re.MULTILINE) is not None
        self.seen["block list"] += re.search(r"^ +- ", block, re.MULTILINE) is not None
        self.seen["flow"] += re.search(r": \[", block) is not None
        self.seen["nested or block"] += re.search(r"^ ", block, re.MULTILINE) is not None
        try:
            fields = yaml.load(block, Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            self._add_invalid(written[1] if written else "", error)
            return
        self.keys.append(len(fields))
        known = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
        self.seen["unknown field"] += not fields.keys() <= known
        self.seen.update(f"key {key}" for key in fields)
        if written is not None:
            self.seen[_STYLES.get(written[1][0], "plain")] += 1
            self.descriptions.append(len(str(fields["description"]).rstrip()))

    def _add_invalid(self, written: str, error: yaml.YAMLError) -> None:
        self.seen["invalid"] += 1
        if re.match(r"[|>]-? \S", written):
            self.seen["invalid inline block"] += 1
        elif ": " in written and written[0].isalpha() and "mapping values" in str(error):
            self.seen["invalid colon"] += 1

    def share(self, what: str) -> float:
        """Return a share in percent of all skills."""
        return 100 * self.seen[what] / self.count


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[int(share * (len(values) - 1))]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    tree = ensure_tree(tmp_path_factory.mktemp("data"), TreeSpec("registry", SKILLS))
    return Survey(tree.root)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    tree = ensure_tree(tmp_path_factory.mktemp("data"), TreeSpec("mirror", SKILLS))
    return Survey(tree.root)


@pytest.mark.parametrize(
    ("what", "percent"),
    [
        ("plain", 77),
        ("invalid", 22.7),
        ("invalid inline block", 14.7),
        ("invalid colon", 7.4),
        ("double", 0.2),
        ("nested lines", 99.8),
        ("repeated name", 34),
        ("name is folder", 0),
        ("no frontmatter", 0),
        ("hidden", 0),
        ("nested", 0),
    ],
)
def test_registry_has_the_shares_of_the_real_one(
    registry: Survey, what: str, percent: float
) -> None:
    assert registry.count == SKILLS
    assert registry.share(what) == pytest.approx(percent, abs=3.5)


@pytest.mark.parametrize(
    ("what", "percent"),
    [
        ("plain", 46),
        ("double", 39),
        ("single", 7),
        ("block", 4.6),
        ("invalid", 0.4),
        ("no frontmatter", 2.5),
        ("name is folder", 84),
        ("nested or block", 40),
        ("unknown field", 60),
        ("repeated name", 46),
        ("hidden", 12),
        ("nested", 4.5),
        ("block list", 10),
        ("flow", 18),
    ],
)
def test_mirror_has_the_shares_of_the_real_one(mirror: Survey, what: str, percent: float) -> None:
    assert mirror.count == SKILLS
    assert mirror.share(what) == pytest.approx(percent, abs=4.5)


@pytest.mark.parametrize(
    "share_and_size", [(0.1, 1600), (0.5, 5900), (0.9, 16_000), (0.99, 37_000)]
)
def test_registry_files_have_the_sizes_of_the_real_ones(
    registry: Survey, share_and_size: tuple[float, int]
) -> None:
    share, size = share_and_size
    assert quantile(registry.sizes, share) == pytest.approx(size, rel=0.2)


def test_quantiles_of_fields_and_files(registry: Survey, mirror: Survey) -> None:
    descriptions = [quantile(registry.descriptions, share) for share in (0.5, 0.9, 0.99)]
    assert descriptions == pytest.approx([189, 412, 764], rel=0.2)
    descriptions = [quantile(mirror.descriptions, share) for share in (0.5, 0.9, 0.99)]
    assert descriptions == pytest.approx([147, 333, 628], rel=0.2)
    assert [quantile(registry.keys, share) for share in (0.5, 0.9)] == [3, 3]
    assert [quantile(mirror.keys, share) for share in (0.5, 0.9)] == pytest.approx([4, 8], abs=1)
    assert [quantile(registry.files, share) for share in (0.5, 0.9, 0.99)] == [2, 2, 2]
    assert [quantile(mirror.files, share) for share in (0.5, 0.9)] == pytest.approx([1, 4], abs=1)


def test_a_seed_determines_every_byte(tmp_path: Path) -> None:
    trees = [ensure_tree(tmp_path / name, TreeSpec("mirror", 30)) for name in ("a", "b")]
    content = [
        {
            path.relative_to(tree.root): path.read_bytes()
            for path in tree.root.rglob("*.*")
            if path.is_file()
        }
        for tree in trees
    ]
    assert content[0] == content[1]
