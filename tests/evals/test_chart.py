from __future__ import annotations

from xml.etree import ElementTree

import pytest

from apps.evals.benchmarks.chart import HEIGHT, WIDTH, Chart, Line

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**changes):
    values = {
        "title": "Search <fast> & exact",
        "x": "rows",
        "y": "ms",
        "lines": (
            Line("scoped", ((10_000, 2.0), (100_000, 2.2), (1_000_000, 3.1))),
            Line("everything", ((10_000, 2.0), (100_000, 2.3), (1_000_000, 3.2))),
        ),
    }
    return ElementTree.fromstring(Chart(**(values | changes)).svg())  # noqa: S314


def test_a_picture_names_its_lines_and_tells_its_numbers_to_those_who_cannot_see_it():
    root = drawn()
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"Search <fast> & exact", "scoped", "everything", "rows", "ms", "1 million"} <= set(texts)
    assert "scoped: 2 at 10,000, 2.2 at 100,000, 3.1 at 1 million" in root.get("aria-label")


def test_everything_lies_on_the_paper_and_labels_do_not_cover_each_other():
    root = drawn()
    for line in root.iter(f"{SVG}polyline"):
        for point in line.get("points").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT
    places = {element.text: float(element.get("y")) for element in root.iter(f"{SVG}text")}
    assert abs(places["scoped"] - places["everything"]) >= 12


def test_larger_values_stand_higher_and_further_right():
    (line, _) = drawn().iter(f"{SVG}polyline")
    places = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert places == sorted(places, key=lambda place: place[0])
    assert places[0][1] > places[-1][1]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_single_point_and_equal_values_can_be_drawn(scale):
    root = drawn(lines=(Line("one", ((5.0, 5.0),)),), x_scale=scale, y_scale=scale)
    assert len(list(root.iter(f"{SVG}polyline"))) == 1


def test_it_loads_nothing_and_follows_the_readers_colours():
    text = Chart("t", "x", "y", (Line("a", ((1, 1), (10, 2))),)).svg()
    assert "prefers-color-scheme: dark" in text
    assert "href" not in text and "url(" not in text and "<script" not in text


def test_nothing_cannot_be_drawn():
    with pytest.raises(ValueError, match="nothing to draw"):
        Chart("t", "x", "y", (Line("a", ()),)).svg()
