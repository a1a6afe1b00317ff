"""Replies of a scripted judge, from the assertions in its request."""

import json
import re
from collections.abc import Callable, Mapping

from tests.support.model_server import ModelRequest

# An assertion's text gives the verdict and the quote.
Decision = Callable[[str], tuple[str, str]]


def read_block(request: ModelRequest, tag: str) -> str:
    """The data in the first block with this tag."""
    match = re.search(
        rf"^<{tag}-(?P<code>[0-9a-f]{{16}})[^>]*>\n(.*?)\n</{tag}-(?P=code)>$",
        request.user_messages[-1],
        re.DOTALL | re.MULTILINE,
    )
    assert match is not None, tag
    return match.group(2)


def is_judge(request: ModelRequest) -> bool:
    """Whether a request is one to grade or to compare."""
    return request.system.startswith(("You grade", "You compare"))


def judge(request: ModelRequest, decide: Decision) -> str:
    """The reply of a judge that decides about each assertion, and fails the false one."""
    results = []
    for line in read_block(request, "assertions").split("\n"):
        number, _, text = line.partition(". ")
        is_control = text.startswith("The outputs contain the code ")
        verdict, quote = ("failed", "") if is_control else decide(text)
        results.append(
            {"number": int(number), "verdict": verdict, "quote": quote, "reason": "Because."}
        )
    return json.dumps({"results": results})


def judge_by(verdicts: Mapping[str, tuple[str, str]]) -> Callable[[ModelRequest], str]:
    """A judge with a verdict and a quote for each assertion."""
    return lambda request: judge(request, verdicts.__getitem__)
