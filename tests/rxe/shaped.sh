# Runs in the machine (tests/rxe/vm DIR '. .../shaped.sh'): perftest over links of known delay and rate. $weft is the
# program; the traces come to the working directory. tests/data/rxe holds those of one run.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/pair.sh"

tc qdisc add dev ra root netem delay 10ms
tc qdisc add dev rb root netem delay 10ms
# Waiting for events leaves the processor to the links. Now and then both ends wait for ever: perftest has one channel for
# both of its completion queues, of which that of sends has one entry, and may take the one's event for the other's.
for _ in 1 2 3; do
  rm -f delay-10ms.*.weft
  limit=20 pair delay-10ms 18515 rxe0 rxe1 ib_send_lat -e -F -s 64 -n 50 && break
done

tc qdisc replace dev ra root netem delay 1ms rate 80mbit limit 10000
tc qdisc replace dev rb root netem delay 1ms
pair rate-80mbit 18515 rxe0 rxe1 ib_write_bw -F -u 19 -s 65536 -n 100

tc qdisc del dev ra root
tc qdisc del dev rb root
pair plain-write 18515 rxe0 rxe1 ib_write_bw -F -s 65536 -n 100
pair plain-lat 18515 rxe0 rxe1 ib_send_lat -F -s 64 -n 100

# A star: n0..n3 on a bridge, 10.78.0.1..4; the bridge's port to each has a rate.
star() { # RATE
  local i j
  {
    echo "link add br0 type bridge stp_state 0 forward_delay 0"
    echo "link set br0 mtu 9000 up"
    for i in 0 1 2 3; do
      echo "link add h$i address 02:00:00:00:01:0$i mtu 9000 type veth peer name p$i mtu 9000"
      echo "link set p$i master br0 up"
      echo "addr add 10.78.0.$((i + 1))/32 dev h$i"
      echo "link set h$i up"
      echo "rule add pref 1$i iif h$i lookup local"
      echo "rule add pref 3$i oif h$i lookup 10$i"
      for j in 0 1 2 3; do
        [ $i = $j ] && continue
        echo "route add 10.78.0.$((j + 1)) dev h$i src 10.78.0.$((i + 1)) table 10$i"
        echo "neigh add 10.78.0.$((j + 1)) dev h$i lladdr 02:00:00:00:01:0$j"
      done
    done
  } | ip -batch - || return 1
  for i in 0 1 2 3; do
    echo 1 >/proc/sys/net/ipv4/conf/h$i/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/h$i/rp_filter
    echo 1 >/proc/sys/net/ipv6/conf/p$i/disable_ipv6
    rdma link add n$i type rxe netdev h$i
    tc qdisc add dev p$i root netem rate "$1" delay 100us limit 10000
  done
  echo 1 >/proc/sys/net/ipv6/conf/br0/disable_ipv6
}

star "${STAR_RATE:-20mbit}"
flow() { pair "$1" "$2" "$3" "$4" ib_write_bw -F -u 19 -s 65536 -n 100; }
flow star-alone 20001 n0 n3
flow star-incast-0 20002 n0 n3 &
flow star-incast-1 20003 n1 n3 &
wait
flow star-disjoint-0 20004 n0 n1 &
flow star-disjoint-2 20005 n2 n3 &
wait
