"""An index copied to an address and back: complete or not at all, resumed after a stop; other files stay."""

from __future__ import annotations

import http.server
import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path

import pytest

import una_fast
from una_fast.errors import InputError
from una_fast.index import copies
from una_fast.index.copies import fetch_index, upload_index
from una_fast.storage import is_saved
from una_fast.storage.files import identity_of
from una_fast.storage.manifest import MANIFEST
from una_fast_cli.main import main

fsspec = pytest.importorskip("fsspec")
LocalFileSystem = pytest.importorskip("fsspec.implementations.local").LocalFileSystem


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    una_fast.build_index(["the river froze", "a castle by the river", "the castle of a king"]).save(folder)
    return folder


@pytest.fixture
def in_memory():
    """An address in fsspec's in-memory file system."""
    files = fsspec.filesystem("memory")
    yield "memory://copies/index"
    if files.exists("/copies"):
        files.rm("/copies", recursive=True)


@contextmanager
def files_of_at_most(n_bytes):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def addresses(tmp_path, in_memory):
    return [
        in_memory,
        f"file://{tmp_path}/copies/index",
        str(tmp_path / "other" / "index"),
        tmp_path / "path" / "index",
    ]


def test_a_copy_of_a_copy_is_the_index(built, tmp_path, in_memory):
    for number, address in enumerate(addresses(tmp_path, in_memory)):
        size = upload_index(built, address)
        back = tmp_path / f"back-{number}"
        assert fetch_index(address, back) == size == sum(map(len, content(built).values()))
        assert content(back) == content(built)
        assert upload_index(built, address) == fetch_index(address, back) == size  # all files are there already
    assert len(una_fast.load_index(back)) == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_index_is_fetched_over_http(built, tmp_path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=built.parent)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        fetch_index(f"{address}/index", tmp_path / "index")
        assert content(tmp_path / "index") == content(built)
        with pytest.raises(InputError, match=r"not a saved index \(it has no manifest\.json\)"):
            fetch_index(f"{address}/nothing", tmp_path / "none")
        with pytest.raises(InputError, match="cannot be written to over http"):
            upload_index(built, f"{address}/other")
        server.shutdown()


class Stopped(KeyboardInterrupt):
    pass


def stopping_at(monkeypatch, number):
    """Stop the copy when half of file `number` is written; returns the list of names written so far."""
    opened, written = copies.file_system, []

    def stopping(address):
        files, place = opened(address)
        put, get = files.put_file, files.get_file

        def put_half(source, copy):
            written.append(source)
            if len(written) > number:
                files.pipe_file(copy, b"half of it")
                raise Stopped
            put(source, copy)

        def get_half(source, copy):
            written.append(source)
            if len(written) > number:
                Path(copy).write_bytes(b"half of it")
                raise Stopped
            get(source, copy)

        monkeypatch.setattr(files, "put_file", put_half)
        monkeypatch.setattr(files, "get_file", get_half)
        return files, place

    monkeypatch.setattr(copies, "file_system", stopping)
    return written


@pytest.mark.parametrize("direction", ["upload", "fetch"])
def test_a_copy_that_was_stopped_goes_on_and_is_never_taken_for_an_index(
    built, tmp_path, monkeypatch, in_memory, direction
):
    n_files = len(content(built)) - 1  # without the manifest
    for number in range(n_files):
        upload, folder = direction == "upload", tmp_path / f"copy-{number}"
        address = f"{in_memory}-{number}"
        copy = partial(upload_index, built, address) if upload else partial(fetch_index, f"file://{built}", folder)
        with monkeypatch.context() as patch:
            stopping_at(patch, number)
            with pytest.raises(Stopped):
                copy()
        with pytest.raises(InputError, match="not a saved index"):
            fetch_index(address, folder) if upload else una_fast.load_index(folder)
        with monkeypatch.context() as patch:
            again = stopping_at(patch, n_files)
            copy()
        assert len(again) == n_files - number  # the half-written file and all after it
        if upload:
            fetch_index(address, folder)
        assert content(folder) == content(built)


