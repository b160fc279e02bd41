"""Python's aiohttp. Says what it has met as a line of JSON; see clients_test.rb. It cannot send fragments."""

import asyncio
import json
import sys

import aiohttp

URL = sys.argv[1]
TEXT, BINARY, LARGE = "grüße ✓", bytes(range(256)), "0123456789abcdef" * 16384


async def echo(socket, message):
    await (socket.send_str(message) if isinstance(message, str) else socket.send_bytes(message))
    return (await socket.receive()).data


async def main():
    seen = {"fragments": None}
    async with aiohttp.ClientSession() as session:
        options = {"protocols": ("other", "echo.v1"), "compress": 15, "autoping": False}
        async with session.ws_connect(URL, **options) as socket:
            seen["protocol"] = socket.protocol
            seen["compression"] = bool(socket.compress)
            seen["text"] = await echo(socket, TEXT) == TEXT
            seen["binary"] = await echo(socket, BINARY) == BINARY
            seen["large"] = await echo(socket, LARGE) == LARGE
            await socket.ping(b"there?")
            pong = await socket.receive()
            seen["pong"] = pong.type == aiohttp.WSMsgType.PONG and bytes(pong.data) == b"there?"
            await socket.send_str("close 4001 goodbye")
            closed = await socket.receive()
            seen["closed_by_server"] = [closed.data, closed.extra]

        async with session.ws_connect(URL) as socket:
            await socket.close(code=4000, message=b"enough")
            seen["closed_by_client"] = socket.close_code
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 30))
