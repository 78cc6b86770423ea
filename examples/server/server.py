# SPDX-License-Identifier: Apache-2.0
"""A server in one process: an asyncio loop for the connections, and a pool of nets for the runs.

A request is a picture, preceded by its length in 4 bytes; the answer is a line. A net serves one request at a time, and
the interpreter lock is released while it runs, so as many pictures are processed in parallel as there are nets.
"""
from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import tessera.runtime as rt


class Classifier:
    def __init__(self, model: str, labels: Path, nets: int) -> None:
        loaded = rt.load(model)  # the weights are in memory once, however many nets exist
        self._labels = labels.read_text(encoding="utf-8").splitlines()
        self._idle: asyncio.Queue[rt.Net] = asyncio.Queue()
        for _ in range(nets):
            self._idle.put_nowait(loaded.net())

    async def classify(self, picture: bytes) -> str:
        net = await self._idle.get()  # if all nets are busy, requests wait here in order
        try:
            return await asyncio.to_thread(self._run, net, picture)
        finally:
            self._idle.put_nowait(net)

    def _run(self, net: rt.Net, picture: bytes) -> str:
        pixels = np.asarray(ImageOps.fit(Image.open(io.BytesIO(picture)).convert("RGB"), (128, 128), bleed=0.06))
        scores = net({"input": pixels[None]})["output"][0]
        return f"{self._labels[scores.argmax()].split(',')[0]} {scores.max():.0%}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while length := await reader.read(4):
                answer = await self.classify(await reader.readexactly(int.from_bytes(length, "big")))
                writer.write(answer.encode() + b"\n")
                await writer.drain()
        finally:
            writer.close()


async def ask(port: int, path: Path) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    picture = path.read_bytes()
    writer.write(len(picture).to_bytes(4, "big") + picture)
    answer = (await reader.readline()).decode().strip()
    writer.close()
    return f"{path.stem}: {answer}"


async def main(folder: Path) -> None:
    classifier = Classifier("net.bmodel", folder / "labels.txt", nets=2)
    server = await asyncio.start_server(classifier.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:  # a real server would `await server.serve_forever()`; this one sends itself requests and ends
        for line in await asyncio.gather(*(ask(port, path) for path in sorted((folder / "pictures").glob("*.png")))):
            print(line)


asyncio.run(main(Path(sys.argv[1])))
