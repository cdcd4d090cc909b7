#!/bin/sh
# A step as its container would have it: a file system, a process and capabilities of its own; the network is this machine's loopback.
#
# pod TOOLS FOLDER UID GID GROUP CAPABILITIES ESCALATION ARGUMENT…
#   TOOLS   where install-containers unpacked what the step's images hold
#   FOLDER  what the test prepared: `mounts` (lines "source target mode"), `shims` (what stands before the tools), `seen`, `script`
# The step's own variables are this script's environment. Process 1 is the step, so its /proc/1 is that of a container.
set -eu
tools=$1 pod=$2 uid=$3 gid=$4 group=$5 capabilities=$6 escalation=$7
shift 7
root=$pod/root
mount --make-rprivate /
mount -t tmpfs -o mode=0755 pod "$root"
cd "$root"
mkdir usr real etc proc dev sys tmp old tekton workspace home run var seen tekton/scripts etc/ssl var/tmp home/build
chmod 1777 tmp var/tmp
for folder in bin sbin lib lib64; do ln -s usr/$folder $folder; done
mount -t overlay -o "ro,lowerdir=$pod/shims:$tools/usr:/usr" overlay usr
mount -t overlay -o "ro,lowerdir=$tools/usr:/usr" overlay real
cp -r "$tools/etc/containers" etc/
mount --bind /etc/ssl etc/ssl
printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nbuild:x:1000:1000::/home/build:/bin/sh\n' >etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\nbuild:x:1000:\n' >etc/group
echo 'build:100000:65536' >etc/subuid
cp etc/subuid etc/subgid
echo '127.0.0.1 localhost' >etc/hosts
mount -t proc proc proc
mount --rbind /dev dev
mount --bind "$pod/seen" seen
touch tekton/scripts/step
mount --bind "$pod/script" tekton/scripts/step
while read -r source target mode; do
  mkdir -p ".$target"
  mount --bind "$source" ".$target"
  [ "$mode" = rw ] || mount -o remount,bind,ro ".$target"
done <"$pod/mounts"
chown -R 1000:1000 home/build 2>/dev/null || true
pivot_root . old
umount -l /old
rmdir /old
cd /
privileges=
[ "$escalation" = yes ] || privileges=--no-new-privs
exec /real/bin/setpriv --reuid "$uid" --regid "$gid" --groups "$group" --inh-caps=-all --bounding-set "$capabilities" \
  $privileges /tekton/scripts/step "$@"
