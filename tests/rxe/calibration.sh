# Runs in the machine (tests/rxe/vm DIR 'weft=PROGRAM; . calibration.sh'): perftest between two devices whose link netem
# gives 10 ms and 20 Mbit/s each way, every run twice, NAME-a and NAME-b. tests/data/rxe/calibration holds what comes of it,
# both ends of a run merged.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/pair.sh"

for device in ra rb; do
  tc qdisc add dev $device root netem delay 10ms rate 20mbit limit 10000
done

# once NAME PROGRAM [OPTION...]: tried again where both ends wait for ever (shaped.sh says why).
once() {
  local name=$1
  shift
  for _ in 1 2 3; do
    rm -f "$name".*.weft
    limit=20 pair "$name" 18515 rxe0 rxe1 "$@" -F -u 19 && break
  done
  "$weft" trace merge "$name.client.weft" "$name.server.weft" -o "$name.weft" >/dev/null &&
    rm "$name.client.weft" "$name.server.weft"
}

for half in a b; do
  for size in 64 4096 16384; do
    once send-lat-$size-$half ib_send_lat -e -s $size -n 40
    once read-lat-$size-$half ib_read_lat -e -s $size -n 40
  done
  for size in 4096 16384 65536; do
    once write-bw-$size-$half ib_write_bw -t 16 -Q 1 -s $size -n 60
    once read-bw-$size-$half ib_read_bw -t 16 -Q 1 -s $size -n 60
    once send-bw-$size-$half ib_send_bw -t 16 -Q 1 -s $size -n 60
  done
done