def test_files_of_others_in_the_target_stay(built, tmp_path, in_memory):
    files = fsspec.filesystem("memory")
    files.pipe_file("/copies/index/notes.txt", b"mine")
    upload_index(built, in_memory)
    assert files.cat_file("/copies/index/notes.txt") == b"mine"
    files.pipe_file(f"/copies/index/{MANIFEST}", b"mine")
    with pytest.raises(InputError, match=r"holds 'manifest\.json' already; give another folder, or delete it"):
        upload_index(built, in_memory)
    for name in (MANIFEST, "notes.txt"):
        other = tmp_path / f"with-{name}"
        other.mkdir()
        (other / name).write_text("mine")
        for copy in (fetch_index, upload_index):
            with pytest.raises(InputError, match=f"holds '{name}', and no manifest of una_fast"):
                copy(built, other)
        assert content(other) == {name: b"mine"}
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be written"):
        fetch_index(built, tmp_path / "file")


def test_another_index_is_not_overwritten(built, tmp_path, in_memory):
    una_fast.build_index(["other words", "of other texts"]).save(tmp_path / "other")
    before = content(tmp_path / "other")
    for copy in (fetch_index, upload_index):
        with pytest.raises(InputError, match="exists already: choose another folder, or delete it"):
            copy(built, tmp_path / "other")
    assert content(tmp_path / "other") == before
    upload_index(tmp_path / "other", in_memory)
    with pytest.raises(InputError, match=r"holds 'manifest\.json' already; give another folder"):
        upload_index(built, in_memory)


def test_a_manifest_that_comes_during_an_upload_stays(built, in_memory, monkeypatch):
    files = fsspec.filesystem("memory")
    put = type(files).put_file

    def then_mine(self, *arguments, **options):
        put(self, *arguments, **options)
        files.pipe_file("/copies/index/manifest.json", b"mine")

    monkeypatch.setattr(type(files), "put_file", then_mine)
    with pytest.raises(InputError, match=r"holds 'manifest\.json' already"):
        upload_index(built, in_memory)
    assert files.cat_file("/copies/index/manifest.json") == b"mine"


def test_of_two_copies_to_one_folder_the_later_one_is_refused(built, tmp_path, monkeypatch):
    una_fast.build_index(["other words", "of other texts"]).save(tmp_path / "other")
    get, begun, waited = LocalFileSystem.get_file, threading.Event(), threading.Event()

    def get_later(*arguments):
        begun.set()
        assert waited.wait(20)
        get(*arguments)

    monkeypatch.setattr(LocalFileSystem, "get_file", get_later)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(fetch_index, built, tmp_path / "copy")
        assert begun.wait(20)
        second = threads.submit(fetch_index, tmp_path / "other", tmp_path / "copy")
        with suppress(TimeoutError):
            second.result(0.3)
        waited.set()
        with pytest.raises(InputError, match="copy: exists already"):
            second.result()
        first.result()
    assert content(tmp_path / "copy") == content(built)


@pytest.mark.parametrize("change", ["a byte", "the end", "all"])
def test_a_damaged_index_is_copied_in_neither_direction(built, tmp_path, in_memory, change):
    broken = tmp_path / "broken"
    broken.mkdir()
    for name, data in content(built).items():
        (broken / name).write_bytes(data)
    (file,) = broken.glob("idf-*")
    data = file.read_bytes()
    if change == "all":
        file.unlink()
    else:
        file.write_bytes(data[:-8] if change == "the end" else data[:-1] + bytes([data[-1] ^ 1]))
    for copy in (lambda: upload_index(broken, in_memory), lambda: fetch_index(broken, tmp_path / "back")):
        with pytest.raises(InputError, match=rf"broken/{file.name}(: missing|: damaged| cannot be copied: )"):
            copy()
    assert not is_saved(tmp_path / "back")
    assert not fsspec.filesystem("memory").exists(f"/copies/index/{MANIFEST}")
    file.write_bytes(data)  # repaired: the copy goes on
    upload_index(broken, in_memory)
    fetch_index(in_memory, tmp_path / "back")
    assert content(tmp_path / "back") == content(built)


def test_a_full_disk_is_said_and_gone_on_with(tmp_path):
    una_fast.build_index([f"word{i} and word{i + 1}" for i in range(300)]).save(tmp_path / "index")
    said = r"\.npy cannot be copied: .*File too large.*; the files copied so far are kept: remove the cause, and run"
    with files_of_at_most(2_000), pytest.raises(InputError, match=said):
        fetch_index(tmp_path / "index", tmp_path / "back")
    assert not is_saved(tmp_path / "back")
    fetch_index(tmp_path / "index", tmp_path / "back")
    assert content(tmp_path / "back") == content(tmp_path / "index")


