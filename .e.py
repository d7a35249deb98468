import pathlib
f=pathlib.Path("gw_tui/rules/search.py"); s=f.read_text()
s=s.replace('''MARK_PAGE_SIZE: Final = 1_000
"""Jobs that one answer brings while all matches are gathered."""
''','')
s=s.replace("BulkMark(Ask(self.ask.wanted, page.after, MARK_PAGE_SIZE), self.most, found, is_over)","BulkMark(replace(self.ask, after=page.after), self.most, found, is_over)")
f.write_text(s)
f=pathlib.Path("gw_tui/screens/jobs.py"); s=f.read_text()
s=s.replace("import MARK_PAGE_SIZE, Ask, BulkMark","import Ask, BulkMark")
a='"""The only order of a column that an index gives over all pages."""\n'
assert a in s
s=s.replace(a,a+"MARK_PAGE_SIZE: Final = 1_000\n")
f.write_text(s)
f=pathlib.Path("tests/tui/test_jobs_screen.py"); s=f.read_text()
s=s.replace("jobs.BulkMark(","BulkMark(")
f.write_text(s)
