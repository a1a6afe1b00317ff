"""The two servers that `serving` compares; each runs in a process of its own."""

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillhall._internal.asgi import ServerProcess, Services, listen, log_to_stderr
from skillhall._internal.http.response import success_response
from skillhall._internal.prompts.prompt_model import Prompt
from skillhall._internal.settings import PromptSettings, ServerSettings, Settings
from skillhall._internal.wiring.prompts import open_prompt_service
from tests.support.prompt_services import MemorySnapshot, PreparedPromptService, make_prompt

BODY = "Read the file, then say what is in it. " * 128  # 5 KB, as real ones have
JSON = "application/json"


def serve(name: str, prompts: int) -> None:
    """Serve that many prompts by the server of that name; the port goes to stdout."""
    counter = PreparedPromptService([_prompt(number) for number in range(prompts)])
    settings = Settings(".", ".", server=ServerSettings(port="0"))
    log_to_stderr("INFO")
    listening = listen(settings.server)
    print(listening.getsockname()[1], flush=True)
    if name == "starlette":
        _bare_server(MemorySnapshot(counter.source, {p.name: p for p in counter.prompts})).run(
            [listening]
        )
    else:
        ServerProcess(Services(counter), settings).run([listening])


def serve_folder(folder: str) -> None:
    """Serve the skills of a folder as our users do; the port goes to stdout."""
    asked = PromptSettings(repo=folder)
    settings = Settings(folder, folder, prompts=asked, server=ServerSettings(port="0"))
    counter = open_prompt_service(settings, poll=False)
    try:
        counter.snapshot()
        log_to_stderr("INFO")
        listening = listen(settings.server)
        print(listening.getsockname()[1], flush=True)
        ServerProcess(Services(counter), settings).run([listening])
    finally:
        counter.close()


def _prompt(number: int) -> Prompt:
    told = f"Number {number}: what a person would write about it in two lines. " * 4
    return make_prompt(f"prompt-{number}", BODY, description=told)


def _bare_server(snapshot: MemorySnapshot) -> uvicorn.Server:
    """The least that a framework does for the same bytes, in the same server."""
    listed = b"".join(success_response(snapshot.list_json, "0" * 24).parts)
    one = b"".join(success_response(snapshot.prompt_json("prompt-7"), "0" * 24).parts)

    async def list_prompts(request: Request) -> Response:
        if request.headers.get("if-none-match"):
            return Response(status_code=304, headers={"etag": 'W/"x"'})
        return Response(listed, media_type=JSON)

    async def one_prompt(_: Request) -> Response:
        return Response(one, media_type=JSON)

    routes = [
        Route("/api/v1/prompts", list_prompts),
        Route("/api/v1/prompts/{name}", one_prompt, methods=["POST"]),
    ]
    config = uvicorn.Config(
        Starlette(routes=routes),
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    return uvicorn.Server(config)
