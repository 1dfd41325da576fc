# The first process of a machine, in mount and process namespaces of its own. It gives
# the machine the folders that programs know by their usual names, says that it is ready
# and then only collects processes that have lost their parents.
#
# $1 is the folder of the machine; $2 and $3 hold the programs of Kubernetes and of
# containerd. Inside the machine these are /run/node and below /run/programs.
#
# mount -n: its notes in /run/mount would be hidden with the rest of /run.
set -eu

mount -n -t tmpfs -o mode=755 tmpfs "$1/run"
mkdir -p "$1/run/node" "$1/run/programs/kubernetes" "$1/run/programs/containerd"
mount -n --bind "$1" "$1/run/node"
mount -n --bind "$2" "$1/run/programs/kubernetes"
mount -n --bind "$3" "$1/run/programs/containerd"
mount -n --move "$1/run" /run
mount -n --bind /run/node/lib /var/lib
mount -n --bind /run/node/log /var/log
# Volumes that a pod mounts must be seen by the container runtime and the other way round.
mount -n --make-rshared /

: >/run/node/ready
sleep infinity &
while :; do wait; done
