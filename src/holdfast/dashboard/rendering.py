"""Templates: what services returned, as HTML. Everything is escaped, and outside text is bounded and made visible."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from holdfast.text import age, clipped, counted
from holdfast.text.masking import Words, without_secrets
from holdfast.text.paths import in_home
from holdfast.text.terminal import visible
from holdfast.times import iso

TEMPLATES = Path(__file__).parent / "templates"
LINE, BLOCK = 240, 20_000
"""Characters of an outside text that are shown on a line, and in a block."""
MARGIN = 1_000
"""Characters beyond those shown that are searched for secrets, so that none is missed because it was cut in half."""
UNITS = ("B", "kB", "MB", "GB", "TB")

Values = dict[str, Any]


class Renderer:
    """Renders a page, or those of its blocks that are named."""

    def __init__(self, static_url: Callable[[str], str], clock: Callable[[], int]) -> None:
        self._clock = clock
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.globals.update(static=static_url, when=self.when, until=self.until, counted=counted)
        self._templates.filters.update(
            outside=outside, seen=seen, block=block, size=size, number=number, in_home=in_home
        )

    def prepare(self) -> None:
        """Compile every template."""
        for name in self._templates.list_templates(extensions=["html"]):
            self._templates.get_template(name)

    def whole(self, template: str, values: Values) -> str:
        """Return a whole page."""
        return self._templates.get_template(template).render(self._with_macros(values))

    def parts(self, template: str, values: Values, names: frozenset[str]) -> str:
        """Return the blocks with these names, one after another; names that a template lacks are skipped."""
        context = self._templates.get_template(template).new_context(self._with_macros(values))
        for parent in self._parents(template):
            for name, block_of_parent in self._templates.get_template(parent).blocks.items():
                context.blocks.setdefault(name, []).append(block_of_parent)
        return "".join("".join(context.blocks[name][0](context)) for name in sorted(names & context.blocks.keys()))

    @cache  # noqa: B019 - as long as the daemon runs, for a handful of templates
    def _parents(self, template: str) -> tuple[str, ...]:
        """Return the templates that this one extends, the nearest first."""
        source = (TEMPLATES / template).read_text(encoding="utf-8")
        extends = self._templates.parse(source).find(nodes.Extends)
        if extends is None or not isinstance(extends.template, nodes.Const):
            return ()
        parent = str(extends.template.value)
        return (parent, *self._parents(parent))

    def _with_macros(self, values: Values) -> Values:
        """Return the values and the macros, which a block rendered alone would lack if its template imported them."""
        return {**values, "ui": self._templates.get_template("macros.html").make_module(values)}

    def when(self, ms: int | None) -> Markup:
        """Return how long ago a time was, with the exact time beside it."""
        if ms is None:
            return Markup("never")
        ago = age(max(0, self._clock() - ms))
        exact = escape(_exact(ms))
        return Markup(f'<time datetime="{iso(ms)}" title="{exact}">{ago}</time>')  # noqa: S704 - our own words

    def until(self, ms: int) -> Markup:
        """Return how far ahead a time is; the script leaves it as it is."""
        ahead = age(max(60_000, ms - self._clock())).removesuffix(" ago")
        return Markup('<time datetime="{}" title="{}" data-exact="yes">in {}</time>').format(iso(ms), _exact(ms), ahead)


@pass_context
def outside(context: Context, text: str | None, most: int = LINE) -> Markup:
    """Show an outside text on one line: bounded, isolated in direction, with hidden characters made visible."""
    line = " ".join(_seen_by(context, text or "", most).split())
    # Not `Markup.format`, which takes longer than all the rest.
    return Markup(f'<bdi class="outside">{_spoken(clipped(line, most))}</bdi>')  # noqa: S704 - escaped


@pass_context
def seen(context: Context, text: str | None, most: int = LINE) -> str:
    """Return an outside text for an attribute or a drawing, where no element can isolate its direction."""
    return visible(clipped(" ".join(_seen_by(context, text or "", most).split()), most))


@pass_context
def block(context: Context, text: str | None, most: int = BLOCK) -> Markup:
    """Show an outside text with its lines."""
    whole = _seen_by(context, text or "", most)
    spoken = _spoken(clipped(whole, most))
    return Markup(f'<div class="outside block" dir="auto">{spoken}</div>')  # noqa: S704 - escaped


def _seen_by(context: Context, text: str, most: int) -> str:
    if not context.get("sees_secrets"):
        # Whole, so that a text whose author is known is cut only after it was searched.
        return text.mask_for(None) if isinstance(text, Words) else without_secrets(text[: most + MARGIN])
    return text[: most + MARGIN]


def _exact(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M:%S %Z}"


def _spoken(text: str) -> Markup:
    return escape(visible(text))


def size(count: int | None) -> str:
    """Return a number of bytes as people read it."""
    if count is None:
        return "unknown"
    value, unit = float(count), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {UNITS[unit]}"


def number(count: float | int) -> str:
    """Return a number with thousands separators."""
    return f"{count:,}"
