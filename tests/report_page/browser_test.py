#!/usr/bin/env python3
"""`weft report`'s page in Chromium: it draws, loads nothing, runs no script of the data.

    browser_test.py WEFT SOURCE_DIR [SCREENSHOTS]      SCREENSHOTS: a folder that they are left in

Talks to the browser through its remote debugging pipe. Exits with 77, and says why, where Chromium is
not installed (tools/install-deps check) or cannot run.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60  # until the browser answers
HOSTILE = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
RUNS = (("healthy.json", []), ("no-gdr.json", ["--set", "nic.gdr=off"]))


def skip(why):
    print("skipped: report_page.browser: " + why, file=sys.stderr)
    sys.exit(77)


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, program, folder):
        down, self.to = os.pipe()
        self.back, up = os.pipe()
        # The browser reads commands from its file descriptor 3 and answers on 4.
        script = f'exec "$@" 3<&{down} 4>&{up}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", program, "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", f"--user-data-dir={folder}", "--disable-background-networking",
             "--hide-scrollbars", "about:blank"],
            pass_fds=(down, up), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self.buffer, self.events, self.number = b"", [], 0
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    session = None

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.back, 1 << 16)
            if not piece:
                raise EOFError("the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression):
        """Waits until it holds."""
        end = time.monotonic() + LIMIT_S
        while not self.evaluate(expression):
            assert time.monotonic() < end, expression
        return True

    def open(self, file, scheme, width=1280):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        self.until("document.readyState === 'complete' && document.querySelector('h1') !== null")
        self.settle()

    def settle(self):
        """Two frames later everything that was changed is drawn."""
        self.call("Runtime.evaluate", awaitPromise=True, expression=
                  "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      text="\r" if key == "Enter" and kind == "keyDown" else "",
                      windowsVirtualKeyCode={"Enter": 13, "ArrowRight": 39}[key])
        self.settle()

    def screenshot(self, file):
        height = self.evaluate("document.documentElement.scrollHeight")
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": self.evaluate("innerWidth"), "height": height, "scale": 1})
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT_S)


# How many pixels of the chart have the colour of a curve, as page.css names it.
PIXELS = """((name, where = ".chart canvas") => {
  const canvas = document.querySelector(where);
  const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim().slice(1);
  const [r, g, b] = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16));
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4)
    count += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
  return count;
})"""


def check_quiet(browser, file):
    """No error, no word on the console, nothing loaded but the page itself."""
    for event in browser.events:
        method, params = event.get("method"), event.get("params")
        if "willReadFrequently" in str(params):
            continue  # of PIXELS above, not of the page
        assert method not in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"), event
        if method == "Network.requestWillBeSent":
            assert params["request"]["url"] == file.as_uri(), params["request"]["url"]


def check_drawn(browser):
    """Two runs over two memory paths: four curves (GDR that is off leaves three), bars, tables."""
    curves = browser.evaluate("document.querySelectorAll('.legend tbody tr').length")
    assert curves >= 3, curves
    for index in range(curves):
        pixels = browser.evaluate(f"{PIXELS}('curve{index}')")
        assert pixels > 30, (index, pixels)  # two coincide: what one leaves of the other
    assert browser.evaluate("document.querySelectorAll('svg.causes').length") == curves
    assert browser.evaluate("document.querySelectorAll('svg.causes rect').length") > 10 * curves
    assert browser.evaluate("document.querySelectorAll('#parameters tbody tr').length") > 100
    assert browser.evaluate("document.querySelectorAll('svg.machine rect').length") > 10
    # Nothing is wider than the page.
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_keyboard(browser):
    browser.evaluate("document.querySelector('.chart').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    said = browser.evaluate("document.querySelector('.read').textContent")
    assert said.strip().startswith("Values at 16 B;"), said
    assert browser.evaluate("document.querySelector('.legend td.number').textContent") != ""
    sizes = "[...document.querySelectorAll('#rows table')[0].querySelectorAll('tbody td:nth-child(1)')].map(c => c.title)"
    browser.evaluate("[...document.querySelectorAll('#rows th button')].find(b => b.textContent.startsWith('bytes')).focus()")
    for order, factor in (("ascending", 1), ("descending", -1)):
        browser.press("Enter")
        assert browser.evaluate("document.activeElement.parentElement.ariaSort") == order
        shown = [factor * int(size) for size in browser.evaluate(sizes)]
        assert shown == sorted(shown) and len(set(shown)) > 1, shown


def check_operations(browser):
    """A replay's goodput, and curves of the operation that is chosen."""
    for ink in ("curve0", "curve1"):
        assert browser.evaluate(f"{PIXELS}('{ink}', '#goodput .chart canvas')") > 30, ink
    for op in ("d2d", "h2d"):
        browser.evaluate(f"[...document.querySelectorAll('.choices button')].find(b => b.textContent === '{op}').focus()")
        browser.press("Enter")
        assert browser.evaluate("document.querySelectorAll('.choices button[aria-pressed=true]').length") == 1
        assert browser.evaluate("document.activeElement.ariaPressed") == "true", op
        # Pairs that are alike coincide.
        assert sum(browser.evaluate(f"{PIXELS}('curve{i}')") for i in range(8)) > 100, op


