"""Credentials, region and endpoint of stores with the S3 API."""

from pathlib import Path

import pytest

from skillhall._internal.settings import Secret, Settings
from skillhall._internal.sources.s3.aws_config import AwsConfig
from skillhall.errors import ConfigInvalid

SECRETS = {"AWS_ACCESS_KEY_ID": Secret("env-id"), "AWS_SECRET_ACCESS_KEY": Secret("env-key")}
CREDENTIALS = """
[default]
aws_access_key_id = file-id
aws_secret_access_key = file-key
[team]
aws_access_key_id = team-id
aws_secret_access_key = team%key
aws_session_token = team-token
"""


def read(home: Path, *, with_credentials: bool = True, **variables: str) -> AwsConfig:
    settings = Settings(str(home), str(home / "cache"), home=str(home), variables=variables)
    return AwsConfig.read(settings, with_credentials=with_credentials)


@pytest.fixture
def aws_home(tmp_path: Path) -> Path:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(CREDENTIALS, encoding="utf-8")
    config = (
        "[default]\nregion = eu-west-1\n[profile team]\nendpoint_url = https://s3.acme.example/\n"
    )
    (tmp_path / ".aws/config").write_text(config, encoding="utf-8")
    return tmp_path


def reveal(config: AwsConfig) -> list[str]:
    secrets = (config.secret_key, config.session_token)
    return [config.key_id, *("" if one is None else one.reveal() for one in secrets)]


def test_without_configuration_requests_to_aws_are_anonymous(tmp_path: Path) -> None:
    assert read(tmp_path) == AwsConfig("us-east-1")


def test_default_profile_is_read(aws_home: Path) -> None:
    config = read(aws_home)
    assert (config.region, config.endpoint) == ("eu-west-1", "")
    assert reveal(config) == ["file-id", "file-key", ""]


def test_profile_of_the_environment_is_read(aws_home: Path) -> None:
    config = read(aws_home, AWS_PROFILE="team", AWS_REGION="us-west-2")
    assert (config.region, config.endpoint) == ("us-west-2", "https://s3.acme.example")
    assert reveal(config) == ["team-id", "team%key", "team-token"]


def test_environment_comes_before_files(aws_home: Path) -> None:
    variables = {"AWS_ENDPOINT_URL": "https://e.example/", "AWS_DEFAULT_REGION": "x"}
    settings = Settings(
        str(aws_home), "", home=str(aws_home), variables=variables, credentials=SECRETS
    )
    config = AwsConfig.read(settings, with_credentials=True)
    assert (config.region, config.endpoint) == ("x", "https://e.example")
    assert reveal(config) == ["env-id", "env-key", ""]


def test_credentials_are_not_used_for_clients_of_a_server(aws_home: Path) -> None:
    assert reveal(read(aws_home, with_credentials=False)) == ["", "", ""]


@pytest.mark.parametrize("text", [b"aws_secret_access_key = planted", b"\xff", b"[default"])
def test_malformed_file_is_an_error_without_its_text(aws_home: Path, text: bytes) -> None:
    (aws_home / ".aws/credentials").write_bytes(text)
    with pytest.raises(ConfigInvalid) as raised:
        read(aws_home)
    assert "planted" not in str(raised.value)
