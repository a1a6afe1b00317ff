"""HTTP proxy on this machine, which connects every host to one test server."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

DEADLINE = 120  # seconds; a slower connection counts as hanging


@dataclass
class ProxyServer:
    """Running proxy."""

    port: int
    target_port: int
    answer: bytes = b""  # instead of connecting
    heads: list[str] = field(default_factory=list)  # of the received requests

    def url(self, user_info: str = "") -> str:
        return f"http://{user_info}127.0.0.1:{self.port}"


@contextmanager
def run_proxy(target_port: int) -> Iterator[ProxyServer]:
    """Run a proxy that connects to a port of this machine, whatever the client asks for."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy = ProxyServer(listening.getsockname()[1], target_port)

        def accept() -> None:
            while True:
                with suppress(OSError):
                    client, _ = listening.accept()
                    thread = threading.Thread(target=_serve, args=(client, proxy), daemon=True)
                    threads.append(thread)
                    thread.start()
                    continue
                return

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield proxy
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            acceptor.join(DEADLINE)
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in [acceptor, *threads])


def _serve(client: socket.socket, proxy: ProxyServer) -> None:
    client.settimeout(DEADLINE)
    with suppress(OSError), closing(client):
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = client.recv(65_536)
            if not chunk:
                return
            data += chunk
        head = data.partition(b"\r\n\r\n")[0].decode("ascii")
        proxy.heads.append(head)
        if proxy.answer:
            client.sendall(proxy.answer)
            return
        with closing(socket.create_connection(("127.0.0.1", proxy.target_port))) as server:
            if head.startswith("CONNECT "):
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                method, _, rest = data.partition(b" ")
                path = rest.split(b"/", 3)[3]  # after http://host
                server.sendall(method + b" /" + path)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join(DEADLINE)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
