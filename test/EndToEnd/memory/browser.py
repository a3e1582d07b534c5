"""Headless Chromium by its debugging protocol, over pipes, with what pages are judged by."""
import base64
import json
import os
import subprocess


class Browser:
    def __init__(self):
        # The browser reads commands from its descriptor 3 and writes answers to 4.
        theirs, self.to = os.pipe()
        self.answers, answers = os.pipe()

        def place():
            for target, descriptor in ((10, theirs), (11, answers)):
                os.dup2(descriptor, target)
            os.dup2(10, 3)
            os.dup2(11, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(answers)
        self.rest, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(domain + ".enable")

    def read(self):
        while b"\0" not in self.rest:
            some = os.read(self.answers, 1 << 16)
            assert some, "the browser ended"
            self.rest += some
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def open(self, page, width, height=900, dark=False):
        """Shows a file in a window of that size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())

    def errors(self):
        """What the page's script threw, and what the browser complains about."""
        self.evaluate("1")
        return [event["params"] for event in self.events if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def shoot(self, file, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def unnamed(self):
        """What a screen reader would meet without a name: pictures, controls, regions, links, in the tree that the browser gives it."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        assert len(nodes) > 20, "the page has no accessibility tree"
        roles = {"image", "img", "button", "link", "searchbox", "textbox", "region", "navigation"}
        return [node["role"]["value"] for node in nodes
                if not node.get("ignored") and node["role"]["value"] in roles and not node.get("name", {}).get("value", "").strip()]

    # WCAG 2.2: 4.5 to 1 for text, 3 to 1 for text of 24 pixels, or 18.66 in bold.
    CONTRAST = """(() => {
      const rgb = text => text.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
      const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > .99) return c; } return [255, 255, 255]; };
      const bad = [];
      for (const e of document.querySelectorAll("body *")) {
        if (e.closest("svg,script,details:not([open])") || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
        const style = getComputedStyle(e), a = light(rgb(style.color)), b = light(behind(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        const large = parseFloat(style.fontSize) >= (style.fontWeight >= 700 ? 18.66 : 24);
        if (ratio < (large ? 3 : 4.5)) bad.push([e.tagName, e.textContent.slice(0, 30), ratio]);
      }
      return bad.slice(0, 5);
    })()"""

    def close(self):
        self.call("Browser.close")
        self.process.wait()
