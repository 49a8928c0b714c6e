"""What is read out of mountinfo, and what is thought of each type of filesystem: lines as kernels have written them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard.core.diagnosis import Verdict
from taskyard.stores.directory.doctor import inspection
from taskyard.stores.directory.doctor.directory import ExaminedDirectory
from taskyard.stores.directory.filesystem import mounts, safety
from taskyard.stores.directory.filesystem.mounts import Mount

if TYPE_CHECKING:
    from pathlib import Path

LINES = {
    "ext4": "25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro",
    "xfs": "91 25 8:17 / /srv rw,noatime - xfs /dev/sdb1 rw,attr2,inode64,logbufs=8,noquota",
    "btrfs subvolume": "60 25 0:31 /@home /home rw,relatime shared:32 - btrfs /dev/nvme0n1p2 rw,ssd,space_cache=v2,subvolid=257",
    "tmpfs": "34 25 0:29 / /tmp rw,nosuid,nodev shared:14 - tmpfs tmpfs rw,size=8138796k,nr_inodes=1048576",
    "overlay": "812 700 0:58 / / rw,relatime master:271 - overlay overlay rw,lowerdir=/var/lib/l/A:/var/lib/l/B,upperdir=/u,workdir=/w",
    "no optional fields": "36 35 98:0 /mnt1 /mnt2 rw,noatime - ext3 /dev/root rw,errors=continue",
    "nfs4": "215 25 0:50 / /shared rw,relatime shared:110 - nfs4 files.example.org:/export/crew rw,vers=4.2,rsize=1048576,hard,proto=tcp,local_lock=none,addr=10.0.0.2",
    "nfs": "216 25 0:51 / /shared rw,relatime - nfs 10.0.0.2:/vol0 rw,vers=3,hard,nolock,local_lock=all",
    "nfs soft": "217 25 0:52 / /shared rw,relatime - nfs4 10.0.0.2:/vol0 rw,vers=4.1,soft,timeo=100",
    "nfs nocto": "218 25 0:53 / /shared rw,relatime - nfs4 10.0.0.2:/vol0 rw,vers=4.2,hard,nocto",
    "ceph": "90 25 0:46 / /mnt/ceph rw,relatime - ceph 10.0.0.5:6789:/ rw,name=crew,secret=<hidden>,acl",
    "cifs": "300 25 0:61 / /mnt/smb rw,relatime - cifs //nas/crew rw,vers=3.1.1,cache=strict,username=ada",
    "glusterfs": "301 25 0:62 / /mnt/g rw,relatime - fuse.glusterfs gluster1:/vol rw,user_id=0,group_id=0,allow_other",
    "sshfs": "302 25 0:63 / /mnt/ssh rw,nosuid,nodev,relatime - fuse.sshfs ada@host:/srv rw,user_id=1000,group_id=1000",
    "s3fs": "303 25 0:64 / /mnt/s3 rw,nosuid,nodev,relatime - fuse.s3fs s3fs rw,user_id=0,group_id=0,allow_other",
    "goofys": "304 25 0:65 / /mnt/s3 rw,relatime - fuse.goofys crew-bucket rw,user_id=0,group_id=0,default_permissions",
    "gcsfuse": "305 25 0:66 / /mnt/gcs rw,nosuid,nodev,relatime - fuse.gcsfuse crew-bucket rw,user_id=1000,group_id=1000",
    "rclone": "306 25 0:67 / /mnt/r rw,nosuid,nodev,relatime - fuse.rclone remote:crew rw,user_id=1000,group_id=1000",
    "s3fs without a subtype": "307 25 0:68 / /mnt/s3 rw,relatime - fuse s3fs rw,user_id=0,group_id=0",
    "docker desktop, fakeowner": "930 812 0:44 /host_mark/Users/ada/crew /work rw,nosuid,nodev,relatime - fakeowner /run/host_mark/Users rw,fakeowner",
    "docker desktop, grpcfuse": "931 812 0:45 /Users/ada/crew /work rw,nosuid,nodev,relatime - fuse.grpcfuse grpcfuse rw,user_id=0,group_id=0",
    "docker desktop, osxfs": "932 812 0:46 /Users/ada/crew /work rw,nosuid,nodev,noatime - fuse.osxfs osxfs rw,user_id=0,group_id=0,allow_other",
    "docker desktop, virtiofs": "933 812 0:47 /Users/ada/crew /work rw,relatime - virtiofs /run/host_mark/Users rw",
    "orbstack": "934 812 0:48 /Users/ada /mnt/mac rw,relatime - virtiofs mac rw",
    "virtiofs": "935 25 0:49 / /mnt/share rw,relatime - virtiofs share0 rw",
    "wsl2": "84 77 0:41 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\;uid=1000;gid=1000,trans=fd,rfd=5,wfd=5",
    "wsl1": "11 2 0:9 / /mnt/d rw,noatime - drvfs D: rw,case=off",
    "a FUSE that nobody knows": "308 25 0:69 / /mnt/x rw,relatime - fuse.jabberwock jabber rw,user_id=0,group_id=0",
}  # fmt: skip
UNSAFE = {
    "s3fs", "goofys", "gcsfuse", "rclone", "s3fs without a subtype", "docker desktop, fakeowner", "docker desktop, grpcfuse",
    "docker desktop, osxfs", "docker desktop, virtiofs", "orbstack",
}  # fmt: skip
DOUBTFUL = {
    "cifs",
    "glusterfs",
    "sshfs",
    "virtiofs",
    "wsl2",
    "wsl1",
    "a FUSE that nobody knows",
    "nfs soft",
    "nfs nocto",
}


def mount(name: str) -> Mount:
    parsed = Mount.parse(LINES[name])
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("name", LINES)
def test_each_type_of_filesystem_has_its_verdict(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ExaminedDirectory(str(tmp_path))
    place.mount = mount(name)
    monkeypatch.setattr(safety, "is_local", lambda _: False)
    found = inspection.filesystem(place)
    wanted = Verdict.REFUSE if name in UNSAFE else Verdict.WARN if name in DOUBTFUL else Verdict.GREEN
    assert found.verdict is wanted, found.reason
    assert found.measured["type"] == place.mount.kind
    assert (found.hint is None) == (wanted is Verdict.GREEN)


def test_a_line_tells_point_type_source_and_options() -> None:
    nfs = mount("nfs4")
    assert (nfs.point, nfs.kind, nfs.source) == ("/shared", "nfs4", "files.example.org:/export/crew")
    assert {"rw", "relatime", "vers=4.2", "hard"} <= nfs.options
    assert mount("wsl2").source == "C:\\"
    assert mount("no optional fields").kind == "ext3"


@pytest.mark.parametrize("line", ["", "25 1 254:1 / / rw", "25 1 254:1 - ext4 /dev/vda rw", "nonsense - ", " - "])
def test_what_is_no_line_of_mountinfo_is_passed_over(line: str) -> None:
    assert Mount.parse(line) is None


def test_spaces_tabs_and_backslashes_in_a_path_come_back() -> None:
    parsed = Mount.parse("40 25 0:30 / /mnt/my\\040crew\\011x\\134040 rw - tmpfs none rw")
    assert parsed is not None
    assert parsed.point == "/mnt/my crew\tx\\040"


def test_a_path_is_on_the_nearest_mount_above_it_and_of_two_on_one_point_on_the_later() -> None:
    known = [
        Mount(point, kind, "x", frozenset())
        for point, kind in (
            ("/", "ext4"),
            ("/srv", "xfs"),
            ("/srv/crew", "nfs"),
            ("/srv/crew", "tmpfs"),
            ("/srv/crews", "9p"),
        )
    ]

    def kind(path: str) -> str:
        found = mounts.around(path, known)
        assert found is not None
        return found.kind

    assert [kind(path) for path in ("/", "/etc", "/srv", "/srv/a", "/srv/crew", "/srv/crew/y", "/srv/crewel")] == [
        "ext4", "ext4", "xfs", "xfs", "tmpfs", "tmpfs", "xfs",
    ]  # fmt: skip
    assert mounts.within("/srv", known) == ["/srv/crew", "/srv/crews"]
    assert mounts.within("/srv/crew", known) == []
    assert mounts.within("/", known) == ["/srv", "/srv/crew", "/srv/crews"]
    assert mounts.around("/srv", []) is None


def test_a_system_without_mountinfo_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "MOUNTINFO", str(tmp_path / "nowhere"))
    assert mounts.mounts() == []
    assert safety.filesystem("/") is None
    assert inspection.filesystem(ExaminedDirectory(str(tmp_path))).verdict is Verdict.GREEN
