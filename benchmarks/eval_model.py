"""A scripted model for `evals`, as a process of its own that takes its time.

`python -m benchmarks.eval_model` prints its port, then one JSON line when its input ends: the
number of requests, and the seconds that it took for them.
"""

import asyncio
import json
import sys
import time
from typing import Any

# Of a fast hosted model.
FIRST_TOKEN = 0.5  # seconds
TOKENS_PER_SECOND = 70
_SKILL = "csv-report"
_USAGE = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
_REPLY = "The total of the column is 6. " * 40


class _Model:
    def __init__(self) -> None:
        self.requests = 0
        self.spent = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                started = time.perf_counter()
                fields = head.lower().split(b"\r\n")
                length = next(int(f.split(b":")[1]) for f in fields if f.startswith(b"content-le"))
                body = json.loads(await reader.readexactly(length))
                stream = _stream(body)
                await asyncio.sleep(FIRST_TOKEN + len(stream) / TOKENS_PER_SECOND)
                events = "".join(f"data: {event}\n\n" for event in stream).encode()
                kind = "Content-Type: text/event-stream"
                size = f"Content-Length: {len(events)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\n{size}\r\n\r\n".encode() + events)
                await writer.drain()
                self.requests += 1
                self.spent += time.perf_counter() - started
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed the connection
        finally:
            writer.close()


def _stream(body: dict[str, Any]) -> list[str]:
    """Return the events: load the skill if there is one, write a file, reply."""
    tools = {tool["function"]["name"] for tool in body.get("tools", [])}
    results = sum(message["role"] == "tool" for message in body["messages"])
    calls = [("load_skill", {"name": _SKILL})] if "load_skill" in tools else []
    calls.append(("WriteFile", {"path": "total.txt", "content": _REPLY}))
    base = {"id": "c", "created": 1, "model": "scripted", "object": "chat.completion.chunk"}

    def chunk(delta: object, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return json.dumps({**base, "choices": [choice]})

    if results < len(calls):
        name, arguments = calls[results]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call-{results}", "type": "function", "function": function}
        deltas = [chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls")]
    else:
        words = _REPLY.split(" ")
        deltas = [*(chunk({"content": f"{word} "}) for word in words), chunk({}, "stop")]
    return [*deltas, json.dumps({**base, "choices": [], "usage": _USAGE}), "[DONE]"]


async def _main() -> None:
    model = _Model()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps({"requests": model.requests, "seconds": model.spent}), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main())
