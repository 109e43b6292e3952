#!/bin/sh
# As which user jobs run: with all groups of their user, as the system lists them. Needs root, and a name space in which the lists of users can be others.
. "$(dirname "$0")/lib.sh"
if [ "$(id -u)" -ne 0 ] || ! unshare -m sh -c 'mount --bind /etc/group /etc/group' 2>/dev/null; then
	echo '1..0 # SKIP needs root and name spaces of mounts, to add a user with groups'
	exit 77
fi
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
export SHAREWELL_CONTROLLER="unix:$scratch/controller.sock"
chmod 711 "$scratch"
cp "$SHAREWELL" "$scratch/sharewell" && chmod 755 "$scratch/sharewell"
mkdir "$scratch/home" && chown 65529:65529 "$scratch/home"

# The user exists for the cluster alone, not for this system.
{ cat /etc/passwd && echo "swtest:x:65529:65529::$scratch/home:/bin/sh"; } >"$scratch/passwd"
{ cat /etc/group && printf 'swtest:x:65529:\nswone:x:64001:swtest\nswtwo:x:64002:other,swtest\nswthree:x:64003:other\n'; } >"$scratch/group"
chmod 644 "$scratch/passwd" "$scratch/group"
cat >"$scratch/known" <<'END'
#!/bin/sh
mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && shift && exec "$@"
END
chmod 755 "$scratch/known"
program=$SHAREWELL
cat >"$scratch/up" <<END
#!/bin/sh
exec unshare -m "$scratch/known" "$scratch" "$program" "\$@"
END
chmod 755 "$scratch/up"
SHAREWELL="$scratch/up" up --all-users --state "$scratch/state" --socket "$scratch/controller.sock"

(cd "$scratch/home" && exec env -i PATH="$PATH" LC_ALL=C.UTF-8 SHAREWELL_CONTROLLER="$SHAREWELL_CONTROLLER" \
	timeout 60 setpriv --reuid 65529 --regid 65529 --clear-groups "$scratch/sharewell" run -- id -G) >"$scratch/out" 2>"$scratch/err"
[ "$(tr ' ' '\n' <"$scratch/out" | sort | tr '\n' ' ')" = '64001 64002 65529 ' ]
said $? 'a job has all groups of its user, and no other'
end
