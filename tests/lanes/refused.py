"""Commands that no replay may answer: not plain, not read-only, or not certain."""

from __future__ import annotations

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
