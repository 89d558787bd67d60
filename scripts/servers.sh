# shellcheck shell=bash
# Finds the servers that the tests start, and installs those that are missing where this is root on Debian.
#
# Sourced by test.sh. Nothing here starts a server: the tests do that, each for itself, on free ports of the loopback
# interface. What comes out is in the variables that the tests read: ACEMQ_TEST_RABBITMQ_3, ACEMQ_TEST_RABBITMQ_4.

# Where another Debian release is unpacked for the RabbitMQ that this one does not have.
cache=${ACEMQ_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/acemq-tests}

apt_is_fresh=no
# Debian's packages ask this file before they start a service; while it says no, none is started.
policy=/usr/sbin/policy-rc.d
made_policy=no

provide_servers() {
    local server
    for server in rabbitmq3 rabbitmq4 postgres mariadb; do
        if is_left_out "$server"; then
            echo "$server: LEFT OUT, as ACEMQ_TEST_WITHOUT says"
            continue
        fi
        case $server in
            rabbitmq3) provide_rabbitmq 3 "${ACEMQ_TEST_RABBITMQ_3_RELEASE:-bookworm}" ;;
            rabbitmq4) provide_rabbitmq 4 "${ACEMQ_TEST_RABBITMQ_4_RELEASE:-trixie}" ;;
            postgres) provide_program postgres postgresql has_postgres ;;
            mariadb) provide_program mariadb mariadb-server has_mariadb ;;
        esac
    done
}

is_left_out() { # NAME
    case ,${ACEMQ_TEST_WITHOUT:-}, in *",$1,"*) return 0 ;; *) return 1 ;; esac
}

# --- RabbitMQ -------------------------------------------------------------------------------------------------------

provide_rabbitmq() { # MAJOR RELEASE
    local major=$1 release=$2 variable=ACEMQ_TEST_RABBITMQ_$1 root version
    root=${!variable:-}
    if [ -n "$root" ]; then
        version=$(rabbitmq_version "$root")
        [[ $version == "$major".* ]] || give_up "$variable names $root, where no RabbitMQ $major.x is"
    elif [[ $(rabbitmq_version /) == "$major".* ]]; then
        root=/
    elif [[ $(rabbitmq_version "$cache/$release") == "$major".* ]]; then
        root=$cache/$release
    else
        may_install || tell_how_and_give_up "RabbitMQ $major.x"
        refresh_apt
        if [[ $(candidate rabbitmq-server) == "$major".* ]]; then
            install_packages rabbitmq-server
            root=/
        else
            unpack_release "$release"
            root=$cache/$release
        fi
        [[ $(rabbitmq_version "$root") == "$major".* ]] ||
            give_up "Debian $release has RabbitMQ $(rabbitmq_version "$root"), not $major.x"
    fi
    export "$variable=$root"
    echo "rabbitmq$major: $(rabbitmq_version "$root") in $root"
}

# What is installed below a root, or nothing.
rabbitmq_version() { # ROOT
    local folder
    [ -e "${1%/}/usr/lib/rabbitmq/bin/rabbitmq-server" ] || return 0
    for folder in "${1%/}"/usr/lib/rabbitmq/lib/rabbitmq_server-*; do
        [ -d "$folder" ] && echo "${folder##*/rabbitmq_server-}"
    done | head -n 1
}

