"""The two servers that `serving` compares, each in its own process."""

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillhall._internal.asgi import ServerProcess, Services, listen, log_to_stderr
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.prompt_server.prompt_model import Prompt
from skillhall._internal.settings import PromptSettings, ServerSettings, Settings
from skillhall._internal.wiring.prompts import open_prompt_service
from tests.support.prompt_services import MemorySnapshot, PreparedPromptService, make_prompt

BODY = "Read the file, then say what is in it. " * 128  # 5 KB, like real prompts
JSON = "application/json"


def serve(name: str, prompts: int) -> None:
    """Serve this many prompts with the named server and print its port."""
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
    """Serve the skills of a folder like `skillhall serve` and print the port."""
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
    """Return a minimal Starlette app that sends the same bytes."""
    listed = b"".join(SuccessResponse(snapshot.list_json).parts("0" * 24))
    one = b"".join(SuccessResponse(snapshot.prompt_json("prompt-7")).parts("0" * 24))

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
