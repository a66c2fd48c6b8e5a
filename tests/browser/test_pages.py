"""Pages in a real browser: nothing is fetched, nothing fails, everything can be read."""

import re

import pytest

from browser.driving import SCHEMES, WIDTHS

REPORT = ["verdict", "groups", "spectrum", "plane", "removed", "diagnosis", "made"]
LOOKS = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]


PLACES = """svg => Array.from(svg.querySelectorAll("circle, text"), (e) =>
  Number(e.getAttribute("cx") ?? e.getAttribute("x")))"""


def furthest(places, others):
    """How far anything moved."""
    return max(abs(a - b) for a, b in zip(places, others, strict=True))


def sections(page):
    return page.eval_on_selector_all(
        "section", "all => all.map(s => s.getAttribute('aria-labelledby'))"
    )


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_page_loads_without_error_or_request(opened, any_page, width, scheme):
    page = opened(any_page, width, scheme)
    page.mouse.wheel(0, 10_000)
    assert page.trouble == []
    assert page.requests == [any_page.as_uri()] or all(
        url.startswith("data:") for url in page.requests[1:]
    )


def test_the_demo_has_every_section_and_its_picture_of_the_method(opened, demo_page):
    page = opened(demo_page)
    assert sections(page) == [*REPORT[:-1], "geometry", "made"]
    for name in sections(page):
        box = page.locator(f"section[aria-labelledby={name}]").bounding_box()
        assert box["height"] > 80 and box["width"] > 300
        assert (
            page.locator(f"section[aria-labelledby={name}] p:not(.headline)")
            .first.inner_text()
            .endswith((".", "?"))
        )


def test_the_sections_of_a_comparison(opened, compare_page):
    assert sections(opened(compare_page)) == REPORT


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("fixture", ["demo_page", "geometry_page"])
def test_a_picture_turns_when_it_is_dragged(opened, request, fixture, which):
    page = opened(request.getfixturevalue(fixture))
    picture = page.locator("svg[data-yaw]").nth(which)
    picture.scroll_into_view_if_needed()
    before = picture.evaluate(PLACES)
    box = picture.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    assert picture.evaluate(PLACES) == before  # not without a button
    page.mouse.down()
    page.mouse.move(x + 80, y + 30, steps=8)
    page.mouse.up()
    dragged = picture.evaluate(PLACES)
    assert furthest(before, dragged) > 5
    page.mouse.move(x, y)
    assert picture.evaluate(PLACES) == dragged
    assert page.trouble == []


def test_a_picture_turns_by_keyboard_and_back(opened, geometry_page):
    page = opened(geometry_page)
    picture = page.locator("svg[data-yaw]").first
    before = picture.evaluate(PLACES)
    page.get_by_role("button", name="turn left").first.focus()
    page.keyboard.press("Enter")
    assert furthest(before, picture.evaluate(PLACES)) > 5
    page.get_by_role("button", name="turn right").first.focus()
    page.keyboard.press("Space")
    assert furthest(before, picture.evaluate(PLACES)) < 0.5


def test_the_script_draws_what_the_page_was_written_with(opened, geometry_page):
    """Python draws the first view, the script the others: a turn by nothing must change nothing."""
    page = opened(geometry_page)
    off = page.evaluate(
        """() => {
        let worst = 0;
        for (const button of document.querySelectorAll("button[data-turn]")) {
          button.dataset.turn = "0,0";
        }
        const of = () => Array.from(document.querySelectorAll("circle, text"), (e) =>
          ["cx", "cy", "x", "y"].map((a) => Number(e.getAttribute(a) ?? 0)));
        const before = of();
        document.querySelectorAll("button[data-turn]").forEach((button) => button.click());
        of().forEach((place, i) => place.forEach((v, j) => {
          worst = Math.max(worst, Math.abs(v - before[i][j]));
        }));
        return worst;
        }"""
    )
    assert off < 0.5


OVERFLOWING = """() => Array.from(document.querySelectorAll("body *")).filter((e) => {
  if (e.closest(".scroll, svg")) return false;
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map((e) => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_layout_holds(opened, any_page, width, scheme):
    page = opened(any_page, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []
    narrowest = "all => Math.min(...all.map((e) => e.getBoundingClientRect().width))"
    assert page.eval_on_selector_all("section > p, figcaption p", narrowest) > 200


def test_dark_and_light_differ(opened, demo_page):
    looks = [
        opened(demo_page, scheme=scheme).evaluate(
            "(() => { const s = getComputedStyle(document.body); "
            "return [s.color, s.backgroundColor]; })()"
        )
        for scheme in SCHEMES
    ]
    assert looks[0][0] != looks[1][0] and looks[0][1] != looks[1][1]


def test_a_page_inside_another_follows_its_colours(opened, geometry_page):
    page = opened(geometry_page, scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.evaluate("location.hash = 'dark'")
    page.wait_for_function(f"{background} !== '{light}'")
    page.evaluate("location.hash = 'light'")
    page.wait_for_function(f"{background} === '{light}'")
    assert page.trouble == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_no_serious_violation_of_accessibility(opened, any_page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = opened(any_page, width, scheme, bypass_csp=True)
    found = axe.Axe().run(page).response["violations"]
    bad = [
        (v["id"], [node["html"][:200] for node in v["nodes"][:3]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert bad == []


def test_without_script_everything_is_there(opened, demo_page):
    page = opened(demo_page, java_script_enabled=False)
    text = page.content()
    assert len(re.findall(r"<circle[^>]*data-p=", text)) > 100
    assert page.trouble == []


def test_print_leaves_out_what_is_for_the_screen(opened, demo_page):
    page = opened(demo_page)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".buttons").first.is_visible()
    pdf = page.pdf()
    assert pdf[:5] == b"%PDF-" and len(pdf) > 20_000


def test_nothing_hostile_gets_out(opened, compare_page):
    page = opened(compare_page)
    page.wait_for_timeout(200)
    assert page.trouble == []
    assert page.locator("script").count() == 1
    assert page.evaluate("document.querySelectorAll('img[onerror], b, marquee').length") == 0
    assert "<script>alert(1)</script>" in page.locator("body").inner_text()


def test_a_page_is_light_enough_to_open_at_once(opened, any_page):
    assert any_page.stat().st_size < 1_000_000
    assert opened(any_page).evaluate("document.querySelectorAll('*').length") < 12_000
