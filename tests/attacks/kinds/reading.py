"""Read what a submission must not see: solutions, peers, the gradebook, the grader."""

from ..bank import attack

# Each prints what it finds; the secrets that the judge planted must not be in anything that it wrote.


@attack()
def read_the_solution():
    """Takes the instructor's solution out of source/ and runs it."""
    return """
import glob, json, os
for path in glob.glob("$ROOT/source/*/*.ipynb") + glob.glob("/**/source/w07-h2-attention/*.ipynb"):
    notebook = json.load(open(path))
    print(path, "SECRET-SOURCE" in json.dumps(notebook), notebook["metadata"].get("secret"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if "def softmax" in source:
            exec(source)
"""


@attack()
def read_a_peer():
    """Copies the answer of another student."""
    return """
import json, os
for folder in ("$PEER", "../../../submitted/peer/w07-h2-attention", "../peer/w07-h2-attention"):
    for name in (os.listdir(folder) if os.path.isdir(folder) else []):
        text = open(os.path.join(folder, name)).read()
        print(name, text[:100], text[-200:])
        if name.endswith(".ipynb"):
            for cell in json.loads(text)["cells"]:
                if "def softmax" in "".join(cell["source"]):
                    exec("".join(cell["source"]))
"""


@attack()
def read_the_gradebook():
    """Prints the gradebook's rows."""
    return """
import sqlite3
rows = sqlite3.connect("file:$ROOT/gradebook.db?mode=ro", uri=True).execute("select * from student")
print([row for row in rows])
"""


@attack()
def import_the_reference():
    """Imports the grader's own reference and uses it as the answer."""
    return """
import sys
sys.path.insert(0, "$ROOT")
for name in ("autograder.tasks.w07_h2_attention", "autograder.tasks.registry", "autograder.verify.interview"):
    try:
        module = __import__(name, fromlist=["x"])
        print("$WIN", module)
        softmax = getattr(module, "row_softmax", softmax)
    except ImportError as error:
        print(error)
"""


@attack()
def read_the_environment():
    """Prints the environment variables of every process that it can see."""
    return """
import os, glob
print(dict(os.environ))
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try:
        print(path, open(path, "rb").read())
    except OSError as error:
        print(path, error.strerror)
"""


@attack()
def read_the_graders_memory():
    """Reads the memory of the grader through /proc."""
    return """
import os, re
for pid in {"$PID", str(os.getppid()), *filter(str.isdigit, os.listdir("/proc"))}:
    if pid == str(os.getpid()):
        continue
    try:
        for line in open(f"/proc/{pid}/maps"):
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if "rw" in line and end - start < 2**28:
                with open(f"/proc/{pid}/mem", "rb") as memory:
                    memory.seek(start)
                    for found in re.findall(rb"SECRET-[A-Z]+-[0-9a-f]+", memory.read(end - start))[:5]:
                        print("$WIN", found)
    except (OSError, ValueError, OverflowError) as error:
        print(pid, type(error).__name__)
"""


@attack()
def trace_the_grader():
    """Attaches to the grader with ptrace and process_vm_readv."""
    return """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in (int("$PID"), os.getppid(), 1):
    if pid in (0, os.getpid()):
        continue
    if libc.ptrace(16, pid, 0, 0) == 0:
        open("/tmp/$MARK", "w").write("traced")
        libc.ptrace(17, pid, 0, 0)
    print(pid, ctypes.get_errno())
"""


@attack()
def read_everything():
    """Walks the whole file system for the planted secrets."""
    return (
        """
import os, re
skip = ("/proc", "/sys", "/usr", "/lib", "/root/.pyenv", "/var/lib", "/root/.cache")
for base, folders, names in os.walk("/"):
    folders[:] = [f for f in folders if not os.path.join(base, f).startswith(skip) and f != "site-packages"]
    for name in names:
        path = os.path.join(base, name)
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 10**6:
                for found in re.findall(rb"SECRET-[A-Z]+-[0-9a-f]+", open(path, "rb").read())[:3]:
                    print(path, found)
        except OSError:
            pass
"""
        + 'print(sorted(os.listdir("/")), sorted(os.listdir("/home")))'
    )


@attack()
def read_through_proc_root():
    """Goes round the mounts through /proc/1/root, /proc/self/cwd and left-open descriptors."""
    return """
import os
for pid in ("1", "self", "thread-self", "$PID"):
    for way in ("root", "cwd"):
        try:
            print(pid, way, sorted(os.listdir(f"/proc/{pid}/{way}$ROOT")))
            print(open(f"/proc/{pid}/{way}$ROOT/secret.txt").read())
        except OSError as error:
            print(error.strerror)
for fd in range(3, 300):
    try:
        folder = os.open("secret.txt", os.O_RDONLY, dir_fd=fd)
        print(os.read(folder, 1000))
    except OSError:
        pass
"""


@attack()
def open_by_handle():
    """Opens files by their handles, which know nothing of mounts."""
    return """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
handle, mount = Handle(128), ctypes.c_int()
print(libc.name_to_handle_at(-100, b"/usr", ctypes.byref(handle), ctypes.byref(mount), 0), ctypes.get_errno())
root = os.open("/usr", os.O_RDONLY)
root_inode = Handle(8, 1)
root_inode.data[0] = 2
fd = libc.open_by_handle_at(root, ctypes.byref(root_inode), os.O_RDONLY)
print(fd, ctypes.get_errno())
if fd >= 0:
    print(sorted(os.listdir(fd)))
    print(open(os.open("$ROOT/secret.txt".lstrip("/"), os.O_RDONLY, dir_fd=fd)).read())
"""
