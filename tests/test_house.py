"""The house rules that a syntax tree can check: layout, limits, imports, and what each module shows."""

from __future__ import annotations

import ast
import functools
import re
import sys
import unittest
from pathlib import Path
from typing import Iterator

from tests.support import PACKAGE, REPO

#: Each module may import only what stands before it.
ORDER = ("cassette_store", "patterns", "snapshot", "synth_search", "middleware", "hooks", "suite", "cli", "__init__")
#: What Hermes publishes for plugins, and may be imported within a function.
HOST = {"agent", "gateway", "hermes_cli", "hermes_constants", "hermes_state", "plugins", "pm", "tools"}
TOP = {*(f"{name}.py" for name in ORDER if name != "suite"), "plugin.yaml", "README.md", "LICENSE"}
TOP |= {"tests", "demo", "docs", "reviews"}
#: Processes are started here only.
STARTER = "cli"

FILE_LINES = 1_700
FUNCTION_LINES = 40
FORMATTER_OFF = 12

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def product() -> dict[str, ast.Module]:
    """The plugin's own modules by name, those of `suite/` as `suite.<name>`."""
    paths = {path.stem: path for path in REPO.glob("*.py")}
    paths |= {f"suite.{path.stem}": path for path in (REPO / "suite").glob("*.py")}
    return {name: parsed(path) for name, path in paths.items()}


def written() -> list[Path]:
    """Every Python file that we wrote, the demo's shop left out: it is material."""
    folders = [REPO / name for name in ("suite", "tests", "demo")]
    found = [*REPO.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    return [path for path in found if "fixture-repo" not in path.parts and not path.name.startswith(".")]


def room(module: str) -> str:
    """The place of a module in `ORDER`: all of `suite/` is one."""
    return module.partition(".")[0]


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str, int]]:
    """Each imported module with its statement and its number of leading dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node, name, node.level) for name in names)
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name, 0) for alias in node.names)


class Layout(unittest.TestCase):
    def test_the_top_level_is_exactly_the_layout(self) -> None:
        seen = {path.name for path in REPO.iterdir() if not path.name.startswith(".")} - {"__pycache__"}
        self.assertEqual(seen - {"suite"}, TOP)

    def test_every_module_has_a_place_in_the_order(self) -> None:
        self.assertLessEqual({room(name) for name in product()}, set(ORDER))

    def test_no_file_is_too_long(self) -> None:
        for path in written():
            with self.subTest(path.relative_to(REPO).as_posix()):
                self.assertLessEqual(len(path.read_text("utf-8").splitlines()), FILE_LINES)

    def test_no_function_of_the_product_is_too_long(self) -> None:
        for module, tree in product().items():
            for node in ast.walk(tree):
                if isinstance(node, FUNCTIONS):
                    with self.subTest(f"{module}.{node.name}"):
                        self.assertLessEqual((node.end_lineno or 0) - node.lineno + 1, FUNCTION_LINES)

    def test_the_formatter_is_switched_off_for_a_few_tables_only(self) -> None:
        switch = re.compile(r"#\s*fmt:\s*(?:skip|off)")
        found = {path.name: len(switch.findall(path.read_text("utf-8"))) for path in written()}
        self.assertLessEqual(sum(found.values()), FORMATTER_OFF, {name: n for name, n in found.items() if n})


class Imports(unittest.TestCase):
    def test_modules_import_only_what_stands_earlier(self) -> None:
        for module, tree in product().items():
            earlier = set(ORDER[: ORDER.index(room(module))])
            for node, name, level in imports(tree):
                beside = room(module) == "suite" and level == 1  # another module of the suite
                if level and not beside:
                    with self.subTest(module=module, line=node.lineno):
                        self.assertIn(room(name), earlier)

    def test_only_the_standard_library_and_hermess_own_helpers_are_imported(self) -> None:
        known = HOST | set(sys.stdlib_module_names) | {"__future__"}
        for module, tree in product().items():
            for _, name, level in imports(tree):
                if not level:
                    with self.subTest(module):
                        self.assertIn(room(name), known)

    def test_imports_within_functions_are_of_hermes_or_of_what_is_seldom_needed(self) -> None:
        for module, tree in product().items():
            for node, name, level in imports(tree):
                with self.subTest(module=module, line=node.lineno):
                    if not level and room(name) in HOST:
                        self.assertGreater(node.col_offset, 0, "Hermes is imported at module level")
                    elif level and room(name) != "suite":  # a start of Hermes loads no more of it than it needs
                        self.assertEqual(node.col_offset, 0, "a module of ours is imported late")

    def test_a_start_of_hermes_loads_nothing_that_makes_or_reports_suites(self) -> None:
        trees, loaded, left = product(), set[str](), ["__init__"]
        while left:
            module = left.pop()
            loaded.add(module)
            for node in trees[module].body:
                if isinstance(node, ast.ImportFrom) and node.level:
                    base = ["suite"] * (room(module) == "suite" and node.level == 1) + [node.module or ""]
                    for one in node.names:
                        for name in (".".join(filter(None, [*base, *more])) for more in ([], [one.name])):
                            left += [name] * (name in trees and name not in loaded)
        self.assertIn("suite.door", loaded)
        self.assertFalse({"suite.many", "suite.stats", "suite.html", "suite.junit", "suite.plan"} & loaded, loaded)

    def test_processes_are_started_in_one_module_only(self) -> None:
        for module, tree in product().items():
            with self.subTest(module):
                names = {room(name) for _, name, _ in imports(tree)}
                if module != STARTER:
                    self.assertFalse({"subprocess", "multiprocessing", "pty"} & names)


def defined(tree: ast.Module) -> set[str]:
    """The names that a module gives to functions, classes and values of its own."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        for target in node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]:
            several = target.elts if isinstance(target, ast.Tuple) else [target]
            found |= {one.id for one in several if isinstance(one, ast.Name)}
    return found - {"__all__"}


