class Suspicion:
    kind: str
    value: str | None
    line: int
    text: str
    def __hash__(self) -> int: ...
