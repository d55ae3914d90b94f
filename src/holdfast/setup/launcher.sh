# How agents start Holdfast. Their settings name this file and never change: Holdfast rewrites it when it is upgraded or
# moved. Run by sh with the arguments `hook EVENT` or `mcp`.
if [ -x "$python" ] && [ -f "$client" ]; then
  case $1 in
    hook)
      shift
      export HOLDFAST_LAUNCHER=1
      exec "$python" -I -S "$client" "$@"
      ;;
  esac
  exec "$python" -P -m holdfast "$@"
fi

# That installation is gone. Another one writes this file anew; a project's own programs are not tried.
data=${XDG_DATA_HOME:-$HOME/.local/share}
for found in "$script" "$HOME/.local/bin/holdfast" "$data/uv/tools/holdfast/bin/holdfast" \
  "$data/pipx/venvs/holdfast/bin/holdfast" "$data/holdfast/venv/bin/holdfast" "$(command -v holdfast)"; do
  case $found in
    "$PWD"/*) continue ;;
    /*) [ -f "$found" ] || continue ;;
    *) continue ;;
  esac
  real=$(readlink -f -- "$found" 2>/dev/null) || real=$found
  bin=${real%/*}
  # The script of an environment that was moved still names the Python of the old place.
  if [ -f "$bin/../pyvenv.cfg" ] && "$bin/python" -P -m holdfast --version >/dev/null 2>&1 </dev/null; then
    export HOLDFAST_LAUNCHER=repair
    exec "$bin/python" -P -m holdfast "$@"
  elif "$found" --version >/dev/null 2>&1 </dev/null; then
    export HOLDFAST_LAUNCHER=repair
    exec "$found" "$@"
  fi
done

if [ "$1" = hook ]; then
  # The next daemon, and `holdfast doctor`, tell of it.
  (umask 077 && printf '%s\n' "$2" >"$home/missed-hook") 2>/dev/null
  exit 0
fi
echo "holdfast: no installation was found. Install Holdfast again, or remove it from the agent's settings." >&2
exit 1
