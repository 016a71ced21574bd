"""What every page must hold to, looked at from within the browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

_UNNAMED = """
() => [...document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a[href], summary')]
  .filter(el => el.checkVisibility())
  .filter(el => !(el.labels && el.labels.length && [...el.labels].some(l => l.textContent.trim()))
    && !el.getAttribute('aria-label')
    && !(el.getAttribute('aria-labelledby') || '').split(' ').some(id => document.getElementById(id))
    && !(['BUTTON', 'A', 'SUMMARY'].includes(el.tagName) && el.textContent.trim()))
  .map(el => el.outerHTML.slice(0, 120))
"""

_TWICE = """
() => { const ids = [...document.querySelectorAll('[id]')].map(el => el.id);
        return ids.filter((id, at) => ids.indexOf(id) !== at); }
"""

_POINTS_NOWHERE = """
() => [...document.querySelectorAll('[for], [aria-describedby], [aria-labelledby]')]
  .flatMap(el => ['for', 'aria-describedby', 'aria-labelledby'].map(name => el.getAttribute(name) || ''))
  .flatMap(ids => ids.split(' '))
  .filter(id => id && !document.getElementById(id))
"""

# WCAG 2: 4.5 for text, 3 where it is large. Backgrounds are blended from the element outwards.
_PALE = """
() => {
  const parse = css => {
    const numbers = css.match(/[\\d.]+%?/g).map(n => n.endsWith('%') ? parseFloat(n) / 100 : parseFloat(n));
    const scale = css.startsWith('color(') ? 255 : 1;
    const [r, g, b, a = 1] = numbers;
    return [r * scale, g * scale, b * scale, a];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = el => {
    const layers = [];
    for (let at = el; at; at = at.parentElement) {
      const layer = parse(getComputedStyle(at).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255, 1]);
  };
  const linear = v => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = [];
  for (const el of document.querySelectorAll('body *')) {
    const text = [...el.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.trim()).join('');
    if (!text || !el.checkVisibility({visibilityProperty: true}) || el.closest('.sr, .skip, option')) continue;
    const style = getComputedStyle(el), size = parseFloat(style.fontSize), under = ground(el);
    const [a, b] = [light(over(parse(style.color), under)), light(under)].sort((x, y) => y - x);
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if ((a + 0.05) / (b + 0.05) < needed - 0.005)
      found.push(`${((a + 0.05) / (b + 0.05)).toFixed(2)} ${text.slice(0, 40)} ${el.className}`);
  }
  return found;
}
"""


def faults_of(page: Page) -> dict[str, Any]:
    """Everything that is wrong with how a page is made; empty when nothing is."""
    found = {
        "wider than the window by": page.evaluate(_TOO_WIDE),
        "headings of the first order": page.locator("h1").count() - 1,
        "without a name": page.evaluate(_UNNAMED),
        "the same id twice": page.evaluate(_TWICE),
        "points nowhere": page.evaluate(_POINTS_NOWHERE),
        "too pale": page.evaluate(_PALE),
        "inline style or script": page.locator("[style], style, script:not([src]), [onclick], [onload]").count(),
    }
    return {name: fault for name, fault in found.items() if fault}


def wait_for_focus(page: Page, wanted: str) -> None:
    """On the element of this id or kind. It gets there a moment after what it is in is shown."""
    page.wait_for_function(
        "wanted => (document.activeElement.id || document.activeElement.tagName) === wanted", arg=wanted, timeout=10_000
    )
