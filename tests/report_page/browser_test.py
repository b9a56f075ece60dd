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
import re
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60  # until the browser answers
HOSTILE = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
# A GPU and a NIC a node: `weft explain` predicts all of its causes in a second.
MACHINE = """topology: small
nodes: 2
node:
  devices:
    cpu0: {kind: cpu, part: sapphire-rapids}
    sw0: {kind: switch, part: pex89144, upstream: cpu0}
    gpu0: {kind: gpu, part: h100-sxm, upstream: sw0}
    nic0: {kind: nic, part: connectx-7, upstream: sw0, network: fabric}
network:
  fabric: {kind: one-switch, part: quantum-2}
"""
PRICES = """prices: an invented list
currency: USD
parts:
  - {is: node, cost: 200000, watts: 6000}
  - {is: nic, cost: 1000, watts: 25}
  - {is: switch, cost: 20000, watts: 1500}
  - {is: nic-cable, cost: 200, watts: 20}
  - {is: switch-cable, cost: 500, watts: 30}
"""
SCENARIO = """scenario: small
topology: small.yaml
memory_paths: [gdr]
workload: {op: allreduce, sizes: [64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB, 64 MiB, 256 MiB]}
"""
SWEEP_NAMES = ("op,bytes,ranks,nodes,memory_path,algo,proto,channels,time_us,algbw_GBps,busbw_GBps,limited_by,"
               "limited_by_where,limited_by_share,extended_from_nodes")
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


