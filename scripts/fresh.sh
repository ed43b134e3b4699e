#!/usr/bin/env bash
# Do the README's two commands work on a new machine? Make a bare Debian with Python and make in
# it, put a clone of HEAD there, and run `make demo` and `make test` as a newcomer would.
#
#     scripts/fresh.sh            # or: make fresh
#
# Needs root, debootstrap and a Debian host, whose apt and pip settings (mirrors, proxies,
# certificates, local package folders) are lent to the chroot. The bare system is cached as a
# tarball in .cache/; FRESH_REBUILD=1 makes it anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { echo "fresh.sh: $*" >&2; exit 1; }
((EUID == 0)) || die "run as root: chroot and mount need it"
command -v debootstrap >/dev/null || die "install debootstrap first"
suite="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")"
[[ -n $suite ]] || die "the host is no Debian release"

# ---- the bare system ---------------------------------------------------------------------------
base=".cache/debian-$suite.tar"
if [[ ! -f $base || -n ${FRESH_REBUILD:-} ]]; then
    mkdir -p .cache
    # debootstrap knows nothing of apt's settings: read the mirror and the proxies off them.
    mirror_of_host() {
        apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
            awk -v suite="$suite" '$2 == suite && !found { print $1; found = 1 }'
    }
    mirror="$(mirror_of_host)"
    if [[ -z $mirror ]]; then # no package lists yet
        apt-get update -qq
        mirror="$(mirror_of_host)"
    fi
    [[ -n $mirror ]] || die "apt names no mirror for $suite"
    eval "$(apt-config shell apt_http Acquire::http::Proxy apt_https Acquire::https::Proxy)"
    new="$(mktemp -d)"
    trap 'umount "$new/root/proc" 2>/dev/null; rm -rf --one-file-system "$new"' EXIT
    http_proxy="${apt_http:-${http_proxy:-}}" https_proxy="${apt_https:-${https_proxy:-}}" \
        debootstrap --variant=minbase --include=python3,make "$suite" "$new/root" "$mirror" \
        >"$new/log" 2>&1 || { tail -n 20 "$new/log" >&2; die "debootstrap failed"; }
    rm -f "$new"/root/var/cache/apt/archives/*.deb
    tar -C "$new/root" -cf "$base.new" .
    mv "$base.new" "$base"
    rm -rf --one-file-system "$new"
fi

# ---- the chroot, and its end -------------------------------------------------------------------
work="$(mktemp -d)"
root="$work/root"
mounts=()
clean_up() {
    local i link
    # After an interrupt something may still run in the chroot, and only this script started it.
    for link in /proc/[0-9]*/root; do
        [[ $(readlink "$link" 2>/dev/null) != "$root" ]] || kill -KILL "${link//[^0-9]/}" || true
    done
    for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
        umount "${mounts[i]}" || umount -l "${mounts[i]}" || true
    done
    # Whatever is still mounted below is the host's: leave the folder rather than delete through it.
    if grep -qF " $root/" /proc/self/mounts; then
        echo "fresh.sh: could not unmount everything below $root; left as it is" >&2
    else
        rm -rf --one-file-system "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

mkdir "$root"
tar -C "$root" -xpf "$base"

bind() { # bind SOURCE [OPTIONS]: the host's folder at the same place in the chroot
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mounts+=("$root$1")
    [[ -z ${2:-} ]] || mount -o "remount,bind,$2" "$root$1"
}
mount -t proc proc "$root/proc"
mounts+=("$root/proc")
bind /dev
for path in /dev/pts /dev/shm; do
    [[ ! -d $path ]] || bind "$path"
done

# ---- the host's settings for apt and pip -------------------------------------------------------
lend() { # lend PATH...: copy files and folders of the host to the same place, links followed
    local path
    for path in "$@"; do
        [[ -e $path ]] || continue
        mkdir -p "$root$(dirname "$path")"
        rm -rf "${root:?}$path"
        cp -rL "$path" "$root$path"
    done
}
lend /etc/resolv.conf /etc/hosts /etc/apt /usr/share/keyrings /usr/local/share/ca-certificates \
    /etc/ssl/certs /etc/pip.conf /etc/xdg/pip/pip.conf
home=/root
for path in .config/pip/pip.conf .pip/pip.conf; do
    [[ -f ${HOME:-/root}/$path ]] || continue
    mkdir -p "$root$home/$(dirname "$path")"
    cp "${HOME:-/root}/$path" "$root$home/$path"
done
# Package folders on disk that pip is told to look in; an index in .../simple may point beside itself.
while read -r folder; do
    [[ -d $folder ]] && bind "$folder" ro
done < <(python3 -m pip config list |
    grep -E 'find-links|index-url' | tr -d "'\"" | tr ' =' '\n\n' |
    sed -n 's|^file://||; s|/$||; /^\//p' | sed 's|/simple$||' | sort -u)

environment=(HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    LANG=C.UTF-8 TERM="${TERM:-dumb}")
while IFS= read -r line; do
    environment+=("$line")
done < <(env | grep -iE '^(PIP_(CERT|DEFAULT_TIMEOUT|FIND_LINKS|INDEX_URL|EXTRA_INDEX_URL|PROXY|TRUSTED_HOST|DISABLE_PIP_VERSION_CHECK)|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=' || true)

# ---- the newcomer ------------------------------------------------------------------------------
place=/srv/dpreg
mkdir -p "$root$place"
git clone --quiet --no-hardlinks . "$root$place/main"
if [[ -d ../shared/data ]]; then
    mkdir -p "$root$place/shared"
    cp -rL ../shared/data "$root$place/shared/data"
    environment+=(DPREG_DATA="$place/shared/data")
fi

for command in "make demo" "make test"; do
    echo "== $command"
    start=$SECONDS
    env -i "${environment[@]}" chroot "$root" /bin/bash -c "cd $place/main && $command" </dev/null \
        || die "'$command' failed on a bare Debian $suite"
    echo "== $command took $((SECONDS - start)) s"
done
echo "== both commands work on a bare Debian $suite"
