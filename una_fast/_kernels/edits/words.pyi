MARKS: str
