# Runs in the machine: programs of verbs, recorded, for rxe_test.py. $weft is the program, $programs the folder of the
# tests' own; what comes out lies in the working directory.
set -u
# Read over the machine's share once, not at every start.
cp "$weft" "$(dirname "$weft")/libweft-record.so" /tmp || exit 1
weft=/tmp/weft
. "$(dirname "${BASH_SOURCE[0]}")/pair.sh"

# alone NAME PROGRAM [ARGUMENT...]: one process on both devices.
alone() {
  local name=$1 status=0
  shift
  timeout 60 "$weft" record -o "$name.client.weft" -- "$@" >"$name.client.txt" 2>&1 || status=$?
  echo "$name: exit code $status, up $(cut -d' ' -f1 /proc/uptime) s"
}

perftest() { # NAME PROGRAM [OPTION...]
  local name=$1 program=$2
  shift 2
  pair "$name" 18515 rxe0 rxe1 "$program" -F "$@"
}

perftest write_bw ib_write_bw -s 65536 -n 200
perftest read_lat ib_read_lat -s 64 -n 100
perftest send_bw ib_send_bw -s 4096 -n 300
perftest many_pairs ib_write_bw -q 4 -s 4096 -n 100
perftest shared ib_send_bw --use-srq -q 2 -s 1024 -n 100

pair pingpong 18515 rxe0 rxe1 ibv_rc_pingpong -g 1 -n 50 -s 1024
pair pingpong_builder 18515 rxe0 rxe1 ibv_rc_pingpong -g 1 -n 50 -s 1024 -N

for program in verbs_program verbs_program_dlvsym; do
  alone "$program-classic" "$programs/$program" classic 10
  alone "$program-builder" "$programs/$program" builder 10
done
alone own_shared "$programs/verbs_program" shared 10
alone failing "$programs/verbs_program" failing 1

"$weft" record -o killed.client.weft -- "$programs/verbs_program" endless 1 &
for _ in $(seq 200); do # until something of its posts is in the file
  [ "$(stat -c %s killed.client.weft 2>/dev/null || echo 0)" -lt 10000 ] || break
  sleep 0.1
done
kill -9 $!
wait $! || echo "killed: exit code $?"

# again NAME TRACE: the trace's operations on both devices, recorded.
again() {
  local name=$1 trace=$2 server status=0
  timeout 60 "$weft" record -o "$name.server.weft" -- "$weft" replay "$trace" --device rxe1 >"$name.server.txt" 2>&1 &
  server=$!
  timeout 60 "$weft" record -o "$name.client.weft" -- "$weft" replay "$trace" --device rxe0 --peer 127.0.0.1 \
    >"$name.client.txt" 2>&1 || status=$?
  [ $status = 0 ] || kill $server 2>/dev/null || true
  wait $server || status=$?
  echo "$name: exit code $status"
}

again write_bw_again write_bw.client.weft
"$weft" trace merge pingpong.client.weft pingpong.server.weft --output pingpong.weft
again pingpong_again pingpong.weft
again own_again verbs_program-builder.client.weft

# How fast the same is done again: five runs, each recorded and done again by turns; and three times
# one over a link of 20 Mbit/s.
bandwidth() { perftest "$1" ib_write_bw -u 19 -t 16 -Q 1 -s 65536 -n 100; }
for round in 1 2 3 4 5; do
  bandwidth repeat-$round
  again repeat_again-$round repeat-$round.client.weft
done
for device in ra rb; do tc qdisc add dev $device root netem delay 1ms rate 20mbit limit 10000; done
bandwidth linked
for round in 1 2 3; do again linked_again-$round linked.client.weft; done
for device in ra rb; do tc qdisc del dev $device root; done

# What recording costs a program's message rate: each round once without and once with it, in turn.
for round in 1 2 3; do
  for how in bare recorded; do
    before=
    [ $how = bare ] || before="$weft record -o rate-$round.client.weft --"
    timeout 60 ib_write_bw -F -d rxe1 -s 64 -n 2000 >/dev/null 2>&1 &
    listening 18515
    # shellcheck disable=SC2086
    timeout 60 $before ib_write_bw -F -d rxe0 -s 64 -n 2000 127.0.0.1 >"rate-$round-$how.txt" 2>&1
    wait
  done
done
