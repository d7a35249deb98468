import pathlib,re
f=pathlib.Path("gw_tui/widgets/keyed_table.py"); s=f.read_text()
s=s.replace("self._layout.title(column)","titled(column, self.sort)").replace("self._layout","self._columns").replace("import GAP, ColumnWidths","import GAP, ColumnWidths, titled")
f.write_text(s)
f=pathlib.Path("gw_tui/widgets/column_widths.py"); s=f.read_text()
i=s.index("    def title(self"); j=s.index("    def _size_of")
s=s[:i]+s[j:]
s=s.replace("self.title(column)","titled(column, self._sort)")
s=s.replace("Choose the columns that fit, and their widths; the title of the sorted column has an arrow.","Choose the columns that fit, and their widths.")
s+='''

def titled(column: TableColumn, sort: TableSort | None) -> str:
    """Return the title of a column, with the direction of the sort if the table is sorted by it."""
    return column.title if sort is None or sort.column != column.key else f"{column.title}{sort.arrow}"
'''
s=s.replace('''        size = min(column.width, max(len(column.title), self._needed.get(column.key, 0)))
        title = titled(column, self._sort)
''','''        size = min(column.width, max(len(column.title), self._needed.get(column.key, 0)))
        title = titled(column, self._sort)
''')
f.write_text(s)
f=pathlib.Path("tests/security/test_hidden_fields.py"); s=f.read_text()
f.write_text(s.replace("gw_tui.widgets.keyed_table.Cell.text","gw_tui.widgets.table_rows.Cell.text"))
