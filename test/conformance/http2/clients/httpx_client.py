"""Python's httpx. Says what it has met as a line of JSON; see ../clients_test.rb."""

import asyncio
import hashlib
import json
import ssl
import sys

import httpx

URL, AUTHORITY = sys.argv[1:]
BODY = b"0123456789abcdef" * (4 * 65536)


def sha256(response):
    return hashlib.sha256(response.content).hexdigest()


async def head(client):
    response = await client.head("/")
    return [response.status_code, response.headers["content-type"], len(response.content)]


async def events(client):
    async with client.stream("GET", "/events", headers={"accept": "text/event-stream"}) as response:
        return [line[5:].strip() async for line in response.aiter_lines() if line.startswith("data:")]


async def parallel(client):
    responses = await asyncio.gather(*(client.get(f"/slow?{number}") for number in range(100)))
    return sum(response.text == str(number) for number, response in enumerate(responses))


async def main():
    context = ssl.create_default_context(cafile=AUTHORITY)
    options = {"http1": False, "http2": True, "verify": context, "timeout": 30}
    async with httpx.AsyncClient(base_url=URL, follow_redirects=True, **options) as client:
        print(json.dumps({
            "get": (await client.get("/")).text,
            "protocol": (await client.get("/protocol")).text,
            "head": await head(client),
            "posted": (await client.post("/digest", content=BODY)).text,
            "missing": (await client.get("/missing")).status_code,
            "moved": (await client.get("/moved")).text,
            "large": sha256(await client.get("/large")),
            "pieces": sha256(await client.get("/pieces")),
            "hinted": (await client.get("/hinted")).text,
            "events": await events(client),
            "parallel": await parallel(client),
        }))


asyncio.run(asyncio.wait_for(main(), 60))
