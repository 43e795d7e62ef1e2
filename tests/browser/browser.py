"""Headless Chromium driven over a pipe by its DevTools protocol, using only the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser's path, or None; $CHROMIUM has precedence."""
    named = os.environ.get("CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One browser process without a network; `page()` opens a tab in it."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="assay-browser-", ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.incoming, from_browser = os.pipe()
        # No sandbox: tests run as root in containers, and open nothing but their own files.
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb", "--hide-scrollbars",
                 f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"]
        # The browser reads commands from descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", program, *flags],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile.name})
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.listeners = {}

    def close(self):
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.incoming)
        self.profile.cleanup()

    def read(self, deadline):
        """The next message, or None if there is none by the deadline."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            data = os.read(self.incoming, 1 << 16)
            if not data:
                raise RuntimeError("the browser exited")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def dispatch(self, message):
        listener = self.listeners.get(message.get("sessionId"))
        if listener and "method" in message:
            listener(message["method"], message["params"])

    def send(self, method, session=None, timeout=60, **params):
        """Calls a protocol method and returns its result; passes events that arrive meanwhile to their listeners."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self.read(deadline)
            if answer is None:
                raise RuntimeError(f"{method}: no answer within {timeout} s")
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.dispatch(answer)

    def page(self):
        return Page(self)


class Page:
    """A tab. `troubles`: console errors and warnings, uncaught exceptions, refused or failed loads. `requests`: all
    requested addresses."""

    def __init__(self, browser):
        self.browser = browser
        self.troubles, self.requests, self.loaded = [], [], False
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.listeners[self.session] = self.handle_event
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)

    def send(self, method, **params):
        return self.browser.send(method, session=self.session, **params)

    def handle_event(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.troubles.append(f"console: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.troubles.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.troubles.append(f"log: {params['entry']}")

    def view(self, width=1200, height=900, dark=False, media="", scripts=True):
        """Sets size, media and scripting for pages opened from now on."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, path, timeout=60):
        self.loaded = False
        answer = self.send("Page.navigate", url=path.resolve().as_uri())
        if "errorText" in answer:
            raise RuntimeError(answer["errorText"])
        deadline = time.monotonic() + timeout
        while not self.loaded:
            message = self.browser.read(deadline)
            if message is None:
                raise RuntimeError(f"{path} did not load within {timeout} s")
            self.browser.dispatch(message)

    def run(self, script):
        """The value of a JavaScript expression; awaits promises."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Waits for two frames, so that resize observers have run."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"Enter": "\r", " ": " "}.get(key, "") if kind == "keyDown" else ""
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text,
                      windowsVirtualKeyCode={"Enter": 13, "Tab": 9, "ArrowRight": 39, "Escape": 27}.get(key, 0))

    def screenshot(self, path, whole=True):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}}
        image = self.send("Page.captureScreenshot", captureBeyondViewport=whole, **(clip if whole else {}))
        path.write_bytes(base64.b64decode(image["data"]))

    def pdf(self, path):
        path.write_bytes(base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True)["data"]))
