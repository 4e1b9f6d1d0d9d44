"""The report of a folder of train.paper: its tables with the paper's figures, and curves of rows that are numbers."""

import json

from support.run_folders import write_run
from train.report.page import make_page
from train.report.paper_tables import find_tables
from train.report.runs import find_runs


def write_table(folder, name, rows, curve=""):
    path = folder / "tables" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"table": name, "number": "A4", "title": "How <often>", "curve": curve, "rows": rows}
    path.write_text(json.dumps(content))


def row(name, paper, measured, deviation=None):
    return {"name": name, "paper": {"UNA": paper}, "measured": {"UNA": measured}, "deviation": {"UNA": deviation}}


ROWS = [row("9", 0.8213, 0.81, 0.002), row("0.5", 0.8235, None), row("1", None, 0.8)]


def page_of(folder, notes=None):
    notes = [] if notes is None else notes
    tables = find_tables([folder], notes)
    return make_page(find_runs([folder], notes), 0, None, notes, tables)


def test_tables_without_runs_are_a_page_with_their_curves(tmp_path):
    write_table(tmp_path, "alpha", ROWS, curve="alpha")
    page = page_of(tmp_path)
    assert "Table A4: How &lt;often&gt;" in page
    assert "81.00 ± 0.20 <small>(82.13, -1.13)</small>" in page and "- <small>(82.35)</small>" in page
    (chart,) = [part.split("</script>")[0] for part in page.split('<script type="application/json">')[1:]]
    band, measured, paper = json.loads(chart)["data"]
    assert (measured["name"], measured["x"], measured["y"]) == ("UNA", [1, 9], [80, 81])
    assert (paper["x"], paper["y"], paper["line"]["dash"]) == ([0.5, 9], [82.35, 82.13], "dash")
    assert band["y"] == [81.2, 80.8]


def test_tables_stand_above_the_runs_of_the_folder(tmp_path):
    write_table(tmp_path, "main", [row("BERT", 0.7, 0.6)])
    write_run(tmp_path / "runs" / "bert" / "seed-42", 0.8)
    page = page_of(tmp_path)
    assert page.index("Table A4") < page.index("<h2>Scores</h2>") and "STS-B dev over" not in page


def test_a_file_that_is_no_table_is_said_and_left_out(tmp_path):
    write_table(tmp_path, "alpha", ROWS)
    write_table(tmp_path, "beta", [{"name": "x"}])
    write_table(tmp_path, "seeds", [{"name": 1, "paper": {"UNA": True}, "measured": 7, "deviation": {"UNA": "x"}}])
    (tmp_path / "tables" / "cut.json").write_text('{"rows": [')
    notes = []
    page = page_of(tmp_path, notes)
    assert page.count("<h2>Table A4") == 2
    assert len(notes) == 2 and all("the table is left out" in note for note in notes)
