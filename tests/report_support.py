"""What tests of pages share: hostile names, and a parser that knows what a page may hold."""

from html.parser import HTMLParser

import numpy as np

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</title></style></svg><script>alert(2)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "😀 👩🏽‍⚕️ ünïcödé",
    "שלום עולם \u202e evil \u202c مرحبا",
    "x" * 300,
    "&amp;&lt;b&gt; \t\n line",
    "javascript:alert(1)",
    "=cmd|' /C calc'!A0",
]
VOID = {"meta", "br", "img", "hr", "input", "link"}
SVG_LEAVES = {"circle", "line", "path", "rect", "use", "polygon", "polyline"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; refuses tags that are not closed in order."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self.scripts, self.ids = [], [], [], [], []
        self._open = []
        self.feed(html)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-3:]}"
        self._open.pop()

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        else:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def sections(self):
        return [v for tag, name, v in self.attributes if tag == "section" and name[:4] == "aria"]

    def check_safe(self):
        """No foreign script, handler or address."""
        assert self.tags.count("script") == 1 and len(self.scripts) == 1
        for tag, name, value in self.attributes:
            assert not name.startswith("on"), (tag, name, value)
            if name in ("href", "src", "action", "data", "srcdoc", "srcset", "xlink:href"):
                assert value.startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,"))
        assert not {"iframe", "object", "embed", "link", "form", "base"} & set(self.tags)
        assert len(self.ids) == len(set(self.ids))


def hostile_rows(random, n=240):
    """Rows whose classes, environments and columns have hostile names."""
    y = random.integers(0, 2, n)
    e = random.integers(0, 3, n)
    X = random.normal(size=(n, len(HOSTILE)))
    X[:, 0] += 2 * y
    X[:, 1] += 3 * e
    labels = np.array([HOSTILE[0], HOSTILE[5]], dtype=object)[y]
    environments = np.array([HOSTILE[1], HOSTILE[2], HOSTILE[6]], dtype=object)[e]
    return X, labels.astype(str), environments
