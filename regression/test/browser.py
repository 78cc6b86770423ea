# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium, if it is installed, through the WebDriver protocol."""
from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium: apt-get install chromium")
needs_driver = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromedriver: apt-get install chromium-driver")


class Driver:
    """A browser window of the given width."""

    def __init__(self, width: int, dark: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL)
        self._url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self._url}/status", timeout=5)
                break
            time.sleep(0.1)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu"]
        size = {"deviceMetrics": {"width": width, "height": 900, "pixelRatio": 1}}
        options = {"binary": BROWSER, "args": flags, "mobileEmulation": size}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._url += f"/session/{self.ask('/session', capabilities={'alwaysMatch': wanted})['sessionId']}"

        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", features=media)

    def command(self, name: str, **given: object) -> Any:
        """Runs a command of the DevTools protocol."""
        return self.ask("/goog/cdp/execute", cmd=name, params=given)

    def picture(self, path: Path) -> None:
        """Saves a screenshot as PNG."""
        info = self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(info["data"]))

    def ask(self, path: str, **body: object) -> Any:
        request = urllib.request.Request(self._url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def script(self, text: str) -> Any:
        return self.ask("/execute/sync", script=f"return {text}", args=[])

    def key(self, key: str) -> None:
        down_up = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.ask("/actions", actions=[{"type": "key", "id": "keys", "actions": down_up}])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(self._url, method="DELETE"), timeout=20)
        self._process.terminate()
        self._process.wait(20)


RIGHT, TAB, ENTER = "\ue014", "\ue004", "\ue007"
