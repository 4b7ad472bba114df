"""Reads and searches are answered from a snapshot as real Hermes answered them."""

from __future__ import annotations

import json
import threading
import unittest
from typing import Any, Mapping

from tests.support import load_module

store, snapshots, synth = map(load_module, ("cassette_store", "snapshot", "synth_search"))

#: arguments, and the answer of each Hermes to them
Case = tuple[dict[str, Any], dict[str, str]]

VERSIONS = {"0.19": "0.19.0", "0.20": "0.20.1", "0.22": "0.22.2"}

#: The files of /ws, oldest first, in a git work tree that ignores *.log.
FILES = {
    "server/auth.py": "AUTH_PORT = 8080\n\ndef handler():\n    return AUTH_PORT\n",
    "server/main.py": "import auth\nprint(auth.handler())  \nno newline at end   ",
    "docs/guide one.md": "auth guide\n",
    "docs/guide.md": "Auth lives in server/auth.py\nsee -5- there\n",
    "empty.txt": "",
    "crlf.txt": "one auth\r\ntwo auth\r\n",
    "bom.txt": "\ufeffauth bom\nx\n",
    "blank.txt": "x\n\n\n",
    "codes.txt": "red \x1b[31mauth\x1b[0m\nbell\x07 \x1b]0;title\x07end\n\x1b]0;gone\x07\nlone\rauth\n",
    "long.txt": "a" * 2100 + "\nshort\n",
    "build/out.log": "auth in a build\n",
    "note.log": "auth in a log\n",
}

