"""Start what outlives the notebook, stop what others run, talk to who should not hear."""

from ..bank import attack


@attack()
def surviving_daemon():
    """A process that left its session goes on after the notebook."""
    return """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c",
            "import time, pathlib\\nfor _ in range(600):\\n"
            "    try: pathlib.Path('$ROOT/$MARK').touch()\\n"
            "    except OSError: pass\\n"
            "    time.sleep(0.1)  # $MARK"])
    os._exit(0)
"""


@attack()
def surviving_subprocess():
    """nohup and a new session keep a shell alive."""
    return """
import subprocess
subprocess.Popen("trap '' HUP INT TERM; for i in $(seq 60); do sleep 1; touch $ROOT/$MARK; done # $MARK",
                 shell=True, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


@attack(
    "last", stock="the kernel is killed, and what would wait ends with the namespace of this run"
)
def code_at_exit():
    """atexit, threads and finalizers run when the kernel ends."""
    return """
import atexit, threading, time
def late():
    open("$ROOT/$MARK", "w").write("x")
atexit.register(late)
class Late:
    def __del__(self): late()
keep = Late()
def wait():
    time.sleep(5)
    late()
threading.Thread(target=wait).start()
"""


@attack()
def kill_everything():
    """Sends SIGKILL to every process that it may."""
    return """
import os, signal
os.kill(-1, signal.SIGKILL)
"""


@attack(
    stock="here nbgrader is the first process of a namespace, which can't be killed from within; without one it can"
)
def kill_the_grader():
    """Kills the grader, the process that started it, and its process group."""
    return (
        """
import os, signal
me = os.getpid()
for target in (int("$PID"), os.getppid()):
    try:
        if target > 1:
            os.kill(target, signal.SIGKILL)
    except OSError as error:
        print(error.strerror)
"""
        + """
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != me:
        try:
            if b"autograder" in open(f"/proc/{name}/cmdline", "rb").read():
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass
"""
    )


@attack(stock="stock's time limit kills the kernel: 0 points for all")
def stop_instead_of_dying():
    """Stops itself, so that the grader waits."""
    return """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@attack(stock="no other kernel ran")
def other_kernels():
    """Looks for other kernels: connection files, Jupyter's runtime folder, their ports and sockets."""
    return """
import glob, os, socket, json
found = glob.glob("/root/.local/share/jupyter/runtime/*.json") + glob.glob("/tmp/**/kernel*.json", recursive=True)
for path in found:
    print("$WIN", path, open(path).read()[:300])
for line in open("/proc/net/unix"):
    name = line.split()[-1]
    if "jupyter" in name or "kernel" in name or "notebook" in name or "judge" in name:
        print("$WIN", name)
"""


@attack()
def abstract_socket():
    """Reaches another process through an abstract socket name, which needs no file."""
    return """
import socket
line = socket.socket(socket.AF_UNIX)
line.connect("\\0judge-$PORT")
line.sendall(b"$MARK")
"""


@attack()
def network_tcp():
    """Sends the answers to a listener by TCP."""
    return """
import socket
with socket.create_connection(("127.0.0.1", int("$PORT")), timeout=2) as line:
    line.sendall(b"$MARK")
"""


@attack()
def network_udp():
    """Sends the answers to a listener by UDP."""
    return """
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"$MARK", ("127.0.0.1", int("$PORT")))
"""


@attack()
def network_by_program():
    """Sends the answers with another program."""
    return """
import subprocess, sys
subprocess.run(["bash", "-c", "echo $MARK > /dev/tcp/127.0.0.1/$PORT"], timeout=5)
code = "import socket; socket.create_connection(('127.0.0.1', $PORT), 2).sendall(b'$MARK')"
subprocess.run([sys.executable, "-c", code], timeout=5)
"""


@attack()
def raw_socket():
    """Opens raw and packet sockets."""
    return """
import socket
for family in (socket.AF_INET, socket.AF_PACKET, socket.AF_NETLINK, 40):
    for kind in (socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind)
            print("opened $WIN", family, kind)
        except OSError as error:
            print(family, kind, error.strerror)
"""
