"""Mathematics as MathML, made when the site is built: no script and no network to read it."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")  # a browser sizes brackets by itself
# As an accent, a bar is drawn into the letter by browsers that have no mathematical font.
BAR = re.compile(r'<mover accent="true">(\s*<mi>\w</mi>\s*)<mo stretchy="false">ˉ</mo>')
HIGHER = r'<mover accent="false">\1<mo stretchy="true">‾</mo>'


def markup(tex: str, *, block: bool) -> str:
    """Return the MathML of a formula; many lines, or marks of columns, are aligned."""
    tex = SIZES.sub("", tex)
    if block and (r"\\" in tex or "&" in tex) and r"\begin" not in tex:
        tex = rf"\begin{{align}}{tex}\end{{align}}"
    return BAR.sub(HIGHER, str(latex2mathml.tex2mathml(tex.strip(), as_block=block)))


def write(translator: Any, node: nodes.Element, *, block: bool) -> None:
    """Put a formula into the page, or say which one cannot be read."""
    tex = node.astext()
    try:
        html = markup(tex, block=block)
    except Exception as error:
        LOGGER.warning("formula %r: %s", tex, error, location=node)
        html = f"<code>{translator.encode(tex)}</code>"
    translator.body.append(f'<div class="math-block">{html}</div>' if block else html)
    raise nodes.SkipNode


def inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    write(translator, node, block=False)


def displayed(translator: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own."""
    for name in node.get("ids", ()):
        translator.body.append(f'<span id="{name}"></span>')
    write(translator, node, block=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