READS: tuple[Case, ...] = (
    (
        {"path": "server/auth.py"},
        {
            "0.19, 0.20": '{"content": "1|AUTH_PORT = 8080\\n2|\\n3|def handler():\\n4|    return AUTH_PORT\\n5|'
            '", "total_lines": 4, "file_size": 54, "truncated": false, "is_binary": false, "is_ima'
            'ge": false}',
            "0.22": '{"content": "1|AUTH_PORT = 8080\\n2|\\n3|def handler():\\n4|    return AUTH_PORT", "t'
            'otal_lines": 4, "file_size": 54, "truncated": false, "is_binary": false, "is_image": '
            'false, "not_found": false}',
        },
    ),
    (
        {"path": "server/auth.py", "offset": 2, "limit": 1},
        {
            "0.19, 0.20": '{"content": "2|\\n3|", "total_lines": 4, "file_size": 54, "truncated": true, "hint": '
            '"Use offset=3 to continue reading (showing 2-2 of 4 lines)", "is_binary": false, "is_'
            'image": false}',
            "0.22": '{"content": "2|", "total_lines": 4, "file_size": 54, "truncated": true, "hint": "Use '
            'offset=3 to continue reading (showing 2-2 of 4 lines)", "is_binary": false, "is_image'
            '": false, "not_found": false}',
        },
    ),
    (
        {"path": "server/main.py"},
        {
            "0.19, 0.20": '{"content": "1|import auth\\n2|print(auth.handler())  \\n3|no newline at end   ", "to'
            'tal_lines": 2, "file_size": 56, "truncated": false, "is_binary": false, "is_image": f'
            "alse}",
            "0.22": '{"content": "1|import auth\\n2|print(auth.handler())  \\n3|no newline at end   ", "to'
            'tal_lines": 3, "file_size": 56, "truncated": false, "is_binary": false, "is_image": f'
            'alse, "not_found": false}',
        },
    ),
    (
        {"path": "server/main.py", "limit": 2},
        {
            "0.19": '{"content": "1|import auth\\n2|print(auth.handler())  \\n3|", "total_lines": 2, "file'
            '_size": 56, "truncated": false, "is_binary": false, "is_image": false}',
            "0.20": '{"content": "1|import auth\\n2|print(auth.handler())  ", "total_lines": 2, "file_size'
            '": 56, "truncated": false, "is_binary": false, "is_image": false}',
            "0.22": '{"content": "1|import auth\\n2|print(auth.handler())  ", "total_lines": 3, "file_size'
            '": 56, "truncated": true, "hint": "Use offset=3 to continue reading (showing 1-2 of 3'
            ' lines)", "is_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "empty.txt"},
        {
            "0.19": '{"content": "1|", "total_lines": 0, "file_size": 0, "truncated": false, "is_binary": '
            'false, "is_image": false}',
            "0.20": '{"content": "", "total_lines": 0, "file_size": 0, "truncated": false, "hint": "File i'
            's empty (0 bytes).", "is_binary": false, "is_image": false}',
            "0.22": '{"content": "", "total_lines": 0, "file_size": 0, "truncated": false, "hint": "File i'
            's empty (0 bytes).", "is_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "blank.txt"},
        {
            "0.19, 0.20": '{"content": "1|x\\n2|\\n3|\\n4|", "total_lines": 3, "file_size": 4, "truncated": fals'
            'e, "is_binary": false, "is_image": false}',
            "0.22": '{"content": "1|x\\n2|\\n3|", "total_lines": 3, "file_size": 4, "truncated": false, "i'
            's_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "server/auth.py", "offset": 99},
        {
            "0.19": '{"content": "99|", "total_lines": 4, "file_size": 54, "truncated": false, "is_binary"'
            ': false, "is_image": false}',
            "0.20": '{"content": "", "total_lines": 4, "file_size": 54, "truncated": false, "hint": "Note:'
            ' offset 99 is beyond the end of the file (4 lines total). Retry with offset <= 4.", "'
            'is_binary": false, "is_image": false}',
            "0.22": '{"content": "", "total_lines": 4, "file_size": 54, "truncated": false, "hint": "Note:'
            ' offset 99 is beyond the end of the file (4 lines total). Retry with offset <= 4.", "'
            'is_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "bom.txt"},
        {
            "0.19, 0.20": '{"content": "1|auth bom\\n2|x\\n3|", "total_lines": 2, "file_size": 14, "truncated": '
            'false, "is_binary": false, "is_image": false}',
            "0.22": '{"content": "1|auth bom\\n2|x", "total_lines": 2, "file_size": 14, "truncated": false'
            ', "is_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "crlf.txt"},
        {
            "0.19, 0.20": '{"content": "1|one auth\\r\\n2|two auth\\r\\n3|", "total_lines": 2, "file_size": 20, '
            '"truncated": false, "is_binary": false, "is_image": false}',
            "0.22": '{"content": "1|one auth\\r\\n2|two auth\\r", "total_lines": 2, "file_size": 20, "trun'
            'cated": false, "is_binary": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "codes.txt"},
        {
            "0.19, 0.20": '{"content": "1|red \\u001b[31mauth\\u001b[0m\\n2|bell end\\n3|lone\\rauth\\n4|", "tot'
            'al_lines": 4, "file_size": 58, "truncated": false, "is_binary": false, "is_image": fa'
            "lse}",
            "0.22": '{"content": "1|red \\u001b[31mauth\\u001b[0m\\n2|bell end\\n3|lone\\rauth", "total_li'
            'nes": 4, "file_size": 58, "truncated": false, "is_binary": false, "is_image": false, '
            '"not_found": false}',
        },
    ),
    (
        {"path": "server/auth.py", "limit": "2", "offset": "x"},
        {
            "0.19, 0.20": '{"content": "1|AUTH_PORT = 8080\\n2|\\n3|", "total_lines": 4, "file_size": 54, "trunc'
            'ated": true, "hint": "Use offset=3 to continue reading (showing 1-2 of 4 lines)", "is'
            '_binary": false, "is_image": false}',
            "0.22": '{"content": "1|AUTH_PORT = 8080\\n2|", "total_lines": 4, "file_size": 54, "truncated"'
            ': true, "hint": "Use offset=3 to continue reading (showing 1-2 of 4 lines)", "is_bina'
            'ry": false, "is_image": false, "not_found": false}',
        },
    ),
    (
        {"path": "bom.txt", "offset": 2},
        {
            "0.19, 0.20": '{"content": "2|x\\n3|", "total_lines": 2, "file_size": 14, "truncated": false, "is_bi'
            'nary": false, "is_image": false}',
            "0.22": '{"content": "2|x", "total_lines": 2, "file_size": 14, "truncated": false, "is_binary"'
            ': false, "is_image": false, "not_found": false}',
        },
    ),
)
SEARCHES: tuple[Case, ...] = (
    (
        {"pattern": "auth", "path": "server/main.py"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "server/main.py", "line": 1, "content": "impo'
            'rt auth"}, {"path": "server/main.py", "line": 2, "content": "print(auth.handler())"}]'
            "}",
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/server/main.py", "line": 1, "content": "'
            'import auth"}, {"path": "/ws/server/main.py", "line": 2, "content": "print(auth.handl'
            'er())"}]}',
        },
    ),
    (
        {"pattern": "AUTH|auth", "path": "server"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 4, "matches": [{"path": "server/auth.py", "line": 1, "content": "AUTH'
            '_PORT = 8080"}, {"path": "server/auth.py", "line": 4, "content": "    return AUTH_POR'
            'T"}, {"path": "server/main.py", "line": 1, "content": "import auth"}, {"path": "serve'
            'r/main.py", "line": 2, "content": "print(auth.handler())"}]}',
            "0.19 grep": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "handler", "path": "./server", "context": 1},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 6, "matches_format": "path-grouped: each file path on its own line, f'
            "ollowed by indented '<line>: <content>' rows for matches in that file\", \"matches_te"
            'xt": "./server/auth.py\\n  2: \\n  3: def handler():\\n  4:     return AUTH_PORT\\n./'
            "server/main.py\\n  1: import auth\\n  2: print(auth.handler())\\n  3: no newline at e"
            'nd"}',
            "0.19 grep": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "auth", "path": "server", "output_mode": "count"},
        {"0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 2, "counts": {"server/main.py": 2}}'},
    ),
    (
        {"pattern": "auth", "path": "docs", "output_mode": "files_only"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 1, "files": ["docs/guide.md"]}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "files": ["/ws/docs/guide.md"]}',
        },
    ),
    (
        {"pattern": "auth", "path": "docs", "output_mode": "count"},
        {"0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 2, "counts": {"docs/guide one.md": 1, "docs/guide.md": 1}}'},
    ),
    (
        {"pattern": "auth", "path": "crlf.txt"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "crlf.txt", "line": 1, "content": "one auth\\'
            'r"}, {"path": "crlf.txt", "line": 2, "content": "two auth"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/crlf.txt", "line": 1, "content": "one au'
            'th\\r"}, {"path": "/ws/crlf.txt", "line": 2, "content": "two auth"}]}',
        },
    ),
    (
        {"pattern": "^auth", "path": "bom.txt"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 1, "matches": [{"path": "bom.txt", "line": 1, "content": "auth bom"}]}',
            "0.19 grep, 0.20 grep, 0.22 grep": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "auth", "path": "codes.txt"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "codes.txt", "line": 1, "content": "red \\u00'
            '1b[31mauth\\u001b[0m"}, {"path": "codes.txt", "line": 4, "content": "lone\\rauth"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/codes.txt", "line": 1, "content": "red '
            '\\u001b[31mauth\\u001b[0m"}, {"path": "/ws/codes.txt", "line": 4, "content": "lone\\r'
            'auth"}]}',
        },
    ),
    (
        {"pattern": "A", "path": "server/auth.py", "limit": 1},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 1, "matches": [{"path": "server/auth.py", "line": 1, "content": "AUTH'
            '_PORT = 8080"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "matches": [{"path": "/ws/server/auth.py", "line": 1, "content": "'
            'AUTH_PORT = 8080"}]}',
        },
    ),
    (
        {"pattern": "A", "path": "server/auth.py", "limit": 1, "offset": 1, "context": 1},
        {
            "0.19 rg, 0.19 grep, 0.20 rg": '{"total_count": 4, "matches": [{"path": "server/auth.py", "line": 2, "content": ""}],'
            ' "truncated": true}\n\n[Hint: Results truncated. Use offset=2 to see more, or narrow '
            "with a more specific pattern or file_glob.]",
            "0.20 grep": '{"total_count": 4, "matches": [{"path": "/ws/server/auth.py", "line": 2, "content": "'
            '"}], "truncated": true}\n\n[Hint: Results truncated. Use offset=2 to see more, or nar'
            "row with a more specific pattern or file_glob.]",
            "0.22 rg": '{"total_count": 4, "matches": [{"path": "server/auth.py", "line": 2, "content": ""}],'
            ' "truncated": true, "total_count_is_lower_bound": true, "_hint": "Results truncated. '
            'Use offset=2 to see more, or narrow with a more specific pattern or file_glob."}',
            "0.22 grep": '{"total_count": 4, "matches": [{"path": "/ws/server/auth.py", "line": 2, "content": "'
            '"}], "truncated": true, "total_count_is_lower_bound": true, "_hint": "Results truncat'
            'ed. Use offset=2 to see more, or narrow with a more specific pattern or file_glob."}',
        },
    ),
    (
        {"pattern": "handler", "path": "server/auth.py", "context": 1, "limit": 2},
        {
            "0.19 rg, 0.19 grep, 0.20 rg": '{"total_count": 3, "matches": [{"path": "server/auth.py", "line": 2, "content": ""}, '
            '{"path": "server/auth.py", "line": 3, "content": "def handler():"}], "truncated": tru'
            "e}\n\n[Hint: Results truncated. Use offset=2 to see more, or narrow with a more speci"
            "fic pattern or file_glob.]",
            "0.20 grep": '{"total_count": 3, "matches": [{"path": "/ws/server/auth.py", "line": 2, "content": "'
            '"}, {"path": "/ws/server/auth.py", "line": 3, "content": "def handler():"}], "truncat'
            'ed": true}\n\n[Hint: Results truncated. Use offset=2 to see more, or narrow with a mo'
            "re specific pattern or file_glob.]",
            "0.22 rg": '{"total_count": 3, "matches": [{"path": "server/auth.py", "line": 2, "content": ""}, '
            '{"path": "server/auth.py", "line": 3, "content": "def handler():"}], "truncated": tru'
            'e, "total_count_is_lower_bound": true, "_hint": "Results truncated. Use offset=2 to s'
            'ee more, or narrow with a more specific pattern or file_glob."}',
            "0.22 grep": '{"total_count": 3, "matches": [{"path": "/ws/server/auth.py", "line": 2, "content": "'
            '"}, {"path": "/ws/server/auth.py", "line": 3, "content": "def handler():"}], "truncat'
            'ed": true, "total_count_is_lower_bound": true, "_hint": "Results truncated. Use offse'
            't=2 to see more, or narrow with a more specific pattern or file_glob."}',
        },
    ),
    (
        {"pattern": "auth", "path": "server", "file_glob": "m*.py"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "server/main.py", "line": 1, "content": "impo'
            'rt auth"}, {"path": "server/main.py", "line": 2, "content": "print(auth.handler())"}]'
            "}",
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/server/main.py", "line": 1, "content": "'
            'import auth"}, {"path": "/ws/server/main.py", "line": 2, "content": "print(auth.handl'
            'er())"}]}',
        },
    ),
    (
        {"pattern": "auth", "path": "server/main.py", "file_glob": "*.md"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "server/main.py", "line": 1, "content": "impo'
            'rt auth"}, {"path": "server/main.py", "line": 2, "content": "print(auth.handler())"}]'
            "}",
            "0.19 grep, 0.20 grep, 0.22 grep": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "(auth", "path": "server"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 0, "error": "Search failed: regex parse error:\\n    (auth\\n    ^\\n'
            'error: unclosed group"}',
            "0.19 grep": '{"total_count": 1, "matches": [{"path": "server/main.py", "line": 2, "content": "prin'
            't(auth.handler())"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 0, "error": "Search failed: grep: Unmatched ( or \\\\("}',
        },
    ),
    (
        {"pattern": "zzz", "path": "server"},
        {"0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep, 0.22 rg, 0.22 grep": '{"total_count": 0}'},
    ),
    (
        {"pattern": "", "path": "server/auth.py"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 4, "matches": [{"path": "server/auth.py", "line": 1, "content": "AUTH'
            '_PORT = 8080"}, {"path": "server/auth.py", "line": 2, "content": ""}, {"path": "serve'
            'r/auth.py", "line": 3, "content": "def handler():"}, {"path": "server/auth.py", "line'
            '": 4, "content": "    return AUTH_PORT"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 4, "matches": [{"path": "/ws/server/auth.py", "line": 1, "content": "'
            'AUTH_PORT = 8080"}, {"path": "/ws/server/auth.py", "line": 2, "content": ""}, {"path"'
            ': "/ws/server/auth.py", "line": 3, "content": "def handler():"}, {"path": "/ws/server'
            '/auth.py", "line": 4, "content": "    return AUTH_PORT"}]}',
        },
    ),
    (
        {"pattern": "auth", "path": ""},
        {"0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"total_count": 0, "error": "Path not found: "}'},
    ),
    (
        {"pattern": "auth", "path": None},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"error": "expected str, bytes or os.PathLike object, not NoneType"}'
        },
    ),
    (
        {"pattern": "auth", "context": "2.5"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep, 0.22 rg, 0.22 grep": "{\"error\": \"'>' not supported between instances of 'str' and 'int'\"}"
        },
    ),
    (
        {"pattern": "auth.*\\n", "path": "server/main.py"},
        {
            "0.19 rg": '{"total_count": 0, "error": "Search failed: the literal \'\\"\\\\n\\"\' is not allowe'
            "d in a regex\\nConsider enabling multiline mode with the --multiline flag (or -U for "
            'short).\\nWhen multiline mode is enabled, new line characters can be matched."}',
            "0.19 grep": '{"total_count": 1, "matches": [{"path": "server/main.py", "line": 2, "content": "prin'
            't(auth.handler())"}]}',
            "0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "server/main.py", "line": 1, "content": "impo'
            'rt auth"}, {"path": "server/main.py", "line": 2, "content": "print(auth.handler())"}]'
            ', "warning": "Pattern contains \\\\n — multiline mode (-U) was enabled automatically '
            'so the regex can match across line boundaries."}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "matches": [{"path": "/ws/server/main.py", "line": 2, "content": "'
            'print(auth.handler())"}]}',
        },
    ),
    (
        {"pattern": "def", "path": "docs/guide.md", "context": 3},
        {"0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep, 0.22 rg, 0.22 grep": '{"total_count": 0}'},
    ),
    (
        {"pattern": "Auth", "path": "docs/guide.md", "context": 1},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.22 rg": '{"total_count": 2, "matches": [{"path": "docs/guide.md", "line": 1, "content": "Auth '
            'lives in server/auth.py"}, {"path": "docs/guide.md-2-see ", "line": 5, "content": " t'
            'here"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/docs/guide.md", "line": 1, "content": "A'
            'uth lives in server/auth.py"}, {"path": "/ws/docs/guide.md-2-see ", "line": 5, "conte'
            'nt": " there"}]}',
        },
    ),
    (
        {"pattern": "*.py", "target": "files"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"total_count": 2, "files": ["./server/main.py", "./server/auth.py"]}'
        },
    ),
    (
        {"pattern": "*.py", "target": "find", "limit": 1},
        {
            "0.19 rg, 0.20 rg": '{"total_count": 1, "files": ["./server/main.py"], "truncated": true}\n\n[Hint: Result'
            "s truncated. Use offset=1 to see more, or narrow with a more specific pattern or file"
            "_glob.]",
            "0.19 grep, 0.20 grep": '{"total_count": 1, "files": ["./server/main.py"]}',
        },
    ),
    (
        {"pattern": "main", "target": "files"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep, 0.22 grep": '{"total_count": 0}',
            "0.22 rg": '{"total_count": 1, "files": ["./.git"]}',
        },
    ),
    (
        {"pattern": "server/*.py", "target": "files"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"total_count": 2, "files": ["./server/main.py", "./server/auth.py"]}'
        },
    ),
    (
        {"pattern": "server", "target": "files"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"total_count": 0}',
            "0.22 rg, 0.22 grep": '{"total_count": 1, "files": ["./server"]}',
        },
    ),
    (
        {"pattern": "*.md", "target": "files", "path": "server/auth.py"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 1, "files": ["server/auth.py"]}',
            "0.19 grep, 0.20 grep, 0.22 grep": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "*.py", "target": "files", "path": "server", "offset": 5},
        {"0.19 rg, 0.20 rg, 0.22 rg, 0.22 grep": '{"total_count": 2}', "0.19 grep, 0.20 grep": '{"total_count": 0}'},
    ),
    (
        {"pattern": "*.py", "target": "files", "order": "bogus"},
        {
            "0.19 rg, 0.19 grep, 0.20 rg, 0.20 grep": '{"total_count": 2, "files": ["./server/main.py", "./server/auth.py"]}',
            "0.22 rg, 0.22 grep": '{"total_count": 0, "error": "Invalid file search order \'bogus\'; expected \'discover'
            "y' or 'modified'.\"}",
        },
    ),
    (
        {"pattern": "auth", "output_mode": "files_only"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 5, "files": ["./bom.txt", "./codes.txt", "./crlf.txt", "./docs/guide.'
            'md", "./server/main.py"]}'
        },
    ),
    (
        {"pattern": "HANDLER"},
        {
            "0.19 rg": '{"total_count": 0}',
            "0.20 rg": '{"total_count": 0, "warning": "0 exact matches, but 2 case-insensitive match(es) in 2'
            " file(s) — the pattern's casing may be wrong.\"}",
            "0.22 rg": '{"total_count": 0, "warning": "0 exact matches, but 2 case-insensitive match(es) in 2'
            " file(s): ./server/auth.py, ./server/main.py — the pattern's casing may be wrong.\"}",
        },
    ),
    (
        {"pattern": "AUTH LIVES", "path": "docs/guide.md"},
        {
            "0.19 rg": '{"total_count": 0}',
            "0.20 rg": '{"total_count": 0, "warning": "0 exact matches, but 1 case-insensitive match(es) in 1'
            " file(s) — the pattern's casing may be wrong.\"}",
            "0.22 rg": '{"total_count": 0, "warning": "0 exact matches, but 1 case-insensitive match(es) in 1'
            " file(s):  — the pattern's casing may be wrong.\"}",
        },
    ),
    (
        {"pattern": "handler()", "path": "server/auth.py", "output_mode": "count"},
        {"0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 1, "counts": {"server/auth.py": 1}}'},
    ),
    (
        {"pattern": "in a log"},
        {
            "0.19 rg": '{"total_count": 0}',
            "0.20 rg": '{"total_count": 0, "warning": "0 matches in visible files, but 1 match(es) in 1 hidde'
            "n or gitignored file(s) — these are excluded by default. Search the hidden path expli"
            'citly to include them."}',
            "0.22 rg": '{"total_count": 0, "warning": "0 matches in visible files, but 1 match(es) in 1 hidde'
            'n or gitignored file(s): ./note.log — these are excluded by default."}',
        },
    ),
    (
        {"pattern": "auth.handler()"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 1, "matches": [{"path": "./server/main.py", "line": 2, "content": "pr'
            'int(auth.handler())"}]}'
        },
    ),
    (
        {"pattern": "auth", "file_glob": "!*.txt", "output_mode": "count"},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 4, "counts": {"./docs/guide one.md": 1, "./docs/guide.md": 1, "./serv'
            'er/main.py": 2}}'
        },
    ),
    (
        {"pattern": "auth", "path": "build"},
        {
            "0.19 rg, 0.22 rg": '{"total_count": 0}',
            "0.19 grep": '{"total_count": 1, "matches": [{"path": "build/out.log", "line": 1, "content": "auth '
            'in a build"}]}',
            "0.20 rg": '{"total_count": 0, "warning": "0 matches in visible files, but 1 match(es) in 1 hidde'
            "n or gitignored file(s) — these are excluded by default. Search the hidden path expli"
            'citly to include them."}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "matches": [{"path": "/ws/build/out.log", "line": 1, "content": "a'
            'uth in a build"}]}',
        },
    ),
    (
        {"pattern": "auth", "file_glob": "server/*.py", "output_mode": "count"},
        {"0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 2, "counts": {"./server/main.py": 2}}'},
    ),
    (
        {"pattern": "nope(", "path": "server", "limit": 1},
        {
            "0.19 rg, 0.20 rg": '{"total_count": 0, "error": "Search failed: regex parse error:\\n    nope(\\n        '
            '^\\nerror: unclosed group"}',
            "0.22 rg": '{"total_count": 0}',
        },
    ),
    (
        {"pattern": "print(auth.handler())", "path": "server"},
        {
            "0.19 rg": '{"total_count": 0}',
            "0.20 rg": '{"total_count": 0, "warning": "0 regex matches, but 1 literal match(es) — the pattern'
            " contains regex metacharacters that likely need escaping (or pass a simpler substring"
            ')."}',
            "0.22 rg": '{"total_count": 0, "warning": "0 regex matches, but 1 literal match(es) in 1 file(s):'
            " server/main.py — the pattern contains regex metacharacters that likely need escaping"
            ' (or pass a simpler substring)."}',
        },
    ),
    (
        {"pattern": "auth", "limit": 3},
        {
            "0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 3, "matches": [{"path": "./bom.txt", "line": 1, "content": "auth bom"'
            '}, {"path": "./codes.txt", "line": 1, "content": "red \\u001b[31mauth\\u001b[0m"}, {"'
            'path": "./codes.txt", "line": 4, "content": "lone\\rauth"}]}'
        },
    ),
    (
        {"pattern": "auth", "path": "/ws/server", "output_mode": "count"},
        {"0.19 rg, 0.20 rg, 0.22 rg": '{"total_count": 2, "counts": {"/ws/server/main.py": 2}}'},
    ),
    (
        {"pattern": "*.nope", "target": "files"},
        {"0.19 rg, 0.20 rg": '{"total_count": 0}', "0.22 rg": '{"total_count": 1, "files": ["./.git"]}'},
    ),
    ({"pattern": "a+", "path": "long.txt"}, {"0.19 grep": '{"total_count": 0}'}),
    (
        {"pattern": "auth", "path": "./server/main.py"},
        {
            "0.19 grep": '{"total_count": 2, "matches": [{"path": "./server/main.py", "line": 1, "content": "im'
            'port auth"}, {"path": "./server/main.py", "line": 2, "content": "print(auth.handler()'
            ')"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/server/main.py", "line": 1, "content": "'
            'import auth"}, {"path": "/ws/server/main.py", "line": 2, "content": "print(auth.handl'
            'er())"}]}',
        },
    ),
    (
        {"pattern": "auth", "path": "/ws/server/main.py"},
        {
            "0.19 grep, 0.20 grep, 0.22 grep": '{"total_count": 2, "matches": [{"path": "/ws/server/main.py", "line": 1, "content": "'
            'import auth"}, {"path": "/ws/server/main.py", "line": 2, "content": "print(auth.handl'
            'er())"}]}'
        },
    ),
    (
        {"pattern": "a|b", "path": "server/main.py"},
        {
            "0.19 grep": '{"total_count": 0}',
            "0.20 grep, 0.22 grep": '{"total_count": 3, "matches": [{"path": "/ws/server/main.py", "line": 1, "content": "'
            'import auth"}, {"path": "/ws/server/main.py", "line": 2, "content": "print(auth.handl'
            'er())  "}, {"path": "/ws/server/main.py", "line": 3, "content": "no newline at end"}]'
            "}",
        },
    ),
    (
        {"pattern": "bom", "path": "bom.txt"},
        {
            "0.19 grep": '{"total_count": 1, "matches": [{"path": "bom.txt", "line": 1, "content": "\ufeffauth bom"}]}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "matches": [{"path": "/ws/bom.txt", "line": 1, "content": "\ufeffa'
            'uth bom"}]}',
        },
    ),
    (
        {"pattern": "zzz\\n", "path": "server"},
        {
            "0.19 grep, 0.20 grep, 0.22 grep": '{"total_count": 0, "warning": "0 results found. Note: search_files content search is '
            "line-oriented and does not run ripgrep with -U/--multiline, so `\\\\n` in the regex d"
            "oes not match line breaks. Use context=N to inspect neighboring lines, or escape as `"
            '\\\\\\\\n` when searching for a literal backslash+n."}'
        },
    ),
    (
        {"pattern": "guide", "path": ".", "file_glob": "*one.md"},
        {
            "0.19 grep": '{"total_count": 0}',
            "0.20 grep, 0.22 grep": '{"total_count": 1, "matches": [{"path": "/ws/docs/guide one.md", "line": 1, "content"'
            ': "auth guide"}]}',
        },
    ),
    (
        {"pattern": "auth", "path": "server docs"},
        {
            "0.20 rg, 0.22 rg": '{"total_count": 4, "matches": [{"path": "server/main.py", "line": 1, "content": "impo'
            'rt auth"}, {"path": "server/main.py", "line": 2, "content": "print(auth.handler())"},'
            ' {"path": "docs/guide one.md", "line": 1, "content": "auth guide"}, {"path": "docs/gu'
            'ide.md", "line": 1, "content": "Auth lives in server/auth.py"}], "warning": "path con'
            'tained 2 entries; searched 2 that exist"}'
        },
    ),
)


# --- helpers ------------------------------------------------------------------


def snapshot_of(texts: Mapping[str, str], skipped: Mapping[str, str] | None = None) -> Any:
    files = {
        path: store.SnapshotFile(text, len(text.encode()), 1000.0 + age, path.endswith(".log"))
        for age, (path, text) in enumerate(texts.items())
    }
    return store.Snapshot(files, {}, dict(skipped or {}))


def synthesizer(
    hermes: str = "0.22.2",
    search: str = "rg",
    texts: Mapping[str, str] = FILES,
    *,
    skipped: Mapping[str, str] | None = None,
    git: bool = True,
    root: str = "/ws",
    learned: Mapping[str, Any] | None = None,
    **host: Any,
) -> Any:
    place = snapshots.Workspace(root, windows=host.get("platform") == "win32", fold_case=host.get("fold_case", False))
    return synth.Synthesizer(
        snapshot_of(texts, skipped),
        place,
        store.Recorder(**{"hermes": hermes, "platform": "linux", "search": search, "git": git, **host}),
        {"rg_major": 13} if learned is None else learned,
    )


def search(answerer: Any, pattern: str, **args: Any) -> dict[str, Any]:
    return json.loads(answerer.answer("search_files", {"pattern": pattern, **args}))


# --- tests --------------------------------------------------------------------


class RecordedAnswersTest(unittest.TestCase):
    maxDiff = None

    def check(self, tool: str, cases: Any, backends: tuple[str, ...]) -> None:
        made = {
            f"{version} {backend}".strip(): synthesizer(VERSIONS[version], backend or "rg")
            for version in VERSIONS
            for backend in backends
        }
        for args, answers in cases:
            for names, expected in answers.items():
                for name in names.split(", "):
                    with self.subTest(args=args, hermes=name):
                        self.assertEqual(made[name].answer(tool, args), expected)

    def test_reads_are_answered_as_each_version_did(self) -> None:
        self.check("read_file", READS, ("",))

    def test_searches_are_answered_as_each_version_and_engine_did(self) -> None:
        self.check("search_files", SEARCHES, ("rg", "grep"))


class ReadTest(unittest.TestCase):
    def read(self, text: str, hermes: str = "0.22.2", size: int | None = None, **args: Any) -> Any:
        file = store.SnapshotFile(text, len(text.encode()) if size is None else size)
        made = synth.Synthesizer(
            store.Snapshot({"a.txt": file}), snapshots.Workspace("/ws"), store.Recorder(hermes, "linux", "rg")
        )
        return json.loads(made.answer("read_file", {"path": "a.txt", **args}))

    def test_a_page_over_the_budget_ends_with_a_whole_line_and_says_where_to_go_on(self) -> None:
        out = self.read(("x" * 1499 + "\n") * 100)
        self.assertEqual(out["content"].count("\n") + 1, 66)
        self.assertEqual((out["truncated"], out["truncated_by"], out["next_offset"]), (True, "bytes", 67))
        self.assertEqual(list(out)[-3:], ["truncated_by", "next_offset", "hint"])
        self.assertIn("after 66 line(s) (showing lines 1-66 of 100). Use offset=67", out["hint"])

    def test_a_wide_cut_read_of_a_large_file_is_remarked_on(self) -> None:
        out = self.read("x\n" * 3000, size=512_001, limit=500)
        self.assertIn("This file is large (512,001 bytes).", out["_hint"])
        self.assertNotIn("_hint", self.read("x\n" * 3000, size=512_001, limit=200))

    def test_the_default_page_is_500_lines_before_0_22_and_2000_since(self) -> None:
        for hermes, last in (("0.19.0", 500), ("0.20.1", 500), ("0.22.2", 2000), ("", 2000)):
            out = self.read("x\n" * 2500, hermes)
            self.assertIn(f"(showing 1-{last} of 2500 lines)", out["hint"], hermes)

    def test_merge_conflicts_are_counted_since_0_22(self) -> None:
        text = "a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
        self.assertEqual(self.read(text)["conflict_blocks"], 1)
        self.assertNotIn("conflict_blocks", self.read(text, "0.19.0"))

    def test_long_lines_are_flagged_since_0_22(self) -> None:
        self.assertIs(self.read("x" * 2001 + "\n")["truncated_lines"], True)
        self.assertNotIn("truncated_lines", self.read("x" * 2001 + "\n", "0.20.1"))

    def test_a_text_with_a_binary_ending_is_refused_by_its_name(self) -> None:
        made = synthesizer(texts={"a.dat": "text\n"})
        self.assertEqual(
            json.loads(made.answer("read_file", {"path": "a.dat"})),
            {
                "error": "Cannot read binary file 'a.dat' (.dat). Use vision_analyze for images, "
                "or terminal to inspect binary files."
            },
        )


class MissTest(unittest.TestCase):
    def missed(self, answerer: Any, tool: str, args: Mapping[str, Any]) -> str:
        with self.assertRaises(synth.Miss) as caught:
            answerer.answer(tool, args)
        return caught.exception.reason

    def test_a_read_the_snapshot_cannot_answer_says_why(self) -> None:
        made = synthesizer(skipped={"key.pem": "secret name"})
        for path, reason in (
            ("../etc/passwd", "outside the workspace"),
            ("nope.py", "not in the snapshot"),
            ("key.pem", "not in the snapshot (secret name)"),
            ("server", "a folder"),
            ("empty.txt/", "not in the snapshot"),
            ("", "no path is given"),
        ):
            with self.subTest(path):
                self.assertIn(reason, self.missed(made, "read_file", {"path": path}))

    def test_a_search_below_what_is_not_kept_is_a_miss(self) -> None:
        made = synthesizer(skipped={"key.pem": "secret name"})
        for path in ("..", "/", "lib", "key.pem", "server lib", "~/x"):
            with self.subTest(path):
                self.missed(made, "search_files", {"pattern": "x", "path": path})

    def test_documents_that_hermes_converts_are_misses(self) -> None:
        made = synthesizer(texts={"a.ipynb": "{}", "a.pdf": "%PDF"})
        self.missed(made, "read_file", {"path": "a.ipynb"})
        self.missed(made, "read_file", {"path": "a.pdf"})
        plain = synthesizer("0.19.0", texts={"a.pdf": "%PDF"})
        self.assertIn("1|%PDF", plain.answer("read_file", {"path": "a.pdf"}))

    def test_what_looks_like_an_option_is_a_miss(self) -> None:
        made = synthesizer()
        self.missed(made, "search_files", {"pattern": "-i"})
        self.missed(made, "search_files", {"pattern": "auth", "file_glob": "-x"})

    def test_reading_from_the_end_is_a_miss_since_0_23(self) -> None:
        args = {"path": "server/auth.py", "offset": -2}
        self.missed(synthesizer("0.23.1"), "read_file", args)
        self.assertIn("1|AUTH", synthesizer("0.22.2").answer("read_file", args))

    def test_an_error_whose_wording_depends_on_ripgrep_is_a_miss_while_its_version_is_unknown(self) -> None:
        self.missed(synthesizer(learned={}), "search_files", {"pattern": "(auth"})

    def test_patterns_for_the_grep_of_macos_are_misses_unless_they_are_plain(self) -> None:
        made = synthesizer(search="grep", platform="darwin")
        self.missed(made, "search_files", {"pattern": "a|b", "path": "server"})
        self.assertEqual(search(made, "def handler", path="server")["total_count"], 1)

    def test_other_tools_are_misses(self) -> None:
        self.missed(synthesizer(), "terminal", {"command": "ls"})

    def test_no_arguments_raise_anything_but_a_miss(self) -> None:
        odd: tuple[Any, ...] = (None, [], {}, 1.5, float("inf"), float("nan"), 10**30, "", "\0", "\ud800", True)
        keys = ("pattern", "path", "target", "file_glob", "limit", "offset", "output_mode", "context", "order")
        for made in (synthesizer("0.19.0", "grep"), synthesizer()):
            for tool in ("read_file", "search_files"):
                for key in keys:
                    for value in odd:
                        for base in (
                            {"pattern": "auth", "path": "server/auth.py"},
                            {"pattern": "*", "target": "files"},
                        ):
                            with self.subTest(tool=tool, key=key, value=value):
                                try:
                                    self.assertIsInstance(made.answer(tool, {**base, key: value}), str)
                                except synth.Miss:
                                    pass


class SearchTest(unittest.TestCase):
    def test_a_pattern_that_explodes_elsewhere_ends_at_once(self) -> None:
        made = synthesizer(texts={"a.txt": "a" * 5000 + "!\n"})
        self.assertEqual(search(made, r"(a+)+b|(a|aa)+$")["total_count"], 0)

    def test_ignored_files_are_found_by_name_or_by_a_glob_only(self) -> None:
        made = synthesizer()
        self.assertNotIn("log", json.dumps(search(made, "in a log", file_glob="!*.md").get("matches", "")))
        self.assertEqual(
            search(made, "auth", file_glob="*.log", output_mode="count")["counts"],
            {"./build/out.log": 1, "./note.log": 1},
        )
        self.assertEqual(search(made, "auth", path="note.log")["total_count"], 1)

    def test_a_folder_whose_files_are_all_ignored_counts_as_ignored_itself(self) -> None:
        texts = {"gen/a.log": "auth\n", "gen/b.log": "auth\n", "top.py": "auth\n"}
        made = synthesizer(texts=texts)
        self.assertEqual(search(made, "auth", file_glob="*.log")["total_count"], 0)
        self.assertEqual(search(made, "auth", path="gen")["total_count"], 2)

    def test_names_of_files_that_were_not_kept_are_listed_but_secrets_withheld(self) -> None:
        made = synthesizer(skipped={"logo.png": "binary", ".env": "hidden", "lib": "not a regular file"}, git=False)
        self.assertIn("./logo.png", search(made, "*.png", target="files")["files"])
        listed = search(made, "*.env", target="files")
        self.assertEqual(listed["total_count"], 1)
        self.assertTrue(listed["_omitted"].startswith("1 result(s) omitted"))

    def test_probes_name_the_files_since_0_22(self) -> None:
        self.assertEqual(
            search(synthesizer("0.20.1"), "HANDLER", path="server")["warning"],
            "0 exact matches, but 2 case-insensitive match(es) in 2 file(s) — the pattern's casing may be wrong.",
        )
        self.assertIn(
            "in 2 file(s): server/auth.py, server/main.py —", search(synthesizer(), "HANDLER", path="server")["warning"]
        )

    def test_context_of_two_hits_is_joined_where_it_meets(self) -> None:
        made = synthesizer(texts={"a.txt": "".join(f"line {n}\n" for n in range(1, 21))})
        rows = [
            m.split(":")[0].strip() for m in search(made, "line (3|6|15)$", context=1)["matches_text"].split("\n")[1:]
        ]
        self.assertEqual(rows, ["2", "3", "4", "5", "6", "7", "14", "15", "16"])

    def test_a_case_blind_disk_finds_a_file_under_any_spelling(self) -> None:
        made = synthesizer(fold_case=True)
        self.assertIn("AUTH_PORT", made.answer("read_file", {"path": "Server/AUTH.py"}))
        self.assertEqual(search(made, "def", path="SERVER/auth.py")["matches"][0]["path"], "SERVER/auth.py")

    def test_on_windows_ripgrep_joins_with_backslashes(self) -> None:
        made = synthesizer(platform="win32", root="C:\\ws")
        self.assertEqual(search(made, "def", path="server")["matches"][0]["path"], "server\\auth.py")
        self.assertEqual(search(made, "def")["matches"][0]["path"], ".\\server\\auth.py")
        self.assertEqual(search(made, "def", path="/c/ws/server")["matches"][0]["path"], "C:/ws/server\\auth.py")
        made = synthesizer(search="grep", platform="win32", root="C:\\ws")
        self.assertEqual(search(made, "def")["matches"][0]["path"], "/c/ws/server/auth.py")

    def test_oddities_of_gnu_grep_are_known(self) -> None:
        made = synthesizer("0.19.0", "grep", {"a.txt": "x{y\n{z\n"})
        self.assertEqual(
            search(made, "x[", path="a.txt"),
            {"total_count": 0, "error": "Search failed: grep: Invalid regular expression"},
        )
        self.assertEqual(search(made, "\\{", path="a.txt")["total_count"], 2)
        self.assertEqual(search(made, "^\\{", path="a.txt")["total_count"], 1)

    def test_grep_finds_nothing_under_a_dot_before_0_20(self) -> None:
        old = synthesizer("0.19.0", "grep")
        self.assertEqual(search(old, "auth"), {"total_count": 0})
        self.assertEqual(search(old, "auth", path="./server"), {"total_count": 0})

    def test_the_order_by_time_depends_on_ripgrep(self) -> None:
        args = {"target": "files", "order": "modified", "path": "server"}
        self.assertIn("requires ripgrep 14", search(synthesizer(), "*.py", **args)["error"])
        self.assertEqual(
            search(synthesizer(learned={"rg_major": 14}), "*.py", **args)["files"], ["server/main.py", "server/auth.py"]
        )
        with self.assertRaises(synth.Miss):
            search(synthesizer(learned={}), "*.py", **args)

    def test_sixteen_threads_get_the_answer_of_one(self) -> None:
        calls = [
            ("search_files", {"pattern": p, "path": path})
            for p in ("auth", r"\d+", "A|b", "HANDLER")
            for path in (".", "server")
        ] + [("read_file", {"path": path}) for path in FILES]
        expected = [synthesizer().answer(*call) for call in calls]
        made, wrong = synthesizer(), []

        def work() -> None:
            for _ in range(5):
                for call, answer in zip(calls, expected):
                    if made.answer(*call) != answer:
                        wrong.append(call)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class CoerceTest(unittest.TestCase):
    def test_defaults_and_spellings_of_one_call_become_equal(self) -> None:
        plain = synth.coerce_args("search_files", {"pattern": "x"})
        for same in (
            {"path": "."},
            {"limit": "50"},
            {"limit": 50.0},
            {"target": "grep"},
            {"offset": -3},
            {"output_mode": "bogus"},
            {"context": "0"},
            {"file_glob": ""},
            {"order": "modified"},
            {"x": 1},
        ):
            self.assertEqual(synth.coerce_args("search_files", {"pattern": "x", **same}), plain, same)

    def test_calls_of_different_meaning_stay_different(self) -> None:
        plain = synth.coerce_args("search_files", {"pattern": "x"})
        for other in (
            {"path": "./"},
            {"limit": 1},
            {"target": "files"},
            {"offset": 1},
            {"output_mode": "count"},
            {"context": 1},
            {"context": "1.5"},
            {"context": None},
            {"file_glob": "*"},
            {"pattern": "X"},
        ):
            self.assertNotEqual(synth.coerce_args("search_files", {"pattern": "x", **other}), plain, other)

    def test_a_blank_path_is_the_folder_since_0_22_only(self) -> None:
        for blank in ("", " ", None):
            self.assertEqual(synth.coerce_args("search_files", {"pattern": "x", "path": blank}, "0.22.2")["path"], ".")
            self.assertEqual(
                synth.coerce_args("search_files", {"pattern": "x", "path": blank}, "0.19.0")["path"], blank
            )

    def test_read_limits_depend_on_the_version_and_are_clamped(self) -> None:
        self.assertEqual(
            synth.coerce_args("read_file", {"path": "a"}, "0.19.0"), {"path": "a", "offset": 1, "limit": 500}
        )
        self.assertEqual(
            synth.coerce_args("read_file", {"path": "a", "limit": "9999", "offset": "x"}, "0.22.2"),
            {"path": "a", "offset": 1, "limit": 2000},
        )
        self.assertEqual(synth.coerce_args("read_file", {"path": "a", "offset": -5}, "0.23.5")["offset"], -5)

    def test_other_tools_keep_their_arguments(self) -> None:
        args = {"query": "x", "limit": "5"}
        self.assertEqual(synth.coerce_args("web_search", args), args)


class LearnTest(unittest.TestCase):
    def learned(self, hermes: str, backend: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, str]:
        made = synthesizer(hermes, backend)
        recorded = [store.Call(tool, args, made.answer(tool, args)) for tool, args in calls]
        return synth.learn(recorded, snapshot_of(FILES))

    def test_a_recorded_read_tells_the_family(self) -> None:
        read = ("read_file", {"path": "server/auth.py", "offset": 99})
        for name, hermes in VERSIONS.items():
            self.assertEqual(self.learned(hermes, "rg", read), {"family": name})

    def test_a_read_that_several_families_give_tells_nothing(self) -> None:
        self.assertEqual(self.learned("0.19.0", "rg", ("read_file", {"path": "server/auth.py"})), {})

    def test_a_recorded_search_tells_the_engine(self) -> None:
        for backend in ("rg", "grep"):
            self.assertEqual(self.learned("0.22.2", backend, ("search_files", {"pattern": "def"}))["search"], backend)

    def test_a_recorded_pattern_error_tells_the_ripgrep(self) -> None:
        self.assertEqual(self.learned("0.22.2", "rg", ("search_files", {"pattern": "(auth"})), {"rg_major": 13})

    def test_what_was_seen_wins_over_the_version(self) -> None:
        made = synthesizer("0.19.0", learned={"family": "0.22"})
        self.assertIn("not_found", made.answer("read_file", {"path": "server/auth.py"}))

    def test_results_of_any_shape_are_survived(self) -> None:
        calls = [
            store.Call("read_file", {"path": "server/auth.py"}, result)
            for result in (None, 5, "", "{", "[]", '{"content": 1}', {"content": "x"})
        ]
        self.assertEqual(synth.learn(calls, snapshot_of(FILES)), {})


if __name__ == "__main__":
    unittest.main()
