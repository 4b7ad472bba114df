"""Commands that no replay may answer: not plain, not read-only, or not certain."""

from __future__ import annotations

import random

__all__ = ["PLAIN", "REFUSED", "random_refused"]

#: One a line.
REFUSED = """
cat app.py | head
cat app.py > copy.txt
cat app.py; ls
cat app.py && ls
cat < app.py
cat $HOME/app.py
cat `ls`
cat $(ls)
cat *.py
cat src/?ain.py
cat ~/app.py
cat -n app.py
cat -A app.py
cat
cat -
cat app.py -
cat src
cat nope.py
cat ../app.py
cat /etc/hostname
cat app.py &
cat app.py # note
head -c 10 app.py
head -n -1 app.py
head -n +1 app.py
head -q app.py
head -v app.py
head --lines=2 app.py
head app.py -n 2
head
tail -f app.py
tail -n +2 app.py
tail -c 5 app.py
tail -2 app.py setup.py
tail -n 2 app.py -q
sed 1,2p app.py
sed -n 1,2d app.py
sed -n '/def/p' app.py
sed -n 0,2p app.py
sed -n 1~2p app.py
sed -n 1,+2p app.py
sed -n '1,2p;4p' app.py
sed -i 1d app.py
sed -n -i 1,2p app.py
sed -n 1,2p app.py setup.py
sed -n 1,2w out app.py
wc app.py
wc -w app.py
wc -l
wc -l app.py setup.py
wc -lc app.py
ls -l
ls -la
ls -R
ls -t src
ls -F
ls src docs
ls nope
ls *.py
ls --color=never
find
find . -name '*.py' -delete
find . -name '*.py' -exec rm {} +
find . -iname '*.py'
find . -maxdepth 1 -name '*.py'
find . -type f
find . -name '[ab]*'
find . -name '*.py' -o -name '*.md'
find . -name '*.py' -print0
find src docs -name '*.py'
find . -type l -name '*'
find . -newer app.py
grep import
grep -v import app.py
grep -o import app.py
grep -A1 import app.py
grep -m1 import app.py
grep -P import app.py
grep -q import app.py
grep -h import app.py
grep -H import app.py
grep -e import app.py
grep -x import app.py
grep -s import nope.py
grep --include='*.py' -r import .
grep import app.py -n
grep import src
grep import *.py
grep -rn import . | head
grep -cl import app.py
grep -w 'a.b' app.py
grep -f app.py setup.py
grep -rn "import" . --color
egrep import app.py
rg -r x import app.py
rg -A1 import app.py
rg -v import app.py
rg -o import app.py
rg -U import app.py
rg --json import
rg -e import
rg -t py import
rg -g '*.py' import
rg --files
rg -uu import
rg import app.py -n
pwd -P
pwd; ls
cd src
cd src; ls
cd nope && pwd
cd .. && pwd
cd - && pwd
cd && pwd
cd / && ls
cd src && cat main.py | head
cd src && cd deep && ls
git ls-files src
git status
git log
git -C src ls-files
python app.py
python3 -c 'print(1)'
echo hello
env
FOO=1 cat app.py
sudo cat app.py
bash -c 'cat app.py'
nl app.py
less app.py
awk '{print}' app.py
xargs cat
tree
stat app.py
file app.py
du -sh .
touch new
rm app.py
mv app.py b.py
cp app.py b.py
mkdir d
cat app.py || true
! cat app.py
time cat app.py
cat "app.py" 2>/dev/null
cat app.py 2>&1
./app.py
type app.py
dir /b
cat 'app.py
cat app.py\\
""
"""


#: Plain commands, each of which a replay may answer, and what no replay may answer in their place.
PLAIN = (
    *("cat app.py", "head -n 3 app.py", "tail -2 app.py", "sed -n 1,3p app.py", "wc -l app.py", "ls", "ls -a src"),
    *("find . -name '*.py'", "grep -n import app.py", "grep -rl import src", "rg import src", "pwd", "git ls-files"),
)
_AFTER = (
    *(" | head", " | wc -l", " | sort -u", " | tee out", " | xargs cat", "|cat", " > out", " >> out", " 2>/dev/null"),
    *(
        " 2>&1",
        " < app.py",
        " &> out",
        "; ls",
        " && ls",
        " || ls",
        " &",
        " ; rm app.py",
        " && rm -rf src",
        "\nls",
        " # x",
    ),
    *(" $F", " `pwd`", " $(pwd)", " ~/app.py", " ../app.py", " /etc/passwd", " *.py", " src/*.py", " a?p.py", " '"),
)
_BEFORE = (
    *("LC_ALL=C ", "env ", "sudo ", "time ", "command ", "nice -n 5 ", "timeout 5 ", "xargs ", "eval ", "exec ", "! "),
    *("echo x; ", "true && ", "false || ", "cd .. && ", "cd nope && ", "cd src; ", "export A=1; ", "set -e; ", "\\"),
)
_FLAGS = (
    *("-Z", "-q", "-v", "-e", "-f", "-x", "-A2", "-@", "--color=always", "--help", "--version", "--null", "-print0"),
    *("-delete", "-exec rm {} ;", "-maxdepth 1", "--others", "-i.bak", "--include=*.py", "-j2", "--hidden", "-uu"),
)
_WRITES = (
    *("rm {}", "rm -f {}", "mv {} out", "cp {} out", "touch {}", "mkdir {}.d", "chmod +x {}", "ln -s {} out"),
    *(
        "sed -i s/a/b/ {}",
        "tee {}",
        "truncate -s 0 {}",
        "dd if={} of=out",
        "git add {}",
        "git checkout {}",
        "python {}",
    ),
    *("patch {} out", "ed {}", "install {} out", "shred {}", "make {}", "npm run {}", "curl -o {} http://localhost"),
)


def random_refused(rng: random.Random, count: int) -> list[str]:
    """Make commands that no replay may answer: none of them is plain, or each of them may write."""

    def more(plain: str) -> str:
        return plain + rng.choice(_AFTER)

    def led(plain: str) -> str:
        return rng.choice(_BEFORE) + plain

    def flagged(plain: str) -> str:
        program, _, rest = plain.partition(" ")
        return f"{program} {rng.choice(_FLAGS)} {rest}"

    def wrapped(plain: str) -> str:
        return rng.choice((f"({plain})", f"{{ {plain}; }}", f"bash -c {plain!r}", f"sh -c '{plain}'"))

    def writing(_: str) -> str:
        return rng.choice(_WRITES).format(rng.choice(("app.py", "src", "src/util.py", "new.txt")))

    return [rng.choice((more, led, flagged, wrapped, writing))(rng.choice(PLAIN)) for _ in range(count)]