def declared(tree: ast.Module) -> list[str] | None:
    """A module's `__all__`, or None where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def shown(tree: ast.Module) -> set[str]:
    """What others may use of a module: its `__all__`, or else what has no leading underscore."""
    names = declared(tree)
    return set(names) if names is not None else {name for name in defined(tree) if not name.startswith("_")}


def borrowed(tree: ast.Module) -> set[str]:
    """The modules of the standard library that a module imports: whoever names them there means them."""
    return {alias.asname or alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}


def uses(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, str, int]]:
    """What a file takes out of which of our modules, and where: (module, name, line)."""
    alias: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith(PACKAGE)):
            base = (node.module or "").removeprefix(PACKAGE).strip(".")
            if node.level == 1 and not {base, *(one.name for one in node.names)} & modules:
                base = f"suite.{base}".strip(".")  # a module of the suite names another
            for one in node.names:
                whole = f"{base}.{one.name}" if base else one.name
                if whole in modules:
                    alias[one.asname or one.name] = whole
                elif base in modules:
                    yield base, one.name, node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in alias:
            yield alias[node.value.id], node.attr, node.lineno


class Doors(unittest.TestCase):
    """`__all__` or a leading underscore tells what a module shows."""

    def test_what_is_shown_is_there(self) -> None:
        for module, tree in product().items():
            with self.subTest(module):
                names = declared(tree) or []
                self.assertLessEqual(set(names), defined(tree))
                self.assertEqual(len(names), len(set(names)))
                self.assertEqual([name for name in names if name.startswith("_")], [])

    def test_modules_and_tests_use_only_what_is_shown(self) -> None:
        trees = product()
        for path in written():
            for module, name, line in uses(parsed(path), set(trees)):
                with self.subTest(f"{path.relative_to(REPO).as_posix()}:{line}"):
                    self.assertIn(name, shown(trees[module]) | borrowed(trees[module]), f"{module} does not show it")

    def test_without_a_list_of_what_is_shown_all_else_has_an_underscore(self) -> None:
        trees = product()
        used = {(module, name) for path in written() for module, name, _ in uses(parsed(path), set(trees))}
        for module, tree in trees.items():
            if declared(tree) is None and module != "__init__":  # Hermes uses that one
                for name in sorted(shown(tree)):
                    with self.subTest(f"{module}.{name}"):
                        self.assertIn((module, name), used, "no other file uses it: an underscore, or an __all__")


class Signatures(unittest.TestCase):
    def test_every_signature_of_the_product_is_typed(self) -> None:
        for module, tree in product().items():
            for node in ast.walk(tree):
                if isinstance(node, FUNCTIONS):
                    with self.subTest(f"{module}.{node.name}"):
                        self.assertIsNotNone(node.returns)
                        given = node.args
                        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                        bare = [one.arg for one in named if one and not one.annotation]
                        self.assertLessEqual(set(bare), {"self", "cls"})

    def test_every_module_opens_with_what_it_is(self) -> None:
        for module, tree in product().items():
            with self.subTest(module):
                self.assertRegex(ast.get_docstring(tree) or "", r"^[A-Z]")


if __name__ == "__main__":
    unittest.main()
