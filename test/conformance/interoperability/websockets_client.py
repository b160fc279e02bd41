"""Python's websockets. Says what it has met as a line of JSON; see clients_test.rb."""

import asyncio
import json
import sys

import websockets

URL = sys.argv[1]
TEXT, BINARY, LARGE = "grüße ✓", bytes(range(256)), "0123456789abcdef" * 16384
PARTS = ["one ", "two ", "three"]


async def echo(socket, message):
    await socket.send(message)
    return await socket.recv()


def headers(socket):
    return socket.response_headers if hasattr(socket, "response_headers") else socket.response.headers


async def main():
    seen = {}
    async with websockets.connect(URL, subprotocols=["other", "echo.v1"]) as socket:
        seen["protocol"] = socket.subprotocol
        seen["compression"] = "permessage-deflate" in headers(socket).get("Sec-WebSocket-Extensions", "")
        seen["text"] = await echo(socket, TEXT) == TEXT
        seen["binary"] = await echo(socket, BINARY) == BINARY
        seen["large"] = await echo(socket, LARGE) == LARGE
        seen["fragments"] = await echo(socket, PARTS) == "".join(PARTS)
        await asyncio.wait_for(await socket.ping(b"there?"), 10)
        seen["pong"] = True
        await socket.send("close 4001 goodbye")
        await socket.wait_closed()
        seen["closed_by_server"] = [socket.close_code, socket.close_reason]

    async with websockets.connect(URL) as socket:
        await socket.close(4000, "enough")
        seen["closed_by_client"] = socket.close_code
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 30))
