"""A headless Chromium, driven over its debugging pipe: pages are opened, asked and photographed."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def path():
    """The browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One page at a time."""

    def __init__(self, folder):
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()
        self.pending, self.number, self.session, self.problems = b"", 0, None, []

        def place():
            os.dup2(os.dup2(to_child, 30), 3)
            os.dup2(os.dup2(from_child, 31), 4)

        command = [path(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder}",
                   "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Performance"):
            self.send(domain + ".enable", **({"timeDomain": "threadTicks"} if domain == "Performance" else {}))

    def read(self, timeout):
        while b"\0" not in self.pending:
            if not select.select([self.read_end], [], [], timeout)[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise EOFError("the browser has gone")
            self.pending += part
        raw, _, self.pending = self.pending.partition(b"\0")
        return json.loads(raw)

    def send(self, method, timeout=60, **params):
        """Calls a method of the protocol and gives its result; what else comes meanwhile is looked at."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while (answer := self.read(timeout)).get("id") != self.number:
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def note(self, event):
        """Exceptions of the page, and what it asks the network for, are problems."""
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "blob:", "about:")):
            self.problems.append("loads " + params["request"]["url"])

    def run(self, code):
        """The value of an expression, awaited."""
        found = self.send("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description") or found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def open(self, file, width=1400, height=900, dark=False, media=""):
        """Opens a page and waits until it says that it is ready; returns the milliseconds that took, as the page saw it."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.run("delete document.documentElement.dataset.ready")  # the page before answers until the new one is there
        self.send("Page.navigate", url=f"file://{file}")
        until = time.monotonic() + 60
        while not (ready := self.run("document.documentElement?.dataset.ready")):
            if time.monotonic() > until or self.problems:
                raise RuntimeError(f"the page is not ready: {self.problems}")
            time.sleep(0.02)
        return int(ready)

    def busy(self):
        """CPU seconds of the page's thread since it was opened."""
        return {row["name"]: row["value"] for row in self.send("Performance.getMetrics")["metrics"]}["TaskDuration"]

    def picture(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
