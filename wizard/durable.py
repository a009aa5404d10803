"""Changes to files that survive a kill and a power cut: on a local disk, or on any fsspec URL.

    write(url, data)      all of it or nothing: a temporary file beside it, fsync, rename, fsync of the directory
    create(url, data)     False where it exists already; of two at once one wins
    replace(url, …)       False where it is no longer what was seen
    move(source, target)  one rename where the store has one; else every file is copied and compared, the copies are
                          written down (`MOVED` beside the target), and only then is anything deleted

Every one of them can be killed at any instruction and called again with the same arguments.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from wizard import objects
from wizard.errors import RunbookError
from wizard.store import local_path, open_store

_CHUNK = 1024 * 1024
TEMPORARY = ".runbook-tmp"
"""How the names of half-written files end; whoever finds one may delete it."""
MOVED = ".runbook-moved"
"""How the name of the list ends that says: all of this was copied and compared, what is left at its source may go."""


def read(url: str) -> bytes | None:
    """None where there is no such file."""
    path = local_path(url)
    try:
        if path is None:
            return objects.read(url)
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def exists(url: str) -> bool:
    path = local_path(url)
    return objects.exists(url) if path is None else os.path.lexists(path)


def is_directory(url: str) -> bool:
    path = local_path(url)
    if path is None:
        return objects.is_directory(url)
    return os.path.isdir(path) and not os.path.islink(path)


def followed(url: str) -> str:
    """Where a local path leads that may be a link itself."""
    path = local_path(url)
    return url if path is None else os.path.realpath(path)


def names(url: str) -> list[str]:
    """What is in a directory, sorted; nothing where there is none."""
    path = local_path(url)
    if path is None:
        listing = open_store(url).list()
        if listing is not None and listing.error is not None:
            raise RunbookError(f"{url} cannot be listed: {listing.error}")
        return sorted((*listing.dirs, *listing.files)) if listing else []
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def files(url: str) -> Iterator[tuple[str, int]]:
    """Every file below a directory, hidden ones too, as (path below it, size), sorted."""
    path = local_path(url)
    if path is None:
        yield from objects.files(url)
        return
    for directory, below, here in os.walk(path):
        below.sort()
        for name in sorted(here):
            full = os.path.join(directory, name)
            yield os.path.relpath(full, path), os.lstat(full).st_size


def empty_directories(url: str) -> tuple[str, ...]:
    """Directories below one that hold nothing at all; on S3 a directory is there only where it has a marker."""
    path = local_path(url)
    if path is None:
        found = [below for below in objects.directories(url) if below]
        held = [f"{each}/" for each in found] + [below for below, _ in objects.files(url)]
        return tuple(one for one in found if sum(each.startswith(f"{one}/") for each in held) == 1)
    return tuple(
        sorted(os.path.relpath(at, path) for at, below, here in os.walk(path) if not below and not here and at != path)
    )


def size(url: str) -> tuple[int, int]:
    """(files, bytes) of a file or of everything below a directory; (0, 0) where there is nothing."""
    path = local_path(url)
    if path is not None and not os.path.isdir(path):
        return (1, os.lstat(path).st_size) if os.path.lexists(path) else (0, 0)
    sizes = [each for _, each in files(url)]
    return len(sizes), sum(sizes)


def make_directory(url: str) -> None:
    """An object store has none, and needs none."""
    path = local_path(url)
    if path is None:
        return
    missing = []
    while path and not os.path.isdir(path):  # a bare name has no directory before it
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        os.makedirs(each, exist_ok=True)
        sync_directory(os.path.dirname(each))


def write(url: str, data: bytes, mode: int = 0o666) -> None:
    """A file that is there keeps the mode it has."""
    path = local_path(url)
    if path is None:
        objects.write(url, data)
        return
    draft = _drafted(path, data, mode)
    try:
        if os.path.exists(path):
            shutil.copymode(path, draft)
            _same_owner(path, draft)
        os.replace(draft, path)
    except OSError:
        remove(draft)
        raise
    sync_directory(os.path.dirname(path))


def _same_owner(like: str, path: str) -> None:
    """Root may be the one who walks, and the job's own user is to read its file afterwards; others own what they write."""
    if os.geteuid() == 0:
        there = os.stat(like)
        with suppress(PermissionError):  # a file server may know no root
            os.chown(path, there.st_uid, there.st_gid)


