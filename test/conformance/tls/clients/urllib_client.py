"""Python's urllib and ssl, and websockets. Says what it has met as a line of JSON; see ../clients_test.rb."""

import asyncio
import hashlib
import json
import socket
import ssl
import sys
import urllib.parse
import urllib.request

import websockets

URL, AUTHORITY = sys.argv[1:]
PIECE = "0123456789abcdef" * 65536
CONTEXT = ssl.create_default_context(cafile=AUTHORITY)


def ask(path, **options):
    return urllib.request.urlopen(urllib.request.Request(URL + path, **options), timeout=30, context=CONTEXT)


def body(path, **options):
    with ask(path, **options) as response:
        return response.read()


def download():
    digest = hashlib.sha256()
    with ask("/large") as response:
        while piece := response.read(1 << 16):
            digest.update(piece)
    return digest.hexdigest()


def events():
    with ask("/events", headers={"accept": "text/event-stream"}) as response:
        return [line[5:].decode().strip() for line in response if line.startswith(b"data:")]


def connect(session=None):
    url = urllib.parse.urlsplit(URL)
    plain = socket.create_connection((url.hostname, url.port), timeout=30)
    return CONTEXT.wrap_socket(plain, server_hostname=url.hostname, session=session)


# A session can be resumed once something was read: its tickets come after the handshake.
def resumed():
    with connect() as first:
        first.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        while first.recv(1024):
            pass
        session = first.session
    with connect(session) as second:
        return second.session_reused


async def echo():
    url = URL.replace("https:", "wss:") + "/echo"
    async with websockets.connect(url, ssl=CONTEXT) as peer:
        await peer.send(PIECE)
        return await peer.recv() == PIECE


print(json.dumps({
    "get": body("/").decode(), "version": body("/version").decode(), "posted": body("/digest", data=PIECE.encode()).decode(),
    "downloaded": download(), "events": events(), "resumed": resumed(), "echo": asyncio.run(asyncio.wait_for(echo(), 30)),
}))
