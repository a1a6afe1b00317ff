"""Signatures of requests to stores with the S3 API."""

import time

from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import Secret
from skillhall._internal.sources.s3.aws_config import AwsConfig
from skillhall._internal.sources.s3.bucket import sign_request

# Key, request and signature of the example "Get bucket (list objects)" in the S3 API's reference.
CONFIG = AwsConfig(
    "us-east-1",
    "",
    "AKIAIOSFODNN7EXAMPLE",
    Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
)
URL = WebUrl.parse("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J")
MOMENT = time.strptime("20130524T000000Z", "%Y%m%dT%H%M%SZ")


def test_signature_equals_that_of_the_published_example() -> None:
    assert sign_request(URL, CONFIG, MOMENT).authorization == (
        "AWS4-HMAC-SHA256 "
        "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )


def test_session_token_is_signed_and_stays_with_the_host() -> None:
    options = sign_request(URL, CONFIG._replace(session_token=Secret("temporary")), MOMENT)
    assert "x-amz-date;x-amz-security-token," in options.authorization
    assert options.origin_headers["x-amz-security-token"] == "temporary"
    assert "temporary" not in repr(options)


def test_request_without_a_key_is_anonymous() -> None:
    options = sign_request(URL, AwsConfig("us-east-1"), MOMENT)
    assert not any(options.origin_headers.values())