def create(url: str, data: bytes) -> bool:
    path = local_path(url)
    if path is None:
        return objects.create(url, data)
    draft = _drafted(path, data)
    try:
        # A link, not a rename: it fails where the name is taken, and the name never holds half a file.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        remove(draft)
    sync_directory(os.path.dirname(path))
    return True


def replace(url: str, old: bytes, new: bytes) -> bool:
    """False where the file does not hold the old bytes. Of two at once one wins on S3; on a disk the caller sees to that."""
    if local_path(url) is None:
        return objects.replace(url, old, new)
    if read(url) != old:
        return False
    write(url, new)
    return True


def _drafted(path: str, data: bytes, mode: int = 0o666) -> str:
    """The bytes, on disk, in a temporary file beside `path`."""
    make_directory(os.path.dirname(path))
    draft = draft_of(path)
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        remove(draft)
        raise
    return draft


def draft_of(path: str) -> str:
    """A new name beside `path` for what is not whole yet."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4().hex[:8]}{TEMPORARY}")


def remove(url: str) -> None:
    """One file; nothing where it is gone already."""
    path = local_path(url)
    try:
        if path is None:
            objects.remove(url)
            return
        os.unlink(path)
        sync_directory(os.path.dirname(path))
    except FileNotFoundError:
        return


def remove_tree(url: str) -> None:
    """Everything below, for good. Only for what this tool made itself."""
    path = local_path(url)
    if path is None:
        objects.remove_tree(url)
    elif os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
        sync_directory(os.path.dirname(path))
    else:
        remove(path)


def remove_empty(url: str) -> None:
    """A directory, where nothing is in it."""
    path = local_path(url)
    if path is None:
        objects.remove_marker(url)
        return
    try:
        os.rmdir(path)
        sync_directory(os.path.dirname(path))
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def remove_empty_tree(url: str) -> None:
    """The directories of a tree that hold no file, itself included."""
    for below in reversed(directories(url)):
        remove_empty(_at(url, below))


def move(source: str, target: str, record: str | None = None) -> None:
    """A file or a whole directory. Half done, it is finished by calling it again.

    `record` is where the list of copies goes where there is no rename; beside the target unless told.
    """
    record = record or target + MOVED
    remove_drafts(record)
    if not exists(record):
        if exists(target):
            raise RunbookError(f"{target} is there already, and {source} came since; look who made it")
        if _renamed(source, target):
            return
        write(record, json.dumps(None).encode())
    copied = moved(record)
    if copied is None:
        copied = _copied_all(source, target)
        for below in directories(source):
            make_directory(_at(target, below))
        write(record, json.dumps(copied).encode())
    if objects.on_s3(source, target) is not None:
        left = objects.tree(source)
        _unchanged(source, target, {rest: told for rest, told in left.items() if rest in copied}, copied)
        objects.remove_from_tree(source, left.keys() & copied.keys())
        return
    for below in copied:
        _unchanged(source, target, {below: now} if (now := mark(_at(source, below))) is not None else {}, copied)
        remove(_at(source, below))
    remove_empty_tree(source)


def move_entries(
    source: str, target: str, names: Sequence[str], record: str, found: Mapping[str, str] | None = None
) -> None:
    """Entries of one directory on S3 into another, all of them at once; otherwise as `move`.

    `found` is given by who has just listed them and seen that the target holds none: of 20,000 objects a list is long.
    """
    if begun := exists(record):
        found = None
    else:
        if found is None and (taken := objects.entries(target, names)):
            raise RunbookError(f"{join(target, min(taken))} is there already; look who made it")
        write(record, json.dumps(None).encode())
    copied = moved(record)
    if copied is None:
        copied = dict(found) if found is not None else objects.entries(source, names)
        objects.copy_entries(source, target, copied, none_there=not begun)
        write(record, json.dumps(copied).encode())
    left = {name: told for name, told in objects.entries(source, names).items() if name in copied}
    _unchanged(source, target, left, copied)
    objects.remove_entries(source, left)


def together(source: str, target: str) -> bool:
    """Whether entries of one can be moved to the other all at once, and had better be: each on its own takes a second."""
    return objects.on_s3(source, target) is not None


def _copied_all(source: str, target: str) -> dict[str, str]:
    if objects.on_s3(source, target) is not None:
        wanted = objects.tree(source)
        objects.copy_tree(source, target, wanted)
        return wanted
    return {below: _copied(_at(source, below), _at(target, below)) for below in _below(source)}


def _unchanged(source: str, target: str, now: Mapping[str, str], was: Mapping[str, str]) -> None:
    for below, told in now.items():
        if told != was[below]:
            raise RunbookError(
                f"{_at(source, below.lstrip('/'))} was changed while it was moved to {target}; look who writes to it"
            )


def moved(record: str) -> dict[str, str] | None:
    """What a move without a rename has copied, all of it: path below → mark. None while it still copies."""
    data = read(record)
    told = json.loads(data) if data else None
    return None if told is None else dict(told)


def _renamed(source: str, target: str) -> bool:
    here, there = local_path(source), local_path(target)
    if here is None or there is None:
        return False
    make_directory(os.path.dirname(there))
    try:
        os.rename(here, there)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    sync_directory(os.path.dirname(there))
    sync_directory(os.path.dirname(here))
    return True


def copy(source: str, target: str) -> None:
    """One file, compared after it was written."""
    here, there = local_path(source), local_path(target)
    if here is None or there is None:
        if here is None and there is None and source.partition("://")[0] == target.partition("://")[0]:
            objects.copy(source, target)
        else:
            write(target, read(source) or b"")
        if digest(target) != digest(source):
            raise RunbookError(f"{target}: is not what was copied from {source}; try again")
        return
    make_directory(os.path.dirname(there))
    # Always the same name: what a kill left of it is overwritten by the next try.
    draft = os.path.join(os.path.dirname(there), f".{os.path.basename(there)}{TEMPORARY}")
    try:
        if os.path.islink(here):
            remove(draft)
            os.symlink(os.readlink(here), draft)
        else:
            shutil.copyfile(here, draft)
            shutil.copystat(here, draft)
            _same_owner(here, draft)
            with open(draft, "rb") as file:
                os.fsync(file.fileno())
            if digest(draft) != digest(here):
                raise RunbookError(f"{there}: is not what was copied from {here}; try again")
        os.replace(draft, there)
    except OSError:
        remove(draft)
        raise
    sync_directory(os.path.dirname(there))


def remove_drafts(url: str) -> None:
    """What a killed `write` of this file left beside it."""
    path = local_path(url)
    if path is None:
        return
    directory, name = os.path.split(path)
    for each in names(directory):
        if each.startswith(f".{name}.") and each.endswith(TEMPORARY):
            remove(os.path.join(directory, each))


def digest(url: str) -> str | None:
    """SHA-256 of a file, or of where a link points to; None where there is none."""
    path = local_path(url)
    if path is None:
        data = read(url)
        return None if data is None else hashlib.sha256(data).hexdigest()
    try:
        if os.path.islink(path):
            return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def mark(url: str) -> str | None:
    """What changes when the bytes of a file do, got as cheaply as its store can tell; None where there is none."""
    return objects.mark(url) if local_path(url) is None else digest(url)


def join(url: str, *names: str) -> str:
    return "/".join([url.rstrip("/"), *names])


def parent(url: str) -> str:
    return url.rstrip("/").rpartition("/")[0]


def sync_directory(path: str) -> None:
    """Without this a power cut can forget a name though its bytes were synced."""
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copied(source: str, target: str) -> str:
    was, told = digest(source), mark(source)
    if was is None or told is None:
        raise RunbookError(f"{source} went away while it was copied to {target}; look who writes to it")
    if digest(target) != was:
        copy(source, target)
    return told


def _below(url: str) -> list[str]:
    """The files of a tree as paths below it; "" where it is a file itself."""
    return [below for below, _ in files(url)] if is_directory(url) else [""] if exists(url) else []


def directories(url: str) -> list[str]:
    """Every directory of a tree, "" for itself, each before those in it. On S3 those that have a marker."""
    path = local_path(url)
    if path is None:
        return objects.directories(url)
    if not is_directory(url):
        return []
    return ["" if (below := os.path.relpath(at, path)) == "." else below for at, _, _ in os.walk(path)]


def _at(url: str, below: str) -> str:
    return join(url, below) if below else url