def check_filter(browser):
    browser.evaluate("""(() => { const box = document.querySelector('input[type=search]');
      box.value = 'wire.rate'; box.dispatchEvent(new Event('input')); })()""")
    browser.settle()
    rows = browser.evaluate("document.querySelectorAll('#parameters tbody tr').length")
    assert 1 <= rows < 5, rows


def check_hostile(browser, folder):
    """Every text of the data is one that would run script if anything took it for markup."""
    text = json.dumps(HOSTILE)
    (folder / "hostile.json").write_text(f"""{{"schema": "weft.run/1", "results": [{{"op": {text}, "bytes": 8,
      "memory_path": {text}, "algo": {text}, "time_us": 1, "busbw_GBps": 1, {text}: 3,
      "limited_by": [{{"cause": {text}, "share": 1, "where": {text}}}]}}],
      "verdict": [{text}], "notes": [{text}], "provenance": {{{text}: {text}, "parameters": [{{"key": {text},
      "device": {text}, "value": {text}, "origin": {text}, "source": {text}}}]}}}}""")
    page = folder / "hostile.html"
    weft("report", folder / "hostile.json", "--title", HOSTILE, "-o", page)
    browser.open(page, "light")
    check_quiet(browser, page)
    assert browser.evaluate("document.title") == HOSTILE
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
    assert browser.evaluate("document.scripts.length") == 2
    assert browser.evaluate("document.images.length") == 0
    shown = browser.evaluate("document.body.innerText")
    assert shown.count(HOSTILE) > 10, shown


def weft(*arguments):
    subprocess.run([sys.argv[1], *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)


def make_reports(source, folder):
    for name, options in RUNS:
        weft("run", source / "scenarios/quickstart.yaml", *options, "--json", folder / name)
    topology = source / "topologies/hgx-h100-8nic.yaml"
    weft("expect", topology, "--nodes", "2", "--json", folder / "expect.json")
    weft("report", *[folder / name for name, _ in RUNS], "--machine", topology, "--title", "GDR on and off",
         "-o", folder / "runs.html")
    weft("report", folder / "expect.json", "-o", folder / "expect.html")
    rxe = source / "tests/data/rxe"
    weft("replay", rxe / "plain-write.client.weft", "--topology", rxe / "rxe-vm.yaml", "--json", folder / "replay.json")
    weft("copies", source / "topologies/h200-vm.yaml", "--size", "1M,16M", "--json", folder / "copies.json")
    weft("report", folder / "replay.json", folder / "copies.json", "-o", folder / "replay.html")


def check(browser, folder, shots):
    for scheme in ("light", "dark"):
        for name in ("runs", "expect", "replay"):
            page = folder / f"{name}.html"
            browser.open(page, scheme)
            if shots:
                browser.screenshot(shots / f"{name}-{scheme}.png")
            if name == "runs":
                check_drawn(browser)
                check_keyboard(browser)
                check_filter(browser)
            if name == "replay":
                check_operations(browser)
            check_quiet(browser, page)
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == {
            "light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
    browser.open(folder / "runs.html", "light", width=420)
    if shots:
        browser.screenshot(shots / "runs-narrow.png")
    check_drawn(browser)
    if shots:
        browser.open(folder / "runs.html", "dark")
        browser.call("Emulation.setEmulatedMedia", media="")
        (shots / "runs.pdf").write_bytes(base64.b64decode(browser.call("Page.printToPDF")["data"]))
    check_hostile(browser, folder)


def main():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        skip("no chromium here")
    source = pathlib.Path(sys.argv[2]).resolve()
    shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        here = pathlib.Path(folder)
        make_reports(source, here)
        try:
            browser = Browser(program, profile)
        except (EOFError, OSError) as error:
            skip(f"chromium does not run here: {error}")
        try:
            check(browser, here, shots)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