# Unpacks a Debian release with its RabbitMQ into the cache. It is entered by `chroot` and never started as a system.
unpack_release() { # RELEASE
    local release=$1 mirror proxy partial=$cache/$1.partial lock
    command -v debootstrap >/dev/null || install_packages debootstrap
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || give_up "apt knows no mirror of Debian to take the release $release from"
    proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    mkdir -p "$cache"
    exec {lock}>"$cache/.lock"
    flock "$lock"
    # Another run may have done it while this one waited for the lock.
    if [ -z "$(rabbitmq_version "$cache/$release")" ]; then
        echo "unpacking Debian $release with rabbitmq-server into $cache/$release (about 400 MB)"
        forget_folder "$partial"
        if ! http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase --include=rabbitmq-server \
            "$release" "$partial" "$mirror" >"$cache/$release.log" 2>&1; then
            tail -n 20 "$cache/$release.log" >&2
            unmount_below "$partial"
            give_up "Debian $release could not be unpacked from $mirror; the whole output is in $cache/$release.log"
        fi
        unmount_below "$partial"
        printf '127.0.0.1 localhost\n::1 localhost\n' >"$partial/etc/hosts"
        rm -rf "$partial"/var/cache/apt/archives/*.deb "$partial"/var/lib/apt/lists/*
        forget_folder "$cache/$release"
        mv "$partial" "$cache/$release"
    fi
    exec {lock}>&-
}

debian_mirror() {
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 !~ /security|updates|backports/ && $1 ~ /^https?:/ && $1 ~ /debian/ { print $1; exit }'
}

# Removes a folder of the cache, never what may be mounted below it.
forget_folder() { # FOLDER
    unmount_below "$1"
    rm -rf --one-file-system "$1"
}

unmount_below() { # FOLDER
    local point
    awk -v folder="$1/" 'index($2, folder) == 1 { print $2 }' /proc/self/mounts | sort -r |
        while read -r point; do umount "$point"; done
}

# --- Databases ------------------------------------------------------------------------------------------------------

provide_program() { # NAME PACKAGE TEST
    local name=$1 package=$2 test=$3
    if ! "$test" >/dev/null; then
        may_install || tell_how_and_give_up "$name"
        install_packages "$package"
        "$test" >/dev/null || give_up "$package is installed, but its programs are not found"
    fi
    echo "$name: $("$test")"
}

has_postgres() {
    local folder
    for folder in /usr/lib/postgresql/*/bin; do
        if [ -x "$folder/initdb" ]; then
            "$folder/postgres" --version
            return
        fi
    done
    command -v initdb >/dev/null && postgres --version
}

has_mariadb() {
    local PATH=$PATH:/usr/sbin:/usr/local/sbin
    command -v mariadb-install-db >/dev/null && command -v mariadb >/dev/null && mariadbd --version
}

# --- Packages -------------------------------------------------------------------------------------------------------

may_install() {
    [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null
}

refresh_apt() {
    [ "$apt_is_fresh" = no ] || return 0
    apt-get update -q=2
    apt_is_fresh=yes
}

candidate() { # PACKAGE
    apt-cache policy "$1" | awk '$1 == "Candidate:" { print $2 }'
}

# Installs packages without starting what is in them, now or when the machine starts again.
install_packages() { # PACKAGE...
    local package log
    refresh_apt
    echo "installing $*"
    if [ ! -e "$policy" ]; then
        made_policy=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    log=$(mktemp)
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        give_up "apt-get could not install $*"
    fi
    rm -f "$log"
    clean_up_after_packages
    [ -d /run/systemd/system ] || return 0
    for package in "$@"; do
        case $package in
            rabbitmq-server) systemctl disable --quiet rabbitmq-server epmd.socket || true ;;
            mariadb-server) systemctl disable --quiet mariadb || true ;;
            postgresql) systemctl disable --quiet postgresql || true ;;
        esac
    done
}

# Also when the script ends in the middle of an installation.
clean_up_after_packages() {
    [ "$made_policy" = no ] || rm -f "$policy"
    made_policy=no
}

tell_how_and_give_up() { # WHAT
    cat >&2 <<END

$1 is not on this machine. One of these helps:

  * on Debian, run this script as root once: it installs what is missing, and starts none of it;
  * install RabbitMQ 3.x, RabbitMQ 4.x, PostgreSQL and MariaDB yourself; ACEMQ_TEST_RABBITMQ_3 and
    ACEMQ_TEST_RABBITMQ_4 name the root directory of an installation laid out as Debian does, / for this machine's own;
  * run everything in a container: docker compose run --rm test
  * leave servers out by name, such as ACEMQ_TEST_WITHOUT=rabbitmq3,mariadb, or all of them by --quick.
END
    exit 1
}
