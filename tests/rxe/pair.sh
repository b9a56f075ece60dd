# For scripts that run in the machine: perftest between two devices, both ends recorded. Wants $weft, a program with its
# library beside it.

# listening PORT: until a server listens there, but at most a minute.
listening() {
  local hex
  hex=$(printf ':%04X' "$1")
  for _ in $(seq 600); do
    ! grep -qE "$hex 0+:0000 0A" /proc/net/tcp /proc/net/tcp6 || return 0
    sleep 0.1
  done
  return 1
}

# pair NAME PORT FROM TO PROGRAM [OPTION...]: NAME.client.weft, NAME.server.weft and what both printed; nonzero where
# one of them failed.
pair() {
  local name=$1 port=$2 from=$3 to=$4 program=$5 server status=0
  shift 5
  timeout "${limit:-60}" "$weft" record -o "$name.server.weft" --salt shaped -- "$program" -p "$port" -d "$to" "$@" \
    >"$name.server.txt" 2>&1 &
  server=$!
  listening "$port"
  timeout "${limit:-60}" "$weft" record -o "$name.client.weft" --salt shaped -- "$program" -p "$port" -d "$from" "$@" 127.0.0.1 \
    >"$name.client.txt" 2>&1 || status=$?
  [ $status = 0 ] || kill $server 2>/dev/null || true
  wait $server || status=$?
  echo "$name: exit code $status, up $(cut -d' ' -f1 /proc/uptime) s"
  return $status
}
