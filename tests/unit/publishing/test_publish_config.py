"""The table `publish` of the config file."""

from pathlib import Path

import pytest

from skillhall._internal.publishing.publish_config import (
    PublishConfig,
    PublishTarget,
    read_publish_config,
)
from skillhall.errors import ConfigInvalid

REQUIRED = '[publish]\nname = "acme"\ndescription = "Skills."\nauthor = "Acme"\n'


def read(folder: Path, text: str) -> PublishConfig:
    path = folder / "skillhall.toml"
    path.write_text(text, encoding="utf-8")
    return read_publish_config(str(path))


def test_defaults_are_relative_to_the_file(tmp_path: Path) -> None:
    config = read(tmp_path, REQUIRED + "[publish.targets.static]\n")
    assert config.skills == (str(tmp_path / "skills"),)
    assert config.targets[PublishTarget.STATIC].folder == str(tmp_path / "dist/static")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'publish' must be set"),
        (REQUIRED, "'publish.targets' must be set"),
        (REQUIRED + "targets = {}\n", "name at least one target"),
        (REQUIRED + "[publish.targets.ftp]\n", "unknown key 'publish.targets.ftp'"),
        (REQUIRED + "[publish.targets.npm]\nfile = 1\n", "unknown key"),
        (REQUIRED + '[publish.targets.npm]\nname = "../x"\n', "name of a package"),
        (REQUIRED + '[publish.targets.static]\nurl = "javascript:x"\n', "http or https URL"),
        (REQUIRED.replace('"acme"', '"Acme Skills"'), "lowercase letters"),
        (REQUIRED.replace('"Skills."', '"a\\nLicense: x"'), "one line of text"),
        (REQUIRED.replace('"Skills."', '" "'), "one line of text"),
        (
            REQUIRED
            + '[publish.targets]\nnpm = { folder = "out" }\ngemini = { folder = "./OUT" }\n',
            "differ from those of the other targets",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid, match=problem):
        read(tmp_path, text)
