"""Docstrings, comments, messages and pages say nouns of the field, for readers with another first language."""

import ast
import io
import re
import tokenize

from tests.support.pages import PAGES, ROOT

WORDS = re.compile(
    r"\b(whoever|nobody|somebody|everybody|so\s+many|luck|weather|toss|tossed|tosses|errand|intake)\b", re.IGNORECASE
)
# Names of streams and values of options that have to stay, as they are written.
STAYS = ("availability-toss", '"everybody"')


def texts(path):
    """Yield every comment and string of a file with its first line."""
    source = path.read_text()
    if not WORDS.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, f'"{node.value}"'


def findings(path, texts_of_file):
    """Return the words found, each with its file and line."""
    found = []
    for line, text in texts_of_file:
        stays = [range(*kept.span()) for name in STAYS for kept in re.finditer(re.escape(name), text)]
        for word in (word for word in WORDS.finditer(text) if not any(word.start() in kept for kept in stays)):
            found.append(f"{path.relative_to(ROOT)}:{line + text.count(chr(10), 0, word.start())}: {word[0]}")
    return found


def test_source():
    found = [place for path in sorted((ROOT / "fedsim").rglob("*.py")) for place in findings(path, texts(path))]
    assert not found, "\n".join(found)


def test_pages():
    found = [place for page in PAGES for place in findings(page, [(1, page.read_text())])]
    assert not found, "\n".join(found)