def contrast(browser, colours):
    """Of two colours, each "rgb(0, 0, 0)" as an expression gives it (WCAG 2.2, relative luminance)."""
    lights = []
    for colour in colours:
        parts = [int(part) / 255 for part in re.findall(r"\d+", browser.evaluate(colour))[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


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
    # The load on links: of the largest size at first; of another row when that is chosen.
    wide = "document.querySelectorAll('svg.machine.tree path.load3').length"
    assert browser.evaluate(wide) > 4
    assert browser.evaluate("document.querySelectorAll('table.links tbody tr').length") > 30
    loads = "document.querySelector('svg.machine.fabric').textContent"
    before = browser.evaluate(loads)
    assert "out " in before, before
    last = """(n => { const box = document.querySelector('#machine select');
      box.selectedIndex = n < 0 ? box.options.length - 1 : 0; box.dispatchEvent(new Event('change', {bubbles: true})); })"""
    browser.evaluate(last + "(-1)")
    browser.settle()
    assert browser.evaluate(wide) == 0 and browser.evaluate(loads) != before
    browser.evaluate(last + "(0)")
    browser.settle()
    for load in range(4):
        ratio = contrast(browser, [f"getComputedStyle(document.querySelector('#machine .key .load{load}')).stroke",
                                   "getComputedStyle(document.body).backgroundColor"])
        assert ratio >= 3, (load, ratio)
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


def check_answers(browser):
    """Ranked answers with their shares, curves of slow, healthy and explained; the rest is folded up."""
    answers = browser.evaluate("document.querySelectorAll('#answers table.answers tbody tr').length")
    assert answers >= 1, answers
    assert browser.evaluate("document.querySelectorAll('#answers svg.share').length") == answers
    first = browser.evaluate("document.querySelector('#answers table.answers tbody tr').innerText")
    assert "PCIe links of NICs trained low" in first and "lspci" in first and " % to " in first, first
    for index in range(4):  # slow, healthy, nothing wrong, the first answer
        assert browser.evaluate(f"{PIXELS}('curve{index}')") > 30, index
    heads = browser.evaluate("[...document.querySelectorAll('#rows th button')].map(b => b.textContent.trim())")
    assert {"gap, natural logarithm", "sd, natural logarithm"} <= set(heads), heads
    aside = "document.querySelector('#answers > details')"
    assert browser.evaluate(f"{aside}.open") is False
    browser.evaluate(f"{aside}.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.evaluate(f"{aside}.open && {aside}.querySelectorAll('tbody tr').length > 10")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_none(browser, folder):
    """Answers that do not suffice are called the nearest; a likelihood that was cut off says so."""
    result = json.loads((folder / "explain.json").read_text())
    first = result["answers"][0]
    result.update(verdict="none", answers=[first, {**first, "alike": False, "times_less": 1e12}])
    (folder / "none.json").write_text(json.dumps(result))
    page = folder / "none.html"
    weft("report", folder / "none.json", "-o", page)
    browser.open(page, "light")
    shown = browser.evaluate("document.querySelector('#answers').innerText")
    assert "The nearest, which do not suffice:" in shown and "likeliest" not in shown, shown
    assert "less likely, 1e12 times or more" in shown, shown
    curves = browser.evaluate("document.querySelector('.legend').innerText")
    assert "nearest 1: " in curves and "answer 1" not in curves, curves
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    check_quiet(browser, page)


def check_sweep(browser):
    """Each point of the grid; the front filled and joined; against an axis, at another size."""
    count = "document.querySelectorAll('#sweep svg.sweep path.point').length"
    assert browser.evaluate(count) == 16
    front = browser.evaluate("document.querySelectorAll('#sweep table.best tbody tr').length")
    assert 1 < front < 16, front
    assert browser.evaluate("[...document.querySelectorAll('#sweep svg.sweep path.front')].every(p => p.getAttribute('d'))")
    browser.evaluate("document.querySelector('#sweep [role=figure]').focus()")
    browser.press("ArrowRight")
    said = browser.evaluate("document.querySelector('#sweep .read').textContent")
    assert "nic.count 1" in said and "GB/s; cost " in said and "in the price list's currency" in said, said
    heads = browser.evaluate("[...document.querySelectorAll('#sweep table.best th')].map(h => h.textContent)")
    assert heads[-3:] == ["cost, in the price list's currency", "power, kW", "busbw, GB/s"], heads
    assert "of its memory path and number of GPUs" in browser.evaluate("document.querySelector('#sweep .key').innerText")
    browser.evaluate("document.querySelector('#sweep input[type=checkbox]').click()")
    browser.settle()
    assert browser.evaluate(count) == front
    for index, chosen in ((1, 2), (0, 1)):  # against nic.count; of the smaller size
        browser.evaluate(f"""(() => {{ const box = document.querySelectorAll('#sweep select')[{index}];
          box.selectedIndex = {chosen}; box.dispatchEvent(new Event('change', {{bubbles: true}})); }})()""")
        browser.settle()
    labels = browser.evaluate("[...document.querySelectorAll('#sweep svg.sweep > text')].map(t => t.textContent.trim())")
    assert "nic.count" in labels and not any(label.startswith("cost") for label in labels), labels
    bars = browser.evaluate("[...document.querySelectorAll('svg.causes')].map(s => s.querySelectorAll('rect').length)")
    assert min(bars) == 4, bars  # of two sizes what limits it, and all else
    assert browser.evaluate("document.querySelectorAll('#sweep svg.sweep path.front').length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_odd_sweeps(browser, folder):
    """A table of one row, which nothing can be drawn against; costs that differ by one double."""
    names = SWEEP_NAMES
    row = "allreduce,8,2,2,gdr,Ring,LL,1,1,1,1,wire,nic0,1,"
    (folder / "one.csv").write_text(f"n,{names},not_run,point\n1,{row},,a\n")
    (folder / "close.csv").write_text(f"n,{names},cost,power_kW,not_run,point\n1,{row},20000000000000000,1,,a\n"
                                      f"2,{row},20000000000000004,1,,b\n")
    for name, points in (("one", 0), ("close", 2)):
        page = folder / f"{name}.html"
        weft("report", folder / f"{name}.csv", "-o", page)
        browser.open(page, "light")
        assert browser.evaluate("document.querySelectorAll('#sweep svg.sweep path.point').length") == points, name
        assert browser.evaluate("document.querySelectorAll('#rows tbody tr').length") == max(points, 1), name
        # Of one size there is no curve, and a table has no provenance.
        sections = browser.evaluate("[...document.querySelectorAll('section')].map(s => s.id)")
        assert sections == ["sweep", "rows", "notes"], sections
        assert browser.evaluate("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))") == sections
        check_quiet(browser, page)


def check_many_series(browser, folder):
    """Twenty numbers of GPUs: each a colour and a shape that no other has."""
    row = "allreduce,8,{0},2,gdr,Ring,LL,1,1,1,{0},wire,nic0,1,"
    (folder / "many.csv").write_text(f"n,{SWEEP_NAMES},not_run,point\n" + "".join(
        f"{i},{row.format(i)},,a\n" for i in range(1, 21)))
    page = folder / "many.html"
    weft("report", folder / "many.csv", "-o", page)
    browser.open(page, "light")
    looks = browser.evaluate("[...document.querySelectorAll('#sweep .key path')].map(p => p.getAttribute('stroke') + p.getAttribute('d'))")
    assert len(looks) == 20 == len(set(looks)), looks


def check_another_machine(browser, folder):
    """A run's links that the drawn machine has not are said, and its own are not shown as idle."""
    page = folder / "another.html"
    weft("report", folder / "healthy.json", "--machine", folder / "small.yaml", "-o", page)
    browser.open(page, "light")
    said = browser.evaluate("document.querySelector('#machine .said').textContent")
    assert "are not links of" in said, said
    result = json.loads((folder / "healthy.json").read_text())
    for row in result["results"]:
        row["link_use"] = [{"link": "nic9 -> x -> y", "use": 0.5}]
    (folder / "strange.json").write_text(json.dumps(result))
    weft("report", folder / "strange.json", "--machine", folder / "small.yaml", "-o", page)
    browser.open(page, "light")
    said = browser.evaluate("document.querySelector('#machine .said').textContent")
    assert "nothing is known" in said, said
    assert browser.evaluate("document.querySelectorAll('svg.machine.tree path[class*=load]').length") == 0
    rows = browser.evaluate("[...document.querySelectorAll('table.links tbody tr')].map(r => r.innerText)")
    assert rows[0].startswith("nic9 – x -> y") and "50 %" in rows[0] and rows[1].count("–") == 3, rows
    check_quiet(browser, page)


def table_of(browser):
    """Of the table of links kind and both directions, by ends and kind."""
    rows = browser.evaluate("[...document.querySelectorAll('table.links tbody tr')].map(r => [...r.cells].map(c => c.innerText))")
    return {(row[0], row[1]): tuple(row[3:]) for row in rows}


def check_packets(browser, source, folder):
    """Of ports that are not listed nothing is known, of links that a fluid run leaves out that they carry little."""
    topology = source / "topologies/hgx-h100-8nic.yaml"
    (folder / "packets.yaml").write_text(f"scenario: p\ntopology: {topology}\nnodes: 2\nmemory_paths: [gdr]\n"
                                         "workload: {op: allreduce, sizes: [64 KiB]}\n")
    weft("run", folder / "packets.yaml", "--fidelity", "packet", "--json", folder / "packets.json")
    left_out = json.loads((folder / "packets.json").read_text())["results"][0]["probes"]["ports_left_out"]
    page = folder / "packets.html"
    weft("report", folder / "packets.json", "--machine", topology, "-o", page)
    browser.open(page, "light")
    said = browser.evaluate("document.querySelector('#machine').innerText")
    assert left_out > 0 and f"{left_out} ports that were in use less" in " ".join(said.split()), (left_out, said)
    links = table_of(browser)
    assert ("–", "–") in links.values(), links
    assert browser.evaluate("document.querySelectorAll('svg.machine.tree path.unknown').length") > 0
    check_quiet(browser, page)
    # With none left out the others were idle.
    result = json.loads((folder / "packets.json").read_text())
    result["results"][0]["probes"]["ports_left_out"] = 0
    (folder / "packets.json").write_text(json.dumps(result))
    weft("report", folder / "packets.json", "--machine", topology, "-o", page)
    browser.open(page, "light")
    links = table_of(browser)
    assert ("0.0 %", "0.0 %") in links.values() and ("–", "–") not in links.values(), links
    assert browser.evaluate("document.querySelectorAll('svg.machine.tree path.unknown').length") == 0
    browser.open(folder / "runs.html", "light")
    assert ("< 1 %", "< 1 %") in table_of(browser).values(), table_of(browser)


def check_two_kinds(browser, source, folder):
    """A GPU's PCIe link and its NVLink-C2C to the same CPU each have their own load."""
    topology = source / "topologies/merlin-gh200.yaml"
    (folder / "gh200.yaml").write_text(f"scenario: g\ntopology: {topology}\nnodes: 1\nmemory_paths: [host-staged]\n"
                                       "workload: {op: allreduce, sizes: [1 MiB]}\n")
    page = folder / "gh200.html"
    for fidelity, idle in (("fluid", "< 1 %"), ("packet", "0.0 %")):
        weft("run", folder / "gh200.yaml", "--env", "NCCL_P2P_DISABLE=1", "--fidelity", fidelity,
             "--json", folder / "gh200.json")
        weft("report", folder / "gh200.json", "--machine", topology, "-o", page)
        browser.open(page, "light")
        links = table_of(browser)
        assert links[("cpu0 – gpu0", "pcie")] == (idle, idle), links
        assert all(float(share[:-1]) > 5 for share in links[("gpu0 – cpu0", "c2c")]), links
        assert browser.evaluate("document.querySelector('#machine .said')") is None
        check_quiet(browser, page)


def check_groups(browser, folder):
    """The load between a dragonfly's groups; a row of more nodes than are drawn says so, and no switch is counted."""
    network = ("{kind: dragonfly-plus, part: quantum-2, ports: 4, leaf_down: 1, leaf_up: 1, spines: 1, "
               "group_leaves: 2, globals: 1}")
    groups = MACHINE.replace("{kind: one-switch, part: quantum-2}", network)
    (folder / "groups.yaml").write_text(groups)
    (folder / "groups-run.yaml").write_text(SCENARIO.replace("small.yaml", "groups.yaml").replace(
        "memory_paths", "nodes: 4\nmemory_paths"))
    weft("run", folder / "groups-run.yaml", "--json", folder / "groups.json")
    page = folder / "groups.html"
    for nodes, leaves in ((4, "leaf x 4"), (2, "leaf")):
        (folder / "groups.yaml").write_text(groups.replace("nodes: 2", f"nodes: {nodes}"))
        weft("report", folder / "groups.json", "--machine", folder / "groups.yaml", "-o", page)
        browser.open(page, "light")
        texts = browser.evaluate("[...document.querySelectorAll('svg.machine.fabric text')].map(t => t.textContent)")
        assert leaves in texts and "4 nodes" in texts, texts
        assert [text for text in texts if text.startswith("to each other ") and text != "to each other <1 %"], texts
        said = browser.evaluate("document.querySelector('#machine .said')?.textContent ?? ''")
        assert ("The row is of 4 nodes" in said) == (nodes == 2), said
        check_quiet(browser, page)


def check_print(browser, folder):
    """On paper choices are told by a sentence, and what the colours say stays."""
    for name, section in (("runs", "#machine"), ("sweep", "#sweep")):
        browser.open(folder / f"{name}.html", "light")
        browser.call("Emulation.setEmulatedMedia", media="print")
        shown = "getComputedStyle(document.querySelector('{} {}')).display"
        assert browser.evaluate(shown.format(section, ".choices")) == "none"
        assert browser.evaluate(shown.format(section, "p.paper")) == "block"
        assert browser.evaluate(f"document.querySelector('{section} .key').offsetHeight") > 0


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
      "link_use": [{{"link": {json.dumps(HOSTILE + " -> " + HOSTILE)}, "use": 0.5}}],
      "limited_by": [{{"cause": {text}, "share": 1, "where": {text}}}]}}],
      "verdict": [{text}], "notes": [{text}], "provenance": {{{text}: {text}, "parameters": [{{"key": {text},
      "device": {text}, "value": {text}, "origin": {text}, "source": {text}}}]}}}}""")
    cause = f"""{{"id": {text}, "what": {text}, "where": {text}, "how": {text}, "verify": {text}, "said": {text},
      "why": {text}, "needs": {text}, "evidence": [{{"place": {text}, "text": {text}}}]}}"""
    (folder / "hostile-explain.json").write_text(f"""{{"schema": "weft.explain/1", "verdict": {text}, {text}: {text},
      "two_at_once": false, "chance_if_healthy": 0, "points": [{{"op": {text}, "memory_path": {text}, "bytes": 8,
      "slow_us": 2, "busbw_GBps": 1, "predicted_us": 1, "sd": 0.1}}], "answers": [{{"causes": [{cause}],
      "or": [{{"causes": [{cause}]}}], "alike": true, "times_less": 1, "explains": 1, "low": 0.9, "high": 1.1,
      "chance": 0.5, "effects": [0.5]}}], "ruled_out": [{cause}], "no_effect": [{cause}], "refused": [{cause}],
      "not_here": [{cause}], "not_looked_at": [{cause}], "notes": [{text}]}}""")
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    row = f"{{}},{quoted},{{}},2,2,{quoted},{quoted},{quoted},1,1,1,{{}},{quoted},{quoted},1,,1,1,yes,{quoted},{quoted}\n"
    (folder / "hostile-sweep.csv").write_text(
        f"{quoted},op,bytes,ranks,nodes,memory_path,algo,proto,channels,time_us,algbw_GBps,busbw_GBps,limited_by,"
        "limited_by_where,limited_by_share,extended_from_nodes,cost,power_kW,pareto,not_run,point\n" +
        "".join(row.format(quoted if i else "b", 8 << i, i + 1) for i in range(2)))
    for name in ("hostile.json", "hostile-explain.json", "hostile-sweep.csv"):
        page = folder / f"{name}.html"
        weft("report", folder / name, "--machine", folder / "small.yaml", "--title", HOSTILE, "-o", page)
        browser.open(page, "light")
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.settle()
        check_quiet(browser, page)
        assert browser.evaluate("document.title") == HOSTILE
        assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
        assert browser.evaluate("document.scripts.length") == 2
        assert browser.evaluate("document.images.length") == 0
        shown = browser.evaluate("document.body.innerText")
        assert shown.count(HOSTILE) > 10, shown


def weft(*arguments, exits=0):
    run = subprocess.run([sys.argv[1], *map(str, arguments)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         timeout=LIMIT_S)
    assert run.returncode == exits, (arguments, run.returncode, run.stderr.decode())


def explain(folder):
    """A run of few PCIe reads in flight, as it would be measured, and a healthy one."""
    (folder / "small.yaml").write_text(MACHINE)
    (folder / "small-run.yaml").write_text(SCENARIO)
    for name, options in (("slow", ["--set", "nic.trained_width=4"]), ("healthy", [])):
        weft("run", folder / "small-run.yaml", *options, "--json", folder / "small-run.json")
        rows = json.loads((folder / "small-run.json").read_text())["results"]
        (folder / f"{name}.csv").write_text("transport,memory_path,hosts,ranks,op,bytes,us\n" + "".join(
            f"net,gdr,2,2,{row['op']},{row['bytes']},{row['time_us']}\n" for row in rows))
    weft("explain", folder / "slow.csv", folder / "healthy.csv", "--machine", folder / "small.yaml",
         "--json", folder / "explain.json", exits=6)  # it is slower
    weft("report", folder / "explain.json", "-o", folder / "explain.html")


def sweep(source, folder):
    """Four numbers of NICs of two generations, with what they cost."""
    (folder / "prices.yaml").write_text(PRICES)
    (folder / "grid.yaml").write_text(f"scenario: grid\ntopology: {source}/topologies/hgx-h100-8nic.yaml\nnodes: 2\n"
                                      "memory_paths: [gdr, host-staged]\n"
                                      "workload: {op: allreduce, sizes: [1 MiB, 64 MiB]}\n")
    weft("sweep", folder / "grid.yaml", "--set", "nic.count=1,2,4,8", "--set", "nic.pcie_gen=4,5",
         "--prices", folder / "prices.yaml", "--pareto", "--csv", folder / "sweep.csv")
    weft("report", folder / "sweep.csv", "-o", folder / "sweep.html")


def make_reports(source, folder):
    for name, options in RUNS:
        weft("run", source / "scenarios/quickstart.yaml", *options, "--json", folder / name)
    topology = source / "topologies/hgx-h100-8nic.yaml"
    weft("expect", topology, "--nodes", "2", "--json", folder / "expect.json")
    weft("report", *[folder / name for name, _ in RUNS], "--machine", topology, "--title", "GDR on and off",
         "-o", folder / "runs.html")
    weft("report", folder / "expect.json", "-o", folder / "expect.html")
    explain(folder)
    sweep(source, folder)
    rxe = source / "tests/data/rxe"
    weft("replay", rxe / "plain-write.client.weft", "--topology", rxe / "rxe-vm.yaml", "--json", folder / "replay.json")
    weft("copies", source / "topologies/h200-vm.yaml", "--size", "1M,16M", "--json", folder / "copies.json")
    weft("report", folder / "replay.json", folder / "copies.json", "-o", folder / "replay.html")


def check(browser, source, folder, shots):
    for scheme in ("light", "dark"):
        for name in ("runs", "expect", "replay", "explain", "sweep"):
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
            if name == "explain":
                check_answers(browser)
            if name == "sweep":
                check_sweep(browser)
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
    check_odd_sweeps(browser, folder)
    check_another_machine(browser, folder)
    check_none(browser, folder)
    check_many_series(browser, folder)
    check_packets(browser, source, folder)
    check_two_kinds(browser, source, folder)
    check_groups(browser, folder)
    check_print(browser, folder)
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
            check(browser, source, here, shots)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