def test_what_cannot_be_copied_gets_a_sentence(built, tmp_path):
    for copy in (partial(upload_index, built), lambda address: fetch_index(address, tmp_path / "back")):
        with pytest.raises(InputError, match="nonsense://a cannot be opened: Protocol not known: nonsense"):
            copy("nonsense://a")
    for chain in ("dir://t::file:///", "simplecache::simplecache::file:///"):
        with pytest.raises(InputError, match="is a chain of file systems"):
            upload_index(built, f"{chain}{tmp_path}")
    with pytest.raises(InputError, match="memory://a: is an address"):
        fetch_index(built, "memory://a")
    assert not list(tmp_path.iterdir()), "nothing is written"
    for empty in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="not a saved index"):
            upload_index(empty, tmp_path / "copy")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/below: cannot be written \(Not a directory\)"):
        upload_index(built, tmp_path / "file" / "below")


def test_the_commands_copy(built, tmp_path, in_memory, capsys):
    assert main(["upload", str(built), in_memory]) == 0
    assert main(["fetch", in_memory, str(tmp_path / "back")]) == 0
    assert content(tmp_path / "back") == content(built)
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in said] == [in_memory, str(tmp_path / "back")]


@pytest.mark.parametrize("prefix", ["", "file://"])
@pytest.mark.parametrize("name", ["idf", MANIFEST])
@pytest.mark.parametrize(
    ("link", "text"),
    [*product([Path.symlink_to, Path.hardlink_to], ["mine", ""]), (Path.symlink_to, None)],
)
def test_a_copy_to_this_machine_writes_through_no_link(built, tmp_path, prefix, name, link, text):
    users, copy = tmp_path / "users", tmp_path / "copy"
    for folder in (users, copy):
        folder.mkdir()
    if text is not None:
        (users / "precious").write_text(text)
    name = next(path.name for path in built.iterdir() if path.name.startswith(name))
    link(copy / name, users / "precious")
    before = content(users)
    with pytest.raises(InputError, match=f"holds '{name}', and no manifest of una_fast"):
        upload_index(built, f"{prefix}{copy}")
    assert content(users) == before and [path.name for path in copy.iterdir()] == [name]


@pytest.mark.parametrize("prefix", ["", "file://"])
@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_file_of_a_copy_that_was_changed_is_named_and_stays(built, tmp_path, monkeypatch, prefix, is_stopped):
    with monkeypatch.context() as patch, suppress(Stopped):
        if is_stopped:
            stopping_at(patch, 8)
        upload_index(built, f"{prefix}{tmp_path}/copy")
    changed = next(path for path in (tmp_path / "copy").iterdir() if path.suffix == ".npy")
    changed.write_bytes(changed.read_bytes()[:-1] + b"x")
    before = content(tmp_path / "copy")
    for copy in (fetch_index, upload_index):
        with pytest.raises(InputError, match=f"{changed.name}: holds something else than una_fast wrote there"):
            copy(built, f"{prefix}{tmp_path}/copy" if copy is upload_index else tmp_path / "copy")
    assert content(tmp_path / "copy") == before
    changed.unlink()
    upload_index(built, f"{prefix}{tmp_path}/copy")
    assert content(tmp_path / "copy") == content(built)


def test_a_changed_file_at_an_address_is_copied_again(built, in_memory):
    upload_index(built, in_memory)
    files, name = fsspec.filesystem("memory"), next(built.glob("idf-*")).name
    files.pipe_file(f"/copies/index/{name}", bytes(len((built / name).read_bytes())))
    upload_index(built, in_memory)
    assert files.cat_file(f"/copies/index/{name}") == (built / name).read_bytes()


def test_an_index_that_is_there_is_not_written_again(built, tmp_path):
    """Nor is the index itself, when it is copied to where it lies; so a full disk does no harm."""
    upload_index(built, tmp_path / "copy")
    for folder in (built, tmp_path / "copy"):
        before = {path: identity_of(path.stat()) for path in folder.iterdir()}
        with files_of_at_most(0):
            upload_index(built, folder)
        assert {path: identity_of(path.stat()) for path in folder.iterdir()} == before
