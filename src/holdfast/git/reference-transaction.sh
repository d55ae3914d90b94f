#!/bin/sh
# Holdfast's gate: refuses to put a new commit on HEAD or a branch while a session in this worktree is not ready for it.
# Holdfast writes this file, and removes it when no session is blocked: see docs/protocol.md. A hook that was here before
# is in reference-transaction.before-holdfast; it is called as ever, and put back.
theirs=$0.before-holdfast
if [ "$1" != prepared ]; then
	[ ! -x "$theirs" ] || exec "$theirs" "$@"
	exit 0
fi
case $0 in
*/holdfast-gate.sh) common=${0%/*} ;; # called by a hook of the project's own
*) common=${0%/*}/.. ;;
esac
lines= changes= closed=
while read -r old new ref; do
	[ ! -x "$theirs" ] || lines="$lines$old $new $ref
"
	case $new in "$old" | ref:*) continue ;; *[!0]*) ;; *) continue ;; esac
	case $ref in HEAD | refs/heads/* | main-worktree/HEAD | worktrees/*/HEAD) changes="$changes $ref=$new" ;; esac
done

# Look at the gate in the git directory of one worktree ($1), which the others call $2.
check() {
	gate=$1/holdfast-gate
	[ -f "$gate" ] || return 0
	{ IFS= read -r home && IFS= read -r package && IFS= read -r place && IFS= read -r git && read -r known; } <"$gate" ||
		return 0
	if [ ! -d "$home" ] || [ ! -f "$package" ]; then
		echo "holdfast: Holdfast is gone from here, so commits are no longer checked." >&2
		drop
		return 0
	fi
	if ! [ "$1" -ef "$place" ]; then # a copy of the repository, or it was moved
		drop
		return 0
	fi
	closed=yes own=
	if [ "${GIT_DIR:-.git}" -ef "$1" ]; then own=yes; else read -r _ branch <"$1/HEAD"; fi
	new=
	for change in $changes; do
		ref=${change%=*}
		# The branches of another worktree are its own affair, but for the one that is checked out here.
		[ -n "$own" ] || [ "$ref" = "$branch" ] || [ "$ref" = "$2/HEAD" ] || continue
		new="$new ${change##*=}"
	done
	[ -n "$new" ] || return 0
	[ -x "$git" ] || git=git
	fresh || return 0
	there= # the others may be gone with their tags
	for commit in $known; do
		"$git" cat-file -e "$commit" 2>/dev/null && there="$there $commit"
	done
	[ -z "$there" ] || fresh $there || return 0
	PATH=/usr/bin:/bin:$PATH
	if [ -n "$(find "$gate" -mmin +1440)" ]; then # without a sign of life for a day, a session is given up
		drop
		return 0
	fi
	sed 1,5d "$gate" >&2
	exit 1
}

# Is a commit among those of `check` on no branch, no remote-tracking branch, and none of these ($*)?
fresh() {
	found=$(printf '%s\n' $new |
		GIT_GRAFT_FILE="$gate/none" "$git" --no-replace-objects rev-list -1 --stdin --not --branches --remotes $*) || found=?
	[ -n "$found" ]
}

drop() {
	PATH=/usr/bin:/bin:$PATH
	rm -f "$gate"
}

if [ -n "$changes" ]; then
	check "$common" main-worktree
	for directory in "$common"/worktrees/*; do
		check "$directory" "worktrees/${directory##*/}"
	done
fi
status=0
if [ -x "$theirs" ]; then
	printf '%s' "$lines" | "$theirs" "$@"
	status=$?
fi
if [ -n "$changes" ] && [ -z "$closed" ]; then # left behind: the worktree whose gate it was is gone
	PATH=/usr/bin:/bin:$PATH
	if [ -e "$theirs" ] || [ -L "$theirs" ]; then mv -f "$theirs" "$0"; else rm -f "$0"; fi
fi
exit $status
