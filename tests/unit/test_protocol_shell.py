"""Which commands of a shell would commit or push, and where."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.hooks.git_actions import GitAction, git_actions
from holdfast.protocol.hooks.shell import MAX_TEXT, read

HERE = {("commit", "")}
PUSH = {("push", "")}

COMMITS = [
    "git commit",
    "git commit -m 'x'",
    "  git   commit",
    "/usr/bin/git commit",
    "git -c user.name=x commit",
    "git -c user.name='A B' -c core.editor=true commit -m x",
    "git --no-pager commit",
    "git --work-tree=elsewhere commit",
    "git --work-tree elsewhere commit",
    "git --namespace x commit",
    'git "commit" -m x',
    "g'i't com\\mit",
    "git \\\n  commit -m x",
    "GIT_AUTHOR_NAME=x git commit",
    "A=1 B='2 3' git commit",
    "git add . && git commit -m x",
    "git add .; git commit -m x",
    "git add . ;git commit",
    "true || git commit",
    "sleep 1 & git commit",
    "git add .\ngit commit",
    "git add . # then\ngit commit",
    "echo x | git commit -F -",
    "echo x |& git commit -F -",
    "(git commit)",
    "( cd x; true ); git commit",
    "{ git commit; }",
    "! git commit",
    "if true; then git commit; fi",
    "if git commit; then true; fi",
    "for f in a b; do git commit $f; done",
    "while read f; do git commit $f; done < list",
    "case x in y) git commit ;; esac",
    "f() { git commit; }; f",
    "echo $(git commit)",
    'echo "done: $(git commit)"',
    "echo `git commit`",
    'echo "`git commit`"',
    "echo ${x:-$(git commit)}",
    "cat <(git commit)",
    "x=$(git commit)",
    "bash -c 'git commit'",
    'bash -c "git commit -m \\"x\\""',
    "sh -lc 'git commit'",
    "bash -o pipefail -c 'git commit'",
    "bash --norc -c 'git commit'",
    "/bin/sh -ec 'git add . && git commit'",
    "bash -c \"bash -c 'git commit'\"",
    "bash -c $'git add .\\ngit commit'",
    "env git commit",
    "env -i PATH=/bin git commit",
    "env -u HOME -- git commit",
    "env -S 'git commit'",
    "command git commit",
    "sudo git commit",
    "sudo -u me A=1 git commit",
    "doas git commit",
    "time git commit",
    "nohup git commit &",
    "nice -n 5 git commit",
    "timeout -k 1 60 git commit",
    "exec git commit",
    "ls | xargs git commit -m",
    "ls | xargs -n 1 -I{} git commit {}",
    "ls | xargs sh -c 'git commit'",
    "find . -name x -exec git commit {} \\;",
    "eval 'git commit'",
    "eval git commit",
    "trap 'git commit' EXIT",
    "su -c 'git commit' me",
    "bash <<EOF\ngit commit\nEOF",
    "bash -s <<'EOF'\ngit commit\nEOF",
    "sh <<-EOF\n\tgit commit\n\tEOF",
    "cat <<EOF | bash\ngit commit\nEOF",
    "bash <<< 'git commit'",
    "echo 'git commit' | sh",
    "cat <<EOF\n$(git commit)\nEOF",
    "cat <<EOF > f\nsome text\nEOF\ngit commit",
    "cat > f <<'EOF' && git commit\nsome (text\nEOF",
    'git commit -m "$(cat <<\'EOF\'\nIt\'s a message (with "quotes".\nEOF\n)"',
    "git commit 2>&1 | tail",
    "git commit > out.txt",
    "2> err git commit",
    "git commit &> out",
    "echo $((1 << 2)); git commit",
    "(( x << 2 ))\ngit commit",
    "git -c alias.ci=commit ci",
    "git -c alias.ci='!git commit' ci",
    "cd $SOMEWHERE && git commit",
    'git -C "$(pwd)" commit',
    "cd x && cd - && git commit",
    "(cd x && true); git commit",
    "git commit -m 'not a --dry-run'",
    "git commit -m '--dry-run'",
]

NOTHING = [
    "",
    "   ",
    "git",
    "git status",
    "git log --grep commit",
    "git log commit",
    "git commit-tree HEAD^{tree}",
    "git commit-graph write",
    "git config alias.ci commit",
    "git config --global push.default simple",
    "git -C push status",
    "git --git-dir commit status",
    "git stash push",
    "git subtree push",
    "git show HEAD:commit",
    "git commit --dry-run",
    "git push --dry-run origin",
    "git push -n",
    "git commit --help",
    "git help commit",
    "echo git commit",
    "echo 'git commit'",
    'echo "git commit"',
    "printf 'git commit\\n'",
    "grep 'git commit' file",
    'grep -r "git push" .',
    "rg git commit",
    "# git commit",
    "ls # git commit",
    "echo x#y && ls",
    "cat <<EOF\ngit commit\nEOF",
    "cat <<'EOF' > script.sh\n#!/bin/sh\ngit commit\n$(git commit)\nEOF",
    "cat <<EOF\n\\$(git commit)\nEOF",
    "python - <<'EOF'\nimport os\nos.system('git commit')\nEOF",
    "echo '$(git commit)'",
    "echo '`git commit`'",
    "echo \\$\\(git commit\\)",
    "command -v git commit",
    "which git commit",
    "man git commit",
    "ssh host git commit",
    "digit commit",
    "mygit commit",
    "git=commit",
    "x=(git commit)",
    "legit push",
    "bash commit.sh git commit",
    "sh -x script 'git commit'",
    "echo git; echo commit",
    "docker exec box git push",
    "git commit.txt",
    "'git commit'",
    "vim git commit",
    "cd git && ls commit",
]

ELSEWHERE = [
    ("git -C d commit", {("commit", "d")}),
    ("git -C /abs/d commit", {("commit", "/abs/d")}),
    ("git -C a -C b commit", {("commit", "a/b")}),
    ("git -C a -C /b commit", {("commit", "/b")}),
    ("git -C 'with space' commit", {("commit", "with space")}),
    ("git --git-dir=x/.git commit", {("commit", "x/.git")}),
    ("git --git-dir x/.git commit", {("commit", "x/.git")}),
    ("git -c a=b --git-dir=x commit", {("commit", "x")}),
    ("GIT_DIR=/r/.git git commit", {("commit", "/r/.git")}),
    ("env GIT_DIR=/r/.git git commit", {("commit", "/r/.git")}),
    ("env -C d git commit", {("commit", "d")}),
    ("cd d && git commit", {("commit", "d")}),
    ("cd d; cd e; git commit", {("commit", "d/e")}),
    ("cd -P d && git commit", {("commit", "d")}),
    ("pushd d && git commit", {("commit", "d")}),
    ("cd && git commit", {("commit", "~")}),
    ("cd ~/x && git commit", {("commit", "~/x")}),
    ("(cd d && git commit)", {("commit", "d")}),
    ("(cd d && git commit); git push", {("commit", "d"), ("push", "")}),
    ("cd d && bash -c 'cd e && git commit'", {("commit", "d/e")}),
    ("cd d && git -C .. commit", {("commit", "d/..")}),
    ("cd d && (git commit)", {("commit", "d")}),
    ("cd d && echo $(git commit)", {("commit", "d")}),
    ("git commit && git push", {("commit", ""), ("push", "")}),
    ("git push", PUSH),
    ("git push origin main", PUSH),
    ("git push --force-with-lease -u origin HEAD:main", PUSH),
    ("bash -c 'git -C d push'", {("push", "d")}),
]


def found(command: str) -> set[tuple[str, str]]:
    return {(action.name, action.directory) for action in git_actions(command)}


@pytest.mark.parametrize("command", COMMITS)
def test_a_commit_is_recognised_however_it_is_written(command: str) -> None:
    assert found(command) == HERE


@pytest.mark.parametrize("command", NOTHING)
def test_a_command_that_only_mentions_a_commit_is_none(command: str) -> None:
    assert found(command) == set()


@pytest.mark.parametrize(("command", "expected"), ELSEWHERE)
def test_the_directory_of_a_commit_or_push_is_told(command: str, expected: set[tuple[str, str]]) -> None:
    assert found(command) == expected


SCRAPS = st.sampled_from([*"gitcommpush -C$(){}`'\"\\<>|&;#=\n\t E", "git commit", "bash -c ", "<<E\n", "cd x"])


@given(st.lists(SCRAPS).map("".join))
def test_no_text_is_too_strange_to_be_read(command: str) -> None:
    for action in git_actions(command):
        assert action.name in ("commit", "push")


@given(st.text())
def test_every_word_that_is_read_stood_in_the_text(command: str) -> None:
    for one in read(command).commands:
        for word in one.words:
            assert set(word.text) <= set(command) | set("\n\t\r\a\b\x1b\f\v")


WRAPPERS = ["sudo ", "nice -n 1 ", "command ", "env -C a ", "env A=1 ", "A=1 ", "git -C a ", "find -exec ", "eval "]
QUICK = ["$(", '"$(', "x\n", "\\", *WRAPPERS]
COSTLY = ["(", "((", "$((", "`", '"${', "${", "<(", "<<E ", "bash -c '", "a=(", "{ "]


def hostile(piece: str, size: int) -> str:
    return "git commit; " + piece * (size // len(piece) + 10)


def calls(text: str) -> int:
    """How many functions are called to read a text: that is the same on every machine."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        git_actions(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("piece", [*QUICK, *COSTLY])
def test_a_hostile_text_is_read_in_one_pass(piece: str) -> None:
    assert calls(hostile(piece, 4_000)) < 4.5 * calls(hostile(piece, 1_000))


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        *((piece, MAX_TEXT) for piece in QUICK),
        *((piece, MAX_TEXT // 16) for piece in COSTLY),
        *(pytest.param(piece, MAX_TEXT, marks=pytest.mark.long) for piece in COSTLY),
    ],
)
def test_a_hostile_text_hides_no_commit_before_it(piece: str, size: int) -> None:
    assert GitAction("commit") in git_actions(hostile(piece, size))


@pytest.mark.parametrize("piece", ["sudo ", "A=1 ", "find . -exec ", "env -u x nice -n 1 ", "env -C . "])
def test_a_commit_behind_any_number_of_wrappers_is_recognised(piece: str) -> None:
    assert {action.name for action in git_actions(piece * 5_000 + "git commit")} == {"commit"}
