# shellcheck shell=bash
# For tools/quickstart and tools/check: long commands that say how far they are. Sourced by bash.

# watched LOG COMMAND...: runs COMMAND with all that it says in LOG. Meanwhile says on standard error the last "n/m"
# with which a line of it began, as ninja and ctest number their work: in place on a terminal, else every 15 s.
watched() {
  local log=$1 status=0
  shift
  : >"$log"
  say_how_far "$log" "$BASHPID" &
  "$@" >"$log" 2>&1 || status=$?
  kill $! 2>/dev/null
  wait $! 2>/dev/null || true
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  return "$status"
}

say_how_far() {
  local log=$1 parent=$2 every=15 second=0 far
  if [ -t 2 ]; then every=1; fi
  while sleep 1 && kill -0 "$parent" 2>/dev/null; do
    second=$((second + 1))
    if [ $((second % every)) -ne 0 ]; then continue; fi
    far=$(tail -c 8192 "$log" | grep -oE '^ *\[?[0-9]+/[0-9]+' | tail -n 1 | tr -d ' [')
    if [ -z "$far" ]; then continue; fi
    if [ -t 2 ]; then
      printf '\r   [%4d s] %s\033[K' "$SECONDS" "$far" >&2
    else
      printf '   [%4d s] %s\n' "$SECONDS" "$far" >&2
    fi
  done
}
